/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps the node object saying what is true: labels and annotations of the cards, gpu-count in its status, the condition
 * that tells why a change waits. By comparing what the object says with what it should say, again and again: a user who
 * overwrites it, or another agent, is put right with the next event. One patch at a time; failures are tried again. */

#include "base/buf.h"
#include "kube/client.h"
#include "wire/object.h"

typedef struct Publisher Publisher;

/* What the node object is to say. "": the key is to be absent. NULL: it is left as it is. */
typedef struct NodeWords {
        const char *card_name, *card_mem, *card_count; /* labels */
        const char *holds_slices;
        const char *cards, *unit, *held_slices; /* annotations */
        const char *gpu_count;                  /* capacity and allocatable */
        const char *condition_reason;           /* "" : the condition is False */
        const char *condition_message;
} NodeWords;

int publisher_new(KubeClient *client, const char *node, Publisher **ret); /* 0 or -ENOMEM */
Publisher *publisher_free(Publisher *p);                                  /* before its client */

/* The object as it is now. */
int publisher_saw(Publisher *p, const Node *node); /* 0 or -ENOMEM */
/* What it is to say from now on (copied). */
int publisher_want(Publisher *p, const NodeWords *words); /* 0 or -ENOMEM */

/* Everything that was wanted has been written, as far as is known. */
bool publisher_is_done(const Publisher *p);

#define CONDITION_CHANGE_PENDING "GPUShareChangePending"

DEFINE_CLEANUP(Publisher *, publisher_free)
