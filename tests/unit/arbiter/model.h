/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A card, the processes on it and their gates, and the engine in the middle, on a clock that does
 * not tick: everything that happens happens at a time that is known before. Messages between
 * processes take 20 to 60 us, by a sequence that a seed determines.
 *
 * The card works off what each process has launched, in order; processes take turns of a
 * millisecond, and the next one's comes at once when one has nothing left. A process measures as
 * events do: the time from when it could have run to when it ended, others' turns included. */

#include "arbiter/engine.h"
#include "arbiter/joined.h"
#include "arbiter/report_aggregate.h"
#include "slice/schedule.h"

enum { MODEL_TENANTS = 24, MODEL_PROCESSES = 96, MODEL_SAMPLES = 4096, MODEL_CARDS = 8 };

#define USEC UINT64_C(1000)
#define MSEC UINT64_C(1000000)
#define SEC  UINT64_C(1000000000)

typedef enum ModelLie {
        LIE_NONE,
        LIE_BUSY_ZERO,    /* it has used nothing */
        LIE_BUSY_BACK,    /* less and less */
        LIE_BUSY_JUMPS,   /* years */
        LIE_NEVER_DRAINS, /* for ever in flight */
        LIE_FUTURE,       /* it wants from tomorrow on, and drained windows that will never be */
        LIE_ABSENT,       /* it wants, and does nothing */
        LIE_SHORT,        /* what is in flight is hardly anything */
        LIE_LATE,         /* it began two milliseconds later than it did */
        LIE_BLOCKED,      /* for ever in flight, nothing of it has begun, and a launch waits */
        LIE_IDLE, /* it says that it wants nothing while it has work on the card, and has used nothing */
        LIE_IDLE_LITTLE, /* the same, and has used a thousandth of what it has */
        LIE_BUSY_LITTLE, /* only that */
        LIE_OVER         /* its work was over when its window closed, and nothing is in flight */
} ModelLie;

typedef struct ModelProcess ModelProcess;
struct ModelProcess {
        uint32_t tenant;
        uint64_t kernel;        /* ns */
        uint64_t request, rest; /* ns: so much work, then so long none; request 0: work without end */
        ModelLie lie;
        bool lost_doorbell, stopped, dead;
        bool old; /* its gate does not say when its window's work was over, and always rings then; never, when it idles */
        bool hasty; /* its last pause was short */
        /* the card's view */
        uint64_t left, ran;      /* ns launched and not done; ns done, ever */
        uint64_t span, measured; /* ns with work, ever; the same when a kernel ended last */
        uint64_t overrun_from;
        /* its own */
        RowReport report;
        uint64_t pending, arrived, look, launched_in, idled, rang;
        bool paused;                      /* it rang for the pause that lasts */
        uint64_t n_launched, launched_at; /* ever; when last */
        uint64_t
                needs; /* what it has launched waits for a launch, this one's number; 0: it waits for nothing */
        bool begins;   /* and seems to have begun: a kernel that waits for another one */
        uint32_t backlog_window; /* the newest window behind work, and what was in flight before it */
        uint64_t backlog;
        uint32_t collective; /* of so many kernels the last one ends at all peers together; 0: none does */
        ModelProcess *peers[MODEL_CARDS]; /* ranks on other cards */
        uint32_t n_peers;
        uint64_t begun;                             /* so many of its kernels have begun to run */
        uint32_t window;                            /* that it launched in last */
        uint64_t longest, latencies[MODEL_SAMPLES]; /* ns from a request to its end */
        uint32_t n_latencies;
};

typedef struct ModelTenant {
        int engine; /* -1: not there */
        TenantPolicy policy;
        ReportAggregate aggregate;
        EngineWindow window; /* as it was written last */
        uint64_t ran;        /* ns of the card, ever */
        uint64_t opened;     /* the newest window, for whoever measures */
} ModelTenant;

typedef struct Model {
        Engine engine;
        uint64_t now;
        ModelTenant tenants[MODEL_TENANTS];
        ModelProcess processes[MODEL_PROCESSES];
        uint32_t n_tenants, n_processes;
        int32_t running;         /* process that has the card's turn; -1: none */
        uint64_t timeslice_left; /* ns of its turn */
        uint64_t wake;           /* of the arbiter */
        uint64_t arbiter_late;   /* ns: it comes so much later than it wanted, each time */
        uint64_t seed, steps, opens, events, repeats;
        uint64_t idle;           /* ns without work on the card */
        uint32_t overrun_tenant; /* whose kernel was told of last */
        bool rung[MODEL_TENANTS];
        bool per_process; /* each process takes the depth for its own */
        uint64_t late;    /* ns: who is woken waits for a processor, for a tenth of this to all of it */
        uint64_t away,
                back; /* while the arbiter stands still, gates keep to their percentages by themselves */
} Model;

void model_init(Model *m, uint64_t seed);
uint32_t model_tenant(Model *m, const TenantPolicy *policy);
ModelProcess *model_process(Model *m, uint32_t tenant, uint64_t kernel);
void model_stop(Model *m, uint64_t ns); /* the arbiter stands still for so long */
/* It is killed, which is seen at once, and another one begins in its place. */
void model_begin_again(Model *m, ModelProcess *p);
void model_leave(Model *m, uint32_t tenant); /* its processes are gone, and so is it */
void model_run(Model *m, uint64_t until);
/* Several cards on one clock, under one arbiter. joined NULL: each card's engine decides alone. */
void model_run_cards(Model *const cards[], uint32_t n, Joined *joined, uint64_t until);
uint64_t model_done(const ModelProcess *p); /* kernels, ever */

/* Another arbiter takes over: what is in the pages is all it knows. */
void model_take_over(Model *m);
