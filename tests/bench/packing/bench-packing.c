/* SPDX-License-Identifier: Apache-2.0 */

/* How many of the cards are allocated when a public trace is replayed through the real placement.
 *
 * bench-packing NODES.csv PODS.csv SEEDS [ORDER...]
 *
 * Prints a line per order, setting, phase and seed: what is allocated, in percent of all cards.
 * Orders:
 *   binpack        placement_rank(), NODE_ORDER_BINPACK
 *   fragmentation  placement_rank(), NODE_ORDER_FRAGMENTATION
 *   fgd, bestfit   baseline.h
 * Settings, of pods that ask for no card:
 *   least     go to the node with the most processors and memory left, as by kube-scheduler's
 *             NodeResourcesLeastAllocated
 *   off-idle  the same among the nodes without an idle card; others only when none of them has room
 *   none      there are none
 *   scored    are placed by the baseline itself, as in its paper; fgd and bestfit only
 * Phases:
 *   fill   pods arrive until they have asked for 130 percent of the cards; one that finds no room
 *          goes away. What is allocated at the end.
 *   leave  pods arrive and leave, each after a time of its own, so that they would need 110 percent
 *          of the cards. The mean of the last third of three such times. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "baseline.h"

typedef enum Order { BINPACK, FRAGMENTATION, FGD, BEST_FIT, N_ORDERS } Order;
typedef enum Setting { LEAST, OFF_IDLE, NONE, SCORED, N_SETTINGS } Setting;

static const char *const order_names[] = {"binpack", "fragmentation", "fgd", "bestfit"};
static const char *const setting_names[] = {"least", "off-idle", "none", "scored"};

typedef struct Replay {
        Trace *trace;
        World world;
        Order order;
        Setting setting;
        Baseline *baseline; /* NULL: our own placement */
        Dice ties;
} Replay;

/* ---- one pod ---- */

static bool choose_ours(Replay *r, const TracePod *p, uint32_t *ret_node, uint8_t *ret_cards) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer container;
        Request request = world_request(&r->world, p, &container);
        uint64_t best = UINT64_MAX;
        Placement placement;
        Refusal refusal;
        bool found = false;

        for (uint32_t i = 0; i < r->trace->n_nodes; i++) {
                const WorldNode *n = &r->world.nodes[i];
                uint64_t rank;

                if (!world_has_cpu(n, p) || placement_check(n->ledger, &request, &refusal) != 0)
                        continue;
                rank = placement_rank(n->ledger, &request);
                if (found && rank >= best)
                        continue;
                found = true;
                best = rank;
                *ret_node = i;
        }
        if (!found)
                return false;
        if (placement_choose_cards(r->world.nodes[*ret_node].ledger, &request, &arena, &placement,
                                   &refusal) != 0)
                trace_die("placement takes back what it said", "node");
        *ret_cards = 0;
        for (size_t i = 0; i < placement.n_slices; i++)
                *ret_cards = (uint8_t) (*ret_cards | 1U << placement.slices[i].card);
        return true;
}

static bool has_idle_card(const WorldNode *n) {
        for (uint32_t k = 0; k < n->trace->cards; k++)
                if (n->left[k] == TRACE_CARD)
                        return true;
        return false;
}

/* kube-scheduler's score: the mean of the free parts, in whole percent. */
static int least_allocated(const WorldNode *n, const TracePod *p) {
        return (int) ((100 * (n->cpu - p->cpu) / n->trace->cpu +
                       100 * (n->memory - p->memory) / n->trace->memory) /
                      2);
}

static bool choose_without_card(Replay *r, const TracePod *p, uint32_t *ret_node) {
        int best = -1;
        uint32_t alike = 0;

        for (uint32_t i = 0; i < r->trace->n_nodes; i++) {
                const WorldNode *n = &r->world.nodes[i];
                int score;

                if (!world_has_cpu(n, p))
                        continue;
                score = least_allocated(n, p);
                if (r->setting == OFF_IDLE && !has_idle_card(n))
                        score += 1000;
                if (score < best)
                        continue;
                alike = score > best ? 1 : alike + 1;
                best = score;
                if (dice_below(&r->ties, alike) == 0)
                        *ret_node = i;
        }
        return best >= 0;
}

static bool put(Replay *r, uint32_t pod, WorldPod *ret) {
        const TracePod *p = &r->trace->pods[pod];
        uint8_t cards = 0;
        uint32_t node;
        bool found;

        if (p->cards == 0 && r->setting != SCORED)
                found = choose_without_card(r, p, &node);
        else if (r->baseline)
                found = baseline_choose(r->baseline, p, &node, &cards);
        else
                found = choose_ours(r, p, &node, &cards);
        if (found)
                *ret = world_place(&r->world, p, node, cards);
        return found;
}

static double allocated(const Replay *r) {
        return 100.0 * (double) r->world.used / (double) (r->trace->cards * TRACE_CARD);
}

/* ---- phases ---- */

static double fill(Replay *r, Dice *d) {
        size_t n;
        _cleanup_free_ uint32_t *list = trace_draw(r->trace, d, 130, r->setting == NONE, &n);

        for (size_t i = 0; i < n; i++) {
                WorldPod pod;

                (void) put(r, list[i], &pod);
        }
        return allocated(r);
}

typedef struct Running {
        double until;
        WorldPod pod;
} Running;

/* A heap: the first to leave on top. */
static void run(Running *heap, size_t *n, Running new) {
        size_t i = (*n)++;

        for (; i > 0 && heap[(i - 1) / 2].until > new.until; i = (i - 1) / 2)
                heap[i] = heap[(i - 1) / 2];
        heap[i] = new;
}

static Running end_first(Running *heap, size_t *n) {
        Running first = heap[0], last = heap[--*n];
        size_t i = 0, child;

        for (; (child = 2 * i + 1) < *n; i = child) {
                if (child + 1 < *n && heap[child + 1].until < heap[child].until)
                        child++;
                if (heap[child].until >= last.until)
                        break;
                heap[i] = heap[child];
        }
        heap[i] = last;
        return first;
}

static double leave(Replay *r, Dice *d) {
        size_t n, n_running = 0, samples = 0;
        _cleanup_free_ uint32_t *list = trace_draw(r->trace, d, 110, r->setting == NONE, &n);
        _cleanup_free_ Running *running = calloc(3 * n, sizeof *running);
        double sum = 0;

        if (!running)
                trace_die("out of memory", "running pods");
        for (size_t i = 0; i < 3 * n; i++) {
                Running new = {.until = (double) i - log(dice_part(d)) * (double) n};

                while (n_running > 0 && running[0].until < (double) i) {
                        Running gone = end_first(running, &n_running);

                        world_remove(&r->world, &gone.pod);
                }
                if (put(r, list[dice_below(d, (uint32_t) n)], &new.pod))
                        run(running, &n_running, new);
                if (i >= 2 * n && i % 16 == 0) {
                        sum += allocated(r);
                        samples++;
                }
        }
        return sum / (double) samples;
}

static double replay(Trace *t, Order order, Setting setting, bool leaving, unsigned seed) {
        Replay r = {.trace = t, .order = order, .setting = setting, .ties = {seed}};
        Dice d = {seed * 1000003ULL};
        double result;

        world_init(&r.world, t, order == FRAGMENTATION ? NODE_ORDER_FRAGMENTATION : NODE_ORDER_BINPACK);
        if (order == FGD || order == BEST_FIT)
                r.baseline = baseline_new(&r.world, order == FGD);
        result = leaving ? leave(&r, &d) : fill(&r, &d);
        r.baseline = baseline_free(r.baseline);
        world_done(&r.world);
        return result;
}

/* ---- all of it ---- */

static void measure(Trace *t, Order order, unsigned seeds) {
        for (int s = 0; s < N_SETTINGS; s++)
                for (int leaving = 0; leaving < 2; leaving++)
                        for (unsigned seed = 1; seed <= seeds; seed++) {
                                if (s == SCORED && (order != FGD && order != BEST_FIT))
                                        continue;
                                printf("%s %s %s %u %.3f\n", order_names[order], setting_names[s],
                                       leaving ? "leave" : "fill", seed,
                                       replay(t, order, (Setting) s, leaving, seed));
                                (void) fflush(stdout);
                        }
}

int main(int argc, char **argv) {
        Trace trace = {0};
        unsigned seeds = argc > 3 ? (unsigned) strtoul(argv[3], NULL, 10) : 0;

        if (seeds == 0 || seeds > 100)
                trace_die("NODES.csv PODS.csv SEEDS [ORDER...]", "usage");
        trace_read_nodes(&trace, argv[1]);
        trace_read_pods(&trace, argv[2]);
        for (int o = 0; o < N_ORDERS; o++) {
                bool wanted = argc == 4;

                for (int i = 4; i < argc; i++)
                        wanted |= strcmp(argv[i], order_names[o]) == 0;
                if (wanted)
                        measure(&trace, (Order) o, seeds);
        }
        trace_done(&trace);
        return 0;
}
