/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pods of this node and its Node object, as the API server has them, with a ledger of this
 * node. Pods that request no slice are kept by name, so that they are told from pods that are not
 * known yet. It opens no sockets: reflectors or tests pass the objects in as text. */

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
        uint32_t mem, core; /* requested: memory units of each card; percent of compute */
        bool not_isolated;  /* it sets CGPU_DISABLE, which the node may not honour */
        ComputeRequest compute;
        char *compute_fault; /* its invalid compute setting, as text; NULL: none */
        char *gate_cover;    /* its mount over the gate (wire/gate_cover.h), as text; NULL: none */
} RosterContainer;

/* A container that runs or ran, with or without a slice. */
typedef struct RosterId {
        char *id; /* without the runtime's name; the container's name follows behind the NUL */
        const char *name;
} RosterId;

typedef struct RosterPod {
        UT_hash_handle hh;
        char *uid;     /* as the kubelet knows it; differs from api_uid for static pods only */
        char *api_uid; /* UID of the object in the API; of a static pod its mirror's */
        char *namespace_, *name;
        Grant *grant;                /* what it holds; NULL once it holds nothing */
        RosterContainer *containers; /* those with requests for slices: init containers first, in order */
        size_t n_containers;
        RosterId *ids; /* of its containers, as far as its status names them; none without requests */
        size_t n_ids;
        Request request; /* the request of all containers together */
        char *refusal;   /* why it can never be placed; NULL for all others */
        /* Either its annotations named cards for each requesting container when it was first seen,
         * or this node placed it. */
        bool placed;
        bool assigned;                     /* its annotation "assigned" is true */
        char *keys[POD_SYSTEM_KEYS_COUNT]; /* by index of POD_SYSTEM_KEYS; NULL: absent or empty */
        uint64_t assume;    /* assume-time of its placement, ns since the epoch; 0: not known */
        uint64_t version;   /* resourceVersion of its object; 0: not a number */
        uint64_t written;   /* resourceVersion after this agent's last patch: older objects lack it */
        bool other_devices; /* it requests devices of other plugins as well */
        bool terminating;
        char *resize[2];     /* ANNOTATION_RESIZE_MEM and _CORE; NULL: absent or empty */
        char *resize_status; /* what ANNOTATION_RESIZE_STATUS must be; NULL: absent */
        uint32_t generation;
} RosterPod;

enum { ROSTER_TOMBSTONES = 64 };

typedef struct Roster {
        Ledger *ledger;
        RosterPod *pods;
        char *tombstones[ROSTER_TOMBSTONES]; /* api_uid of the last deleted pods */
        size_t n_tombstones;                 /* ever */
        char *node_name;
        uint32_t generation;
        bool listing, synced, incomplete;
        bool has_cards; /* the Node object has had readable cards once */
        uint64_t malformed;
        Arena arena; /* memory for decoding the current object */
        /* Called after a pod was added, changed or deleted. uid: as the kubelet knows it. pod: NULL
         * when it was deleted. */
        void (*on_pod)(void *userdata, Str uid, RosterPod *pod);
        void *userdata;
} Roster;

int roster_init(Roster *r, const char *node_name); /* 0 or -ENOMEM; call done in either case */
void roster_done(Roster *r);

/* Called by the reflector of this node's pods. roster_pod() returns 0, or -ENOMEM: the roster is
 * incomplete until the next list. A pod keeps its first placement while it holds anything.
 * Kubernetes binds a pod once, so annotations that name other cards later are not the
 * scheduler's. */
void roster_list_begin(Roster *r);
int roster_pod(Roster *r, ReflectorEvent event, Str text);
void roster_list_end(Roster *r);

/* Takes the Node object. Returns what ledger_node_set() does: 0, -ENOMEM, or LEDGER_E_NODE with a
 * fault that names the keys that cannot be decoded. */
int roster_node(Roster *r, const Node *node, Fault *fault);
LedgerNode *roster_ledger_node(const Roster *r); /* NULL before the node object has come */

RosterPod *roster_find(const Roster *r, Str uid);
RosterPod *roster_find_name(const Roster *r, Str namespace_, Str name);

/* The name of the container with that runtime ID; NULL when the pod's status has none. */
const char *roster_container_name(const RosterPod *pod, const char *id);

/* Whether the container asks not to be isolated (CGPU_DISABLE). The node may not honour that. */
bool roster_is_not_isolated(const RosterPod *pod, const char *container);

/* Places a pod on cards of this node: the slices replace what it held. Returns 0 or -ENOMEM. */
int roster_place(Roster *r, RosterPod *pod, const Slice *slices, size_t n);

/* Units of the whole pod on all cards, as in ALIYUN_COM_GPU_MEM_POD. */
uint32_t roster_pod_units(const RosterPod *pod);
/* Units of a card that the Node permits the container above its limit; negative: given up. */
int32_t roster_growth(const Roster *r, const RosterPod *pod, const char *container, uint32_t card);

/* Computes how many devices of this kind a container must have on each card, sorted by card. ret
 * has room for CARD_INDEX_MAX + 1. Returns the number of cards; 0 when the pod has no placement
 * yet, or its limit cannot be divided by its cards. */
typedef struct CardShare {
        uint32_t card, count;
} CardShare;
size_t roster_shares(const RosterPod *pod, const RosterContainer *c, DeviceKind kind, CardShare *ret);

/* How many devices of one kind a container requests. */
uint32_t roster_asks(const RosterPod *pod, const RosterContainer *c, DeviceKind kind);
