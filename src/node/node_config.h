/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mode and the memory unit of this node: what is in force, and what is asked for. Slices are
 * counted in both, so neither changes while slices are held (CONTRACT sections 1 and 7). They are
 * kept on disk, because a restart of the agent must not change them either. Pure but for the two
 * functions that read and write the text. */

#include "base/buf.h"
#include "base/fault.h"
#include "share/memory_unit.h"
#include "share/mode.h"

typedef struct NodeConfig {
        ShareMode mode; /* in force */
        MemoryUnit unit;
        ShareMode wanted_mode;
        MemoryUnit wanted_unit;
        bool unit_by_user; /* the annotation aliquot.dev/gpu-mem-unit was written by a user, not by this agent */
        char published_unit[24]; /* what this agent wrote into it */
        bool offered; /* the unit in force was good for all cards, so slices may have been given in it */
        bool place_while_changing; /* the switches of the node: ANNOTATION_PLACE_WHILE_CHANGING, */
        bool drain;                /* ANNOTATION_UNIT_CHANGE */
} NodeConfig;

void node_config_init(NodeConfig *t, MemoryUnit unit);

/* What the node object asks for now. label: of LABEL_SCHEDULE; empty or not in CONTRACT section 1:
 * the mode in force is wanted. unit: of ANNOTATION_UNIT; a text that is not this agent's own goes
 * before `configured`, and one that is malformed asks for the unit in force. The switches are
 * copied. */
typedef struct NodeConfigRequest {
        Str label, unit;
        MemoryUnit configured;
        bool place_while_changing, drain;
} NodeConfigRequest;
void node_config_request(NodeConfig *t, const NodeConfigRequest *wish);

bool node_config_is_pending(const NodeConfig *t); /* something is wanted that is not in force */
/* Brings into force what is wanted, unless slices are held. Returns true when something changed. */
bool node_config_apply(NodeConfig *t, bool slices_are_held);

/* The text of ANNOTATION_CHANGE_PENDING: the changes that wait and stop new slices. Appends nothing
 * where there are none. */
void node_config_write_blocking(const NodeConfig *t, Buf *out);

void node_config_write(const NodeConfig *t, Buf *out);
enum { NODE_CONFIG_E_MALFORMED = 2 };
int node_config_read(Str json, NodeConfig *ret, Fault *fault); /* 0, TERMS_E_MALFORMED, -ENOMEM */
