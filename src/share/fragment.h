/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How much free memory of a node a next pod is expected not to be able to use, and how a request
 * would change that. The next pod is drawn from the shapes of the grants that the ledger holds
 * (shape_tally.h), so that nothing has to be configured.
 *
 * The fragment of a node for a pod is what is left on cards with less than the pod wants of each.
 * Where fewer cards have enough than it wants, it is what is left on all cards. Expected: the mean
 * over the typical shapes, by how many grants have them. Amounts are parts of a card, so that nodes
 * with cards of different sizes compare.
 *
 * The measure is that of "Beware of Fragmentation" (Weng et al., USENIX ATC 2023) without
 * processors. They are a measure of their own, which decides between nodes of one level: free cards
 * of a node without cpu are of no use either. */

#include "share/ledger_node.h"
#include "share/request.h"
#include "share/shape_tally.h"

/* Typical are the most frequent shapes that make up so many percent of the grants. */
enum { FRAGMENT_TYPICAL_PERCENT = 95 };

typedef struct TypicalShape {
        Shape shape;
        uint32_t weight; /* of FRAGMENT_ONE */
} TypicalShape;

enum { FRAGMENT_ONE = 1 << 16 };

/* What shares take together. */
typedef struct CardLoad {
        uint64_t parts; /* of cards, in FRAGMENT_ONE */
        uint64_t cpu;   /* requests of their pods, in thousandths of a core */
} CardLoad;

typedef struct Fragment {
        TypicalShape *shapes; /* by units; those of several cards stand again in `several` */
        uint32_t *above;      /* [i]: weights of shapes[i] and all behind it */
        TypicalShape *several;
        size_t n, n_several;
        uint64_t cpu_per_card; /* in thousandths of a core; 0: not known */
        uint64_t generation;   /* 0: never made */
        uint64_t made_at;      /* ShapeTally.changes */
} Fragment;

/* Takes the typical shapes from the tally when it has changed by enough: with fewer than 64 grants
 * at every change, with n grants after n/64 changes. Keeps the former ones when there is no
 * memory. */
void fragment_refresh(Fragment *f, const ShapeTally *t, const CardLoad *load);
void fragment_done(Fragment *f);

/* The growth of the node's expected fragment if the request got these of its cards: r->cards of
 * them, each with room. In parts of a card, of which FRAGMENT_ONE * FRAGMENT_ONE are one. Pure. */
int64_t fragment_growth(const Fragment *f, const LedgerNode *n, const Request *r,
                        const LedgerCard *const *cards);

/* The growth of the free parts of cards for which the node would have no cpu left. Next pods take
 * as much cpu for a card as those that run; where the cpu of either is not known, it is 0. In the
 * same unit. Pure. */
int64_t fragment_cpu_growth(const Fragment *f, const LedgerNode *n, const Request *r,
                            const LedgerCard *const *cards);

/* Growth in levels of so many thousandths of a card, so that nodes that differ by little are equal.
 * 0 to FRAGMENT_LEVELS - 1; FRAGMENT_LEVEL_SAME: it does not grow. */
enum { FRAGMENT_STEP = 40, FRAGMENT_CPU_STEP = 200 };
enum { FRAGMENT_LEVEL_SAME = 1 << 13, FRAGMENT_LEVELS = 1 << 14 };
uint32_t fragment_level(int64_t growth, int64_t thousandths);
