/* SPDX-License-Identifier: Apache-2.0 */

/* What the node agent of each node of a List counts: show-roster <LIST. For each node and card it
 * prints NAME, INDEX, total, memory, percent, pods, and what keeps new slices from the card or "-".
 * The agent knows its own Node object and the pods on it. */

#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "node/records/roster.h"
#include "share/card_lack.h"
#include "share/ledger_card.h"
#include "wire/list_items.h"
#include "wire/object.h"
#include "wire/pod.h"

enum { NODES_MAX = 1000 };

typedef struct Nodes {
        Roster list[NODES_MAX];
        size_t n;
        Arena arena;
} Nodes;

static int add_node(Nodes *nodes, Str text) {
        Fault fault = FAULT_NULL;
        Roster *roster = &nodes->list[nodes->n];
        _cleanup_free_ char *name = NULL;
        Node node;

        if (nodes->n == NODES_MAX || node_decode(text, &nodes->arena, &node, &fault) != 0)
                return -1;
        name = str_dup(node.meta.name);
        if (!name || roster_init(roster, name) < 0)
                return -1;
        nodes->n++;
        roster_list_begin(roster);
        return roster_node(roster, &node, &fault) < 0 ? -1 : 0;
}

static int add_pod(Nodes *nodes, Str text) {
        Pod pod;

        if (pod_decode(text, &nodes->arena, &pod, NULL) != 0)
                return -1;
        for (size_t i = 0; i < nodes->n; i++)
                if (str_eq(str_from(nodes->list[i].node_name), pod.node_name))
                        return roster_pod(&nodes->list[i], REFLECTOR_ADDED, text);
        return 0;
}

static int add(void *userdata, Str text) {
        Nodes *nodes = userdata;
        Str kind = {0};

        arena_reset(&nodes->arena);
        if (object_kind(text, &nodes->arena, &kind, NULL) != 0)
                return -1;
        if (str_eq(kind, STR("Node")))
                return add_node(nodes, text);
        return str_eq(kind, STR("Pod")) ? add_pod(nodes, text) : 0;
}

static void print_card(const Roster *roster, const LedgerNode *node, const LedgerCard *c) {
        LedgerUse used = ledger_node_shown(node, c);
        Str state = card_state_text(card_lack_state(node, c));

        if (c->units > 0 || c->pods > 0)
                printf("%s %u %u %" PRIu64 " %" PRIu64 " %u " STR_FMT "\n", roster->node_name, c->index,
                       c->units, used.mem, used.core, (unsigned) c->pods,
                       STR_ARG(str_is_empty(state) ? STR("-") : state));
}

int main(void) {
        static Nodes nodes;
        _cleanup_buf_ Buf text = BUF_NULL;
        int r = file_read_open(0, 256 << 20, &text);

        if (r == 0)
                r = list_items_each(buf_str(&text), add, &nodes, NULL);
        for (size_t i = 0; r == 0 && i < nodes.n; i++) {
                const LedgerNode *node;

                roster_list_end(&nodes.list[i]);
                node = roster_ledger_node(&nodes.list[i]);
                for (size_t k = 0; k < ledger_node_n_cards(node); k++)
                        print_card(&nodes.list[i], node, &ledger_node_cards(node)[k]);
        }
        for (size_t i = 0; i < nodes.n; i++)
                roster_done(&nodes.list[i]);
        arena_done(&nodes.arena);
        return r == 0 ? 0 : 1;
}
