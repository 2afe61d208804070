/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/utilization.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "slicedir/slice_files.h"

static bool is_held(const SliceLimits *l) {
        return (atomic_load_explicit(&l->schedule.flags, memory_order_relaxed) & SCHED_F_GATED) ||
               (l->core_percent > 0 && !(l->flags & SLICE_FLAG_OPEN));
}

/* The arbiter writes `used` and `seen` together, by its own clock, so the time of this read does
 * not matter. */
static void take(const SliceLimits *l, uint64_t *used, uint64_t *seen) {
        *used = atomic_load_explicit(&l->schedule.used, memory_order_relaxed);
        *seen = atomic_load_explicit(&l->schedule.seen, memory_order_relaxed);
}

UtilizationSample utilization_begin(const SliceLimits *limits, int directory) {
        UtilizationSample look = {.directory = -1};

        if (is_held(limits))
                look.directory = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        take(limits, &look.used, &look.seen);
        return look;
}

double utilization_end(UtilizationSample *look) {
        SliceLimits limits;
        uint64_t used = 0, seen = 0;
        int directory = look->directory;

        if (directory < 0)
                return -1;
        if (slice_files_read_limits(directory, &limits) == 0)
                take(&limits, &used, &seen);
        look->directory = -1;
        (void) close(directory);
        if (look->seen == 0 || seen <= look->seen || used < look->used)
                return -1; /* the count was restarted, or no arbiter counts */
        return 100.0 * (double) (used - look->used) / (double) (seen - look->seen);
}
