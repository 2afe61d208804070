/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The distinct reasons of one filter call, with the number of nodes that each refuses.
 * kube-scheduler joins them to one Event, and adds what preemption found, about 165 bytes:
 *
 *     0/30 nodes are available: 20 REASON, 10 REASON. preemption: 0/30 nodes are available: ...
 *
 * So that the Event is readable, few reasons keep their text where there are many, and the others
 * become REASON_OTHER. The reason of the nearest node always keeps it, because it is the one that
 * can be acted on. kube-scheduler sorts the reasons as texts; their order here does not matter. */

#include "share/refusal_reason.h"

#define REASON_OTHER "node(s) for other reasons"

enum {
        REASON_TALLY_MAX = 32,
        REASON_TEXT_MAX = 300, /* bytes of all reasons, with the count and the comma of each */
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

/* Counts one refused node. Returns the number of its reason, for reason_tally_text(). */
unsigned reason_tally_count(ReasonTally *r, const Refusal *refusal);

/* After the last node: decides which reasons keep their text: that of the nearest node, then those
 * of the most nodes. The order of the nodes does not matter, because kube-scheduler begins each
 * call with another node. nearest: empty where no node is nearer than others. The caller writes the
 * text of the nearest node itself, which may be none of the items. */
void reason_tally_fold(ReasonTally *r, Str nearest);

Str reason_tally_text(const ReasonTally *r, unsigned reason);
