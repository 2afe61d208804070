/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is known of the cards, scan after scan: which index belongs to which UUID, who is missing,
 * whom an XID fenced and until when. No I/O and no clock: time is passed in.
 *
 * Index. A known UUID keeps its index; a new one gets NVML's, or the lowest free one where that is
 * taken. A new card at the PCI address of a missing one has replaced it and takes its index. Fence.
 * It lifts with a scan in which the card answers without an error, once it has been quiet: `quiet`
 * after the last such XID, twice as long with each relapse within a day, a day at most. One that
 * fell off the bus must also have been found anew by a later session of the driver's. */

#include "base/clock.h"
#include "gpu/cards/fence.h"

typedef struct CardTableEntry {
        MachineCard card; /* as it is published; no UUID: the index is free */
        bool seen;        /* by the scan that is being merged */
        uint32_t xid;     /* that fences it; 0: none */
        usec_t fenced_until;
        usec_t lifted_at;       /* the last fence; 0: never */
        uint64_t fence_session; /* a lost card must be found by a later one; 0: any will do */
        unsigned relapses;
} CardTableEntry;

typedef struct CardTable {
        CardTableEntry cards[CARDS_MAX]; /* by index */
        usec_t quiet;
} CardTable;

/* One answer of the driver. A card that could not be identified has no UUID, one with an error has
 * the words in `trouble`; what could not be read of it is 0. */
typedef struct CardScan {
        MachineCard seen[CARDS_MAX]; /* index: NVML's at this moment */
        size_t n;
        uint64_t session; /* grows with each initialisation of the driver's library */
} CardScan;

enum { CARD_TABLE_QUIET_MAX_HOURS = 24 };

void card_table_init(CardTable *k, usec_t quiet,
                     const CardList *old); /* old: NULL, or of an earlier run; simulated ones are not taken */
void card_table_scan(CardTable *k, const CardScan *scan, usec_t now);
bool card_table_xid(CardTable *k, const char *uuid, uint64_t xid, uint64_t session,
                    usec_t now); /* true: the card is fenced */

/* Fences of an earlier run, after card_table_init(), and those of this one. wall: milliseconds since
 * 1970 at `now`. What names no known card, or no XID that fences, is passed over; no clock can make
 * a fence longer than it was at first. A new session of the driver's goes with a new run, so that a
 * lost card need only answer. */
void card_table_restore(CardTable *k, const CardFences *fences, usec_t now, uint64_t wall);
void card_table_fences(const CardTable *k, usec_t now, uint64_t wall, CardFences *ret);

bool card_table_has_trouble(const CardTable *k);        /* any card that is not healthy */
int card_table_list(const CardTable *k, CardList *ret); /* 0 or -ENOMEM */
