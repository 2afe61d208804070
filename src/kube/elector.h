/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Leader election by a Lease of coordination.k8s.io/v1, as client-go does it: lease 15 s, renew
 * deadline 10 s, retry 2 s with jitter. A leader that cannot renew stops leading before anybody
 * else can take the lease, measured on its own clock (which goes on in suspend); other people's
 * clocks are never compared. */

#include "kube/client.h"

typedef struct Elector Elector;

typedef struct ElectorOptions {
        const char *namespace_, *name;       /* of the Lease */
        const char *identity;                /* unique per process */
        usec_t lease, renew_deadline, retry; /* 0: the defaults above. retry < renew_deadline < lease */
} ElectorOptions;

/* leading: true when we may act; false from the moment we must not. Called from the loop on each
 * change, never before this returns; it may free the elector. 0, -ENOMEM, or -EINVAL for times in
 * another order. */
int elector_new(KubeClient *c, const ElectorOptions *options, void (*on_change)(void *userdata, bool leading),
                void *userdata, Elector **ret);

/* Does not release: call elector_release() first for a clean hand-over. Not told through on_change.
 * Before its client. */
Elector *elector_free(Elector *e);

/* Looks at the clock: the answer is right also where the loop was held up, or the machine slept. */
bool elector_is_leading(const Elector *e);

/* Stops running, also who only runs, and leading (on_change, if it was), and empties
 * holderIdentity, so that the next one need not wait for the lease to run out. Returns 0: done is
 * called once, from the loop, when that is written or has failed for good (renew_deadline); or 1:
 * there was nothing to give back, and done is not called; or -ENOMEM. */
int elector_release(Elector *e, void (*done)(void *userdata), void *userdata);

DEFINE_CLEANUP(Elector *, elector_free)
