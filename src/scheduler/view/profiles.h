/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What preemption needs to know of pods, by UID, from the watch. It concerns pods that hold a
 * slice, which may become victims, and pods that are nominated to a node. No other pod is decoded
 * for it. */

#include "base/hash.h"
#include "wire/pod.h"
#include "wire/pod_profile.h"

/* A copy of a PodProfile, in one allocation. */
typedef struct Profile {
        UT_hash_handle hh;   /* by uid */
        uint32_t generation; /* of the list that last had the pod */
        bool ending;         /* deletionTimestamp is set, or the phase is Succeeded or Failed */
        bool mirror;         /* of a static pod: deleting it ends no container */
        /* Its labels are over PROFILE_TEXT_MAX and left out: never chosen as a victim. */
        bool too_large;
        bool settling; /* one of VictimQuestion.soon: of `is` only the priority is known */
        PodProfile is; /* its texts, labels and requests are in this allocation */
        Str uid, namespace_, name;
} Profile;

enum { PROFILE_TEXT_MAX = 16 << 10 }; /* bytes of labels and resource names kept of one pod */

typedef struct Profiles {
        Profile *holding;   /* of bound pods with a grant */
        Profile *nominated; /* of pods that are not bound and have status.nominatedNodeName */
} Profiles;

/* Takes over one pod as the watch has it. object: its text. holding: it has a grant. A pod that is
 * neither holding nor nominated is dropped. A text that does not decode makes a pod without a
 * profile. Returns 0 or -ENOMEM. */
int profiles_set(Profiles *p, const Pod *pod, Str object, bool holding, uint32_t generation, Arena *arena);
void profiles_drop(Profiles *p, Str uid);
void profiles_sweep(Profiles *p, uint32_t generation); /* drops profiles of an older list */
void profiles_done(Profiles *p);

/* Of a pod that holds a slice; NULL when it is not known. */
const Profile *profiles_find(const Profiles *p, Str uid);

/* Bytes that these profiles occupy, without the hash tables. For tests and measurements. */
size_t profile_size(const Profile *p);
