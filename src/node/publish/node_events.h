/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Events of the node (event_reasons.h). One waits until the Node object is known. */

#include "kube/event.h"
#include "node/publish/event_reasons.h"

typedef struct NodeEvents {
        KubeEventRecorder *recorder; /* the owner frees it */
        const char *name;            /* of the Node; borrowed */
        char *uid;                   /* of the Node object; NULL: it is not known yet */
        EventReasons reasons;
} NodeEvents;

void node_events_done(NodeEvents *e);

/* The Node object has this UID: writes the Events that waited. */
void node_events_set_uid(NodeEvents *e, Str uid);

/* Each writes an Event; reason is static. now: without the object it goes to the log alone. once:
 * when the note differs from the last one of that reason. */
void node_events_now(NodeEvents *e, const char *reason, const char *note);
void node_events_tell(NodeEvents *e, const char *reason, const Fault *note);
void node_events_once(NodeEvents *e, const char *reason, const Fault *note);
