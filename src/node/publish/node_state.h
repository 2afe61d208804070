/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the Node object asks of the agent, and what of it is in force. */

#include "gpu/cards/card_list.h"
#include "node/publish/node_config.h"
#include "node/records/cordon.h"
#include "share/node_keys.h"

typedef struct NodeState {
        bool keeps_nvidia_off; /* an option: a label keeps NVIDIA's device plugin off the node */
        char *text;            /* of the Node object; NULL: it is not known yet */
        NodeKeys keys;
        bool keys_known; /* the keys of the Node object have been checked */
        NodeConfig config;
        bool config_saved; /* the file says what `config` says */
        bool offers;       /* the cards can be offered in the unit in force */
        Cordon cordon;     /* in force */
        Fault unit_fault;  /* of the unit in force; "": none, as in the next ones */
        Fault wanted_unit_fault;
        Fault ledger_fault; /* of the Node object, as the node's own ledger read it last */
        Fault other_plugin; /* what another plugin offers of the same cards; "": nothing */
} NodeState;

/* The keys of the object; text: the whole object. cards: NULL before they are listed. */
void node_state_check_keys(NodeState *s, const Node *node, Str text, const CardList *cards);

/* Sets other_plugin from the text of the object. */
void node_state_take_other_plugin(NodeState *s, Str text);

/* The node does not share yet, and another plugin that is kept off offers its cards still. */
bool node_state_waits(const NodeState *s);
