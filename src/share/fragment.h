/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How much free memory of a node the next pod is expected to be unable to use, and how a request
 * would change that. The next pod is drawn from the shapes of the grants in the ledger
 * (shape_tally.h), so nothing has to be configured.
 *
 * The fragment of a node for a pod is the free memory of cards with less than the pod wants of
 * each. If fewer cards than it wants have enough, it is the free memory of all cards. The expected
 * fragment is the mean over the typical shapes, weighted by their number of grants. Amounts are
 * fractions of a card, so that nodes with cards of different sizes compare.
 *
 * The measure is that of "Beware of Fragmentation" (Weng et al., USENIX ATC 2023) without
 * processors. These have a measure of their own, which decides between nodes of one level: free
 * cards of a node without cpu are useless, too. */

#include "share/ledger_node.h"
#include "share/request.h"
#include "share/shape_tally.h"

/* The typical shapes are the most frequent ones that make up this percentage of the grants. */
enum { FRAGMENT_TYPICAL_PERCENT = 95 };

typedef struct TypicalShape {
        Shape shape;
        uint32_t weight; /* share of the grants, in units of 1 / FRAGMENT_ONE */
} TypicalShape;

enum { FRAGMENT_ONE = 1 << 16 };

/* Sums over the grants of shares, not of whole cards. */
typedef struct CardLoad {
        uint64_t parts; /* cards that they take, in units of 1 / FRAGMENT_ONE */
        uint64_t cpu;   /* requests of their pods, in thousandths of a core */
} CardLoad;

typedef struct Fragment {
        /* typical shapes, sorted by units; those of several cards are in `several`, too */
        TypicalShape *shapes;
        uint32_t *above; /* above[i]: sum of the weights of shapes[i] and all behind it */
        TypicalShape *several;
        size_t n, n_several;
        uint64_t cpu_per_card; /* mean of the grants, in thousandths of a core; 0: not known */
        uint64_t generation;   /* 0: never made */
        uint64_t made_at;      /* ShapeTally.changes at that time */
} Fragment;

/* Recomputes the typical shapes if the tally has changed enough: with fewer than 64 grants at every
 * change, with n grants after n/64 changes. Keeps the former shapes when memory is out. */
void fragment_refresh(Fragment *f, const ShapeTally *t, const CardLoad *load);
void fragment_done(Fragment *f);

/* The growth of the node's expected fragment if the request got these of its cards: r->cards of
 * them, each with room. In units of 1 / (FRAGMENT_ONE * FRAGMENT_ONE) of a card. Pure. */
int64_t fragment_growth(const Fragment *f, const LedgerNode *n, const Request *r,
                        const LedgerCard *const *cards);

/* The growth of free card capacity for which the node has too little cpu left, at the mean cpu per
 * card of running pods. 0 when that mean or the node's cpu is unknown. Unit as above. Pure. */
int64_t fragment_cpu_growth(const Fragment *f, const LedgerNode *n, const Request *r,
                            const LedgerCard *const *cards);

/* Rounds a growth to levels of `thousandths` of a card, so that nodes that differ little are equal.
 * Returns 0 to FRAGMENT_LEVELS - 1; FRAGMENT_LEVEL_SAME: no growth. */
enum { FRAGMENT_STEP = 40, FRAGMENT_CPU_STEP = 200 };
enum { FRAGMENT_LEVEL_SAME = 1 << 13, FRAGMENT_LEVELS = 1 << 14 };
uint32_t fragment_level(int64_t growth, int64_t thousandths);
