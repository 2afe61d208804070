/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state of the engine: of each tenant its rights, its account, its newest window, and what is
 * known of its work. Times are ns. */

#include "arbiter/account.h"
#include "arbiter/tenant_report.h"
#include "arbiter/window_usage.h"

enum { ENGINE_TENANTS = 128 };

typedef struct EngineWindow {
        bool gated, open;
        bool no_notify;      /* another one has the card, and nobody needs to be told of its end */
        bool sole;           /* nobody else could have the card before it closes */
        bool ignore_backlog; /* for what comes behind work that does not end: that is not counted */
        uint32_t number;     /* of the newest window */
        uint64_t closes, depth;
        uint64_t drain_ns;      /* ns: what is launched in it is over so long after it closes */
        uint32_t sharers;       /* processes that divide what may be in flight */
        uint64_t granted, used; /* ns, ever: its windows, by our clock; what it was charged */
} EngineWindow;

typedef enum EngineState {
        ENGINE_FREE,    /* no tenant */
        ENGINE_CLOSED,  /* it has no window */
        ENGINE_OPEN,    /* it has the window */
        ENGINE_CLOSING, /* its window is closed and not over: others wait for it */
        ENGINE_OVERRUN  /* the same, and others wait no longer */
} EngineState;

typedef struct EngineTenant {
        EngineState state;
        TenantPolicy policy;
        Account account;
        TenantReport report;
        uint64_t reported_at; /* when */
        EngineWindow window;
        uint64_t opened, exclusive_until; /* the window, and until when it is its own whoever comes */
        uint64_t expected_start;          /* those before it were to be over by then */
        uint64_t first_launch;            /* when it first launched in it; 0: it has not */
        uint64_t start_delay;             /* ns from opening to that, a mean */
        uint64_t busy_before, unseen_before, launched_before; /* before this window */
        uint64_t charged;                                     /* of this window */
        WindowUsage usage;
        uint64_t arbiter_late;     /* of it: ns that we were late to look */
        uint64_t slice_credit;     /* ns of time slices beside its last work that count as others' */
        uint64_t drain_min;        /* ns from a window's close to its end, at least */
        uint64_t drain_timeout;    /* ns that others wait for work that it says is in flight */
        uint64_t idle_since;       /* seen without work in its window; 0: it has some */
        uint64_t idle_time;        /* ns of this window that it was without */
        uint64_t idle_time_before; /* the present rest */
        uint32_t n_idle;           /* in this window */
        uint64_t gap_since;        /* seen with nothing to do since then; 0: it has something */
        uint64_t gap_mean;         /* ns */
        Overrun overrun;
        uint64_t overrun_reported_at; /* when its kernel was told of */
        uint64_t progress_at;         /* when it last launched or ended something */
        uint64_t unclaimed; /* of overdue work: ns that it is charged for only if it says that it used them */
        uint64_t settled_busy;         /* used by its own word when it was charged last */
        uint64_t settled_at;           /* when that was */
        uint64_t silent_charged_until; /* until when its silent processes are charged for */
        uint64_t settle_difference;    /* ns by which that charge and its own word differed */
        uint64_t contested;            /* ns of its windows while others' overdue work was on the card */
        uint64_t active_until;         /* it counts as wanting until then */
        uint64_t alive_at;             /* when anything last moved */
        uint64_t late_allowance; /* ns that it may come late and not pay for it, where nobody loses by that */
        uint64_t brief_idle_until;  /* it had nothing to do shortly before: it may soon be done */
        uint64_t backoff_until;     /* it wanted windows and did nothing with them */
        uint32_t n_empty, n_missed; /* such windows: in a row, and forgotten slowly */
        bool was_idle;              /* the last window was not used up */
        bool extended;              /* this one was */
        bool active;                /* it wants the card, or did within ACTIVE_GRACE_NS */
        bool overrun_reported;      /* its kernel was told of */
        bool borrowed;              /* this window is another one's, which pauses */
} EngineTenant;

typedef struct Engine {
        EngineTenant tenants[ENGINE_TENANTS];
        uint32_t n;                /* those beyond are free */
        int32_t owner;             /* of the open window; -1: none is open */
        uint64_t now, next_step;   /* of the last step, and when it asked to be called again */
        int64_t virtual_clocks[2]; /* of the conserving: of the others, and of those with high priority */
        uint64_t overhead;         /* ns of a window that are not its owner's fault, a moving mean */
        uint64_t overrun_limit;    /* ns */
        uint64_t
                overrun_blamed_at; /* when a kernel that hangs was last on the card: others may wait for it */
        bool beside_overrun;       /* overdue work is on the card */
        uint64_t high_until;       /* somebody who comes first had work until then, and may come again */
} Engine;
