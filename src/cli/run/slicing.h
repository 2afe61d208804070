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
        bool in_gib;       /* messages say GiB, as the user did; else MiB */
} SliceRequest;

/* Returns the bytes of a card that the container sees (slice/visible.h); 0 when the request exceeds
 * the card. */
uint64_t slicing_visible_bytes(uint64_t card_bytes, uint64_t units, uint64_t unit_mib);

enum { SLICING_E_NO_ROOM = 1 };

/* Chooses the fullest cards that have room, so that empty cards stay empty. Cards on which
 * processes outside of slices leave the memory free go before others. ret has room for
 * request->cards indices of m->cards. Returns 0, or SLICING_E_NO_ROOM with a fault that lists the
 * free memory of each card, or the cards where none is meant. */
int slicing_choose(const HostCards *m, const SliceRequest *request, uint32_t *ret, Fault *fault);

/* Checks that a slice of a card may get this size. card: `taken` and `core_taken` are those of the
 * other slices. had, had_core: what the slice has now, in bytes and percent; a part that does not
 * grow is not checked, so an overcommitted card lets its slices shrink. Returns 0, or
 * SLICING_E_NO_ROOM with a fault that says what the card lacks. */
int slicing_check_growth(const HostCard *card, const SliceRequest *request, uint64_t had, uint32_t had_core,
                         Fault *fault);

/* Parses an amount of memory with its unit, GiB or MiB: "2GiB", "1.5Gi", "512MiB". Returns false
 * when the text is none, or not a whole number of MiB from 1. */
bool slicing_amount(const char *text, uint64_t *ret_mib, bool *ret_in_gib);

/* Parses "GiB", "128MiB", "2GiB". Returns MiB, 0 when the text is no unit. */
uint64_t slicing_unit(const char *text);
