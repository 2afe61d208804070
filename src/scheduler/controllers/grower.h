/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Lets slices grow beyond the limits of their pods, where the administrator allows it, and lets a
 * slice that was shrunk have its limit again (docs/internals/resize.md). Only the leader permits.
 * Per wish, one at a time:
 *
 *     reserve in the ledger -> GET resourcequotas -> GET node -> PATCH node -> settled
 *         | no room              | a quota            | the permit     | 409, or an unknown
 *         v                      v names it           v is there       v outcome: GET node again
 *       Event                  Event                 settled
 *
 * A reservation is charged until the watch shows the annotation with the permit, so a pod that is
 * placed meanwhile sees less room. What had no room is tried again each second, each wish in its
 * turn. A wish within the limits asks no quota. While it has no room, no slice of its card grows
 * beyond a limit: Kubernetes counts the limit of the pod that waits. After an answer of the API
 * server the wish waits for a second, and longer each time up to 30 seconds. An agent that has not
 * seen the newest wish of the pod gives the permit back. When the annotations of the pod change
 * before the PATCH, the wish ends without a permit, and the new one is tried. A reservation whose
 * permit the watch never shows ends when the node has had no annotation for a minute. */

#include "scheduler/question/scheduler_context.h"

typedef struct Grower Grower;

typedef struct GrowerOptions {
        SchedulerContext *context; /* it outlives the grower, and may_not_act is not NULL */
        usec_t tick;               /* pause between two looks at the wishes; 0: 1 s */
        usec_t again;              /* the longest pause of a wish after its growth has ended; 0: 30 seconds */
} GrowerOptions;

int grower_new(const GrowerOptions *options, Grower **ret); /* 0 or -ENOMEM */
Grower *grower_free(Grower *g);                             /* before view, recorder and client */

/* A pod came, changed or went; the view has it already. */
void grower_pod(Grower *g, const Pod *pod);

/* A node came or changed: it may say that a pod without annotations has given up a part of its
 * limits. */
void grower_node(Grower *g, Str name);

DEFINE_CLEANUP(Grower *, grower_free)
