/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the arbiter is alive, and the time on its clock. The arbiter renews SliceSchedule.seen at
 * least every 100 ms. Usually both clocks are the same. A process in a time namespace of its own
 * (unshare --time) has another clock: then the arbiter is alive while `seen` changes, and the
 * offset is learnt from these changes. Pure; times are ns. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Heartbeat {            /* all zero: nothing read yet */
        _Atomic int64_t clock_offset; /* our clock minus the arbiter's; 0: the same */
        _Atomic uint64_t seen, at;    /* a `seen` that does not fit our clock; when it was first read */
} Heartbeat;

/* Whether the arbiter is alive. seen: SliceSchedule.seen; now: our clock, read after it. A `seen`
 * that does not fit our clock is watched for SCHED_STALE_NSEC before it counts as stale; until then
 * the answer is true. */
bool heartbeat_is_alive(Heartbeat *b, uint64_t seen, uint64_t now);

/* Converts our time to the arbiter's clock. */
static inline uint64_t heartbeat_time(const Heartbeat *b, uint64_t now) {
        return now - (uint64_t) atomic_load_explicit(&b->clock_offset, memory_order_relaxed);
}
