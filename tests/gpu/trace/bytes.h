/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Numbers from the bytes of an event; missing bytes are 0. */

#include <string.h>

#include "line.h"

static inline uint32_t event32(const uint8_t *p, size_t n, size_t at) {
        uint32_t value = 0;

        if (at + sizeof value <= n)
                memcpy(&value, p + at, sizeof value);
        return value;
}

static inline uint64_t event64(const uint8_t *p, size_t n, size_t at) {
        uint64_t value = 0;

        if (at + sizeof value <= n)
                memcpy(&value, p + at, sizeof value);
        return value;
}
