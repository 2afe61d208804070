/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps the Node object saying what is true: labels and annotations of the cards, what is in force,
 * gpu-count in its status, and the agent's conditions. What the object says is compared with what
 * it should say at each event, so a user or another agent that overwrites a key is corrected with
 * the next event. One patch at a time; a failed one is tried again. */

#include "base/buf.h"
#include "kube/client.h"
#include "node/conditions.h"
#include "wire/node.h"

typedef struct Publisher Publisher;

/* What one condition is to say. reason NULL: it is left as it is; "": it is False. */
typedef struct DesiredCondition {
        const char *reason, *message;
} DesiredCondition;

/* What the Node object is to say. "": the key is to be absent. NULL: it is left as it is. */
typedef struct DesiredNode {
        const char *card_name, *card_mem, *card_count; /* labels */
        const char *holds_slices;
        const char *cards, *unit, *held_slices; /* annotations */
        const char *mode_in_force, *unit_in_force, *change_pending;
        const char *gpu_count; /* capacity and allocatable */
        DesiredCondition conditions[CONDITIONS_];
} DesiredNode;

int publisher_new(KubeClient *client, const char *node, Publisher **ret); /* 0 or -ENOMEM */
Publisher *publisher_free(Publisher *p);                                  /* before its client */

/* The object as it is now: decoded, and its text for the conditions. Of a watch, an object that is
 * older than this publisher's last patch is passed over; listed: it comes from a new list, and
 * counts whatever its version. 0 or -ENOMEM. */
int publisher_observe(Publisher *p, const Node *node, Str text, bool listed);
/* What it is to say from now on (copied). 0 or -ENOMEM. */
int publisher_set_desired(Publisher *p, const DesiredNode *node);

/* Everything that was wanted has been written, as far as is known. */
bool publisher_is_done(const Publisher *p);

DEFINE_CLEANUP(Publisher *, publisher_free)
