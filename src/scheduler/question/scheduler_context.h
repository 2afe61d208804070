/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the scheduler share: one for the process, which outlives them. */

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
        struct Binder *binder;       /* NULL: there is none */
        bool leading;                /* whether the election lets this replica bind */
        /* NULL, or why this replica must not change the cluster now. NULL: it may always. */
        const char *(*may_not_act)(void *userdata);
        void *userdata;
        uint32_t filter_best;           /* --filter-best; 0: filter answers all nodes that fit */
        bool spare_idle_cards;          /* --spare-idle-cards: prioritize (prioritize.c) */
        Pending pending;                /* written while this replica leads */
        Promises promises;              /* prioritize reads and makes them */
        Chooser choosers[CHOOSERS_MAX]; /* asked by filter, in this order */
        size_t n_choosers;
        PeerHooks peers;
        UnitHooks units;
        Gangs *gangs; /* for reports; NULL: off */
        /* Of the request that is being answered. */
        usec_t now;
        Arena *arena;
} SchedulerContext;

static inline const char *scheduler_context_may_not_act(const SchedulerContext *c) {
        return c->may_not_act ? c->may_not_act(c->userdata) : NULL;
}
