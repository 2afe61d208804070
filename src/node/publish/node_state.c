/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/node_state.h"

#include "node/publish/other_plugin.h"

void node_state_check_keys(NodeState *s, const Node *node, Str text, const CardList *cards) {
        _cleanup_buf_ Buf unit = BUF_NULL;
        CardIndexes present = {0};

        for (size_t i = 0; cards && i < cards->n; i++)
                card_indexes_add(&present, cards->cards[i].index);
        memory_unit_format(s->config.unit, &unit);
        node_keys_check(&s->keys, node, share_mode_to_string(s->config.mode),
                        buf_result(&unit) < 0 ? "" : unit.data, cards ? &present : NULL);
        node_keys_check_names(&s->keys, text);
        s->keys_known = true;
}

void node_state_take_other_plugin(NodeState *s, Str text) {
        _cleanup_buf_ Buf found = BUF_NULL;

        s->other_plugin = FAULT_NULL;
        other_plugin_find(text, &found);
        if (found.len == 0 || buf_result(&found) < 0)
                return;
        (void) fault_set(&s->other_plugin, 0,
                         "the node offers %.*s, too: another plugin gives out the cards that are shared "
                         "here, and neither counts what the other gives; keep it off the node (for NVIDIA's "
                         "GPU Operator by the label nvidia.com/gpu.deploy.device-plugin=false)",
                         STR_CUT(buf_str(&found), 160));
}

bool node_state_waits(const NodeState *s) {
        return s->keeps_nvidia_off && s->config.mode == SHARE_MODE_NONE &&
               share_mode_is_served(s->config.wanted_mode) && s->other_plugin.text[0] != '\0';
}
