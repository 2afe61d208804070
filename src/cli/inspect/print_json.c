/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/inspect-internal.h"
#include "wire/inspect_json.h"

static void card_pods(JsonWriter *w, const InspectNode *n, uint32_t card) {
        for (size_t p = 0; p < n->n_pods; p++) {
                const InspectPod *pod = &n->pods[p];
                InspectUse use = inspect_pod_use(pod, card);

                if (use.mem == 0 && use.core == 0)
                        continue;
                if (pod->deleted)
                        inspect_json_deleted_pod(w, pod->namespace_, pod->name, use.mem, use.core);
                else if (pod->resized)
                        inspect_json_resized_pod(w, pod->namespace_, pod->name,
                                                 &(InspectJsonSize){use.mem, use.core},
                                                 &(InspectJsonSize){use.mem_in_force, use.core_in_force});
                else
                        inspect_json_pod(w, pod->namespace_, pod->name, use.mem, use.core);
        }
}

static void pending_pods(JsonWriter *w, const InspectNode *n) {
        for (size_t p = 0; p < n->n_pods; p++) {
                const InspectPod *pod = &n->pods[p];

                if (pod->pending_mem > 0 || pod->pending_core > 0)
                        inspect_json_pod(w, pod->namespace_, pod->name, pod->pending_mem, pod->pending_core);
        }
}

/* Writes the pods with annotations that differ from their limits, including pods that hold
 * nothing. */
static void differences(JsonWriter *w, const InspectNode *n) {
        bool any = false;

        for (size_t p = 0; p < n->n_pods; p++) {
                const InspectPod *pod = &n->pods[p];

                if (str_is_empty(pod->difference))
                        continue;
                if (!any)
                        json_write_array(w, "differences");
                any = true;
                json_write_object(w, NULL);
                json_write_str(w, "name", pod->name);
                json_write_str(w, "namespace", pod->namespace_);
                json_write_str(w, "message", pod->difference);
                json_write_object_end(w);
        }
        if (any)
                json_write_array_end(w);
}

static void node_object(JsonWriter *w, const InspectNode *n) {
        inspect_json_node(w, n->name,
                          &(InspectJsonSums){n->total_mem, n->used_mem, n->total_core, n->used_core});
        if (n->pending_mem > 0 || n->pending_core > 0) {
                inspect_json_pending(w, n->pending_mem, n->pending_core);
                pending_pods(w, n);
                inspect_json_pending_end(w);
        }
        inspect_json_cards(w);
        for (size_t card = 0; card < n->n_cards; card++) {
                const InspectCard *c = &n->cards[card];

                inspect_json_card(w, (uint32_t) card,
                                  &(InspectJsonSums){c->total_mem, c->used_mem, c->total_core, c->used_core},
                                  card_state_text(inspect_card_state(n, card)));
                card_pods(w, n, (uint32_t) card);
                inspect_json_card_end(w);
        }
        inspect_json_cards_end(w);
        differences(w, n);
        inspect_json_node_end(w);
}

int inspect_print_json(Inspect *i, Str node, Buf *out, Fault *fault) {
        InspectView v;
        JsonWriter w;
        int r;

        r = inspect_view(i, node, &v, fault);
        if (r != 0)
                return r;
        inspect_json_begin(&w, out);
        for (size_t n = 0; n < v.n_nodes; n++)
                node_object(&w, &v.nodes[n]);
        inspect_json_end(&w);
        buf_append_char(out, '\n');
        return buf_result(out);
}
