/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Leader election by a Lease of coordination.k8s.io/v1, as client-go does it: lease 15 s, renew
 * deadline 10 s, retry 2 s with jitter. A leader that cannot renew stops leading before another
 * instance can take the lease. It measures this on its own clock, which goes on in suspend; clocks
 * of different machines are never compared. */

#include "kube/client.h"

typedef struct Elector Elector;

typedef struct ElectorOptions {
        const char *namespace_, *name; /* of the Lease */
        const char *identity;          /* unique per process */
        /* 0: the defaults above. retry < renew_deadline < lease */
        usec_t lease, renew_deadline, retry;
} ElectorOptions;

/* leading: true when this instance may act, false from the moment it must not. on_change is called
 * from the loop on each change, never before this returns; it may free the elector. Returns 0,
 * -ENOMEM, or -EINVAL for times in another order. */
int elector_new(KubeClient *c, const ElectorOptions *options, void (*on_change)(void *userdata, bool leading),
                void *userdata, Elector **ret);

/* Frees the elector, before its client. It neither releases the lease (elector_release()) nor calls
 * on_change. */
Elector *elector_free(Elector *e);

/* Whether this instance leads now. Reads the clock, so the answer is right even when the loop was
 * held up or the machine slept. */
bool elector_is_leading(const Elector *e);

/* Ends the election and, if it leads, leadership (on_change). It empties holderIdentity, so that
 * the next instance need not wait for the lease to expire.
 *
 * Returns 0: done is called once, from the loop, when that is written or has failed for good
 * (renew_deadline). Returns 1: nothing to release, or it is being released already; done is not
 * called. */
int elector_release(Elector *e, void (*done)(void *userdata), void *userdata);

DEFINE_CLEANUP(Elector *, elector_free)
