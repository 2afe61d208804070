/* SPDX-License-Identifier: Apache-2.0 */
#include "share/fragment.h"

#include <stdlib.h>

#include "share/ledger-internal.h"
#include "share/ledger_card.h"

/* ---- typical shapes ---- */

static int by_count(const void *a, const void *b) {
        const ShapeCount *x = *(ShapeCount *const *) a, *y = *(ShapeCount *const *) b;

        if (x->count != y->count)
                return x->count > y->count ? -1 : 1;
        return shape_tally_compare(&x->shape, &y->shape);
}

static int by_mem(const void *a, const void *b) {
        const Shape *x = &((const TypicalShape *) a)->shape, *y = &((const TypicalShape *) b)->shape;

        if (x->mem != y->mem)
                return x->mem < y->mem ? -1 : 1;
        return shape_tally_compare(x, y);
}

/* The number of shapes that are typical; `sorted` begins with the most frequent. *ret_grants: their
 * grants. */
static size_t count_typical(ShapeCount *const *sorted, size_t n, size_t *ret_grants) {
        size_t all = 0, kept = 0, i = 0;

        for (size_t k = 0; k < n; k++)
                all += sorted[k]->count;
        while (i < n && kept * 100 < all * FRAGMENT_TYPICAL_PERCENT)
                kept += sorted[i++]->count;
        *ret_grants = kept;
        return i;
}

static void fill_shapes(Fragment *f, ShapeCount *const *sorted, size_t n, size_t grants) {
        uint32_t above = 0;

        f->n = n;
        f->n_several = 0;
        for (size_t i = 0; i < n; i++)
                f->shapes[i] = (TypicalShape){
                        .shape = sorted[i]->shape,
                        .weight = (uint32_t) ((uint64_t) sorted[i]->count * FRAGMENT_ONE / grants)};
        qsort(f->shapes, n, sizeof *f->shapes, by_mem);
        for (size_t i = n; i-- > 0;)
                f->above[i] = above += f->shapes[i].weight;
        for (size_t i = 0; i < n; i++)
                if (f->shapes[i].shape.cards > 1)
                        f->several[f->n_several++] = f->shapes[i];
}

static void make_fragment(Fragment *f, const ShapeTally *t, const CardLoad *load) {
        size_t all = HASH_COUNT(t->table), n = 0, grants;
        _cleanup_free_ ShapeCount **sorted = calloc(all + 1, sizeof *sorted);
        Fragment made = {.generation = f->generation + 1, .made_at = t->changes};

        if (!sorted)
                return;
        for (ShapeCount *c = t->table; c; c = c->hh.next)
                sorted[n++] = c;
        qsort(sorted, n, sizeof(ShapeCount *), by_count);
        n = count_typical(sorted, n, &grants);
        made.shapes = calloc(n + 1, sizeof *made.shapes);
        made.above = calloc(n + 1, sizeof *made.above);
        made.several = calloc(n + 1, sizeof *made.several);
        if (!made.shapes || !made.above || !made.several) {
                fragment_done(&made);
                return;
        }
        fill_shapes(&made, sorted, n, grants);
        made.cpu_per_card = load->parts > 0 ? load->cpu * FRAGMENT_ONE / load->parts : 0;
        fragment_done(f);
        *f = made;
}

void fragment_refresh(Fragment *f, const ShapeTally *t, const CardLoad *load) {
        if (f->generation == 0 || t->changes - f->made_at > t->grants / 64)
                make_fragment(f, t, load);
}

void fragment_done(Fragment *f) {
        free(f->shapes);
        free(f->above);
        free(f->several);
        *f = (Fragment){0};
}

/* ---- the measure ---- */

/* Weight of the shapes that want more than so many units of a card. */
static uint32_t part_above(const Fragment *f, uint32_t left) {
        size_t low = 0, high = f->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (f->shapes[middle].shape.mem > left)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low < f->n ? f->above[low] : 0;
}

static int64_t part_of_card(const LedgerCard *c, uint32_t left) {
        return (int64_t) ((uint64_t) left * FRAGMENT_ONE / c->units);
}

/* Growth of the fragment on a card when `taken` of its `left` free units are taken, over the shapes
 * that want more than is left. */
static int64_t growth_of_card(const Fragment *f, const LedgerCard *c, uint32_t left, uint32_t taken) {
        return part_of_card(c, left - taken) * part_above(f, left - taken) -
               part_of_card(c, left) * part_above(f, left);
}

/* The cards with enough room for a shape, and their free memory as parts of a card. */
typedef struct Enough {
        int64_t n, left;
} Enough;

static void count_card(Enough *e, const LedgerCard *c, uint32_t left, uint32_t wanted, int sign) {
        if (left < wanted)
                return;
        e->n += sign;
        e->left += sign * part_of_card(c, left);
}

static int64_t growth_of_node(const TypicalShape *s, const LedgerNode *n, const Request *r,
                              const LedgerCard *const *cards) {
        Enough before = {0}, after;
        int64_t k = s->shape.cards;

        for (size_t i = 0; i < n->n_cards; i++)
                if (n->cards[i].units > 0)
                        count_card(&before, &n->cards[i], ledger_card_free(n, &n->cards[i]), s->shape.mem, 1);
        after = before;
        for (uint32_t i = 0; i < r->cards; i++) {
                uint32_t left = ledger_card_free(n, cards[i]);

                count_card(&after, cards[i], left, s->shape.mem, -1);
                count_card(&after, cards[i], left - r->mem, s->shape.mem, 1);
        }
        return (int64_t) s->weight * ((after.n < k ? after.left : 0) - (before.n < k ? before.left : 0));
}

int64_t fragment_growth(const Fragment *f, const LedgerNode *n, const Request *r,
                        const LedgerCard *const *cards) {
        int64_t growth = 0;

        for (uint32_t i = 0; i < r->cards; i++)
                growth += growth_of_card(f, cards[i], ledger_card_free(n, cards[i]), r->mem);
        for (size_t i = 0; i < f->n_several; i++)
                growth += growth_of_node(&f->several[i], n, r, cards);
        return growth;
}

/* Free parts of cards, less those that the free cpu suffices for. */
static int64_t without_cpu(const Fragment *f, int64_t parts, int64_t cpu) {
        int64_t usable = cpu > 0 ? cpu * FRAGMENT_ONE / (int64_t) f->cpu_per_card : 0;

        return parts > usable ? parts - usable : 0;
}

int64_t fragment_cpu_growth(const Fragment *f, const LedgerNode *n, const Request *r,
                            const LedgerCard *const *cards) {
        int64_t left = (int64_t) (n->now.cpu - n->cpu.shares - n->cpu.others), parts = 0, taken = 0;

        if (f->cpu_per_card == 0 || n->now.cpu == 0)
                return 0;
        for (size_t i = 0; i < n->n_cards; i++)
                if (n->cards[i].units > 0)
                        parts += part_of_card(&n->cards[i], ledger_card_free(n, &n->cards[i]));
        for (uint32_t i = 0; i < r->cards; i++)
                taken += part_of_card(cards[i], r->mem);
        return (without_cpu(f, parts - taken, left - r->cpu) - without_cpu(f, parts, left)) * FRAGMENT_ONE;
}

uint32_t fragment_level(int64_t growth, int64_t thousandths) {
        const int64_t step = (int64_t) FRAGMENT_ONE * FRAGMENT_ONE / 1000 * thousandths;
        int64_t levels = growth > 0 ? (growth + step - 1) / step : growth / step;

        levels += FRAGMENT_LEVEL_SAME;
        return (uint32_t) (levels < 0 ? 0 : levels >= FRAGMENT_LEVELS ? FRAGMENT_LEVELS - 1 : levels);
}
