/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Does the kubelet still know us? When two agents overlap (an upgrade that starts the new one
 * first), the end of the older one may have it drop the newer one, whose ListAndWatch stays open
 * all the same (kubernetes#135437): every pod is refused then, and nobody is told. So what it says
 * it can give out is looked at, 5 s after a registration and once a minute. A resource of ours that
 * has healthy devices and is not there, twice in a row, is registered anew. A kubelet without that
 * call is asked again after the next registration. */

#include <systemd/sd-event.h>

#include "base/fault.h"
#include "node/records/device.h"

typedef struct Recheck Recheck;

typedef struct RecheckOptions {
        sd_event *event;
        const char *socket; /* of PodResources; these outlive it */
        /* How many healthy devices the kubelet ought to have of us now; 0 as well while we are not
         * registered. */
        size_t (*expected)(void *userdata, DeviceKind kind);
        void (*on_missing)(void *userdata, DeviceKind kind, const Fault *why);
        void *userdata;
} RecheckOptions;

int recheck_new(const RecheckOptions *options, Recheck **ret); /* 0 or negative errno */
Recheck *recheck_free(Recheck *r);

void recheck_soon(Recheck *r); /* a resource was registered */

DEFINE_CLEANUP(Recheck *, recheck_free)
