/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Features that are optional or off by default, as verbs and binder see them: these call hooks and
 * know no feature. A struct with userdata NULL is off, and none of its hooks is called. The hooks
 * of filter are choosers (candidates.h). */

#include "scheduler/policy/directory.h"
#include "scheduler/question/plan_nodes.h"
#include "share/placement.h"
#include "wire/annotation.h"

enum { FEATURE_HOOKS_WHY_MAX = GANGS_WHY_MAX };

typedef enum PeerVerdict { PEER_GO, PEER_HOLD, PEER_REFUSE } PeerVerdict;

/* Pods that are placed together: gangs (assembler.h). */
typedef struct PeerHooks {
        void *userdata;
        /* The nodes with cards that are planned for pods being placed. Returns 0 or -ENOMEM. */
        int (*plan)(void *userdata, Arena *arena, PlanNodes *ret);
        bool (*waits)(void *userdata, Str uid);      /* its gang waits: no pod may be evicted for it */
        bool (*is_unbound)(void *userdata, Str uid); /* and it is not bound: it may not be a victim */
        /* Whether the pod may be bound to the node. For PEER_HOLD the caller holds the bind, then
         * calls `held`. For PEER_REFUSE *why has the reason (FEATURE_HOOKS_WHY_MAX bytes). */
        PeerVerdict (*ask)(void *userdata, Str uid, Str node, usec_t now, char *why);
        void (*held)(void *userdata, Str uid, usec_t now);
        void (*ended)(void *userdata, Str uid, bool bound); /* a held or posted bind has ended */
        /* Takes over the cards that are planned for the pod on this node. They become free, so the
         * caller charges them at once. Returns 0; 1 when no cards are planned there; or -ENOMEM. */
        int (*take_place)(void *userdata, Str uid, Str node, Arena *arena, Placement *ret);
        /* Sets ret[i] for each card i of the node that the pod's peers hold or have planned. */
        void (*mark_cards)(void *userdata, Str uid, const LedgerNode *node,
                           bool ret[static CARD_INDEX_MAX + 1]);
} PeerHooks;

/* Units of nodes that pods fill in an order: ResourcePolicy (policy_bind.h). */
typedef struct UnitHooks {
        void *userdata;
        /* Whether victims on the node can help the pod, by filter's last answer. */
        bool (*may_preempt)(void *userdata, Str uid, const DirectoryNode *node);
        /* The pod is about to be bound to the node, and the bind has ended: see policy_bind_begin()
         * and policy_bind_end(). */
        int (*bind_begin)(void *userdata, Str namespace_, Str uid, Str node, usec_t now, Buf *annotations,
                          Buf *labels, Fault *fault);
        void (*bind_end)(void *userdata, Str uid, Str node, bool bound, uint32_t generation);
} UnitHooks;
