/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Arithmetic that never wraps. Each function returns false and leaves *ret unchanged when the
 * result does not fit; the caller reports which object and value caused it. */

#include <stdbool.h>
#include <stdint.h>

#define CHECKED_BINARY(name, type, builtin)                                                                  \
        static inline bool name(type *ret, type a, type b) {                                                 \
                type r;                                                                                      \
                if (builtin(a, b, &r))                                                                       \
                        return false;                                                                        \
                *ret = r;                                                                                    \
                return true;                                                                                 \
        }

CHECKED_BINARY(u64_add, uint64_t, __builtin_add_overflow)
CHECKED_BINARY(u64_mul, uint64_t, __builtin_mul_overflow)
CHECKED_BINARY(u32_add, uint32_t, __builtin_add_overflow)
CHECKED_BINARY(u32_mul, uint32_t, __builtin_mul_overflow)

#undef CHECKED_BINARY
