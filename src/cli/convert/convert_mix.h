/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pods of different amounts that shared a card. Each amount is rounded up to units of its own. So
 * as many of each may fit as before, and not of all together. On a card of 16160 MiB and 15 units,
 * 6000 and 10000 MiB become 6 and 10 units. */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* A share of a card in units, and the least that it was before, in hundredths of a MiB. */
typedef struct ConvertShare {
        uint32_t units;
        uint64_t before;
} ConvertShare;

typedef struct ConvertMix {
        ConvertShare *shares; /* one for each number of units */
        size_t n, room;
} ConvertMix;

#define CONVERT_MIX_NULL ((ConvertMix){0})

void convert_mix_done(ConvertMix *mix);

/* Adds a share, which is from 1 unit to all of a card. Returns 0 or -ENOMEM. */
int convert_mix_add(ConvertMix *mix, uint32_t units, uint64_t before);

/* Looks for pods with these shares, any number of each, that fitted on a card together before and
 * do not now. units: of a card; mib: its memory. Cards of more than 8192 units are passed over.
 * Appends one sentence without a line end for the pods that it found, or nothing. Returns 0 or
 * -ENOMEM. */
int convert_mix_check(const ConvertMix *mix, uint64_t mib, uint64_t units, Buf *out);
