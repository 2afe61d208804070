/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the Node object asks of the agent, and what of it is in force. */

#include "gpu/cards/card_list.h"
#include "node/publish/node_config.h"
#include "node/records/cordon.h"
#include "share/node_keys.h"

typedef struct NodeState {
        bool keeps_nvidia_off; /* an option: a label keeps NVIDIA's device plugin off the node */
        char *text;            /* JSON text of the Node object; NULL: it is not known yet */
        NodeKeys keys;
        bool keys_known; /* the keys of the Node object have been checked */
        NodeConfig config;
        bool config_saved; /* the file says what `config` says */
        bool offers;       /* the cards can be offered in the unit in force */
        Cordon cordon;     /* the cordon in force */
        /* why the unit in force cannot be offered; "": no fault, as in the next ones */
        Fault unit_fault;
        Fault wanted_unit_fault;
        Fault ledger_fault; /* what the node's own ledger could not decode of the Node object */
        Fault other_plugin; /* what another plugin offers of the same cards; "": nothing */
} NodeState;

/* Checks the keys of the Node object. text: its JSON. cards: NULL before they are listed. */
void node_state_check_keys(NodeState *s, const Node *node, Str text, const CardList *cards);

/* Sets other_plugin from the text of the object. */
void node_state_take_other_plugin(NodeState *s, Str text);

/* Whether the node does not share yet because another plugin, which is kept off, still offers its
 * cards. */
bool node_state_waits(const NodeState *s);
