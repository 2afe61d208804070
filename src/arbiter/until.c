/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/until.h"

uint64_t until_first(const EngineTenant *t) {
        return t->began != 0 ? t->began : t->from + HOP;
}

/* What was launched follows without a gap on what has ended: so the end is known from the
 * beginning, as well as kernels are. */
uint64_t until_expected(const EngineTenant *t) {
        return until_first(t) + t->rested + since(t->busy, t->says.busy) +
               min_u64(t->says.in_flight, PATIENCE);
}

uint64_t until_end(const EngineTenant *t, uint64_t now) {
        uint64_t latest = now + min_u64(t->says.in_flight, PATIENCE), end = until_expected(t);

        if (t->says.drained)
                return now;
        if (t->says.n_active > 1 && t->says.in_flight <= t->turn.depth)
                return min_u64(max_u64(now, t->turn.closes + t->tail), latest);
        if (since(t->opened, now) > LONE)
                return latest;
        return end < now ? now : min_u64(end, latest);
}

uint64_t until_waited(const EngineTenant *t) {
        uint64_t work = min_u64(t->says.in_flight, PATIENCE);

        return t->turn.closes + max_u64(2 * ENGINE_QUANTUM, min_u64(2 * work + ENGINE_QUANTUM, t->patience)) +
               t->late;
}

/* When it was over by what a process says to have used: not before all of that. Of several each has
 * seen all of it pass. */
static uint64_t used_until(const EngineTenant *t) {
        return t->says.n_active > 1 ? 0 : until_first(t) + t->rested + since(t->busy, t->says.busy);
}

/* When it was noticed that a window was over, or would have been by whoever waited for it. Who does
 * not say it had the card until he was looked at. */
static uint64_t over_at(const EngineTenant *t, uint64_t now) {
        uint64_t said = max_u64(t->says.over, t->turn.closes) + HOP * 3 / 4;

        return t->says.over == 0 ? now : min_u64(now, max_u64(said, used_until(t)));
}

uint64_t until_over(const EngineTenant *t, uint64_t now) {
        return is_over(t) ? over_at(t, now) : UINT64_MAX;
}

/* Who does not say when he was over pays until he is looked at, but what others have of that is his
 * own word, or a window's work. */
uint64_t until_stayed(const EngineTenant *t, uint64_t now) {
        uint64_t worked = until_first(t) + since(t->busy, t->says.busy);

        if (!is_over(t))
                return UINT64_MAX;
        if (t->says.over == 0 && t->turn.quiet)
                return min_u64(now, max_u64(worked, t->turn.closes + t->turn.rest + HOP));
        return since(2 * HOP, over_at(t, now)); /* which it takes to notice */
}
