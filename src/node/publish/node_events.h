/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Events of the node (event_reasons.h). A note is kept until the Node object is known. */

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

/* Write an Event and a log line; reason is static. node_events_now(): only the log line while the
 * Node object is unknown. node_events_tell(): once it is known. node_events_once(): as tell, if the
 * note differs from the last one of that reason. */
void node_events_now(NodeEvents *e, const char *reason, const char *note);
void node_events_tell(NodeEvents *e, const char *reason, const Fault *note);
void node_events_once(NodeEvents *e, const char *reason, const Fault *note);
