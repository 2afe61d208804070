/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What preemption needs to know of pods, by UID, from the watch: of pods with a slice, which may
 * become victims, and of pods that are nominated to a node. No other pod is decoded for it. */

#include "base/hash.h"
#include "wire/pod.h"
#include "wire/pod_profile.h"

/* A copy of a PodProfile, in one allocation. */
typedef struct Profile {
        UT_hash_handle hh;   /* by uid */
        uint32_t generation; /* of the last list that had the pod */
        bool ending;         /* deletionTimestamp is set, or the phase is Succeeded or Failed */
        bool mirror;         /* the mirror of a static pod: deleting it stops no container */
        /* Labels and resource names exceed PROFILE_TEXT_MAX and are left out: never a victim. */
        bool too_large;
        bool settling; /* it is in VictimQuestion.soon: of `is` only the priority is known */
        PodProfile is; /* the lists and texts that it points to are in this allocation */
        Str uid, namespace_, name;
} Profile;

enum { PROFILE_TEXT_MAX = 16 << 10 }; /* bytes of labels and resource names kept of one pod */

typedef struct Profiles {
        Profile *holding;   /* of bound pods with a grant */
        Profile *nominated; /* of unbound pods with status.nominatedNodeName */
} Profiles;

/* Takes over one pod as the watch shows it. object: its text. holding: it has a grant. A pod that
 * is neither bound and holding nor nominated is dropped, and so is one that does not decode.
 * Returns 0 or -ENOMEM. */
int profiles_set(Profiles *p, const Pod *pod, Str object, bool holding, uint32_t generation, Arena *arena);
void profiles_drop(Profiles *p, Str uid);
/* drops those that the list of this generation did not have */
void profiles_sweep(Profiles *p, uint32_t generation);
void profiles_done(Profiles *p);

/* The profile of a pod that holds a slice; NULL: not known. */
const Profile *profiles_find(const Profiles *p, Str uid);

/* Bytes that a profile takes without the hash table; for tests and measurements. */
size_t profile_size(const Profile *p);
