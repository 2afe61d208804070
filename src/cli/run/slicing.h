/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which cards a command gets, and how much of them it sees. Pure. */

#include "cli/run/host_cards.h"

typedef struct SliceRequest {
        uint64_t mem;      /* units of each card, 1 at least */
        uint64_t unit_mib; /* MiB, 1 at least */
        uint32_t core;     /* percent of each card, in steps of 5; 0: not limited */
        uint32_t cards;    /* 1 at least */
        const char *only;  /* a card's index or UUID; NULL: any */
} SliceRequest;

/* Bytes of a card that the container sees (slice/visible.h). 0 when the request exceeds
 * the card. */
uint64_t slicing_visible_bytes(uint64_t card_bytes, uint64_t units, uint64_t unit_mib);

enum { SLICING_E_NO_ROOM = 1 };

/* Chooses the fullest cards that have room, so that empty cards stay empty. ret has room for
 * request->cards indices of m->cards. Returns 0, or SLICING_E_NO_ROOM with a fault that lists the
 * free memory of each card. */
int slicing_choose(const HostCards *m, const SliceRequest *request, uint32_t *ret, Fault *fault);

/* Parses "GiB", "128MiB", "2GiB". Returns MiB, 0 when the text is no unit. */
uint64_t slicing_unit(const char *text);
