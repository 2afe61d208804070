/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

static void add_node(World *w, uint32_t i) {
        const TraceNode *t = &w->trace->nodes[i];
        WorldNode *n = &w->nodes[i];
        char mem[24], count[24], cpu[24];
        Node node = {.mode = STR("share"), .card_name = str_from(t->model)};

        (void) snprintf(mem, sizeof mem, "%u", t->cards * TRACE_CARD);
        (void) snprintf(count, sizeof count, "%u", t->cards);
        (void) snprintf(cpu, sizeof cpu, "%lldm", (long long) t->cpu);
        node.meta.name = str_from(t->name);
        node.allocatable_mem = str_from(mem);
        node.allocatable_count = str_from(count);
        node.allocatable_cpu = str_from(cpu);
        if (ledger_node_set(w->ledger, &node, NULL) != 0)
                trace_die("the ledger does not take the node", t->name);
        *n = (WorldNode){.trace = t,
                         .ledger = ledger_node_find(w->ledger, node.meta.name),
                         .cpu = t->cpu,
                         .memory = t->memory,
                         .sum = t->cards * TRACE_CARD};
        for (uint32_t k = 0; k < t->cards; k++)
                n->left[k] = TRACE_CARD;
}

void world_init(World *w, const Trace *t, NodeOrder order) {
        CardChoiceFault fault;

        *w = (World){.trace = t, .arena = ARENA_NULL};
        w->nodes = calloc(t->n_nodes, sizeof *w->nodes);
        if (!w->nodes || ledger_new(&w->ledger) < 0)
                trace_die("out of memory", "world");
        ledger_set_order(w->ledger, order);
        for (uint32_t i = 0; i < t->n_nodes; i++)
                add_node(w, i);
        for (size_t i = 1; i < t->n_specs; i++) {
                PodAnnotations keys = {.gpu_type = str_from(t->specs[i])};

                if (card_choice_read(&keys, &w->arena, &w->choices[i], &fault) != 0)
                        trace_die("is no choice of cards", t->specs[i]);
        }
}

void world_done(World *w) {
        free(w->nodes);
        (void) ledger_free(w->ledger);
        arena_done(&w->arena);
}

Request world_request(const World *w, const TracePod *p, RequestContainer *container) {
        *container = (RequestContainer){.kind = CONTAINER_MAIN, .mem = p->part};
        return (Request){.mem = p->part,
                         .cards = p->cards,
                         .cpu = (uint32_t) p->cpu,
                         .containers = container,
                         .n_containers = 1,
                         .choice = w->choices[p->spec]};
}

bool world_has_cpu(const WorldNode *n, const TracePod *p) {
        return n->cpu >= p->cpu && n->memory >= p->memory;
}

bool world_has_cards(const World *w, const WorldNode *n, const TracePod *p) {
        uint32_t count = 0;

        for (uint32_t k = 0; k < n->trace->cards; k++)
                count += n->left[k] >= p->part;
        return count >= p->cards && trace_allows(w->trace, p->spec, n->trace);
}

static Grant *grant(World *w, const WorldNode *n, const WorldPod *p) {
        Slice slices[TRACE_CARDS_MAX];
        char uid[32];
        GrantSpec spec = {
                .node = ledger_node_name(n->ledger), .slices = slices, .cpu = (uint32_t) p->pod->cpu};
        Grant *g;

        for (uint32_t k = 0; k < n->trace->cards; k++)
                if (p->cards >> k & 1)
                        slices[spec.n_slices++] =
                                (Slice){.card = k, .mem = p->pod->part, .kind = CONTAINER_MAIN};
        (void) snprintf(uid, sizeof uid, "uid-%llu", (unsigned long long) w->n_uids++);
        spec.namespace_ = STR("default");
        spec.name = spec.uid = str_from(uid);
        if (grant_new(w->ledger, &spec, &g) < 0)
                trace_die("out of memory", "grant");
        return g;
}

/* sign 1: takes; -1: gives back. */
static void count(World *w, WorldNode *n, const WorldPod *p, int64_t sign) {
        n->cpu -= sign * p->pod->cpu;
        n->memory -= sign * p->pod->memory;
        for (uint32_t k = 0; k < n->trace->cards; k++)
                if (p->cards >> k & 1) {
                        n->left[k] = (uint32_t) (n->left[k] - sign * p->pod->part);
                        n->sum = (uint32_t) (n->sum - sign * p->pod->part);
                        w->used += sign * p->pod->part;
                        if (n->left[k] > TRACE_CARD)
                                trace_die("a card holds more than its size", n->trace->name);
                }
        n->change = ++w->changes;
}

WorldPod world_place(World *w, const TracePod *p, uint32_t node, uint8_t cards) {
        WorldPod placed = {.pod = p, .node = node, .cards = cards};

        count(w, &w->nodes[node], &placed, 1);
        if (!cards)
                (void) ledger_node_add_cpu(w->ledger, ledger_node_name(w->nodes[node].ledger),
                                           (uint32_t) p->cpu);
        else
                placed.grant = grant(w, &w->nodes[node], &placed);
        return placed;
}

void world_remove(World *w, WorldPod *p) {
        count(w, &w->nodes[p->node], p, -1);
        if (!p->grant)
                ledger_node_subtract_cpu(w->nodes[p->node].ledger, (uint32_t) p->pod->cpu);
        p->grant = grant_free(p->grant);
}
