/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes the labels, annotations, gpu-count and conditions that the Node object should have now,
 * and the Events of what is new in them. */

#include "gpu/cards/card_list.h"
#include "node/publish/driver_release.h"
#include "node/publish/node_events.h"
#include "node/publish/node_state.h"
#include "node/publish/publisher.h"
#include "node/records/inventory.h"

/* What labels, annotations and conditions are made of; all is borrowed. */
typedef struct DesiredNodeFacts {
        const NodeState *state;
        const CardList *cards; /* NULL: they are not listed yet */
        const DriverRelease *driver;
        const Inventory *inventory;
        const Roster *roster;
        const Records *records;
        size_t n_orphans, n_holders; /* pods that hold slices: deleted ones; all of them */
        const Buf *held_slices;      /* text of ANNOTATION_HELD_SLICES */
        bool limits_known;           /* the driver limits memory, or cannot; false: not tried yet */
        const Fault *no_limits;      /* why it cannot; NULL: it can, or is not to */
        const char *limits_backend;  /* ret_backend of memory_limits_mechanism() */
        /* Called before ANNOTATION_UNIT is written with this text, also where it has it already. */
        void (*on_unit)(void *userdata, const char *unit);
        void *userdata;
} DesiredNodeFacts;

/* What the last Events said, so that none is written twice. Initially cordon.reason is "". */
typedef struct NodeTold {
        NodeEvents *events; /* borrowed */
        Fault change;       /* the pending change, without the holders */
        CordonTold cordon;
        Fault broken; /* cards out of service; "": none */
} NodeTold;

/* Hands the desired object to the publisher. What lacks memory is written at the next call. */
void desired_node_publish(const DesiredNodeFacts *facts, NodeTold *told, Publisher *publisher);
