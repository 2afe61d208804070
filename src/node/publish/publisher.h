/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps labels, annotations, gpu-count and conditions of the Node object as they should be. At each
 * event the observed object is compared with the desired one, so a key that a user or another agent
 * overwrites is corrected. One patch is sent at a time; a failed one is repeated. */

#include "kube/client.h"
#include "node/publish/conditions.h"
#include "wire/node.h"

typedef struct Publisher Publisher;

/* reason: NULL leaves the condition as it is, "" makes it False. good_reason: reason of a False
 * condition, written with `message` even where the node has none; NULL: the usual reason and
 * message, mostly only where it has one. */
typedef struct DesiredCondition {
        const char *reason, *message, *good_reason;
} DesiredCondition;

/* Each text: NULL leaves the key as it is, "" removes it. */
typedef struct DesiredNode {
        const char *card_name, *card_mem, *card_count; /* labels */
        const char *holds_slices, *nvidia_plugin;
        const char *cards, *held_slices; /* annotations */
        /* A user may write the unit, too: it is written only while the observed object has the text
         * unit_seen there ("": absent), and the API server no newer object. */
        const char *unit, *unit_seen;
        const char *mode_in_force, *unit_in_force, *change_pending;
        const char *gpu_count; /* capacity and allocatable */
        DesiredCondition conditions[CONDITIONS_];
} DesiredNode;

int publisher_new(KubeClient *client, const char *node, Publisher **ret); /* 0 or -ENOMEM */
/* call it before kube_client_free() */
Publisher *publisher_free(Publisher *p);

/* Takes the object as it is now: decoded, and its text for the conditions. An object of a watch
 * that is older than the last patch is ignored. listed: the object comes from a new list and counts
 * whatever its version. Returns 0 or -ENOMEM. */
int publisher_observe(Publisher *p, const Node *node, Str text, bool listed);
/* Sets what is desired of the object from now on (copied). Returns 0 or -ENOMEM. */
int publisher_set_desired(Publisher *p, const DesiredNode *node);

/* Writes this text into ANNOTATION_GROWTH while the observed object has the text `seen` there, and
 * the API server no newer object; "": absent. After another writer's change nothing is written
 * before the next call. seen NULL: nothing is to be written. 0 or -ENOMEM. */
int publisher_set_growth(Publisher *p, const char *seen, const char *text);

DEFINE_CLEANUP(Publisher *, publisher_free)
