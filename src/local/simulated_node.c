/* SPDX-License-Identifier: Apache-2.0 */
#include "local/simulated_node.h"

#include <errno.h>

#include "gpu/cards/card_rates.h"
#include "gpu/cards/simulated_cards.h"
#include "share/memory_unit.h"
#include "share/mode.h"
#include "wire/annotation.h"
#include "wire/card_info.h"

typedef struct SimulatedNode {
        CardList list;
        CardInfo cards[CARDS_MAX];
        uint16_t *rates; /* memory of the cards' peers, which are views of it */
        uint32_t n_cards;
        MemoryUnit unit;
        bool whole;     /* mode topology: a card is one unit */
        uint64_t units; /* units of all cards; 256 times 2^32 fits */
} SimulatedNode;

static void simulated_node_free(SimulatedNode *m) {
        card_list_done(&m->list);
        free(m->rates);
        free(m);
}

DEFINE_CLEANUP(SimulatedNode *, simulated_node_free)

static void describe_card(SimulatedNode *m, const MachineCard *c) {
        CardInfo *info = &m->cards[m->n_cards++];

        *info = (CardInfo){.index = c->index,
                           .units = m->whole ? 1 : memory_unit_count(c->mib, m->unit),
                           .mib = c->mib,
                           .numa = c->numa,
                           .healthy = c->healthy,
                           .uuid = str_from(c->uuid),
                           .model = str_from(c->model)};
        m->units += info->units;
}

static int read_simulated_node(const json_t *node, const char *groups, SimulatedNode *m, Fault *fault) {
        const char *unit = tree_text(node, "metadata", "annotations", ANNOTATION_UNIT, NULL);
        const char *name = tree_text(node, "metadata", "name", NULL);
        const char *label = tree_text(node, "metadata", "labels", LABEL_SCHEDULE, NULL);
        int r;

        m->whole = share_mode_has_whole(share_mode_from_label(str_from(label)));
        m->unit = MEMORY_UNIT_GIB;
        if (unit && memory_unit_parse(str_from(unit), &m->unit) != 0)
                return fault_set(fault, SIMULATED_NODE_E_MALFORMED,
                                 ANNOTATION_UNIT " is \"%s\", must be GiB, MiB or a whole number of them",
                                 unit);
        r = cards_simulate(str_from(groups), str_from(name), &m->list, fault);
        if (r == CARDS_E_MALFORMED)
                return fault_wrap(fault, SIMULATED_NODE_E_MALFORMED, ANNOTATION_SIMULATED_CARDS);
        for (size_t i = 0; r == 0 && i < m->list.n; i++)
                describe_card(m, &m->list.cards[i]);
        return r == 0 ? card_rates_describe(&m->list, m->cards, &m->rates) : r;
}

static int set_text_of(json_t *object, const char *key, Buf *text) {
        _cleanup_free_ char *value = buf_take(text);

        return value ? tree_set_text(object, key, value) : -ENOMEM;
}

/* Opens an object of the node for writing. A value of another type in its place is an error of the
 * manifest. */
static int open_object(json_t *node, const char *part, const char *member, json_t **ret, Fault *fault) {
        json_t *object = tree_make(node, part, member, NULL);

        if (!object)
                return fault_set(fault, SIMULATED_NODE_E_MALFORMED, "%s%s%s must be an object", part,
                                 member ? "." : "", member ? member : "");
        *ret = object;
        return 0;
}

static int write_metadata(json_t *node, const SimulatedNode *m, Fault *fault) {
        _cleanup_buf_ Buf text = BUF_NULL;
        json_t *labels = NULL, *annotations = NULL;
        int r;

        r = open_object(node, "metadata", "labels", &labels, fault);
        if (r == 0)
                r = open_object(node, "metadata", "annotations", &annotations, fault);
        if (r != 0)
                return r;
        /* Labels describe one kind of card: the first. */
        for (size_t i = 0; i < m->cards[0].model.len; i++)
                buf_append_char(&text, m->cards[0].model.data[i] == ' ' ? '-' : m->cards[0].model.data[i]);
        r = set_text_of(labels, LABEL_CARD_NAME, &text);
        buf_appendf(&text, "%uMiB", m->cards[0].mib);
        r = r < 0 ? r : set_text_of(labels, LABEL_CARD_MEM, &text);
        buf_append_u64(&text, m->n_cards);
        r = r < 0 ? r : set_text_of(labels, LABEL_CARD_COUNT, &text);
        card_info_format(m->cards, m->n_cards, &text);
        r = r < 0 ? r : set_text_of(annotations, ANNOTATION_CARDS, &text);
        memory_unit_format(m->unit, &text);
        return r < 0 ? r : set_text_of(annotations, ANNOTATION_UNIT, &text);
}

/* Writes the resources of the mode and sets those of other modes to 0. A node that shares nothing
 * gets none, but one in its manifest becomes 0. */
static int write_resource(json_t *list, const char *resource, bool offered, bool sharing, uint64_t amount) {
        char text[24];

        if (!offered && !sharing && !json_object_get(list, resource))
                return 0;
        (void) snprintf(text, sizeof text, "%llu", (unsigned long long) (offered ? amount : 0));
        return tree_set_text(list, resource, text);
}

static int write_resources(json_t *node, const char *where, const SimulatedNode *m, Fault *fault) {
        const char *label = tree_text(node, "metadata", "labels", LABEL_SCHEDULE, NULL);
        ShareMode mode = share_mode_from_label(str_from(label));
        bool memory = share_mode_has_memory(mode), served = share_mode_is_served(mode);
        json_t *list = NULL;
        int r;

        r = open_object(node, "status", where, &list, fault);
        if (r != 0)
                return r;
        r = write_resource(list, RESOURCE_GPU_CORE, share_mode_has_core(mode), served,
                           UINT64_C(100) * m->n_cards);
        if (r == 0)
                r = write_resource(list, RESOURCE_GPU_COUNT, memory, served, m->n_cards);
        if (r == 0)
                r = write_resource(list, RESOURCE_GPU, m->whole, m->whole, m->n_cards);
        return r < 0 ? r : write_resource(list, RESOURCE_GPU_MEM, memory, served, m->units);
}

static int write_ready(json_t *node) {
        json_t *status = tree_make(node, "status", NULL);

        if (!status)
                return -ENOMEM;
        if (json_object_get(status, "conditions"))
                return 0;
        return json_object_set_new(status, "conditions",
                                   json_pack("[{s:s, s:s, s:s}]", "type", "Ready", "status", "True", "reason",
                                             "KubeletReady")) < 0
                       ? -ENOMEM
                       : 0;
}

/* The labels that each kubelet sets on its node and manifests select by. */
static int write_kubelet_labels(json_t *node, Fault *fault) {
#if defined __aarch64__
        static const char arch[] = "arm64";
#else
        static const char arch[] = "amd64";
#endif
        const char *name = tree_text(node, "metadata", "name", NULL);
        json_t *labels = NULL;
        int r;

        r = open_object(node, "metadata", "labels", &labels, fault);
        if (r == 0 && name)
                r = tree_default_text(labels, "kubernetes.io/hostname", name);
        if (r == 0)
                r = tree_default_text(labels, "kubernetes.io/os", "linux");
        return r != 0 ? r : tree_default_text(labels, "kubernetes.io/arch", arch);
}

int simulated_node_complete(json_t *node, Fault *fault) {
        const json_t *groups = tree_at(node, "metadata", "annotations", ANNOTATION_SIMULATED_CARDS, NULL);
        _cleanup_(simulated_node_freep) SimulatedNode *m = NULL;
        int r;

        r = write_kubelet_labels(node, fault);
        if (r != 0 || !groups)
                return r;
        if (!json_is_string(groups))
                return fault_set(fault, SIMULATED_NODE_E_MALFORMED,
                                 ANNOTATION_SIMULATED_CARDS " must be a string");
        m = calloc(1, sizeof *m);
        if (!m)
                return -ENOMEM;
        r = read_simulated_node(node, json_string_value(groups), m, fault);
        if (r != 0)
                return r;
        r = write_metadata(node, m, fault);
        if (r == 0)
                r = write_resources(node, "capacity", m, fault);
        if (r == 0)
                r = write_resources(node, "allocatable", m, fault);
        return r != 0 ? r : write_ready(node);
}
