/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/heartbeat.h"

#include "preload/launch/tunables.h"
#include "slice/schedule.h"

#define AWAY ((int64_t) SCHED_STALE_NSEC)

/* Two looks one after the other between which it moved: when that was is known well enough to begin
 * with. */
static bool watch(Heartbeat *b, uint64_t seen, uint64_t now) {
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

/* Whoever sees it sooner after it moved knows better how far the clocks are apart. */
bool heartbeat_is_alive(Heartbeat *b, uint64_t seen, uint64_t now) {
        int64_t age = (int64_t) (now - seen),
                clock_offset = atomic_load_explicit(&b->clock_offset, memory_order_relaxed);

        if (seen == 0)
                return false;
        if (age <= AWAY && age >= -HEARTBEAT_AHEAD_NS) {
                if (clock_offset != 0)
                        atomic_store_explicit(&b->clock_offset, 0, memory_order_relaxed);
                return true;
        }
        if (clock_offset == 0 || age - clock_offset > AWAY)
                return watch(b, seen, now);
        if (age < clock_offset)
                atomic_store_explicit(&b->clock_offset, age, memory_order_relaxed);
        return true;
}
