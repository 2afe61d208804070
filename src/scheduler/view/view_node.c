/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/view-internal.h"

#include <errno.h>

#include "base/log.h"
#include "wire/annotation.h"
#include "wire/node.h"

#define REASON_UNSERVED "GPUShareModeNotServed" /* the node's label asks for mps or mig */
#define REASON_WRONG    "GPUShareMisconfigured" /* keys do not decode, and no agent of ours says so */

static void forget_node(View *v, DirectoryNode *n) {
        policy_table_node_gone(v->policies, n);
        ledger_node_remove(v->ledger, directory_name(n));
        if (v->on_node_gone)
                v->on_node_gone(v->userdata, directory_name(n));
        directory_remove(v->directory, n);
}

static void report_mode(View *v, DirectoryNode *n, const Node *node) {
        ShareMode mode = share_mode_from_label(node->mode);
        bool unserved = mode == SHARE_MODE_MPS || mode == SHARE_MODE_MIG;

        if (unserved && n->mode_reported != mode) {
                Fault note = FAULT_NULL;

                (void) fault_set(&note, 0,
                                 "label " LABEL_SCHEDULE
                                 " is \"%s\", a mode that is not served: the node's cards are not shared",
                                 share_mode_to_string(mode));
                view_report(v, "Node", &node->meta, REASON_UNSERVED, note.text);
        }
        n->mode_reported = (uint8_t) mode;
}

void view_node_forget_reports(View *v) {
        for (size_t i = 0; i < directory_size(v->directory); i++) {
                DirectoryNode *n = directory_at(v->directory, i);

                n->mode_reported = SHARE_MODE_NONE;
                n->wrong_reported = 0;
        }
}

/* A node with a mode in force has an agent of ours, which reports the wrong keys itself. */
static void report_wrong_node(View *v, DirectoryNode *n, const Node *node, const char *text) {
        if (!view_is_news(&n->wrong_reported, text))
                return;
        log_warning("%s", text);
        if (str_is_empty(node->annotations.mode_in_force))
                view_report(v, "Node", &node->meta, REASON_WRONG, text);
}

static int node_set(View *v, const Node *node, ReflectorEvent event) {
        size_t before = directory_size(v->directory),
               cards = ledger_node_n_healthy(ledger_node_find(v->ledger, node->meta.name));
        Fault wrong = FAULT_NULL;
        LedgerNode *ledger_node;
        DirectoryNode *n;
        int r, said;

        r = ledger_node_set(v->ledger, node, &wrong);
        ledger_node = ledger_node_find(v->ledger, node->meta.name);
        if (!ledger_node || (r < 0 && !directory_find(v->directory, node->meta.name)))
                return r < 0 ? r : -ENOMEM;
        said = r;
        r = directory_put(v->directory, node->meta.name, ledger_node, &n);
        if (r < 0) {
                ledger_node_remove(v->ledger, node->meta.name);
                return r;
        }
        n->generation = v->kinds[VIEW_NODES].generation;
        if (directory_size(v->directory) != before)
                view_count_difference(v, VIEW_NODES, event);
        report_mode(v, n, node);
        if (said < 0)
                return said;
        report_wrong_node(v, n, node, wrong.text);
        if (v->fences.on_room && ledger_node_n_healthy(ledger_node) > cards)
                v->fences.on_room(v->fences.room_userdata, node->meta.name);
        if (v->on_node)
                v->on_node(v->userdata, node);
        return 0;
}

int view_node_object(View *v, ReflectorEvent event, Str object, Fault *fault) {
        DirectoryNode *n;
        Node node;
        int r;

        r = node_decode(object, &v->arena, &node, fault);
        if (r == 0 && (str_is_empty(node.meta.name) || node.meta.name.len > VIEW_NAME_MAX))
                r = fault_set(fault, OBJECT_E_MALFORMED, "a node's name must have from 1 to %d characters",
                              VIEW_NAME_MAX);
        v->kinds[VIEW_NODES].incomplete |= r > 0;
        if (r != 0)
                return r;
        node_defaults_apply(&v->defaults, &node);
        r = event == REFLECTOR_DELETED ? 0 : node_set(v, &node, event);
        n = directory_find(v->directory, node.meta.name);
        if (!n)
                return r;
        if (event != REFLECTOR_DELETED)
                return r < 0 ? r : policy_table_node(v->policies, n, object, &v->arena);
        forget_node(v, n);
        return 0;
}

size_t view_node_sweep(View *v) {
        size_t dropped = 0;

        for (size_t i = directory_size(v->directory); i-- > 0;) {
                DirectoryNode *n = directory_at(v->directory, i);

                if (n->generation == v->kinds[VIEW_NODES].generation)
                        continue;
                forget_node(v, n);
                dropped++;
        }
        return dropped;
}
