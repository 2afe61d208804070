/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads the system's clocks. Pure functions take the time as an argument instead. */

#include <stdint.h>
#include <time.h>

typedef uint64_t usec_t;

#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_PER_SEC  UINT64_C(1000000)
#define NSEC_PER_USEC UINT64_C(1000)

static inline uint64_t clock_nsec(clockid_t id) {
        struct timespec ts;

        (void) clock_gettime(id, &ts); /* fails only for clocks that do not exist */
        return (uint64_t) ts.tv_sec * UINT64_C(1000000000) + (uint64_t) ts.tv_nsec;
}

static inline usec_t clock_monotonic_usec(void) {
        return clock_nsec(CLOCK_MONOTONIC) / NSEC_PER_USEC;
}

static inline uint64_t clock_realtime_nsec(void) {
        return clock_nsec(CLOCK_REALTIME);
}
