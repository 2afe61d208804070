/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <sys/random.h>

/* A random number from 0 to below, both included. For jitter: agents that lost the same server must
 * not reconnect at the same moment. */
static inline uint64_t random_up_to(uint64_t below) {
        uint64_t value;

        if (getrandom(&value, sizeof value, GRND_NONBLOCK) != (ssize_t) sizeof value)
                return below; /* early boot: no jitter, the longest wait */
        return below == UINT64_MAX ? value : value % (below + 1);
}
