/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/reason_tally.h"

unsigned reason_tally_count(ReasonTally *r, const Refusal *refusal) {
        RefusalReason reason;
        unsigned i = 0;

        refusal_reason(refusal, &reason);
        while (i < r->n && !str_eq(refusal_reason_str(&r->items[i].reason), refusal_reason_str(&reason)))
                i++;
        if (i == REASON_TALLY_MAX) {
                r->others++;
                return REASON_TALLY_MAX;
        }
        if (i == r->n)
                r->items[r->n++].reason = reason;
        r->items[i].nodes++;
        return i;
}

/* Bytes of one reason in the Event: the count of nodes, a blank, the text, a comma and a blank. */
static size_t bytes_of_text(size_t len, uint32_t nodes) {
        size_t digits = 1;

        for (; nodes > 9; nodes /= 10)
                digits++;
        return digits + 1 + len + 2;
}

static size_t bytes_of(const ReasonTally *r, size_t i) {
        return bytes_of_text(r->items[i].reason.len, r->items[i].nodes);
}

/* Whether reason a refuses more nodes than b; if equally many, whether its text is less. */
static bool is_before(const ReasonTally *r, size_t a, size_t b) {
        if (r->items[a].nodes != r->items[b].nodes)
                return r->items[a].nodes > r->items[b].nodes;
        return str_compare(refusal_reason_str(&r->items[a].reason), refusal_reason_str(&r->items[b].reason)) <
               0;
}

/* The reason that follows `last` in that order; r->n: none. last == r->n: the first. */
static size_t next_reason(const ReasonTally *r, size_t last) {
        size_t best = r->n;

        for (size_t i = 0; i < r->n; i++)
                if ((last == r->n || is_before(r, last, i)) && (best == r->n || is_before(r, i, best)))
                        best = i;
        return best;
}

static size_t find_text(const ReasonTally *r, Str text) {
        size_t i = 0;

        while (i < r->n && !str_eq(refusal_reason_str(&r->items[i].reason), text))
                i++;
        return i;
}

void reason_tally_fold(ReasonTally *r, Str nearest) {
        size_t keeps = find_text(r, nearest), all = 0, room = REASON_TEXT_MAX, used;
        uint32_t nodes = r->others;

        for (size_t i = 0; i < r->n; i++) {
                all += bytes_of(r, i);
                nodes += r->items[i].nodes;
        }
        if (all <= room && r->others == 0)
                return;
        room -= bytes_of_text(sizeof REASON_OTHER - 1, nodes);
        if (keeps < r->n)
                room -= bytes_of(r, keeps);
        else if (!str_is_empty(nearest))
                room -= bytes_of_text(nearest.len, 1);
        for (size_t i = next_reason(r, r->n); i < r->n; i = next_reason(r, i)) {
                used = i == keeps ? 0 : bytes_of(r, i);
                r->items[i].folded = used > room;
                room -= r->items[i].folded ? 0 : used;
        }
}

Str reason_tally_text(const ReasonTally *r, unsigned reason) {
        if (reason >= r->n || r->items[reason].folded)
                return STR(REASON_OTHER);
        return refusal_reason_str(&r->items[reason].reason);
}
