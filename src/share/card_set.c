/* SPDX-License-Identifier: Apache-2.0 */
#include "share/card_set.h"

static unsigned count_cards(uint32_t set) {
        return (unsigned) __builtin_popcount(set);
}

static unsigned lowest_card(uint32_t set) {
        return (unsigned) __builtin_ctz(set);
}

static uint64_t pack_rank(uint16_t slowest, uint32_t sum) {
        return (uint64_t) slowest << 32 | sum;
}

/* A set to which cards are added, with the values of rules 1 and 2. */
typedef struct Grown {
        uint32_t set, sum;
        uint16_t slowest;
} Grown;

static Grown grow_set(const CardLinks *l, Grown g, unsigned card) {
        const uint16_t *rates = l->key.rate[card];

        for (uint32_t rest = g.set; rest != 0; rest &= rest - 1) {
                uint16_t rate = rates[lowest_card(rest)];

                g.sum += rate;
                g.slowest = rate < g.slowest ? rate : g.slowest;
        }
        g.set |= UINT32_C(1) << card;
        return g;
}

static Grown grow_by(const CardLinks *l, Grown g, uint32_t set) {
        for (; set != 0; set &= set - 1)
                g = grow_set(l, g, lowest_card(set));
        return g;
}

static const Grown nothing = {.slowest = UINT16_MAX};

uint64_t card_set_value(const CardLinks *l, uint32_t set) {
        Grown g = grow_by(l, nothing, set);

        return pack_rank(g.slowest, g.sum);
}

static bool is_on_one_node(const CardLinks *l, uint32_t set) {
        int32_t numa = l->key.numa[lowest_card(set)];

        for (; set != 0; set &= set - 1)
                if (l->key.numa[lowest_card(set)] != numa)
                        return false;
        return true;
}

/* ---- all sets of k cards, lowest indexes first ---- */

typedef struct Search {
        const CardLinks *links;
        uint64_t value;  /* best value by rules 1 and 2 so far */
        unsigned steps;  /* left */
        uint32_t may;    /* cards to choose from */
        uint32_t must;   /* cards that every set has */
        unsigned k_next; /* size of the rest's set in rule 3 */
        uint64_t left;   /* best value by rule 3 so far */
        bool one_node;   /* whether `best` satisfies rule 4 */
        bool any;        /* `best` is set */
        uint32_t best;   /* the best set by rules 3 to 5 so far */
} Search;

/* Finds the best value of sets that are `g` and k cards of `may`. */
static void find_value(Search *s, Grown g, uint32_t may, unsigned k) {
        if (s->steps > 0)
                s->steps--;
        if (k == 0) {
                uint64_t value = pack_rank(g.slowest, g.sum);

                s->value = value > s->value ? value : s->value;
                return;
        }
        for (; count_cards(may) >= k; may &= may - 1) {
                Grown more = grow_set(s->links, g, lowest_card(may));

                if (more.slowest >= s->value >> 32)
                        find_value(s, more, may & (may - 1), k - 1);
        }
}

/* The value of rule 3 for a set; 0 when it leaves too few cards. */
static uint64_t value_left(Search *s, uint32_t set) {
        uint32_t rest = s->may & ~set;
        Search next = {.links = s->links, .steps = s->steps};

        if (s->k_next > count_cards(rest))
                return 0;
        find_value(&next, nothing, rest, s->k_next);
        s->steps = next.steps;
        return next.value;
}

/* Whether no other set can be better: the rest is as good as the set itself, and rule 4 holds.
 * Unless there are cards of `must`, no rest can be better than the best set. */
static bool is_best_possible(const Search *s) {
        return s->must == 0 && s->left == s->value && s->one_node;
}

static void compare_rest(Search *s, uint32_t set) {
        uint64_t left;
        bool one_node;

        if (s->any && (s->steps == 0 || is_best_possible(s)))
                return;
        one_node = is_on_one_node(s->links, set);
        left = value_left(s, set);
        if (s->any && (left < s->left || (left == s->left && one_node <= s->one_node)))
                return;
        s->any = true;
        s->left = left;
        s->one_node = one_node;
        s->best = set;
}

/* Compares the sets of value s->value by rules 3 and 4; the order of the search is rule 5. */
static void find_set(Search *s, Grown g, uint32_t may, unsigned k) {
        if (k == 0) {
                if (pack_rank(g.slowest, g.sum) == s->value)
                        compare_rest(s, g.set);
                return;
        }
        for (; count_cards(may) >= k; may &= may - 1) {
                Grown more = grow_set(s->links, g, lowest_card(may));

                if (more.slowest >= s->value >> 32)
                        find_set(s, more, may & (may - 1), k - 1);
        }
}

static uint32_t search_set(const CardLinks *l, uint32_t must, uint32_t may, unsigned k) {
        Search s = {.links = l,
                    .steps = CARD_SET_STEPS,
                    .may = may,
                    .must = must,
                    .k_next = k + count_cards(must)};
        Grown g = grow_by(l, nothing, must);

        find_value(&s, g, may, k);
        s.steps = CARD_SET_STEPS;
        find_set(&s, g, may, k);
        return s.best & ~must;
}

/* ---- more cards ---- */

static uint32_t grow_best(const CardLinks *l, uint32_t must, uint32_t may, unsigned k) {
        Grown g = grow_by(l, nothing, must);

        for (; k > 0; k--) {
                Grown best = nothing;

                for (uint32_t rest = may & ~g.set; rest != 0; rest &= rest - 1) {
                        Grown more = grow_set(l, g, lowest_card(rest));

                        if (best.set == 0 ||
                            pack_rank(more.slowest, more.sum) > pack_rank(best.slowest, best.sum))
                                best = more;
                }
                g = best;
        }
        return g.set & ~must;
}

/* Grows a set from each card in turn, because the first card decides about the others. */
static uint32_t grow_from_each(const CardLinks *l, uint32_t may, unsigned k) {
        uint64_t best_value = 0;
        uint32_t best = 0;

        for (uint32_t first = may; first != 0; first &= first - 1) {
                uint32_t card = first & -first, set = card | grow_best(l, card, may & ~card, k - 1);
                uint64_t value = card_set_value(l, set);

                if (best == 0 || value > best_value) {
                        best = set;
                        best_value = value;
                }
        }
        return best;
}

uint32_t card_set_choose(const CardLinks *l, uint32_t must, uint32_t may, unsigned k) {
        if (k == 0 || count_cards(may) == k)
                return k == 0 ? 0 : may;
        if (must == 0 && l->table && l->key.n <= CARD_LINKS_TABLE)
                return l->best[may][k];
        if (count_cards(may) <= CARD_SET_SEARCHED)
                return search_set(l, must, may, k);
        return must == 0 ? grow_from_each(l, may, k) : grow_best(l, must, may, k);
}

/* ---- the table ---- */

/* Rule 5: whether the lowest card that only one of the sets has is in a. */
static bool is_lower(uint32_t a, uint32_t b) {
        uint32_t differ = a ^ b;

        return differ != 0 && (a & differ & -differ) != 0;
}

/* Rules 3 to 5: whether a is better than b, both sets of `idle` of the same size and value. */
static bool is_better_rest(const CardLinks *l, const uint64_t *values, uint32_t idle, uint32_t a,
                           uint32_t b) {
        unsigned k = count_cards(a);
        bool enough = count_cards(idle) >= 2 * k;
        uint64_t left_a = enough ? values[l->best[idle & ~a][k]] : 0,
                 left_b = enough ? values[l->best[idle & ~b][k]] : 0;

        if (left_a != left_b)
                return left_a > left_b;
        if (is_on_one_node(l, a) != is_on_one_node(l, b))
                return is_on_one_node(l, a);
        return is_lower(a, b);
}

static void fill_table(CardLinks *l) {
        uint64_t values[1 << CARD_LINKS_TABLE];

        for (uint32_t set = 0; set < 1 << CARD_LINKS_TABLE; set++)
                values[set] = card_set_value(l, set);
        for (uint32_t idle = 1; idle < UINT32_C(1) << l->key.n; idle++)
                for (uint32_t set = idle; set != 0; set = (set - 1) & idle) { /* each subset of idle */
                        uint8_t *best = &l->best[idle][count_cards(set)];

                        if (*best == 0 || values[set] > values[*best] ||
                            (values[set] == values[*best] && is_better_rest(l, values, idle, set, *best)))
                                *best = (uint8_t) set;
                }
}

CardLinks *card_set_intern(CardLinks **table, CardLinks *links) {
        CardLinks *known;

        if (!links || links->table)
                return links;
        HASH_FIND(hh, *table, &links->key, sizeof links->key, known);
        if (known) {
                (void) card_links_unref(links);
                return card_links_ref(known);
        }
        if (links->key.n <= CARD_LINKS_TABLE)
                fill_table(links);
        HASH_ADD(hh, *table, key, sizeof links->key, links);
        if (hash_added(links, hh))
                links->table = table;
        return links;
}
