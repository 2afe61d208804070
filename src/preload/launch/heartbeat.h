/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Is the arbiter there, and what time does it have? Its word is SliceSchedule.seen, which moves every
 * 100 ms at most. Usually its clock is ours. Who is in a time namespace of his own (unshare --time)
 * has another one: then it is there as long as the word moves, whatever it says, and its time is
 * ours less what lay between when that was seen to move. Pure; times are ns. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Heartbeat {            /* all zero: nothing was seen yet */
        _Atomic int64_t clock_offset; /* our clock less its; 0 as long as nothing says otherwise */
        _Atomic uint64_t seen, at;    /* the word that did not fit our clock, and when we saw that first */
} Heartbeat;

/* seen: SliceSchedule.seen; now: by our clock, and looked at after it. Where seen does not fit our
 * clock it is looked at for SCHED_STALE_NSEC before it is said to stand still, so who cannot know yet
 * waits. */
bool heartbeat_is_alive(Heartbeat *b, uint64_t seen, uint64_t now);

/* Our time by its clock. */
static inline uint64_t heartbeat_time(const Heartbeat *b, uint64_t now) {
        return now - (uint64_t) atomic_load_explicit(&b->clock_offset, memory_order_relaxed);
}
