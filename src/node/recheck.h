/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks that the kubelet still lists this agent's devices. When two agents overlap in an upgrade,
 * the end of the older one may make the kubelet drop the newer one. Its ListAndWatch stays open
 * (kubernetes#135437): every pod is refused, and no error is reported.
 *
 * So GetAllocatableResources is called 5 s after a registration and then once a minute. A resource
 * that has healthy devices and is missing twice in a row is registered again. If a kubelet does not
 * have the call, it is asked again after the next registration. */

#include <systemd/sd-event.h>

#include "base/fault.h"
#include "node/records/device.h"

typedef struct Recheck Recheck;

typedef struct RecheckOptions {
        sd_event *event;
        const char *socket; /* the PodResources socket; borrowed, as the loop */
        /* Returns how many healthy devices the kubelet should list; 0 also while not registered. */
        size_t (*expected)(void *userdata, OfferedResource resource);
        void (*on_missing)(void *userdata, OfferedResource resource, const Fault *why);
        void *userdata;
} RecheckOptions;

int recheck_new(const RecheckOptions *options, Recheck **ret); /* 0 or negative errno */
Recheck *recheck_free(Recheck *r);

/* call it when a resource was registered: the next check is in 5 s */
void recheck_soon(Recheck *r);

DEFINE_CLEANUP(Recheck *, recheck_free)
