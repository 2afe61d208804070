/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/reason_tally.h"

/* The count of nodes, a blank and a comma with a blank. */
enum { PER_REASON = sizeof "5000 , " - 1 };

unsigned reason_tally_count(ReasonTally *r, const Refusal *refusal) {
        RefusalReason reason;
        unsigned i = 0;

        refusal_reason(refusal, &reason);
        while (i < r->n && !str_eq(refusal_reason_str(&r->items[i].reason), refusal_reason_str(&reason)))
                i++;
        if (i == REASON_TALLY_MAX)
                return REASON_TALLY_MAX;
        if (i == r->n)
                r->items[r->n++].reason = reason;
        r->items[i].nodes++;
        return i;
}

static size_t bytes_of(const ReasonTally *r, size_t i) {
        return r->items[i].reason.len + PER_REASON;
}

/* Whether reason a refuses more nodes than b; of equal ones the first by text. */
static bool is_before(const ReasonTally *r, size_t a, size_t b) {
        if (r->items[a].nodes != r->items[b].nodes)
                return r->items[a].nodes > r->items[b].nodes;
        return str_compare(refusal_reason_str(&r->items[a].reason), refusal_reason_str(&r->items[b].reason)) <
               0;
}

/* The first reason behind `last`; r->n: none. last: r->n to begin. */
static size_t next_reason(const ReasonTally *r, size_t last) {
        size_t best = r->n;

        for (size_t i = 0; i < r->n; i++)
                if ((last == r->n || is_before(r, last, i)) && (best == r->n || is_before(r, i, best)))
                        best = i;
        return best;
}

void reason_tally_fold(ReasonTally *r) {
        size_t room = REASON_TEXT_MAX, all = 0, first = next_reason(r, r->n);

        for (size_t i = 0; i < r->n; i++)
                all += bytes_of(r, i);
        if (all <= room)
                return;
        room -= sizeof REASON_OTHER - 1 + PER_REASON;
        for (size_t i = first; i < r->n; i = next_reason(r, i)) {
                r->items[i].folded = i != first && bytes_of(r, i) > room;
                if (!r->items[i].folded)
                        room -= bytes_of(r, i) < room ? bytes_of(r, i) : room;
        }
}

Str reason_tally_text(const ReasonTally *r, unsigned reason) {
        if (reason >= r->n || r->items[reason].folded)
                return STR(REASON_OTHER);
        return refusal_reason_str(&r->items[reason].reason);
}
