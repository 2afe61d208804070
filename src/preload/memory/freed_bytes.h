/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bytes of several cards and rows that have lost their last holder. */

#include <stdint.h>

enum { RM_OBJECTS_CARDS = 32 };

/* Where bytes are counted (GateRow in gate.h): in the process's own row, or in that of files which
 * other processes use, too. */
enum { RM_OBJECTS_OWN = 0, RM_OBJECTS_SHARED, RM_OBJECTS_ROWS };

/* Bytes to give back. Only entries of cards whose bit is set are written. */
typedef struct FreedBytes {
        uint32_t cards[RM_OBJECTS_ROWS];
        uint64_t card[RM_OBJECTS_ROWS][RM_OBJECTS_CARDS];
} FreedBytes;

static inline void freed_bytes_clear(FreedBytes *b) {
        for (unsigned i = 0; i < RM_OBJECTS_ROWS; i++)
                b->cards[i] = 0;
}
