/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The unit of aliyun.com/gpu-mem, and how many of them a card has (docs/reference/reference.md). */

#include "base/buf.h"
#include "base/str.h"

typedef struct MemoryUnit {
        uint32_t mib; /* never 0 */
} MemoryUnit;

#define MEMORY_UNIT_GIB ((MemoryUnit){1024})

enum { MEMORY_UNIT_E_MALFORMED = 1 };

/* Parses "GiB", "MiB", "128MiB", "2GiB"; empty is GiB. Returns 0, or MEMORY_UNIT_E_MALFORMED for
 * other texts, 0 and overflow. */
int memory_unit_parse(Str text, MemoryUnit *ret);
/* Appends the shortest text that memory_unit_parse() reads. */
void memory_unit_format(MemoryUnit unit, Buf *out);

/* Appends an amount as people read it: "3 GiB", "512 MiB", "16 x 128MiB". */
void memory_unit_format_amount(uint32_t units, MemoryUnit unit, Buf *out);

/* The number of whole units on a card with card_mib MiB. */
uint32_t memory_unit_count(uint32_t card_mib, MemoryUnit unit);
