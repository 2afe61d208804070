/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is known of the cards over many scans: the index of each UUID, which cards are missing,
 * which XID fenced a card and until when. No I/O and no clock: time is passed in.
 *
 * Index: a known UUID keeps its index. A new one gets NVML's, or the lowest free one where that is
 * taken. A new card at the PCI address of a missing one has replaced it and takes its index.
 *
 * Fence: it lifts with a scan in which the card answers without an error, after a quiet time. That
 * time is `quiet` since the last such XID; it doubles with each relapse within a day, up to a day.
 * A card that fell off the bus must also be found by a later session of the driver's library. */

#include "base/clock.h"
#include "gpu/cards/fence.h"

typedef struct CardTableEntry {
        MachineCard card; /* as published; no UUID: the index is free */
        bool seen;        /* in the scan that is being merged */
        uint32_t xid;     /* the XID that fences it; 0: none */
        usec_t fenced_until;
        usec_t lifted_at; /* end of the last fence; 0: never */
        /* a lost card must be found by a later session; 0: any session counts */
        uint64_t fence_session;
        unsigned relapses;
} CardTableEntry;

typedef struct CardTable {
        CardTableEntry cards[CARDS_MAX]; /* by index */
        usec_t quiet;
        char unnamed[sizeof(((CardList *) NULL)->unnamed)]; /* as in CardList */
} CardTable;

/* One answer of the driver. A card that could not be identified has no UUID; one with an error has
 * its text in `trouble`. Values that could not be read are 0. */
typedef struct CardScan {
        MachineCard seen[CARDS_MAX]; /* index, also of peers: NVML's at this moment */
        size_t n;
        uint64_t session; /* grows with each initialisation of the library */
} CardScan;

enum { CARD_TABLE_QUIET_MAX_HOURS = 24 };

/* old: cards of an earlier run, or NULL; simulated ones are ignored */
void card_table_init(CardTable *k, usec_t quiet, const CardList *old);
void card_table_scan(CardTable *k, const CardScan *scan, usec_t now);
/* Fences the card if the XID is one that does. Returns whether it did. */
bool card_table_xid(CardTable *k, const char *uuid, uint64_t xid, uint64_t session, usec_t now);

/* Restores fences of an earlier run, after card_table_init(); writes those of this run to *ret.
 * wall: milliseconds since 1970 at `now`. A fence of an unknown card, or by an XID that fences
 * nothing, is ignored. No clock change can make a fence longer than it was at first. A new run is
 * also a new session of the library, so a lost card only has to answer. */
void card_table_restore(CardTable *k, const CardFences *fences, usec_t now, uint64_t wall);
void card_table_fences(const CardTable *k, usec_t now, uint64_t wall, CardFences *ret);

/* Whether a card is unhealthy, or was not identified. */
bool card_table_has_trouble(const CardTable *k);
int card_table_list(const CardTable *k, CardList *ret); /* 0 or -ENOMEM */
