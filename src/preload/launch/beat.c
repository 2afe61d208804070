/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/beat.h"

#include "slice/schedule.h"

#define AHEAD                                                                                                \
        INT64_C(10000000000) /* ns: it cannot have been here that much later than now, by the same clock */
#define AWAY ((int64_t) SCHED_STALE_NSEC)

/* Two looks one after the other between which it moved: when that was is known well enough to begin
 * with. */
static bool watch(Beat *b, uint64_t seen, uint64_t now) {
        uint64_t before = atomic_load_explicit(&b->seen, memory_order_relaxed),
                 at = atomic_load_explicit(&b->at, memory_order_relaxed);
        bool lately = now <= at || now - at <= SCHED_STALE_NSEC;

        if (seen == before)
                return lately;
        atomic_store_explicit(&b->at, now, memory_order_relaxed);
        atomic_store_explicit(&b->seen, seen, memory_order_relaxed);
        if (lately && before != 0 && seen > before)
                atomic_store_explicit(&b->apart, (int64_t) (now - seen), memory_order_relaxed);
        return true;
}

/* Whoever sees it sooner after it moved knows better how far the clocks are apart. */
bool beat_is_there(Beat *b, uint64_t seen, uint64_t now) {
        int64_t age = (int64_t) (now - seen), apart = atomic_load_explicit(&b->apart, memory_order_relaxed);

        if (seen == 0)
                return false;
        if (age <= AWAY && age >= -AHEAD) {
                if (apart != 0)
                        atomic_store_explicit(&b->apart, 0, memory_order_relaxed);
                return true;
        }
        if (apart == 0 || age - apart > AWAY)
                return watch(b, seen, now);
        if (age < apart)
                atomic_store_explicit(&b->apart, age, memory_order_relaxed);
        return true;
}
