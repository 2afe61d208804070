/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Events of v1 about a pod or a node. Repeats of the same (object, type, reason, note) within ten
 * minutes are counted and patched, as client-go's correlator does. An Event that `replaces` counts
 * as a repeat whatever its note, which is patched, too. The API server lets v1 clients change any
 * field (pkg/apis/core/validation, ValidateEventUpdate). The rate is at most 25 per object and then
 * one per 5 min; of all objects 100 and then 50 a second, and further Events wait. A call without
 * an answer is repeated with growing pauses, twelve times at most. Best effort: an Event that is
 * dropped or lost is counted, and no caller waits. */

#include "kube/client.h"

typedef struct KubeEventRecorder KubeEventRecorder;

typedef struct KubeEvent {
        const char *api_version; /* NULL: v1 */
        const char *kind;        /* "Pod", "Node" */
        Str namespace_, name, uid;
        const char *type;   /* "Normal", "Warning" */
        const char *reason; /* CamelCase */
        const char *note;   /* cut after 1024 bytes */
        bool replaces;
        const char *part; /* of an Event that replaces: it replaces those of this part alone; NULL: of all */
} KubeEvent;

int kube_event_recorder_new(KubeClient *c, const char *component, KubeEventRecorder **ret);
KubeEventRecorder *kube_event_recorder_free(KubeEventRecorder *r); /* before its client */
void kube_event(KubeEventRecorder *r, const KubeEvent *event);

typedef struct KubeEventCounters {
        uint64_t created, repeated; /* written: new Events; higher counts */
        uint64_t dropped;           /* over the rate of their object */
        uint64_t lost;              /* refused by the server, no answer to the last try, or 4096 wait */
} KubeEventCounters;
KubeEventCounters kube_event_counters(const KubeEventRecorder *r);

DEFINE_CLEANUP(KubeEventRecorder *, kube_event_recorder_free)
