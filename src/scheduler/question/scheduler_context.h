/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* State that the parts of the scheduler share; one per process. It outlives them. */

#include "kube/client.h"
#include "scheduler/gang/gangs.h"
#include "scheduler/question/candidates.h"
#include "scheduler/question/feature_hooks.h"
#include "scheduler/question/pending.h"
#include "scheduler/question/promises.h"
#include "scheduler/view/metrics.h"

typedef struct SchedulerContext {
        KubeClient *client;
        View *view;
        Metrics *metrics;
        KubeEventRecorder *recorder; /* NULL: no Events */
        struct Binder *binder;       /* set by binder_new(); NULL: none */
        bool leading;                /* whether the election lets this replica bind */
        /* Whether the lease still runs by the clock. NULL: it does. */
        bool (*lease_runs)(void *userdata);
        /* The hook returns NULL, or why this replica must not change the cluster now. A NULL hook:
         * it always may. */
        const char *(*may_not_act)(void *userdata);
        void *userdata;
        uint32_t filter_best;           /* --filter-best; 0: filter answers all nodes that fit */
        bool spare_idle_cards;          /* --spare-idle-cards (prioritize.c) */
        Pending pending;                /* filled while this replica leads */
        Promises promises;              /* made and read by prioritize */
        Chooser choosers[CHOOSERS_MAX]; /* filter asks them in this order */
        size_t n_choosers;
        PeerHooks peers;
        UnitHooks units;
        Gangs *gangs; /* for reports alone; NULL: gangs are off */
        /* Of the request that is being answered: its time, and memory until its end. */
        usec_t now;
        Arena *arena;
} SchedulerContext;

/* Whether this replica leads now, so that it may write status and Events. */
static inline bool scheduler_context_leads(const SchedulerContext *c) {
        return c->leading && (!c->lease_runs || c->lease_runs(c->userdata));
}

static inline const char *scheduler_context_may_not_act(const SchedulerContext *c) {
        return c->may_not_act ? c->may_not_act(c->userdata) : NULL;
}
