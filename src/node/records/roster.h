/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pods of this node, and the node itself, as the API server has them: the node's own books.
 * Pods that ask for nothing of ours are here by name, so that somebody else's pod is told from one
 * that we have not heard of yet. No sockets: texts come in, from reflectors or from a test. */

#include "base/hash.h"
#include "kube/reflector.h"
#include "node/records/device.h"
#include "share/compute.h"
#include "share/ledger.h"
#include "share/request.h"

typedef struct RosterContainer {
        char *name;
        ContainerKind kind;
        uint32_t index;
        uint32_t mem, core; /* asked for: units of each card, percent */
        bool not_isolated;  /* it says CGPU_DISABLE */
        ComputeRequest compute;
        char *compute_fault; /* what it says of compute and is not understood; NULL: nothing */
        char *gate_cover;    /* what it mounts over the gate (wire/gate_cover.h), as text; NULL: nothing */
} RosterContainer;

/* A container that runs or ran, also one that asks for nothing of ours. */
typedef struct RosterId {
        char *id; /* without the runtime's name; the container's name stands behind its NUL */
        const char *name;
} RosterId;

typedef struct RosterPod {
        UT_hash_handle hh;
        char *uid;     /* as the kubelet knows it: of a static pod, not the UID of its mirror in the API */
        char *api_uid; /* the same but for static pods */
        char *namespace_, *name;
        Grant *grant;                /* what it holds; NULL when that is over */
        RosterContainer *containers; /* those that ask for our resources, init containers first, in order */
        size_t n_containers;
        RosterId *ids; /* of a pod that asks for our resources, as far as its status tells */
        size_t n_ids;
        Request request; /* what they ask together */
        char *refusal;   /* why it can never be served; NULL for all others */
        bool placed; /* its annotations named cards for every container that asks when first seen, or this node gave it cards */
        bool assigned; /* its annotations say that the node has given them out */
        char *keys
                [POD_SYSTEM_KEYS_COUNT]; /* its object's system keys, in the order of POD_SYSTEM_KEYS; NULL: absent or empty */
        uint64_t assume;  /* assume-time of its place, ns since the epoch; 0: not known */
        uint64_t version; /* resourceVersion of its object; 0: it is no number */
        uint64_t
                written; /* resourceVersion that this agent's last patch made: an older object does not show that patch yet */
        bool other_devices; /* it asks other device plugins as well */
        uint32_t generation;
} RosterPod;

enum { ROSTER_TOMBSTONES = 64 };

typedef struct Roster {
        Ledger *ledger;
        RosterPod *pods;
        char *tombstones
                [ROSTER_TOMBSTONES]; /* api_uid of the last that went: an answer that is older than their end changes nothing */
        size_t n_tombstones; /* ever */
        char *node_name;
        uint32_t generation;
        bool listing, synced, incomplete;
        bool has_cards; /* the node object has said once what they hold */
        uint64_t malformed;
        Arena arena; /* of the object that is being read */
        /* Called after a pod came, changed or went: uid is of the kubelet. Pod is NULL when it is
         * gone. */
        void (*on_pod)(void *userdata, Str uid, RosterPod *pod);
        void *userdata;
} Roster;

int roster_init(Roster *r, const char *node_name); /* 0 or -ENOMEM; done in either case */
void roster_done(Roster *r);

/* What the reflector of this node's pods tells. roster_pod: 0, or -ENOMEM: the roster lacks
 * something until it is listed again. A place that a pod once had is kept as long as it holds
 * anything: Kubernetes binds a pod once, so annotations that name another place later are not the
 * scheduler's. */
void roster_list_begin(Roster *r);
int roster_pod(Roster *r, ReflectorEvent event, Str text);
void roster_list_end(Roster *r);

/* The node object: 0, LEDGER_E_NODE with a fault that names the keys that do not decode, or
 * -ENOMEM, as from ledger_node_set(). */
int roster_node(Roster *r, const Node *node, Fault *fault);
LedgerNode *roster_ledger_node(const Roster *r); /* NULL before the node object has come */

RosterPod *roster_find(const Roster *r, Str uid);
RosterPod *roster_find_name(const Roster *r, Str namespace_, Str name);

/* The name of the container that the runtime calls so; NULL: none of this pod, or its status does
 * not say so yet. */
const char *roster_container_name(const RosterPod *pod, const char *id);

/* Whether the container asks not to be isolated (CGPU_DISABLE). The caller knows whether the node
 * honours that. */
bool roster_is_not_isolated(const RosterPod *pod, const char *container);

/* The node gives a pod its cards itself: slices take the place of what it held. 0 or -ENOMEM. */
int roster_place(Roster *r, RosterPod *pod, const Slice *slices, size_t n);

/* Units of the whole pod, all cards together: what ALIYUN_COM_GPU_MEM_POD says. */
uint32_t roster_pod_units(const RosterPod *pod);

/* How many devices of this kind one container must have on each card, by card; ret has room for
 * CARD_INDEX_MAX + 1. Returns how many cards, 0 when the pod has no place yet or its place does not
 * divide. */
typedef struct CardShare {
        uint32_t card, count;
} CardShare;
size_t roster_shares(const RosterPod *pod, const RosterContainer *c, DeviceKind kind, CardShare *ret);

/* All devices of one kind that a container asks for. */
uint32_t roster_asks(const RosterPod *pod, const RosterContainer *c, DeviceKind kind);
