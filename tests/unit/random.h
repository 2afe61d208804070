/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The random numbers of tests and benchmarks. One seed gives the same sequence on every machine.
 *
 * It is a linear congruential generator modulo 2^64 with the multiplier of Knuth's MMIX. Each draw
 * uses the upper 31 bits, because the lower ones have short periods. A sequence has no lock: each
 * thread and each process that draws has its own. */

#include <stdint.h>
#include <stdlib.h>

typedef struct Random {
        uint64_t state; /* at first the seed, which may be any number */
} Random;

/* From 0 to 2^31 - 1. */
static inline uint32_t random_next(Random *r) {
        r->state = r->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t) (r->state >> 33);
}

/* From 0 to `n` - 1. The program ends if `n` is not from 1 to 2^31. */
static inline uint32_t random_below(Random *r, uint64_t n) {
        if (n < 1 || n > UINT64_C(1) << 31)
                abort();
        return random_next(r) % (uint32_t) n;
}

/* Any 64 bits. */
static inline uint64_t random_bits(Random *r) {
        uint64_t bits = 0;

        for (unsigned i = 0; i < 4; i++)
                bits = bits << 16 | random_next(r) >> 15;
        return bits;
}
