/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Follows the Lease by which a kube-scheduler beside this process is elected. This process leads
 * where that kube-scheduler does, so that one Lease decides for both, and has no election of its
 * own (elector.h).
 *
 * The identity of a kube-scheduler is its host name, "_" and a UUID
 * (cmd/kube-scheduler/app/options/options.go: makeLeaderElectionConfig). The containers of a pod
 * have one host name, which contains no "_". lease_term.h says why two replicas never lead at once.
 *
 * The Lease is read every second, and at once when lease_follower_look() says that the
 * kube-scheduler behaves like a leader.
 *
 * With a file, what was read is kept there for the process that takes the place of this one. That
 * process then leads with its first read, where this one would still have led. Without it, or after
 * a boot of the machine, it waits for a renewal. The file must be of this pod alone, as a volume of
 * the type emptyDir is. */

#include "kube/client.h"

typedef struct LeaseFollower LeaseFollower;

typedef struct LeaseFollowerOptions {
        const char *namespace_, *name; /* of the Lease */
        const char *host;              /* of this process and its kube-scheduler, as gethostname() */
        const char *file;              /* NULL: nothing is kept */
} LeaseFollowerOptions;

/* leading: true when this process may act, false from the moment it must not. on_change is called
 * from the loop on each change, never before this returns; it must not free the follower. A file
 * that cannot be read or written is logged. Returns 0 or -ENOMEM. */
int lease_follower_new(KubeClient *c, const LeaseFollowerOptions *options,
                       void (*on_change)(void *userdata, bool leading), void *userdata, LeaseFollower **ret);
/* call it before kube_client_free(); calls no on_change */
LeaseFollower *lease_follower_free(LeaseFollower *f);

/* Whether this process leads now. Reads the clock, so the answer is right even when the loop was
 * held up or the machine slept. */
bool lease_follower_is_leading(const LeaseFollower *f);

/* Why this process does not lead: one sentence without a full stop that names the Lease and its
 * holder; NULL while it leads. It is valid until the next call. */
const char *lease_follower_why_not(LeaseFollower *f);

/* The kube-scheduler has asked for something, as only a leader does. Unless this process leads,
 * reads the Lease at once, or after a short pause where it was read just now. */
void lease_follower_look(LeaseFollower *f);

DEFINE_CLEANUP(LeaseFollower *, lease_follower_free)
