/* SPDX-License-Identifier: Apache-2.0 */
#include "baseline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The authors' constants: score steps, processors of the largest node, share of typical pods. */
enum { SCORE_MAX = 100, CPU_MAX = 128000, TYPICAL_PERCENT = 95 };

typedef struct Typical {
        const TracePod *pod;
        double weight;
        size_t count;
} Typical;

/* What one node is worth to one kind of pod. */
typedef struct Known {
        uint64_t change; /* of the node, plus 1; 0: nothing is known */
        int16_t score;
        uint8_t cards;
} Known;

struct Baseline {
        const World *w;
        bool fgd;
        Typical *typical;
        size_t n_typical;
        Known *known;   /* [kind * n_nodes + node] */
        double *before; /* fragment of each node */
        uint64_t *before_change;
};

/* ---- FGD ---- */

static int by_count(const void *a, const void *b) {
        const Typical *x = a, *y = b;

        if (x->count != y->count)
                return x->count > y->count ? -1 : 1;
        return (x->pod->kind > y->pod->kind) - (x->pod->kind < y->pod->kind);
}

static void find_typical(Baseline *b) {
        const Trace *t = b->w->trace;
        size_t kept = 0;

        b->typical = calloc(t->n_kinds, sizeof *b->typical);
        if (!b->typical)
                trace_die("out of memory", "typical pods");
        for (size_t i = 0; i < t->n_pods; i++) {
                b->typical[t->pods[i].kind].pod = &t->pods[i];
                b->typical[t->pods[i].kind].count++;
        }
        qsort(b->typical, t->n_kinds, sizeof *b->typical, by_count);
        while (b->n_typical < t->n_kinds && kept * 100 < t->n_pods * TYPICAL_PERCENT)
                kept += b->typical[b->n_typical++].count;
        for (size_t i = 0; i < b->n_typical; i++)
                b->typical[i].weight = (double) b->typical[i].count / (double) kept;
}

static double fragment_for(const Baseline *b, const WorldNode *n, const TracePod *m) {
        uint32_t small = 0, enough = 0;

        if (m->cards == 0 || n->cpu < m->cpu || !trace_allows(b->w->trace, m->spec, n->trace))
                return n->sum;
        for (uint32_t k = 0; k < n->trace->cards; k++) {
                if (n->left[k] >= m->part)
                        enough++;
                else
                        small += n->left[k];
        }
        return enough >= m->cards ? small : n->sum;
}

static double fragment(const Baseline *b, const WorldNode *n) {
        double sum = 0;

        for (size_t i = 0; i < b->n_typical; i++)
                sum += b->typical[i].weight * fragment_for(b, n, b->typical[i].pod);
        return sum;
}

static int16_t score_with(const Baseline *b, const WorldNode *n, const TracePod *p, uint8_t cards,
                          double before) {
        WorldNode after = *n;

        after.cpu -= p->cpu;
        for (uint32_t k = 0; k < n->trace->cards; k++)
                if (cards >> k & 1) {
                        after.left[k] -= p->part;
                        after.sum -= p->part;
                }
        return (int16_t) (SCORE_MAX / (1 + exp(-(before - fragment(b, &after)) / TRACE_CARD)));
}

static uint8_t first_cards(const WorldNode *n, const TracePod *p) {
        uint8_t cards = 0;
        uint32_t found = 0;

        for (uint32_t k = 0; k < n->trace->cards && found < p->cards; k++)
                if (n->left[k] >= p->part) {
                        cards = (uint8_t) (cards | 1U << k);
                        found++;
                }
        return cards;
}

static Known fgd(Baseline *b, uint32_t at, const TracePod *p) {
        const WorldNode *n = &b->w->nodes[at];
        Known best = {.score = -1};

        if (b->before_change[at] != n->change + 1) {
                b->before[at] = fragment(b, n);
                b->before_change[at] = n->change + 1;
        }
        if (p->cards != 1 || p->part == TRACE_CARD) {
                best.cards = first_cards(n, p);
                best.score = score_with(b, n, p, best.cards, b->before[at]);
                return best;
        }
        for (uint32_t k = 0; k < n->trace->cards; k++) {
                uint8_t card = (uint8_t) (1U << k);
                int16_t score;

                if (n->left[k] < p->part)
                        continue;
                score = score_with(b, n, p, card, b->before[at]);
                if (score > best.score)
                        best = (Known){.score = score, .cards = card};
        }
        return best;
}

/* ---- BestFit ---- */

static Known best_fit(const Baseline *b, uint32_t at, const TracePod *p) {
        const WorldNode *n = &b->w->nodes[at];
        double cpu = (double) (n->cpu - p->cpu) / CPU_MAX,
               cards = (double) (n->sum - p->cards * p->part) / (TRACE_CARDS_MAX * TRACE_CARD);
        Known known = {.score = (int16_t) (SCORE_MAX * (1 - 0.5 * cpu - 0.5 * cards))};
        uint32_t least = TRACE_CARD + 1;

        if (p->cards != 1)
                known.cards = first_cards(n, p);
        for (uint32_t k = 0; p->cards == 1 && k < n->trace->cards; k++)
                if (n->left[k] >= p->part && n->left[k] < least) {
                        least = n->left[k];
                        known.cards = (uint8_t) (1U << k);
                }
        return known;
}

/* ---- both ---- */

Baseline *baseline_new(const World *w, bool use_fgd) {
        Baseline *b = calloc(1, sizeof *b);
        size_t n = w->trace->n_nodes;

        if (!b)
                trace_die("out of memory", "baseline");
        *b = (Baseline){.w = w,
                        .fgd = use_fgd,
                        .known = calloc(w->trace->n_kinds * n, sizeof *b->known),
                        .before = calloc(n, sizeof *b->before),
                        .before_change = calloc(n, sizeof *b->before_change)};
        if (!b->known || !b->before || !b->before_change)
                trace_die("out of memory", "baseline");
        find_typical(b);
        return b;
}

Baseline *baseline_free(Baseline *b) {
        if (!b)
                return NULL;
        free(b->typical);
        free(b->known);
        free(b->before);
        free(b->before_change);
        free(b);
        return NULL;
}

bool baseline_choose(Baseline *b, const TracePod *p, uint32_t *ret_node, uint8_t *ret_cards) {
        Known *row = &b->known[p->kind * b->w->trace->n_nodes];
        int best = -1;

        for (uint32_t i = 0; i < b->w->trace->n_nodes; i++) {
                const WorldNode *n = &b->w->nodes[i];

                if (!world_has_cpu(n, p) || !world_has_cards(b->w, n, p))
                        continue;
                if (row[i].change != n->change + 1) {
                        row[i] = b->fgd ? fgd(b, i, p) : best_fit(b, i, p);
                        row[i].change = n->change + 1;
                }
                if (row[i].score <= best)
                        continue;
                best = row[i].score;
                *ret_node = i;
                *ret_cards = row[i].cards;
        }
        return best >= 0;
}
