/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state of the arbiter of one card and of its tenants. engine.h has the state diagram; window.h
 * and pick.h have the operations. Times are ns of the caller's clock. */

#include "arbiter/account.h"
#include "arbiter/tenant_report.h"

enum { ENGINE_TENANTS = 128, PLAN_NO_WINDOW = 1 };

typedef struct EngineWindow {
        bool gated, open;
        uint32_t number; /* of the newest window: 31 bits, then it wraps */
        uint64_t closes, depth;
        uint64_t drain_ns;      /* work launched in the window ends by closes + drain_ns */
        uint32_t sharers;       /* processes that share the depth */
        uint64_t granted, used; /* sums since the slice was made: window time until drained; charged time */
} EngineWindow;

typedef enum EngineState {
        ENGINE_FREE,
        ENGINE_CLOSED,
        ENGINE_OPEN,
        ENGINE_CLOSING,
        ENGINE_OVERRUN
} EngineState;

typedef struct EngineTenant {
        EngineState state; /* written by window_set_state() only */
        TenantPolicy policy;
        Account account;
        TenantReport report;
        EngineWindow window;
        uint64_t reported_at;
        uint64_t opened, begins;               /* when the window opened; when the card became free for it */
        uint64_t busy_before, launched_before; /* the report's sums when the window opened */
        uint64_t mean_drain; /* moving mean of the time from a window's close to its drain */
        uint64_t idle_since; /* no work in the open window since then; 0: it has work */
        uint64_t idle_time;  /* of this window: time without work */
        uint64_t newly_used; /* busy time reported since the last step */
        uint64_t contended;  /* of this window: time in which another tenant waited */
        uint64_t shared;     /* of this window: half of the time that it overlapped another window */
        uint64_t charged; /* this window's charge; OVERRUN: since its begin; CLOSED: excess over the report */
        uint64_t held;    /* in OVERRUN: its part of the card's time since that began */
        uint64_t charged_beside; /* charged for windows, but maybe used by another tenant's overdue work */
        uint64_t active_until;   /* it counts as a tenant with work until then */
        uint64_t progress_at;    /* the report last changed then */
        uint64_t overrun_since;  /* close of the window whose work is in OVERRUN; 0: none */
        uint64_t overrun_reported_at; /* the overrun was last reported then; 0: not yet */
        uint64_t backoff_until;       /* no window before: it did not use the last ones */
        uint32_t n_empty;             /* unused windows in a row */
        uint32_t set;                 /* number of the joined set (joined.h); 0: none */
        uint64_t planned_end; /* set by joined_plan(): end of its window; PLAN_NO_WINDOW; 0: not planned */
} EngineTenant;

typedef struct Engine {
        EngineTenant tenants[ENGINE_TENANTS];
        uint32_t n;                /* entries in use; those behind are ENGINE_FREE */
        int32_t owner;             /* tenant with the open window; -1: none */
        uint64_t now;              /* time of the last step */
        int64_t virtual_clocks[2]; /* of work-conserving tenants: normal priority, high priority */
        uint64_t high_until;       /* a high-priority tenant has work until then, or may have again */
        uint64_t overrun_limit;    /* work in OVERRUN for longer is reported, ns */
        uint64_t
                reported_overrun_at; /* reported work was last on the card then; others may have waited for it */
        uint64_t reserved;           /* set by joined_plan(): reserved for a set from then on; 0: not */
        uint32_t set_tenant;         /* set by joined_plan(): the set's tenant on this card */
        uint64_t
                idle_for_set_since; /* set by joined_plan(): the card idles for a set since then; 0: it does not */
        bool planned;               /* set by joined_plan(): the card has to be stepped now */
        uint32_t n_planned;         /* set by joined_plan(): tenants in the plan */
} Engine;
