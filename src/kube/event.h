/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes core/v1 Events about a pod or a node. Repeats of the same (object, type, reason, note)
 * within ten minutes are counted and patched, as client-go's correlator does. An Event that
 * `replaces` counts as a repeat whatever its note, which is patched, too. The API server lets v1
 * clients change any field (pkg/apis/core/validation, ValidateEventUpdate). The rate is at most 25
 * per object and then one per 5 min; of all objects 100 and then 50 a second, and further Events
 * wait. A call without an answer is repeated with growing pauses, twelve times at most. Best
 * effort: an Event that is dropped or lost is counted, and no caller waits. */

#include "kube/client.h"
#include "wire/object.h"

typedef struct KubeEventRecorder KubeEventRecorder;

typedef struct KubeEvent {
        const char *api_version; /* NULL: v1 */
        const char *kind;        /* "Pod", "Node" */
        Str namespace_, name, uid;
        const char *type;   /* "Normal", "Warning" */
        const char *reason; /* CamelCase */
        const char *note;   /* cut after 1024 bytes */
        bool replaces;
        /* with `replaces`: only Events with the same part are replaced, such as a container's;
         * NULL: those without a part */
        const char *part;
} KubeEvent;

int kube_event_recorder_new(KubeClient *c, const char *component, KubeEventRecorder **ret);
/* call it before kube_client_free() */
KubeEventRecorder *kube_event_recorder_free(KubeEventRecorder *r);
void kube_event(KubeEventRecorder *r, const KubeEvent *event);
/* A Warning about the object of core/v1. */
static inline void kube_event_warn(KubeEventRecorder *r, const char *kind, const ObjectMeta *about,
                                   const char *reason, const char *note) {
        kube_event(r, &(KubeEvent){.kind = kind,
                                   .namespace_ = about->namespace_,
                                   .name = about->name,
                                   .uid = about->uid,
                                   .type = "Warning",
                                   .reason = reason,
                                   .note = note});
}

typedef struct KubeEventCounters {
        uint64_t created, repeated; /* Events written anew; patches with a higher count */
        uint64_t dropped;           /* Events beyond the rate of their object */
        /* Events that the server refused or did not answer in the last try, or while 4096 wait */
        uint64_t lost;
} KubeEventCounters;
KubeEventCounters kube_event_counters(const KubeEventRecorder *r);

DEFINE_CLEANUP(KubeEventRecorder *, kube_event_recorder_free)
