/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/intervals.h"

static void remove_at(Intervals *s, uint32_t i) {
        s->n--;
        for (; i < s->n; i++)
                s->of[i] = s->of[i + 1];
}

/* Merges the two oldest intervals; the gap between them then counts as used. */
static void make_room(Intervals *s) {
        if (s->n < INTERVALS_MAX)
                return;
        s->of[1].from = s->of[0].from;
        remove_at(s, 0);
}

static void insert(Intervals *s, uint64_t from, uint64_t to) {
        uint32_t at;

        make_room(s);
        for (at = s->n; at > 0 && s->of[at - 1].from > from; at--)
                s->of[at] = s->of[at - 1];
        s->of[at].from = from;
        s->of[at].to = to;
        s->n++;
}

uint64_t intervals_add(Intervals *s, uint64_t from, uint64_t to) {
        uint64_t added, first = from, last = to;

        if (to <= from)
                return 0;
        if (s->n == INTERVALS_MAX && to <= s->of[0].from)
                return 0;
        if (s->n == INTERVALS_MAX && from < s->of[0].from)
                first = from = s->of[0].from;
        added = to - from;
        for (uint32_t i = 0; i < s->n;) {
                uint64_t a = s->of[i].from, b = s->of[i].to;

                if (b < from || a > to) {
                        i++;
                        continue;
                }
                added -= (b < to ? b : to) - (a > from ? a : from);
                first = a < first ? a : first;
                last = b > last ? b : last;
                remove_at(s, i);
        }
        insert(s, first, last);
        return added;
}
