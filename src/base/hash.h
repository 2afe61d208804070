/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* <uthash.h> with three changes: out of memory is an answer instead of a call of exit(), keys are
 * hashed by words, and an empty key may be NULL. Include this, never <uthash.h> itself. After every
 * HASH_ADD_*():
 *
 *     if (!hash_added(element, hh))
 *             return -ENOMEM; // and the table is as it was before */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef UTHASH_H
#error "include base/hash.h instead of <uthash.h>"
#endif

/* Multiply and fold, eight bytes at a time. Not for keys that an attacker chooses, because
 * colliding keys are easy to find. */
static inline uint32_t hash_bytes(const void *key, size_t n) {
        const char *p = key;
        uint64_t h = n;

        while (n > 0) {
                size_t step = n < sizeof(uint64_t) ? n : sizeof(uint64_t);
                uint64_t word = 0;

                memcpy(&word, p, step);
                h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio */
                h ^= h >> 32;
                p += step;
                n -= step;
        }
        return (uint32_t) (h ^ h >> 29);
}

#define HASH_FUNCTION(key, length, value) ((value) = hash_bytes((key), (length)))
#define HASH_KEYCMP(a, b, length)         ((length) > 0 ? memcmp(a, b, length) : 0)
#define HASH_NONFATAL_OOM                 1
#include <uthash.h>

#define hash_added(element, handle) ((element)->handle.tbl != NULL)
