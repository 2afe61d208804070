/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The deferred mode of filter. Its usual mode decides about each node by itself, while the request
 * is read. For some pods the nodes belong together: a ResourcePolicy opens one unit of nodes, a
 * gang plans all its members. A chooser says so once the pod is read. The nodes of such a pod are
 * collected, each with the answer of its cards. The chooser looks at all of them after the last
 * one, and refuses those that the pod must not take now. A pod that no chooser takes costs one
 * question to each. */

#include "scheduler/question/args.h"
#include "share/grant.h"
#include "share/request.h"

/* One node of the request, in the arena of the request and in its order. */
typedef struct Candidate {
        struct Candidate *next;
        ArgsNode is;
        Refusal refusal; /* its cards' answer; REFUSAL_NONE: the node fits. The chooser may replace it */
} Candidate;

/* The pod that is asked about. */
typedef struct CandidatesPod {
        const ExtenderArgs *args;
        const Request *request; /* NULL: it asks for none of our resources, or no node can ever take it */
        int64_t priority;       /* of view_pod_priority() */
        uint64_t now;           /* clock_monotonic_usec() of the request */
        Arena *arena;           /* freed after the request */
} CandidatesPod;

typedef struct Chooser {
        /* Whether it decides about this pod: 1, 0 or -ENOMEM. *ret_state, in the arena, is passed
         * to choose() and place_on(). */
        int (*takes)(void *userdata, const CandidatesPod *pod, void **ret_state);
        /* Decides about the pod's nodes; called once, also if there are none. A chooser before this
         * one may have refused some. Returns 0 or -ENOMEM. It may remember its decision, but does
         * not change the cluster. That of the gangs also charges its plan to the ledger. */
        int (*choose)(void *userdata, void *state, Candidate *first);
        /* The grant of cards that it keeps for the pod on the node, which count as free for the
         * pod; NULL: none. shared: another chooser also decides about the pod. May be NULL. */
        const Grant *(*place_on)(void *userdata, void *state, const LedgerNode *node, bool shared);
        void *userdata;
} Chooser;

enum { CHOOSERS_MAX = 2 };
