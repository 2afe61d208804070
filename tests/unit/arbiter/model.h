/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A model of a card, of processes with their launch hooks, and of the arbiter around the real
 * engine, on a virtual clock. The clock moves from one event to the next, and the time of each
 * event is known before. Messages between processes take 20 to 60 us, by a pseudo-random sequence
 * from a seed.
 *
 * The card executes the launches of each process in order. Processes take turns of a millisecond. A
 * process without work gives up the rest of its turn. A process measures its work as events do:
 * from when it could have run until it ended, including the turns of other processes. */

#include "arbiter/engine.h"
#include "arbiter/joined.h"
#include "arbiter/report_aggregate.h"
#include "random.h"
#include "slice/schedule.h"

enum { MODEL_TENANTS = 24, MODEL_PROCESSES = 96, MODEL_SAMPLES = 4096, MODEL_CARDS = 8 };

#define USEC UINT64_C(1000)
#define MSEC UINT64_C(1000000)
#define SEC  UINT64_C(1000000000)

typedef enum ModelMisreport {
        MISREPORT_NONE,
        MISREPORT_BUSY_ZERO,    /* reports that it has used nothing */
        MISREPORT_BUSY_BACK,    /* reports a use that decreases */
        MISREPORT_BUSY_JUMPS,   /* reports a use of years */
        MISREPORT_NEVER_DRAINS, /* always reports work in flight */
        MISREPORT_FUTURE,       /* reports a want from the far future on, and a drain of windows to come */
        MISREPORT_ABSENT,       /* wants the card and launches nothing */
        MISREPORT_SHORT,        /* reports at most 1 us of work in flight */
        MISREPORT_LATE,         /* reports a first launch 2 ms after its window opened */
        MISREPORT_IDLE,         /* reports no want while it has work on the card, and a use of 0 */
        MISREPORT_BUSY_LITTLE,  /* reports a thousandth of its use */
        MISREPORT_OVER          /* reports that its work ended with its window, and at most 1 us in flight */
} ModelMisreport;

typedef struct ModelProcess ModelProcess;
struct ModelProcess {
        uint32_t tenant;
        uint64_t kernel;        /* ns, of each kernel */
        uint64_t request, rest; /* ns of work, then ns of pause; request 0: work without end */
        ModelMisreport misreport;
        bool lost_doorbell, stopped, dead;
        /* An old library: it rings at each drain without the time, and not when it becomes idle. */
        bool old;
        bool hasty; /* its last pause was shorter than 0.2 ms */
        /* the state of its work on the card */
        uint64_t left, ran;      /* ns launched and not yet executed; ns executed since its start */
        uint64_t span, measured; /* ns with work on the card; the same at the end of its last kernel */
        /* the state of the process and of its launch hook */
        RowReport report;
        uint64_t pending, arrived, look, launched_in, idled, rang;
        bool paused;         /* it rang for the present pause */
        uint64_t n_launched; /* kernels launched since its start */
        uint64_t moved;      /* one of its kernels ended then, or one passed because none did */
        uint64_t sharing;    /* since then, the most processes of its tenant with work */
        /* The last of every so many kernels is an all-reduce, which ends at all peers together; 0:
         * none is. */
        uint32_t collective;
        ModelProcess *peers[MODEL_CARDS]; /* the other ranks, on other cards */
        uint32_t n_peers;
        uint64_t begun;                             /* how many of its kernels have begun to run */
        uint32_t window;                            /* number of the window in which it launched last */
        uint64_t longest, latencies[MODEL_SAMPLES]; /* ns from a request's arrival to its end */
        uint32_t n_latencies;
};

typedef struct ModelTenant {
        int engine; /* index in the engine; -1: the tenant was removed */
        TenantPolicy policy;
        ReportAggregate aggregate;
        EngineWindow window; /* as the arbiter wrote it last */
        uint64_t ran;        /* ns of the card that it has used */
        uint64_t opened;     /* when its newest window opened */
} ModelTenant;

typedef struct Model {
        Engine engine;
        uint64_t now;
        ModelTenant tenants[MODEL_TENANTS];
        ModelProcess processes[MODEL_PROCESSES];
        uint32_t n_tenants, n_processes;
        int32_t running;         /* index of the process that has the card's turn; -1: none */
        uint64_t timeslice_left; /* ns that remain of its turn */
        uint64_t wake;           /* when the arbiter wakes next */
        uint64_t arbiter_late;   /* ns by which the arbiter wakes later than it asked for, each time */
        Random random;
        uint64_t steps, opens, events, repeats;
        uint32_t overrun_tenant; /* index of the tenant in the newest overrun report */
        bool rung[MODEL_TENANTS];
        bool per_process; /* each process counts its own work in flight against its part of the depth */
        uint64_t late;    /* ns: longest delay of a woken process; the shortest is a tenth of it */
        /* Between these times the launch hooks take the arbiter for absent. */
        uint64_t away, back;
} Model;

void model_init(Model *m, uint64_t seed);
uint32_t model_tenant(Model *m, const TenantPolicy *policy);
ModelProcess *model_process(Model *m, uint32_t tenant, uint64_t kernel);
void model_stop(Model *m, uint64_t ns); /* the arbiter does nothing for `ns` */
/* Kills the process, which the arbiter sees at once, and starts another one in its row. */
void model_begin_again(Model *m, ModelProcess *p);
void model_leave(Model *m, uint32_t tenant); /* ends the tenant's processes and removes the tenant */
void model_run(Model *m, uint64_t until);
/* Runs several cards on one clock, under one arbiter. joined NULL: each card's engine decides by
 * itself. */
void model_run_cards(Model *const cards[], uint32_t n, Joined *joined, uint64_t until);
uint64_t model_done(const ModelProcess *p); /* kernels that were executed since its start */

/* Replaces the arbiter by a new one, which knows only what the pages contain. */
void model_take_over(Model *m);
