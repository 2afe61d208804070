/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The distinct reasons of one filter call, and how many nodes each refuses. kube-scheduler joins
 * them into one Event, and adds what preemption found, about 165 bytes:
 *
 *     0/30 nodes are available: 20 REASON, 10 REASON. preemption: 0/30 nodes are available: ...
 *
 * To keep the Event readable, only some of many reasons keep their text; the others become
 * REASON_OTHER. The reason of the nearest node always keeps it, because people can act on that one.
 * kube-scheduler sorts the reasons by their text, so their order here does not matter. */

#include "share/refusal_reason.h"

#define REASON_OTHER "node(s) for other reasons"

enum {
        REASON_TALLY_MAX = 32,
        REASON_TEXT_MAX = 300, /* the most bytes of all reasons, with the count and the comma of each */
};

/* Zeroed: no node is refused. */
typedef struct ReasonTally {
        size_t n;
        uint32_t others; /* nodes whose reason found no place in `items` */
        struct {
                RefusalReason reason;
                uint32_t nodes;
                bool folded;
        } items[REASON_TALLY_MAX];
} ReasonTally;

/* Counts one refused node. Returns the index of its reason, for reason_tally_text(). */
unsigned reason_tally_count(ReasonTally *r, const Refusal *refusal);

/* Called after the last node. Decides which reasons keep their text: that of the nearest node, then
 * those of the most nodes. It does not depend on the nodes' order, because kube-scheduler starts
 * each call at another node. nearest: text of the nearest node's reason, or empty. The caller
 * writes that text itself, as it may be none of the items. */
void reason_tally_fold(ReasonTally *r, Str nearest);

Str reason_tally_text(const ReasonTally *r, unsigned reason);
