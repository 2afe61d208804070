/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by resolver.c, resolver_answer.c and resolver_place.c. */

#include "node/allocate/pending_admission.h"
#include "node/allocate/resolver.h"
#include "share/placement.h"

enum { RESOLVER_LOOKS_MAX = 10 }; /* Lists that one call waits for */

/* One GetPreferredAllocation that is not answered yet. */
typedef struct PreferredCall {
        struct PreferredCall *next, **link;
        Resolver *resolver;
        RpcCall *rpc;
        DeviceKind kind;
        DeviceSet available, must_include;
        uint32_t size;
        PodResourcesCall *list;
        KubeCall *get;
        char *get_name; /* NAMESPACE/NAME of the pod that `get` asks for */
        /* NAMESPACE/NAME of pods that the API server did not have; each look asks for one */
        char *gone[RESOLVER_LOOKS_MAX];
        size_t n_gone;
        sd_event_source *again, *deadline;
        usec_t began;
        unsigned looks;
        bool listed; /* the kubelet has answered a List */
} PreferredCall;

/* The last pod that was not known. The call for its other resource begins at once, and must get the
 * same card. */
typedef struct UnknownPod {
        DeviceKind kind;
        uint32_t card;
        usec_t until;
} UnknownPod;

struct Resolver {
        ResolverOptions o;
        const NodeContext *node;
        UnknownPod unknown;
        PreferredCall *calls;
        PendingAdmission pending;
        ResolverCounters counters;
};

/* ---- resolver.c ---- */
void resolver_call_free(PreferredCall *call);

/* ---- resolver_answer.c: each answers the call and frees it ---- */

/* Prefers devices for this container. with_other: it has nothing of the other resource yet. listed:
 * the pod as the kubelet lists it; NULL: it is not listed, or its cards were checked before. */
void resolver_settle(PreferredCall *call, RosterPod *pod, const RosterContainer *c, bool with_other,
                     const ListedPod *listed);

/* Prefers devices for a pod that is not known. The API server shows a static pod only after its
 * admission, and the API server may be away. PreStart compares the devices with the pod's
 * annotations before anything runs. */
void resolver_settle_unknown(PreferredCall *call);

/* Fails the call, and so the pod, with the reason `why`. pod: NULL where it is not known. */
void resolver_refuse(PreferredCall *call, const RosterPod *pod, const char *why);

/* ---- resolver_place.c ---- */

/* Begins a trial placement of the pod that is being admitted, on its node. It goes before all pods
 * without a card, because the kubelet admits those later. capped: what the kubelet has given out of
 * a card is not free, whatever the ledger knows of it. 0 or -ENOMEM. */
int resolver_begin_trial(const PreferredCall *call, const LedgerNode *node, bool capped,
                         PlacementTrial **ret);

/* Gives cards to a pod that another scheduler bound, or to a static pod. It goes before all other
 * pods without a card: of many that were bound at once, as many start as fit. listed: as in
 * resolver_settle(). 0; PLACEMENT_E_REFUSED with a sentence in ret_why; -ENOMEM. */
int resolver_place(PreferredCall *call, RosterPod *pod, const ListedPod *listed, Buf *ret_why);

/* Whether the cards of its annotations are impossible for a pod that has been given no devices. The
 * sentence is in ret_why. */
bool resolver_must_move(const PreferredCall *call, const RosterPod *pod, const RosterContainer *c,
                        const ListedPod *listed, Fault *ret_why);

/* Gives other cards to a pod that has been given no devices, if those of its annotations
 * are impossible. A user may have written them, or the cards have changed since. Where no other
 * cards have room either, the pod keeps them. 0 or negative errno. */
int resolver_move_if_impossible(PreferredCall *call, RosterPod *pod, const RosterContainer *c,
                                const ListedPod *listed);
