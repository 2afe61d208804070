/* SPDX-License-Identifier: Apache-2.0 */

/* One placement among 5,000 nodes of 8 cards, beside a baseline in the same run: the plain way,
 * which keeps no sums and reads every grant of every node. Also the cost of a filter and of its
 * sentences for each node, and the memory of the ledger.
 *
 * bench-placement [NODES [ROUNDS]] */

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "../unit/random.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "share/placement.h"
#include "share/refusal_format.h"
#include "wire/node.h"
#include "wire/pod.h"

enum { CARDS = 8, UNITS = 15, BASELINE_ROUNDS = 20 };

static Random random_state = {1};

static uint32_t pick(uint32_t below) {
        return random_below(&random_state, below);
}

static void require(bool ok, const char *what) {
        if (ok)
                return;
        (void) fprintf(stderr, "bench-placement: %s\n", what);
        exit(1);
}

/* ---- the cluster ---- */

static void add_node(Ledger *l, size_t i, const char *placement) {
        char name[64];
        Node node = {.mode = STR("core_mem"),
                     .placement = str_from(placement),
                     .allocatable_mem = STR("120"),
                     .allocatable_count = STR("8"),
                     .allocatable_cpu = STR("96")};

        (void) snprintf(name, sizeof name, "cn-hangzhou.192.168.%zu.%zu", i / 256, i % 256);
        node.meta.name = str_from(name);
        require(ledger_node_set(l, &node, NULL) == 0, "node");
}

static Grant *add_grant(Ledger *l, LedgerNode *n, Slice slice, uint64_t app) {
        static unsigned next;
        char name[64], uid[64];
        GrantSpec spec = {.namespace_ = STR("default"),
                          .node = ledger_node_name(n),
                          .slices = &slice,
                          .n_slices = 1,
                          .has_core = slice.core > 0,
                          .app = app,
                          .cpu = 1000 * slice.mem};
        Grant *g = NULL;

        (void) snprintf(name, sizeof name, "resnet-training-7d4b9c%u", next);
        (void) snprintf(uid, sizeof uid, "3e0ad9c1-8b7f-4a32-9d55-%012u", next++);
        spec.name = str_from(name);
        spec.uid = str_from(uid);
        require(grant_new(l, &spec, &g) == 0, "grant");
        return g;
}

/* Fills each card to about `percent`, never more; compute likewise when `core`. */
static void fill(Ledger *l, uint32_t percent, bool core) {
        for (size_t i = 0; i < ledger_n_nodes(l); i++)
                for (uint32_t card = 0; card < CARDS; card++) {
                        uint32_t used = 0, goal = UNITS * percent / 100 + pick(3);

                        goal = goal > UNITS ? UNITS : goal;
                        while (used < goal) {
                                uint32_t mem = 1 + pick(3), room = goal - used;

                                mem = mem > room ? room : mem;
                                (void) add_grant(
                                        l, ledger_node_at(l, i),
                                        (Slice){.card = card, .mem = mem, .core = core ? 5 * mem : 0},
                                        1 + pick(500));
                                used += mem;
                        }
                }
}

/* ---- the baseline ---- */

typedef struct NaiveCard {
        uint64_t mem, core;
        uint32_t pods;
} NaiveCard;

static void ask_grants(const LedgerNode *n, NaiveCard cards[static CARDS]) {
        for (const Grant *g = ledger_node_grants(n); g; g = grant_next(g)) {
                const Slice *slices;
                size_t n_slices;

                slices = grant_slices(g, &n_slices);
                for (size_t i = 0; i < n_slices; i++) {
                        NaiveCard *c = &cards[slices[i].card % CARDS];

                        c->mem += slices[i].mem;
                        c->core += slices[i].core;
                        c->pods++;
                }
        }
}

/* Binpack by memory. The baseline does not tell applications apart. */
static LedgerNode *naive_choose(const Ledger *l, const Request *r) {
        double best_rank = 1e30;
        LedgerNode *best = NULL;

        for (size_t i = 0; i < ledger_n_nodes(l); i++) {
                NaiveCard cards[CARDS] = {0};
                LedgerNode *n = ledger_node_at(l, i);
                uint32_t fits = 0, fits_used = 0;
                uint64_t used = 0;
                double rank;

                ask_grants(n, cards);
                for (size_t k = 0; k < CARDS; k++) {
                        bool ok = cards[k].mem + r->mem <= UNITS && cards[k].core + r->core <= 100 &&
                                  cards[k].pods < 20;

                        fits += ok;
                        fits_used += ok && cards[k].pods > 0;
                        used += cards[k].mem;
                }
                rank = (fits_used < r->cards ? 1 : 0) + 1 - (double) used / (CARDS * UNITS);
                if (fits >= r->cards && rank < best_rank) {
                        best_rank = rank;
                        best = n;
                }
        }
        return best;
}

/* ---- measuring ---- */

static int compare_u64(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

static LedgerNode *volatile answer; /* so that the compiler keeps the call */

typedef struct Quantiles {
        double p50, p99; /* microseconds */
} Quantiles;

static Quantiles measure(const Ledger *l, const Request *r, size_t rounds,
                         LedgerNode *(*choose)(const Ledger *, const Request *) ) {
        _cleanup_free_ uint64_t *nsec = calloc(rounds, sizeof *nsec);
        size_t middle = rounds / 2, late = rounds * 99 / 100;

        require(nsec != NULL, "memory");
        for (size_t i = 0; i < rounds; i++) {
                uint64_t start = clock_nsec(CLOCK_MONOTONIC);

                answer = choose(l, r);
                nsec[i] = clock_nsec(CLOCK_MONOTONIC) - start;
        }
        qsort(nsec, rounds, sizeof *nsec, compare_u64);
        return (Quantiles){.p50 = (double) nsec[middle] / 1e3, .p99 = (double) nsec[late] / 1e3};
}

static void report(const Ledger *l, const char *cluster, const char *what, const Request *r, size_t rounds) {
        Quantiles ours = measure(l, r, rounds, placement_choose_node);
        Quantiles naive = measure(l, r, BASELINE_ROUNDS, naive_choose);

        printf("  %-14s %-22s %8.1f %8.1f %12.1f %10.0fx %s\n", cluster, what, ours.p50, ours.p99, naive.p50,
               naive.p50 / ours.p50, placement_choose_node(l, r) ? "placed" : "no room");
}

/* Checks all nodes in the order of the ledger, as a filter may get them, and writes the sentence of
 * each refusal. */
static void report_filter(const Ledger *l, const Request *r, size_t rounds) {
        _cleanup_buf_ Buf words = BUF_NULL;
        uint64_t checks = 0, sentences = 0, refused = 0;

        for (size_t k = 0; k < rounds; k++) {
                uint64_t start = clock_nsec(CLOCK_MONOTONIC), middle;
                Refusal refusal = {0};

                refused = 0;
                for (size_t i = 0; i < ledger_n_nodes(l); i++)
                        refused += placement_check(ledger_node_at(l, i), r, &refusal) != 0;
                middle = clock_nsec(CLOCK_MONOTONIC);
                buf_clear(&words);
                for (uint64_t i = 0; i < refused; i++)
                        refusal_format(&refusal, &words);
                checks += middle - start;
                sentences += clock_nsec(CLOCK_MONOTONIC) - middle;
        }
        printf("  filter: %llu of %zu nodes refused, %.0f ns per check, %.0f ns per sentence of %.0f bytes\n",
               (unsigned long long) refused, ledger_n_nodes(l),
               (double) checks / (double) (rounds * ledger_n_nodes(l)),
               refused ? (double) sentences / (double) (rounds * refused) : 0,
               refused ? (double) words.len / (double) refused : 0);
}

static size_t count_grants(const Ledger *l) {
        size_t count = 0;

        for (size_t i = 0; i < ledger_n_nodes(l); i++)
                for (const Grant *g = ledger_node_grants(ledger_node_at(l, i)); g; g = grant_next(g))
                        count++;
        return count;
}

/* Bind and unbind, with all sums that are kept. */
static double grant_and_free_nsec(Ledger *l, const Request *r) {
        enum { ROUNDS = 20000 };
        uint64_t start = clock_nsec(CLOCK_MONOTONIC);

        for (size_t i = 0; i < ROUNDS; i++) {
                LedgerNode *n = ledger_node_at(l, pick((uint32_t) ledger_n_nodes(l)));

                (void) grant_free(
                        add_grant(l, n, (Slice){.card = pick(CARDS), .mem = r->mem, .core = r->core}, 7));
        }
        return (double) (clock_nsec(CLOCK_MONOTONIC) - start) / ROUNDS;
}

static void bench_cluster(size_t n_nodes, size_t rounds, const char *label, uint32_t percent, bool core,
                          const char *placement) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c = {.kind = CONTAINER_MAIN, .mem = 2};
        Request r = {.mem = 2, .cards = 1, .app = 7, .cpu = 2000, .containers = &c, .n_containers = 1};
        bool spread = placement[0] != '\0';
        size_t before, nodes_only;

        malloc_trim(0);
        before = mallinfo2().uordblks;
        require(ledger_new(&l) == 0, "ledger");
        for (size_t i = 0; i < n_nodes; i++)
                add_node(l, i, placement);
        nodes_only = mallinfo2().uordblks;
        fill(l, percent, core);
        if (core) {
                r.core = c.core = 10;
                report(l, label, spread ? "compute, spread" : "compute", &r, rounds);
        } else {
                report(l, label, spread ? "memory, spread" : "memory", &r, rounds);
                if (!spread) {
                        ledger_set_order(l, NODE_ORDER_FRAGMENTATION);
                        report(l, label, "memory, fragmentation", &r, rounds);
                        ledger_set_order(l, NODE_ORDER_BINPACK);
                }
                r.cards = 4;
                report(l, label, "memory on 4 cards", &r, rounds);
                r.cards = 1;
        }
        if (percent < 80 || spread)
                return;
        r.mem = c.mem = 8; /* fits nowhere: the worst case of filter */
        report_filter(l, &r, 20);
        r.mem = c.mem = 1;
        printf("  grant and free: %.0f ns; %zu grants: %.0f bytes each; node: %.0f bytes\n",
               grant_and_free_nsec(l, &r), count_grants(l),
               (double) (mallinfo2().uordblks - nodes_only) / (double) count_grants(l),
               (double) (nodes_only - before) / (double) n_nodes);
}

int main(int argc, char **argv) {
        size_t n_nodes = argc > 1 ? strtoul(argv[1], NULL, 10) : 5000,
               rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 2000;

        require(n_nodes > 0 && n_nodes <= 65536 && rounds > 0, "usage: bench-placement [NODES [ROUNDS]]");
        printf("placement of one pod, %zu nodes of %d cards; microseconds\n", n_nodes, CARDS);
        printf("  %-14s %-22s %8s %8s %12s %11s\n", "cluster", "request", "p50", "p99", "baseline p50",
               "ratio");
        for (int core = 0; core < 2; core++) {
                bench_cluster(n_nodes, rounds, "nearly empty", 0, core, "");
                bench_cluster(n_nodes, rounds, "half full", 50, core, "");
                bench_cluster(n_nodes, rounds, "nearly full", 85, core, "");
                bench_cluster(n_nodes, rounds, "half full", 50, core, "spread");
        }
        return 0;
}
