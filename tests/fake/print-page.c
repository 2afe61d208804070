/* SPDX-License-Identifier: Apache-2.0 */

/* Prints page.py: the layout of the slice page for tests that are written in Python. */

#include <inttypes.h>
#include <stdio.h>

#include "slice/counter_word.h"
#include "slice/page.h"

static void number(const char *name, uint64_t value) {
        printf("%s = %" PRIu64 "\n", name, value);
}

/* Offsets in the file limits. */
static void print_limits(void) {
        printf("\n# ---- limits: offsets ----\n\n");
        number("LIMITS_MAGIC", SLICE_LIMITS_MAGIC);
        number("LIMITS_SIZE", sizeof(SliceLimits));
        number("VERSION_AT", offsetof(SliceLimits, version)); /* the same in counters */
        number("GENERATION", offsetof(SliceLimits, generation));
        number("LIMIT", offsetof(SliceLimits, limit));
        number("CARD", offsetof(SliceLimits, card));
        number("CORE_PERCENT", offsetof(SliceLimits, core_percent));
        number("FLAGS", offsetof(SliceLimits, flags));
        number("UUID", offsetof(SliceLimits, uuid));
        number("UUID_SIZE", SLICE_UUID);
        number("FILES", offsetof(SliceLimits, ctl)); /* three: control, device, uvm */
        number("FILE_SIZE", sizeof(SliceFile));
        number("CONTAINER", offsetof(SliceLimits, container));
        number("CONTAINER_SIZE", sizeof((SliceLimits *) NULL)->container);
        number("WEIGHT", offsetof(SliceLimits,
                                  weight)); /* and, behind it, high_priority, policy, max_inst, prio_ratio */
        number("POLICY", offsetof(SliceLimits, policy));
        number("ASKED", offsetof(SliceLimits, asked));
        number("ASKED_SIZE", SLICE_ASKED);
        number("ASKED_LIMIT", offsetof(SliceLimits, asked_limit));
        number("LOG", offsetof(SliceLimits, log));
        number("WINDOW", offsetof(SliceLimits, schedule.window));
        number("SCHEDULE_FLAGS", offsetof(SliceLimits, schedule.flags));
        number("CLOSES", offsetof(SliceLimits, schedule.closes));
        number("DEPTH", offsetof(SliceLimits, schedule.depth));
        number("SEEN", offsetof(SliceLimits, schedule.seen));
}

static void print_values(void) {
        printf("\n# ---- limits: values ----\n\n");
        number("FLAG_OPEN", SLICE_FLAG_OPEN);
        number("FLAG_SAY", SLICE_FLAG_SAY);
        number("WINDOW_OPEN", SCHED_WINDOW_OPEN);
        number("GATED", SCHED_F_GATED);
}

/* Offsets in the file counters, in a row, and in a lane. */
static void print_counters(void) {
        printf("\n# ---- counters ----\n\n");
        number("COUNTERS_MAGIC", SLICE_COUNTERS_MAGIC);
        number("COUNTERS_SIZE", sizeof(SliceCounters));
        number("USED", offsetof(SliceCounters, used));
        number("REFUSED", offsetof(SliceCounters, refused));
        number("SHARED_KEY", offsetof(SliceCounters, shared));
        number("ROWLESS", offsetof(SliceCounters, rowless));
        number("ROWS", offsetof(SliceCounters, rows));
        number("N_ROWS", SLICE_ROWS);
        number("ROW_SIZE", sizeof(SliceRow));
        number("ROW_KEY", offsetof(SliceRow, key));
        number("ROW_WORK", offsetof(SliceRow, work));
        number("WORK_SIZE", sizeof(SliceWork));
        number("N_LANES", SLICE_LANES);
        number("LANE_SIZE", sizeof(SliceLane));
        number("LANE_HELD", offsetof(SliceLane, held));
        number("HELD_SHIFT", SLICE_SEQUENCE_BITS);
        number("USED_SHIFT", 32); /* slice_used_units() */
        number("UNIT", SLICE_UNIT);
}

int main(void) {
        printf("# SPDX-License-Identifier: Apache-2.0\n");
        printf("\"\"\"The layout of the slice page. Generated from src/slice/page.h by "
               "tests/fake/print-page.c: do not edit.\"\"\"\n\n");
        number("VERSION", SLICE_VERSION);
        print_limits();
        print_values();
        print_counters();
        return 0;
}
