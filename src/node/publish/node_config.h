/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mode and the memory unit of this node: those in force, and those that are asked for. Slices
 * are counted in both, so neither changes while slices are held. They are kept on disk, so that a
 * restart of the agent does not change them. Pure. */

#include "base/buf.h"
#include "base/fault.h"
#include "share/memory_unit.h"
#include "share/mode.h"

typedef struct NodeConfig {
        ShareMode mode; /* the mode and unit in force */
        MemoryUnit unit;
        ShareMode wanted_mode;
        MemoryUnit wanted_unit;
        bool unit_by_user;         /* a user wrote ANNOTATION_UNIT, not this agent */
        char published_unit[24];   /* what this agent last wrote to ANNOTATION_UNIT */
        char replaced_unit[24];    /* what it wrote before that, until the new text has been seen */
        char seen_unit[24];        /* ANNOTATION_UNIT as it was seen; "" while it is a user's */
        bool offered;              /* the unit was good for all cards once, so slices may exist in it */
        bool place_while_changing; /* ANNOTATION_PLACE_WHILE_CHANGING */
        bool drain;                /* ANNOTATION_UNIT_CHANGE */
        char memory_isolation[16]; /* ANNOTATION_MEMORY_ISOLATION, its last good value; "": none */
} NodeConfig;

void node_config_init(NodeConfig *c, MemoryUnit unit);

/* What the Node object asks for. label: the value of LABEL_SCHEDULE; an empty or unknown one asks
 * for the mode in force. unit: the value of ANNOTATION_UNIT. If a user wrote it, it takes
 * precedence over `configured`, and a malformed one asks for the unit in force. */
typedef struct NodeConfigRequest {
        Str label, unit;
        MemoryUnit configured;
        bool place_while_changing, drain;
} NodeConfigRequest;
void node_config_request(NodeConfig *c, const NodeConfigRequest *request);

/* Notes what this agent writes to ANNOTATION_UNIT. The watch may bring this agent's earlier text
 * once more, which then counts as its own. */
void node_config_publish_unit(NodeConfig *c, const char *unit);

bool node_config_is_pending(const NodeConfig *c); /* a request is not in force yet */
/* Puts the request in force, unless slices are held. Returns true when something changed. */
bool node_config_apply(NodeConfig *c, bool slices_are_held);

/* Appends the text of ANNOTATION_CHANGE_PENDING: the pending changes that block new slices. Appends
 * nothing when there are none. */
void node_config_write_blocking(const NodeConfig *c, Buf *out);

void node_config_write(const NodeConfig *c, Buf *out);
enum { NODE_CONFIG_E_MALFORMED = 2 };
/* 0, NODE_CONFIG_E_MALFORMED with a fault, or -ENOMEM */
int node_config_read(Str json, NodeConfig *ret, Fault *fault);
