/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/inspect.h"

#include <errno.h>

#include "base/checked.h"
#include "base/quantity.h"
#include "cli/inspect/holding.h"
#include "cli/inspect/inspect-internal.h"
#include "cli/inspect/node_notes.h"
#include "share/card_indexes.h"
#include "share/fault_join.h"
#include "share/fence_map.h"
#include "share/growth.h"
#include "share/held.h"
#include "share/memory_unit.h"
#include "wire/annotation.h"
#include "wire/card_info.h"
#include "wire/node.h"
#include "wire/pod.h"

int inspect_new(Inspect **ret) {
        Inspect *i = calloc(1, sizeof *i);

        if (!i)
                return -ENOMEM;
        *ret = i;
        return 0;
}

Inspect *inspect_free(Inspect *i) {
        if (!i)
                return NULL;
        arena_done(&i->rows);
        arena_done(&i->scratch);
        arena_done(&i->view);
        free(i->nodes);
        free(i->silent);
        free(i->pods);
        free(i->fences);
        free(i);
        return NULL;
}

void inspect_set_namespace(Inspect *i, Str namespace_) {
        i->only_namespace = namespace_;
}

static bool grow_array(void **array, size_t *capacity, size_t n, size_t size) {
        size_t wanted = *capacity > 0 ? *capacity * 2 : 64, bytes;
        void *moved;

        if (n < *capacity)
                return true;
        moved = __builtin_mul_overflow(wanted, size, &bytes) ? NULL : realloc(*array, bytes);
        if (!moved)
                return false;
        *array = moved;
        *capacity = wanted;
        return true;
}

/* ---- nodes ---- */

static int quantity_u32(Str text, const char *what, uint64_t *ret, Fault *fault) {
        uint64_t value = 0;

        if (!str_is_empty(text) && (quantity_parse(text, &value) != 0 || value > UINT32_MAX))
                return fault_set(fault, INSPECT_E_MALFORMED,
                                 "%s is \"" STR_FMT "\", must be a whole number below 2^32", what,
                                 STR_ARG(text));
        *ret = value;
        return 0;
}

static int keep_peers(Inspect *i, const CardInfo *card, InspectCardFacts *ret) {
        uint16_t *peers;

        if (card->n_peers == 0)
                return 0;
        peers = arena_new(&i->rows, uint16_t, card->n_peers);
        if (!peers)
                return -ENOMEM;
        memcpy(peers, card->peers, card->n_peers * sizeof *peers);
        ret->peers = peers;
        ret->n_peers = card->n_peers;
        return 0;
}

/* Sets model and health of every card. Nodes without a description have one model in a label. */
static int node_facts(Inspect *i, const Node *node, const CardInfo *cards, size_t n, InspectNode *row) {
        Str label = {0}, model = {0};
        CardIndexes cordoned = {0};

        row->facts = arena_new(&i->rows, InspectCardFacts, row->n_described);
        if (!row->facts)
                return -ENOMEM;
        (void) card_indexes_take(&cordoned,
                                 node->annotations.cordon_cards); /* the node's condition says it */
        if (n == 0 && !str_is_empty(node->card_name))
                label = arena_str(&i->rows, node->card_name);
        for (size_t k = 0; k < row->n_described && n == 0; k++)
                row->facts[k] = (InspectCardFacts){.model = label,
                                                   .cordoned = card_indexes_has(&cordoned, (uint32_t) k)};
        for (size_t k = 0; k < n; k++) {
                if (!str_eq(cards[k].model, model))
                        model = arena_str(&i->rows, cards[k].model);
                if (!str_is_empty(cards[k].model) && !model.data)
                        return -ENOMEM;
                row->facts[cards[k].index] =
                        (InspectCardFacts){.model = model,
                                           .known = true,
                                           .healthy = cards[k].healthy,
                                           .cordoned = card_indexes_has(&cordoned, cards[k].index)};
                if (row->whole && keep_peers(i, &cards[k], &row->facts[cards[k].index]) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Sets the units of every card: from the node's description, else equal shares of the total. */
static int node_cards(Inspect *i, const Node *node, uint64_t count, InspectNode *row, Fault *fault) {
        CardInfo *cards = NULL;
        size_t n = 0;
        Fault why = FAULT_NULL;
        int r = 0;

        if (!str_is_empty(node->annotations.cards))
                r = card_info_parse(node->annotations.cards, &i->scratch, &cards, &n, &why);
        if (r < 0)
                return r;
        if (r > 0)
                (void) fault_set(fault, 0, "annotation %s passed over: %s", ANNOTATION_CARDS, why.text);
        if (count == 0)
                /* memory without a number of cards counts as one card, as in the scheduler */
                count = n > 0 ? 0 : 1;
        row->n_described = (size_t) count;
        if (n > 0 && cards[n - 1].index >= count)
                row->n_described = (size_t) cards[n - 1].index + 1;
        row->card_units = arena_new(&i->rows, uint64_t, row->n_described);
        if (!row->card_units)
                return -ENOMEM;
        for (size_t k = 0; k < row->n_described && n == 0; k++)
                row->card_units[k] = row->total_mem / row->n_described;
        for (size_t k = 0; k < n; k++)
                row->card_units[cards[k].index] = cards[k].units;
        return node_facts(i, node, cards, n, row);
}

/* Reads a unit. false: there is no annotation, or it is no unit and was ignored. */
static bool read_unit(Str said, const char *key, MemoryUnit *ret, Fault *fault) {
        Fault why = FAULT_NULL;

        if (str_is_empty(said))
                return false;
        if (memory_unit_parse(said, ret) == 0)
                return true;
        (void) fault_set(&why, 0, "annotation %s is \"" STR_FMT "\", which is no unit: passed over", key,
                         STR_ARG(said));
        fault_join(fault, &why);
        return false;
}

/* Sets the name of the unit. First choice is the node agent's annotation of the unit in force, then
 * the annotation that asks for one. Otherwise it is guessed as older inspect tools do: MiB when
 * a card has more than 100 units. */
static int node_unit(Inspect *i, const Node *node, InspectNode *row, Fault *fault) {
        const NodeAnnotations *a = &node->annotations;
        Str said = a->unit_in_force;
        bool good, mib = false;
        MemoryUnit unit;

        if (row->whole) {
                row->unit_text = STR("card");
                return 0;
        }
        row->unit_mib = 1024;
        good = read_unit(said, ANNOTATION_UNIT_IN_FORCE, &unit, fault);
        if (!good) {
                said = a->unit;
                good = read_unit(said, ANNOTATION_UNIT, &unit, fault);
        }
        if (good) {
                row->unit_mib = unit.mib;
                row->unit_text = arena_str(&i->rows, said);
                return row->unit_text.data ? 0 : -ENOMEM;
        }
        for (size_t k = 0; k < row->n_described; k++)
                mib |= row->card_units[k] > 100;
        if (mib)
                row->unit_mib = 1;
        row->unit_text = mib ? STR("MiB") : STR("GiB");
        return 0;
}

/* Adds growth beyond limits, which the scheduler charges besides the pods' limits. */
static int node_growth(Inspect *i, const Node *node, InspectNode *row, Fault *fault) {
        Fault why = FAULT_NULL;
        InspectUse *grown, *given_up;
        Growth growth;
        int r = growth_read(node->annotations.growth, &i->scratch, &growth, &why);

        if (r < 0)
                return r;
        if (r > 0) {
                fault_join(fault, &why);
                return 0;
        }
        grown = arena_new(&i->rows, InspectUse, growth.n);
        given_up = arena_new(&i->rows, InspectUse, growth.n);
        if (!grown || !given_up)
                return -ENOMEM;
        for (size_t k = 0; k < growth.n; k++) {
                GrowthSize more = growth_excess(growth.list[k].size),
                           less = growth_smaller(growth.list[k].size, (GrowthSize){0, 0});

                grown[k] = (InspectUse){.card = growth.list[k].card,
                                        .mem = (uint64_t) more.mem,
                                        .core = (uint64_t) more.core};
                given_up[k] = (InspectUse){.card = growth.list[k].card,
                                           .mem = 0u - (uint32_t) less.mem,
                                           .core = 0u - (uint32_t) less.core};
        }
        row->grown = grown;
        row->given_up = given_up;
        row->n_grown = growth.n;
        return 0;
}

static int node_row(Inspect *i, const Node *node, uint64_t count, InspectNode *row, Fault *fault) {
        Str mode = node->annotations.mode_in_force;

        if (str_is_empty(mode))
                mode = node->mode;
        row->mode = arena_str(&i->rows, mode);
        row->change_pending = !str_is_empty(node->annotations.change_pending);
        row->ip = str_is_empty(node->internal_ip) ? STR("unknown") : arena_str(&i->rows, node->internal_ip);
        int r;

        if (!row->mode.data || !row->ip.data)
                return -ENOMEM;
        r = node_cards(i, node, count, row, fault);
        if (r >= 0)
                r = node_growth(i, node, row, fault);
        if (r < 0)
                return r;
        return node_unit(i, node, row, fault);
}

/* Whether a node that offers nothing belongs to the report: its agent reports something. */
static bool has_note_of_ours(const InspectNode *row) {
        for (size_t k = 0; k < row->n_notes; k++)
                if (str_has_prefix(row->notes[k].type, STR("GPU")))
                        return true;
        return false;
}

static int node_keep(Inspect *i, const Node *node, InspectNode *row) {
        bool offers = row->total_mem > 0;

        if (!offers && !has_note_of_ours(row))
                return 0;
        row->name = arena_str(&i->rows, node->meta.name);
        if (!row->name.data ||
            !(offers ? grow_array((void **) &i->nodes, &i->nodes_capacity, i->n_nodes, sizeof *row)
                     : grow_array((void **) &i->silent, &i->silent_capacity, i->n_silent, sizeof *row)))
                return -ENOMEM;
        if (offers)
                i->nodes[i->n_nodes++] = *row;
        else
                i->silent[i->n_silent++] = *row;
        return 0;
}

/* ---- slices of deleted pods ---- */

typedef struct HeldReading {
        Inspect *inspect;
        const InspectNode *node;
} HeldReading;

static int keep_held(void *userdata, const GrantSpec *spec, Fault *fault) {
        HeldReading *reading = userdata;
        Inspect *i = reading->inspect;
        InspectPod row = {.deleted = true, .of = reading->node->order, .order = i->order++};
        int r;

        (void) fault;
        if (!str_is_empty(i->only_namespace) && !str_eq(spec->namespace_, i->only_namespace))
                return 0;
        r = holding_from_held(spec, &i->scratch, &i->rows, &row);
        if (r < 0)
                return r;
        row.n_held = row.n_uses;
        row.node = arena_str(&i->rows, reading->node->name);
        row.namespace_ = arena_str(&i->rows, spec->namespace_);
        row.name = arena_str(&i->rows, spec->name);
        row.uid = arena_str(&i->rows, spec->uid);
        if (!row.node.data || !row.namespace_.data || !row.name.data || !row.uid.data ||
            !grow_array((void **) &i->pods, &i->pods_capacity, i->n_pods, sizeof row))
                return -ENOMEM;
        i->pods[i->n_pods++] = row;
        return 0;
}

/* Adds the slices of deleted pods, which the scheduler counts. A list that does not decode adds
 * nothing. */
static int add_held(Inspect *i, const Node *node, const InspectNode *row, Fault *fault) {
        HeldReading reading = {.inspect = i, .node = row};
        size_t before = i->n_pods;
        Fault why = FAULT_NULL;
        int r = held_each(node->annotations.held_slices, &i->scratch, keep_held, &reading, &why);

        if (r <= 0)
                return r;
        i->n_pods = before;
        fault_join(fault, &why);
        return 0;
}

static int add_node(Inspect *i, Str object, Fault *fault) {
        InspectNode row = {.order = i->order++};
        uint64_t count = 0, whole = 0;
        Node node;
        int r;

        r = node_decode(object, &i->scratch, &node, fault);
        if (r != 0)
                return r < 0 ? r : fault_wrap(fault, INSPECT_E_MALFORMED, "node");
        r = quantity_u32(node.allocatable_mem, RESOURCE_GPU_MEM, &row.total_mem, fault);
        if (r == 0)
                r = quantity_u32(node.allocatable_core, RESOURCE_GPU_CORE, &row.total_core, fault);
        if (r == 0)
                r = quantity_u32(node.allocatable_count, RESOURCE_GPU_COUNT, &count, fault);
        if (r == 0 && row.total_mem == 0)
                r = quantity_u32(node.allocatable_whole, RESOURCE_GPU, &whole, fault);
        if (whole > 0) {
                row.whole = true;
                row.total_mem = count = whole;
        }
        if (r == 0 && count > CARD_INDEX_MAX + 1)
                r = fault_set(fault, INSPECT_E_MALFORMED, "%s is %u, must be at most %d",
                              whole > 0 ? RESOURCE_GPU : RESOURCE_GPU_COUNT, (unsigned) count,
                              CARD_INDEX_MAX + 1);
        if (r == 0)
                r = node_notes_read(object, &node, &i->scratch, &i->rows, &row);
        if (r == 0 && row.total_mem > 0)
                r = node_row(i, &node, count, &row, fault);
        if (r == 0)
                r = node_keep(i, &node, &row);
        if (r == 0 && row.total_mem > 0)
                r = add_held(i, &node, &row, fault);
        if (fault && fault->text[0])
                (void) fault_wrap(fault, r, "node " STR_FMT, STR_ARG(node.meta.name));
        return r;
}

void inspect_add_used(Inspect *i, Str node, uint32_t card, uint64_t mib) {
        for (size_t n = 0; n < i->n_nodes; n++)
                if (card < i->nodes[n].n_described && str_eq(i->nodes[n].name, node)) {
                        InspectCardFacts *facts = &i->nodes[n].facts[card];

                        facts->used_known = true;
                        if (mib <= UINT32_MAX) /* the agent's text is not trusted */
                                facts->used_mib += mib;
                }
}

/* ---- pods ---- */

static int pod_keep(Inspect *i, const Pod *pod, InspectPod *row) {
        row->node = arena_str(&i->rows, pod->node_name);
        row->namespace_ = arena_str(&i->rows, pod->meta.namespace_);
        row->name = arena_str(&i->rows, pod->meta.name);
        row->uid = (Str){0};
        if (!str_is_empty(pod->meta.uid))
                row->uid = arena_str(&i->rows, pod->meta.uid);
        if (!row->node.data || !row->namespace_.data || !row->name.data ||
            !grow_array((void **) &i->pods, &i->pods_capacity, i->n_pods, sizeof *row))
                return -ENOMEM;
        i->pods[i->n_pods++] = *row;
        return 0;
}

static int add_pod(Inspect *i, Str object, Fault *fault) {
        InspectPod row = {.order = i->order++};
        Pod pod;
        int r;

        r = pod_decode(object, &i->scratch, &pod, fault);
        if (r != 0)
                return r < 0 ? r : fault_wrap(fault, INSPECT_E_MALFORMED, "pod");
        if (str_is_empty(pod.node_name) || pod_is_terminal(&pod) ||
            (!str_is_empty(i->only_namespace) && !str_eq(pod.meta.namespace_, i->only_namespace)))
                return 0;
        r = holding_from_pod(&pod, &i->scratch, &i->rows, &row, fault);
        if (r == 0 && (inspect_pod_holds(&row) || !str_is_empty(row.difference)))
                r = pod_keep(i, &pod, &row);
        if (fault && fault->text[0])
                (void) fault_wrap(fault, r, "pod " STR_FMT "/" STR_FMT, STR_ARG(pod.meta.namespace_),
                                  STR_ARG(pod.meta.name));
        return r;
}

/* ---- fences ---- */

static int add_configmap(Inspect *i, Str object, Fault *fault) {
        InspectFence row = {.order = i->order++};
        FenceMap map;
        int r = fence_map_read(object, &i->scratch, &map, fault);

        if (r == FENCE_MAP_E_NOT_OURS)
                return 0;
        if (r != 0)
                return r < 0 ? r : fault_wrap(fault, INSPECT_E_MALFORMED, "configmap");
        row.name = arena_str(&i->rows, map.name);
        row.node = arena_str(&i->rows, map.node);
        row.cards = map.devices.fenced;
        card_indexes_add_all(&row.cards, &map.gpus.fenced);
        if (!row.name.data || !row.node.data ||
            !grow_array((void **) &i->fences, &i->fences_capacity, i->n_fences, sizeof row))
                return -ENOMEM;
        i->fences[i->n_fences++] = row;
        fault_join(fault, &map.devices.wrong);
        fault_join(fault, &map.gpus.wrong);
        if (fault && fault->text[0])
                (void) fault_wrap(fault, 0, "configmap kube-system/" STR_FMT, STR_ARG(map.name));
        return 0;
}

int inspect_add(Inspect *i, Str kind, Str object, Fault *fault) {
        int r;

        arena_reset(&i->scratch);
        i->settled = false;
        if (str_is_empty(kind)) {
                r = object_kind(object, &i->scratch, &kind, fault);
                if (r != 0)
                        return r < 0 ? r : INSPECT_E_MALFORMED;
                if (str_is_empty(kind))
                        return fault_set(fault, INSPECT_E_MALFORMED, "an object without kind");
        }
        i->saw_node |= str_eq(kind, STR("Node"));
        i->saw_pod |= str_eq(kind, STR("Pod"));
        if (str_eq(kind, STR("Node")))
                return add_node(i, object, fault);
        if (str_eq(kind, STR("Pod")))
                return add_pod(i, object, fault);
        if (str_eq(kind, STR("ConfigMap")))
                return add_configmap(i, object, fault);
        return 0;
}

const char *inspect_lacks(const Inspect *i) {
        if (i->saw_pod == i->saw_node)
                return NULL;
        return i->saw_pod ? "nodes" : "pods";
}
