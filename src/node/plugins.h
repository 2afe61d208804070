/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The device plugin of each resource, and the check that the kubelet still lists its devices. */

#include "base/histogram.h"
#include "node/allocate/resolver.h"
#include "node/allocate/start_verifier.h"
#include "node/publish/node_events.h"
#include "node/recheck.h"

/* Calls of the kubelet with an answer that is timed. */
typedef enum PluginsCall {
        PLUGINS_CALL_PREFERRED,
        PLUGINS_CALL_ALLOCATE,
        PLUGINS_CALL_PRESTART,
        PLUGINS_CALLS_
} PluginsCall;

extern const char *const plugins_call_names[PLUGINS_CALLS_]; /* their names in v1beta1 */

typedef struct Plugins {
        const char *kubelet_dir; /* borrowed, as the next ones */
        Resolver *resolver;
        StartVerifier *start_verifier;
        NodeEvents *events;
        Plugin *list[OFFERED_RESOURCES_]; /* NULL: not started yet */
        bool registered[OFFERED_RESOURCES_];
        size_t healthy[OFFERED_RESOURCES_]; /* healthy devices that are offered; set by the owner */
        Recheck *recheck;
        Histogram calls[PLUGINS_CALLS_]; /* durations until the answer, by call */
        uint64_t registrations;
        uint64_t dropped; /* times that the kubelet dropped a resource without an error */
} Plugins;

/* socket: path of the PodResources socket; outlives the plugins. 0, or negative errno with a
 * fault. */
int plugins_start(Plugins *all, sd_event *event, const char *socket, Fault *fault);
void plugins_done(Plugins *all);
