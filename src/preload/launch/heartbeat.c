/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/heartbeat.h"

#include "preload/launch/tunables.h"
#include "slice/schedule.h"

#define STALE ((int64_t) SCHED_STALE_NSEC)

/* Watches a `seen` that does not fit our clock. If it changed between two reads close in time, the
 * difference is a first value of the clock offset. */
static bool has_changed_lately(Heartbeat *b, uint64_t seen, uint64_t now) {
        uint64_t before = atomic_load_explicit(&b->seen, memory_order_relaxed),
                 at = atomic_load_explicit(&b->at, memory_order_relaxed);
        bool lately = now <= at || now - at <= SCHED_STALE_NSEC;

        if (seen == before)
                return lately;
        atomic_store_explicit(&b->at, now, memory_order_relaxed);
        atomic_store_explicit(&b->seen, seen, memory_order_relaxed);
        if (lately && before != 0 && seen > before)
                atomic_store_explicit(&b->clock_offset, (int64_t) (now - seen), memory_order_relaxed);
        return true;
}

/* The smallest observed age is the best estimate of the clock offset between the two time
 * namespaces. */
bool heartbeat_is_alive(Heartbeat *b, uint64_t seen, uint64_t now) {
        int64_t age = (int64_t) (now - seen),
                clock_offset = atomic_load_explicit(&b->clock_offset, memory_order_relaxed);

        if (seen == 0)
                return false;
        if (age <= STALE && age >= -HEARTBEAT_AHEAD_NS) {
                if (clock_offset != 0)
                        atomic_store_explicit(&b->clock_offset, 0, memory_order_relaxed);
                return true;
        }
        if (clock_offset == 0 || age - clock_offset > STALE)
                return has_changed_lately(b, seen, now);
        if (age < clock_offset)
                atomic_store_explicit(&b->clock_offset, age, memory_order_relaxed);
        return true;
}
