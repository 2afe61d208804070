/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Other sizes for the slices of running containers, as the pod's annotations ask
 * (share/resize_request.h; docs/internals/resize.md). The record of the pod holds the size in
 * force: it is written first, then the pages, then the status. Each look at a pod writes what
 * differs, so an agent that was killed between two steps completes them when it starts again. The
 * status says what waits when a file cannot be written.
 *
 * A slice exceeds its limit only as far as the leading scheduler has permitted (slice_growth.h).
 * Otherwise no other pod and no ledger is concerned. */

#include "node/allocate/node_context.h"

typedef struct SliceResize {
        const NodeContext *node;
        bool ignores_disable; /* CGPU_DISABLE is not honoured on this node */
        /* Called once until the reason changes. */
        void (*on_refused)(void *userdata, const RosterPod *pod, const Fault *note);
        void *userdata;
} SliceResize;

/* A pod came or changed: puts the sizes that it asks for in force, or keeps those in force and says
 * why. Sets pod->resize_status, and has it written into the pod's annotation. Nothing is done
 * before the Node object has shown the cards. Returns whether something could not be written: the
 * caller looks again later. */
bool slice_resize_look(const SliceResize *s, RosterPod *pod);
