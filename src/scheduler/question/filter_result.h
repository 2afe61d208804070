/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What filter found out about one pod, for what remembers the pod and what tells people. Any client
 * can send the request: what is more than a note asks the watch about the pod. */

#include "scheduler/question/nearest.h"
#include "scheduler/question/reason_tally.h"
#include "wire/pod.h"

enum { FILTER_RESULT_NODES_MAX = 64 };

/* The pointers and texts live as long as the request. */
typedef struct FilterResult {
        Str uid, namespace_, name;
        const Request *request; /* NULL: it asks for none of our resources, or can never run */
        bool fits;              /* some node takes it */
        bool lost_to_plan;      /* a node that refused it for its cards has some of a gang's plan */
        Str for_cards[FILTER_RESULT_NODES_MAX]; /* the first nodes that refused it for their cards alone */
        size_t n_for_cards;
        ReasonTally reasons; /* of all nodes that refused it */
        Nearest nearest;     /* of them, while no node fits */
} FilterResult;
