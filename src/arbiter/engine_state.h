/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the arbiter of a card knows of it and of its tenants. engine.h has the states, window.h and
 * pick.h what is done with them. Times are ns of the caller's clock. */

#include "arbiter/account.h"
#include "arbiter/tenant_report.h"

enum { ENGINE_TENANTS = 128, PLAN_HELD = 1 };

typedef struct EngineWindow {
        bool gated, open;
        bool ignore_backlog; /* work in flight before it is not counted: see BACKLOG_WAIT_NS */
        uint32_t number;     /* of the newest window */
        uint64_t closes, depth;
        uint64_t drain_ns;      /* what is launched in it has ended so long after it closes */
        uint32_t sharers;       /* processes that divide the depth */
        uint64_t granted, used; /* ever: windows until drained, by the arbiter's clock; charged */
} EngineWindow;

typedef enum EngineState {
        ENGINE_FREE,
        ENGINE_CLOSED,
        ENGINE_OPEN,
        ENGINE_CLOSING,
        ENGINE_OVERRUN
} EngineState;

typedef struct EngineTenant {
        EngineState state; /* set by window_set_state() only */
        TenantPolicy policy;
        Account account;
        TenantReport report;
        EngineWindow window;
        uint64_t reported_at;
        uint64_t opened, begins;               /* the window; when the card was free for it */
        uint64_t busy_before, launched_before; /* of the report when it opened */
        uint64_t tail;          /* from a window's close to the end of its work, a moving mean */
        uint64_t idle_since;    /* it has no work in its open window; 0: it has some */
        uint64_t idle_time;     /* of this window, without work */
        uint64_t newly_used;    /* reported since the last step */
        uint64_t contended;     /* of this window, another tenant waited */
        uint64_t shared;        /* of this window, half of the time beside another one */
        uint64_t late;          /* of this window, steps of the arbiter that came late */
        uint64_t charged;       /* for this window; OVERRUN: since it began; CLOSED: more than reported */
        uint64_t held;          /* OVERRUN: its part of the card's time since it began */
        uint64_t beside;        /* charged for windows, and maybe had by work in OVERRUN beside them */
        uint64_t active_until;  /* it counts as wanting until then */
        uint64_t progress_at;   /* when its report last changed */
        uint64_t overrun_since; /* when its window closed, of work in OVERRUN */
        uint64_t told_at;       /* when that was last reported; 0: it was not */
        uint64_t backoff_until; /* it did nothing with its windows */
        uint32_t n_empty;       /* such windows in a row */
        uint32_t set;           /* tenants on several cards that open together (joined.h); 0: it is alone */
        uint64_t until;         /* by joined_plan(): its window's end, PLAN_HELD: none; 0: alone */
        bool planned;           /* by joined_plan(): until was not 0 in the newest plan */
} EngineTenant;

typedef struct Engine {
        EngineTenant tenants[ENGINE_TENANTS];
        uint32_t n;                /* tenants beyond are free */
        int32_t owner;             /* of the open window; -1: none is open */
        uint64_t now, next_step;   /* of the last step; when the next one is due */
        int64_t virtual_clocks[2]; /* of conserving tenants: of normal and of high priority */
        uint64_t high_until;       /* a tenant of high priority had work, or may have again */
        uint64_t overrun_limit;    /* work in OVERRUN for longer is reported */
        uint64_t blamed_at;        /* when reported work was last on the card: others may wait for it */
        uint64_t reserved;         /* by joined_plan(): from then on for a set; 0: it is not */
        uint32_t keeper;           /* by joined_plan(): of the set's tenants the one that is here */
        uint64_t kept_since;       /* by joined_plan(): the card is kept idle; 0: it is not */
        bool planned;              /* by joined_plan(): the card's next step is due */
        bool held;                 /* by joined_plan(): a tenant of it has the plan to decide for it */
} Engine;
