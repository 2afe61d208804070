/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The smaller and the larger of two numbers, and the excess of one over another, 0 where it has
 * none. */

#include <stddef.h>
#include <stdint.h>

#define MINMAX(type, suffix)                                                                                 \
        static inline type min_##suffix(type a, type b) {                                                    \
                return a < b ? a : b;                                                                        \
        }                                                                                                    \
        static inline type max_##suffix(type a, type b) {                                                    \
                return a > b ? a : b;                                                                        \
        }                                                                                                    \
        static inline type above_##suffix(type a, type b) {                                                  \
                return a > b ? a - b : 0;                                                                    \
        }

MINMAX(uint32_t, u32)
MINMAX(uint64_t, u64)
MINMAX(size_t, size)

#undef MINMAX
