/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What filter found out about one pod, for pending.h and for Events. Any client can send a request
 * to filter: before more than a note is made, the watch must have the pod. */

#include "scheduler/question/nearest.h"
#include "scheduler/question/reason_tally.h"
#include "wire/pod.h"

enum { FILTER_RESULT_NODES_MAX = 64 };

/* Pointers and texts are valid during the request. */
typedef struct FilterResult {
        Str uid, namespace_, name;
        const Request *request; /* NULL: it asks for none of our resources, or no node can ever take it */
        bool fits;              /* some node takes it */
        bool lost_to_plan;      /* a gang has planned cards on a node that refused the pod for its cards */
        Str for_cards[FILTER_RESULT_NODES_MAX]; /* the first nodes that refused it for their cards alone */
        size_t n_for_cards;
        ReasonTally reasons; /* with the number of nodes that each refused */
        Nearest nearest;     /* node and cards; only while no node fits */
} FilterResult;
