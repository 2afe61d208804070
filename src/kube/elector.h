/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Leader election by a Lease of coordination.k8s.io/v1, as client-go does it: lease 15 s, renew deadline 10 s, retry
 * 2 s with jitter. A leader that cannot renew stops leading before anybody else can take the lease, measured on
 * its own monotonic clock; other people's clocks are never compared. */

#include "kube/client.h"

typedef struct Elector Elector;

typedef struct ElectorOptions {
        const char *namespace_, *name;       /* of the Lease */
        const char *identity;                /* unique per process */
        usec_t lease, renew_deadline, retry; /* 0: the defaults above */
} ElectorOptions;

/* leading: true when we may act; false from the moment we must not. Called from the loop on each change. */
int elector_new(KubeClient *c, const ElectorOptions *options, void (*on_change)(void *userdata, bool leading),
                void *userdata, Elector **ret);
Elector *elector_free(Elector *e); /* does not release: call elector_release() first for a clean hand-over */
bool elector_is_leading(const Elector *e);
int elector_release(Elector *e, void (*done)(void *userdata), void *userdata); /* empties holderIdentity */

DEFINE_CLEANUP(Elector *, elector_free)
