/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/minmax.h"
#include "cli/inspect/inspect-internal.h"
#include "wire/annotation.h"

static int by_order(size_t a, size_t b) {
        return (a > b) - (a < b);
}

static int compare_nodes(const void *a, const void *b) {
        const InspectNode *x = a, *y = b;
        int r = str_compare(x->name, y->name);

        return r != 0 ? r : by_order(x->order, y->order);
}

/* Compares pods by name. Each entry of a deleted pod is a row by itself, also beside a pod of its
 * name. */
static int compare_pod_names(const InspectPod *x, const InspectPod *y) {
        int r = str_compare(x->namespace_, y->namespace_);

        if (r == 0)
                r = str_compare(x->name, y->name);
        if (r == 0)
                r = x->deleted - y->deleted;
        return r != 0 || !x->deleted ? r : by_order(x->order, y->order);
}

static int compare_pods_by_name(const void *a, const void *b) {
        const InspectPod *x = a, *y = b;
        int r = compare_pod_names(x, y);

        return r != 0 ? r : by_order(x->order, y->order);
}

static int compare_pods_by_node(const void *a, const void *b) {
        const InspectPod *x = a, *y = b;
        int r = str_compare(x->node, y->node);

        return r != 0 ? r : compare_pod_names(x, y);
}

/* Sorts the rows. Of equal neighbours only the last one stays. */
static void sort_rows(Inspect *i) {
        size_t n = 0;

        if (i->n_nodes > 0)
                qsort(i->nodes, i->n_nodes, sizeof *i->nodes, compare_nodes);
        for (size_t k = 0; k < i->n_nodes; k++) {
                if (n > 0 && str_eq(i->nodes[n - 1].name, i->nodes[k].name))
                        n--;
                i->nodes[n++] = i->nodes[k];
        }
        i->n_nodes = n;

        n = 0;
        if (i->n_pods > 0)
                qsort(i->pods, i->n_pods, sizeof *i->pods, compare_pods_by_name);
        for (size_t k = 0; k < i->n_pods; k++) {
                if (n > 0 && compare_pod_names(&i->pods[n - 1], &i->pods[k]) == 0)
                        n--;
                i->pods[n++] = i->pods[k];
        }
        i->n_pods = n;
        if (i->n_pods > 0)
                qsort(i->pods, i->n_pods, sizeof *i->pods, compare_pods_by_node);
}

static int compare_fences(const void *a, const void *b) {
        const InspectFence *x = a, *y = b;
        int r = str_compare(x->node, y->node);

        if (r == 0)
                r = str_compare(x->name, y->name);
        return r != 0 ? r : by_order(x->order, y->order);
}

/* Marks the listed cards as fenced. Skips an index that the node's description omits, because there
 * is no such card. */
static void fence_cards(InspectNode *node, const CardIndexes *cards) {
        bool described = false;

        for (size_t k = 0; k < node->n_described; k++)
                described |= node->facts[k].known;
        for (size_t k = 0; k < node->n_described; k++)
                node->facts[k].fenced |=
                        card_indexes_has(cards, (uint32_t) k) && (!described || node->facts[k].known);
}

/* Applies the fences of all ConfigMaps of a node; both lists are sorted by node. Of ConfigMaps of
 * one name the last one counts. */
static void settle_fences(Inspect *i) {
        size_t f = 0;

        if (i->n_fences > 0)
                qsort(i->fences, i->n_fences, sizeof *i->fences, compare_fences);
        for (size_t n = 0; n < i->n_nodes; n++) {
                InspectNode *node = &i->nodes[n];

                for (size_t k = 0; k < node->n_described; k++)
                        node->facts[k].fenced = false;
                while (f < i->n_fences && str_compare(i->fences[f].node, node->name) < 0)
                        f++;
                for (; f < i->n_fences && str_eq(i->fences[f].node, node->name); f++) {
                        if (f + 1 < i->n_fences && str_eq(i->fences[f].name, i->fences[f + 1].name))
                                continue;
                        fence_cards(node, &i->fences[f].cards);
                }
        }
}

static void include_cards(InspectNode *node, const InspectUse *uses, size_t n) {
        for (size_t u = 0; u < n; u++)
                if (uses[u].card >= node->n_cards)
                        node->n_cards = (size_t) uses[u].card + 1;
}

static void add_uses(InspectNode *node, const InspectUse *uses, size_t n) {
        for (size_t u = 0; u < n; u++) {
                node->cards[uses[u].card].used_mem += uses[u].mem;
                node->cards[uses[u].card].used_core += uses[u].core;
                node->used_mem += uses[u].mem;
                node->used_core += uses[u].core;
        }
}

/* Corrects cards with more in use than they have: what a slice has given up of its limit counts
 * twice when another slice has it as growth. */
static void subtract_given_up(InspectNode *node) {
        for (size_t u = 0; u < node->n_grown; u++) {
                InspectCard *card = &node->cards[node->given_up[u].card];
                uint64_t mem = min_u64(node->given_up[u].mem, above_u64(card->used_mem, card->total_mem)),
                         core = min_u64(node->given_up[u].core, above_u64(card->used_core, card->total_core));

                card->used_mem -= mem;
                card->used_core -= core;
                node->used_mem -= mem;
                node->used_core -= core;
        }
}

static int node_sum(Inspect *i, InspectNode *node) {
        node->n_cards = node->n_described;
        include_cards(node, node->grown, node->n_grown);
        for (size_t p = 0; p < node->n_pods; p++)
                include_cards(node, node->pods[p].uses, node->pods[p].n_uses);
        node->cards = arena_new(&i->view, InspectCard, node->n_cards);
        if (!node->cards)
                return -ENOMEM;
        for (size_t k = 0; k < node->n_described; k++) {
                node->cards[k].total_mem = node->card_units[k];
                node->cards[k].total_core = node->total_core > 0 && node->card_units[k] > 0 ? 100 : 0;
        }
        node->used_mem = node->pending_mem = node->used_core = node->pending_core = 0;
        for (size_t p = 0; p < node->n_pods; p++) {
                const InspectPod *pod = &node->pods[p];

                node->pending_mem += pod->pending_mem;
                node->pending_core += pod->pending_core;
                add_uses(node, pod->uses, pod->n_uses);
                for (size_t u = 0; u < pod->n_uses; u++)
                        node->cards[pod->uses[u].card].n_pods++;
        }
        add_uses(node, node->grown, node->n_grown);
        subtract_given_up(node);
        node->used_mem += node->pending_mem;
        node->used_core += node->pending_core;
        return 0;
}

/* Whether a deleted pod's entry counts. The ledger suspends it while the pod of its UID has a grant
 * of its own on the node. The entries of an earlier description of the node are gone. */
static bool counts_deleted(const InspectNode *node, const InspectPod *deleted) {
        for (size_t p = 0; p < node->n_pods; p++) {
                const InspectPod *pod = &node->pods[p];

                if (!pod->deleted && inspect_pod_holds(pod) && str_eq(pod->uid, deleted->uid))
                        return false;
        }
        return deleted->of == node->order;
}

static void settle_deleted(const InspectNode *node, InspectPod *pods) {
        for (size_t p = 0; p < node->n_pods; p++)
                if (pods[p].deleted)
                        pods[p].n_uses = counts_deleted(node, &pods[p]) ? pods[p].n_held : 0;
}

static int settle_rows(Inspect *i) {
        size_t p = 0, first;

        if (i->settled)
                return 0;
        sort_rows(i);
        settle_fences(i);
        arena_reset(&i->view);
        for (size_t n = 0; n < i->n_nodes; n++) {
                InspectNode *node = &i->nodes[n];
                int r;

                while (p < i->n_pods && str_compare(i->pods[p].node, node->name) < 0)
                        p++;
                first = p;
                node->pods = i->n_pods > 0 ? &i->pods[p] : NULL;
                for (node->n_pods = 0; p < i->n_pods && str_eq(i->pods[p].node, node->name); p++)
                        node->n_pods++;
                settle_deleted(node, i->pods + first);
                r = node_sum(i, node);
                if (r < 0)
                        return r;
        }
        i->settled = true;
        return 0;
}

/* Sums over hostile input stop at the maximum instead of wrapping round to a plausible value. */
static uint64_t saturated_add(uint64_t a, uint64_t b) {
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t inspect_view_mem(const InspectView *v, const InspectNode *n, uint64_t units) {
        uint64_t mib;

        if (!v->units_differ)
                return units;
        return __builtin_mul_overflow(units, n->unit_mib, &mib) ? UINT64_MAX : mib;
}

static void view_sum(InspectView *v) {
        const InspectNode *first = NULL;

        for (size_t n = 0; n < v->n_nodes; n++) {
                const InspectNode *node = &v->nodes[n];

                v->n_whole += node->whole;
                if (node->whole)
                        continue;
                first = first ? first : node;
                if (node->n_cards > v->max_cards)
                        v->max_cards = node->n_cards;
                v->has_pending |= node->pending_mem > 0;
                v->has_core |= node->total_core > 0;
                v->units_differ |= node->unit_mib != first->unit_mib;
        }
        v->unit_text = first ? first->unit_text : STR("GiB");
        if (v->units_differ)
                v->unit_text = STR("MiB");
        for (size_t n = 0; n < v->n_nodes; n++) {
                const InspectNode *node = &v->nodes[n];

                if (node->whole) {
                        v->total_cards = saturated_add(v->total_cards, node->total_mem);
                        v->used_cards = saturated_add(v->used_cards, node->used_mem);
                        continue;
                }
                v->total_mem = saturated_add(v->total_mem, inspect_view_mem(v, node, node->total_mem));
                v->used_mem = saturated_add(v->used_mem, inspect_view_mem(v, node, node->used_mem));
                v->total_core = saturated_add(v->total_core, node->total_core);
                v->used_core = saturated_add(v->used_core, node->used_core);
        }
}

int inspect_view(Inspect *i, Str node, InspectView *ret, Fault *fault) {
        InspectView v = {0};
        int r;

        r = settle_rows(i);
        if (r < 0)
                return r;
        v.nodes = i->nodes;
        v.n_nodes = i->n_nodes;
        if (!str_is_empty(node)) {
                const InspectNode *found = NULL;

                for (size_t n = 0; n < i->n_nodes && !found; n++)
                        if (str_eq(i->nodes[n].name, node))
                                found = &i->nodes[n];
                if (!found)
                        return fault_set(fault, INSPECT_E_NO_NODE,
                                         "node \"" STR_FMT "\": no node of this name offers " RESOURCE_GPU_MEM
                                         " or " RESOURCE_GPU,
                                         STR_ARG(node));
                v.nodes = found;
                v.n_nodes = 1;
        }
        view_sum(&v);
        *ret = v;
        return 0;
}

CardState inspect_card_state(const InspectNode *n, size_t card) {
        const InspectCardFacts *f;

        if (card >= n->n_described)
                return CARD_STATE_GONE;
        f = &n->facts[card];
        return card_state_of(f->fenced, f->cordoned, !f->known || f->healthy);
}

uint64_t inspect_percent(uint64_t used, uint64_t total) {
        return total > 0 ? (uint64_t) ((unsigned __int128) used * 100 / total) : 0;
}

bool inspect_pod_holds(const InspectPod *p) {
        return p->n_uses > 0 || p->pending_mem > 0 || p->pending_core > 0;
}

int inspect_count_differences(Inspect *i, Str node, size_t *ret, Fault *fault) {
        InspectView v;
        size_t count = 0;
        int r;

        r = inspect_view(i, node, &v, fault);
        if (r != 0)
                return r;
        for (size_t n = 0; n < v.n_nodes; n++)
                for (size_t p = 0; p < v.nodes[n].n_pods; p++)
                        count += !str_is_empty(v.nodes[n].pods[p].difference);
        *ret = count;
        return 0;
}

InspectUse inspect_pod_use(const InspectPod *p, uint32_t card) {
        size_t low = 0, high = p->n_uses;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (p->uses[middle].card == card)
                        return p->uses[middle];
                if (p->uses[middle].card < card)
                        low = middle + 1;
                else
                        high = middle;
        }
        return (InspectUse){.card = card};
}
