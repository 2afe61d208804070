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

/* What the container sees of a card (slice/visible.h), in bytes. 0 when it asks for more than the
 * card has. */
uint64_t slicing_visible_bytes(uint64_t card_bytes, uint64_t units, uint64_t unit_mib);

enum { SLICING_E_NO_ROOM = 1 };

/* The fullest cards that have room, so that others stay whole; ret has room for request->cards
 * indices of m->cards. 0, or SLICING_E_NO_ROOM with a fault that says what each card has. */
int slicing_choose(const HostCards *m, const SliceRequest *request, uint32_t *ret, Fault *fault);

/* "GiB", "128MiB", "2GiB". Returns MiB, 0 when it is none. */
uint64_t slicing_unit(const char *text);
