/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The arbiter of one card: who may launch now, until when, and with how much in flight. Pure: no
 * clock, no I/O, no allocation. Times are ns of one clock that the caller has.
 *
 * One window is open at a time. It is opened when the one before is over: all that was launched in
 * it has ended, or will have ended by the time that the next one's first kernel can be there; or
 * its owner has not let us know for too long, and is overdue: it gets no other window before it
 * has, but for what may be what its work waits for, and what it still does is charged to it.
 * Windows are a quantum long and are charged by what was used, so what one is too long the next
 * ones are later (account.h).
 *
 * What a tenant says is believed as far as it cannot be more than the truth: it used at least the
 * time that its window was not over, less what noticing takes, and at most that time.
 *
 * The caller tells what it has read (engine_report) of those that engine_needs_report() names, and of
 * whoever rang; then asks for a step, and does what the turns say. Numbers of tenants are the
 * caller's to keep; a number is used again after engine_remove(). */

#include "arbiter/account.h"
#include "arbiter/tenant_report.h"
#include "arbiter/window_usage.h"

enum { ENGINE_TENANTS = 128 };
#define QUANTUM_NS        UINT64_C(4500000)     /* ns */
#define OVERRUN_REPORT_NS UINT64_C(10000000000) /* ns */

typedef struct EngineWindow {
        bool gated, open,
                no_notify;   /* quiet: another one has the card, and nobody needs to be told of its end */
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
        uint64_t first_launch,
                start_delay; /* when it first launched in it, 0: not; ns from opening to that, a mean */
        uint64_t busy_before, unseen_before, launched_before,
                charged; /* before this window, three; what was charged of it */
        WindowUsage usage;
        uint64_t arbiter_late;  /* of it: ns that we were late to look */
        uint64_t slice_credit;  /* ns of turns beside its last work that are believed to be others' */
        uint64_t drain_min;     /* ns from a window's close to its end, at least */
        uint64_t drain_timeout; /* ns that others wait for work that it says is in flight */
        uint64_t idle_since,
                idle_time; /* seen without work in its window, 0: not; ns of this window that it was */
        uint64_t idle_time_before; /* the present rest */
        uint32_t n_idle;           /* in this window */
        uint64_t gap_since,
                gap_mean; /* seen with nothing to do since then, 0: it has something; ns, a mean */
        Overrun overrun;
        uint64_t overrun_reported_at,
                progress_at; /* when its kernel was told of; when it last launched or ended something */
        uint64_t unclaimed; /* of overdue work: ns that it is charged for only if it says that it used them */
        uint64_t settled_busy,
                settled_at;            /* used by its own word when it was charged last, and when that was */
        uint64_t silent_charged_until; /* until when its silent processes are charged for */
        uint64_t settle_difference;    /* ns by which that charge and its own word differed */
        uint64_t contested;            /* ns of its windows while others' overdue work was on the card */
        uint64_t active_until, alive_at; /* it counts as wanting until then; when anything last moved */
        uint64_t late_allowance; /* ns that it may come late and not pay for it, where nobody loses by that */
        uint64_t brief_idle_until;  /* it had nothing to do shortly before: it may soon be done */
        uint64_t backoff_until;     /* it wanted windows and did nothing with them */
        uint32_t n_empty, n_missed; /* such windows: in a row, and forgotten slowly */
        bool was_idle, extended, active, overrun_reported,
                borrowed; /* the last one not used up; this one extended; lent */
} EngineTenant;

typedef struct EngineOverrun {
        uint32_t tenant;
        uint64_t since;         /* its window closed then, and its work has not ended */
        bool partial, repeated; /* others of its processes go on; told before, and lasts */
} EngineOverrun;

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

void engine_init(Engine *e, uint64_t now);

/* number, open: of a window from an arbiter before us, and whether it may still be; then nothing is
 * opened before that is over. The tenant's number, or -1: ENGINE_TENANTS are there already. */
int engine_add(Engine *e, uint64_t now, const TenantPolicy *policy, uint32_t number, bool open);
void engine_set_policy(Engine *e, uint32_t i, const TenantPolicy *policy); /* at once; what it owes stays */
void engine_remove(Engine *e, uint32_t i);

void engine_report(Engine *e, uint64_t now, uint32_t i, const TenantReport *report);

/* Whether the next step depends on what this one says now. */
bool engine_needs_report(const Engine *e, uint32_t i, uint64_t now);

/* Returns when it wants to be called again, should nobody ring before. One more than SCHED_STALE_NSEC
 * after the last charges nobody for it. */
uint64_t engine_step(Engine *e, uint64_t now);

/* Kernels that have run for longer than e->hung, and each e->hung that they last. Of several the
 * one that has run longest; another's time counts from when that one is gone, because until then it
 * may have waited for it. False: there is none. */
bool engine_next_overrun(Engine *e, EngineOverrun *ret);
