/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The text of ANNOTATION_ALLOCATION, ANNOTATION_INIT_ALLOCATION and ANNOTATION_CORE: for each
 * container its cards, and an amount on each. What the amounts mean is not decided here
 * (share/pod_grant.h). */

#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"

/* What one container holds on one card: units of memory or percent of compute, as the annotation
 * says. */
typedef struct AllocationEntry {
        uint32_t container; /* index in spec.containers, or spec.initContainers for the init form */
        uint32_t card;
        uint32_t amount;
} AllocationEntry;

typedef struct Allocation {
        AllocationEntry *entries; /* by container, then card */
        size_t n_entries;
} Allocation;

enum { ALLOCATION_E_MALFORMED = 1 };

/* Decodes `{"0":{"1":1},"1":{"1":7}}` into the arena. Refused are an entry that stands twice, a
 * card over CARD_INDEX_MAX, a negative or fractional amount, and a string where a number belongs.
 * Digits in quotes are accepted, because older schedulers wrote them. Amount 0 is dropped.
 *
 * Returns 0, ALLOCATION_E_MALFORMED with a fault, or -ENOMEM. */
int allocation_parse(Str text, Arena *arena, Allocation *ret, Fault *fault);

/* Appends the text of entries that are sorted by container, then card. */
void allocation_format(const AllocationEntry *entries, size_t n_entries, Buf *out);
