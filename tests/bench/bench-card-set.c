/* SPDX-License-Identifier: Apache-2.0 */

/* The choice of linked cards beside a baseline in the same run: the lowest indexes. Pods of 1, 2
 * and 4 cards come and go on one machine. Printed are the mean rate of the slowest pair of a pod's
 * cards, and what one choice costs.
 *
 * bench-card-set [ROUNDS] */

#include <stdlib.h>

#include "../unit/random.h"
#include "base/clock.h"
#include "share/card_set.h"

enum { PODS = 16 };

static Random random_state;

static uint32_t pick(uint32_t below) {
        return random_below(&random_state, below);
}

/* ---- machines ---- */

typedef uint16_t (*Rate)(uint32_t a, uint32_t b);

/* DGX-1 with V100: each card has two links to two cards and one link to two others; the rest
 * crosses PCIe. */
static uint16_t rate_of_cube(uint32_t a, uint32_t b) {
        static const uint8_t links[8][8] = {
                {0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
                {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0},
        };

        return links[a][b] > 0 ? links[a][b] * 25 : a / 4 == b / 4 ? 10 : 5;
}

/* Bridges join pairs of cards, of which one sits on either side. */
static uint16_t rate_of_bridges(uint32_t a, uint32_t b) {
        return a % 8 == b % 8 ? 100 : a / 8 == b / 8 ? 10 : 5;
}

/* Four islands of four cards. */
static uint16_t rate_of_islands(uint32_t a, uint32_t b) {
        return a % 4 == b % 4 ? 50 : 8;
}

static CardLinks *make(uint32_t n, Rate rate, CardLinks **table) {
        uint16_t peers[CARD_LINKS_MAX][CARD_LINKS_MAX];
        CardInfo cards[CARD_LINKS_MAX];
        CardLinks *links;

        for (uint32_t i = 0; i < n; i++) {
                for (uint32_t k = 0; k < n; k++)
                        peers[i][k] = i == k ? 0 : rate(i, k);
                cards[i] = (CardInfo){.index = i, .numa = -1, .peers = peers[i], .n_peers = n};
        }
        if (card_links_from_info(cards, n, &links) < 0 || !links)
                exit(1);
        return card_set_intern(table, links);
}

/* ---- pods come and go ---- */

typedef struct Figures {
        uint64_t rates, pods, nsec, worst_nsec;
} Figures;

static uint32_t lowest(uint32_t idle, unsigned k) {
        uint32_t set = 0;

        for (; k > 0; k--, idle &= idle - 1)
                set |= idle & -idle;
        return set;
}

static uint32_t choose(const CardLinks *l, bool by_links, uint32_t idle, unsigned k, Figures *f) {
        uint64_t begin = clock_nsec(CLOCK_MONOTONIC), nsec;
        uint32_t set = by_links ? card_set_choose(l, 0, idle, k) : lowest(idle, k);

        nsec = clock_nsec(CLOCK_MONOTONIC) - begin;
        f->nsec += nsec;
        f->worst_nsec = nsec > f->worst_nsec ? nsec : f->worst_nsec;
        if (k > 1)
                f->rates += card_set_value(l, set) >> 32;
        f->pods += k > 1;
        return set;
}

static Figures run(const CardLinks *l, bool by_links, unsigned rounds) {
        uint32_t idle = (UINT32_C(1) << l->key.n) - 1, held[PODS] = {0};
        Figures f = {0};

        random_state = (Random){1};
        for (unsigned i = 0; i < rounds; i++) {
                static const unsigned sizes[] = {1, 2, 2, 4, 4};
                uint32_t *pod = &held[pick(PODS)];
                unsigned k = sizes[pick(5)];

                idle |= *pod;
                *pod = 0;
                if ((unsigned) __builtin_popcount(idle) < k)
                        continue;
                *pod = choose(l, by_links, idle, k, &f);
                idle &= ~*pod;
        }
        return f;
}

static void report(const char *name, const CardLinks *l, unsigned rounds) {
        Figures best = run(l, true, rounds), base = run(l, false, rounds);

        (void) printf(
                "%-22s slowest pair %5.1f GB/s, lowest indexes %5.1f; a choice %6.0f ns, at most %llu us\n",
                name, (double) best.rates / (double) best.pods, (double) base.rates / (double) base.pods,
                (double) best.nsec / (double) best.pods, (unsigned long long) best.worst_nsec / 1000);
}

/* The costliest choices of all: every set is alike, so that rule 3 compares all of them. */
static void report_worst(const CardLinks *l) {
        for (unsigned k = 2; k <= 8; k++) {
                uint64_t begin = clock_nsec(CLOCK_MONOTONIC);

                (void) card_set_choose(l, 0, 0xffff, k);
                (void) printf("  %u of 16 cards that are alike: %llu us\n", k,
                              (unsigned long long) (clock_nsec(CLOCK_MONOTONIC) - begin) / 1000);
        }
}

static uint16_t rate_of_one(uint32_t a, uint32_t b) {
        return a + b == 29 ? 9 : 8; /* cards 14 and 15 */
}

int main(int argc, char **argv) {
        unsigned rounds = argc > 1 ? (unsigned) strtoul(argv[1], NULL, 10) : 20000;
        CardLinks *table = NULL, *cube = make(8, rate_of_cube, &table),
                  *bridges = make(16, rate_of_bridges, &table), *islands = make(16, rate_of_islands, &table),
                  *alike = make(16, rate_of_one, &table);

        report("8 cards, cube mesh", cube, rounds);
        report("16 cards, bridges", bridges, rounds / 10);
        report("16 cards, islands", islands, rounds / 10);
        report_worst(alike);
        (void) card_links_unref(cube);
        (void) card_links_unref(bridges);
        (void) card_links_unref(islands);
        (void) card_links_unref(alike);
        return 0;
}
