/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is optional or off by default, as verbs and binder see it: they name no feature, but ask the
 * hooks that it has filled. A struct without userdata is off, and none of its hooks is called.
 * Choosers (candidates.h) are the hooks of filter. */

#include "scheduler/policy/directory.h"
#include "scheduler/question/plan_nodes.h"
#include "share/placement.h"
#include "wire/annotation.h"

enum { FEATURE_HOOKS_WHY_MAX = GANGS_WHY_MAX };

typedef enum PeerVerdict { PEER_GO, PEER_HOLD, PEER_REFUSE } PeerVerdict;

/* Pods that are placed together: gangs (assembler.h). */
typedef struct PeerHooks {
        void *userdata;
        /* Where cards are planned for pods that are being placed. 0 or -ENOMEM. */
        int (*plan)(void *userdata, Arena *arena, PlanNodes *ret);
        bool (*waits)(void *userdata, Str uid);      /* for others: no pod may go for it */
        bool (*is_unbound)(void *userdata, Str uid); /* and waits: it is no victim */
        /* Whether the pod may be bound to the node. After PEER_HOLD `held` is called once it is
         * held; *why has FEATURE_HOOKS_WHY_MAX bytes. */
        PeerVerdict (*ask)(void *userdata, Str uid, Str node, usec_t now, char *why);
        void (*held)(void *userdata, Str uid, usec_t now);
        void (*ended)(void *userdata, Str uid, bool bound); /* held or posted, it is bound or not */
        /* The cards that are planned for the pod on this node; they are free from now on, and the
         * caller charges them at once. Returns 1 without a plan, 0 or -ENOMEM. */
        int (*take_place)(void *userdata, Str uid, Str node, Arena *arena, Placement *ret);
        /* Marks the cards of the node that the pod's peers have, or have planned, by index. */
        void (*mark_cards)(void *userdata, Str uid, const LedgerNode *node,
                           bool ret[static CARD_INDEX_MAX + 1]);
} PeerHooks;

/* Units of nodes that pods fill in an order: ResourcePolicy (policy_bind.h). */
typedef struct UnitHooks {
        void *userdata;
        /* Whether victims on the node would help the pod, by the last answer of filter. */
        bool (*may_preempt)(void *userdata, Str uid, const DirectoryNode *node);
        /* The pod is about to be bound to the node; then it is or is not: policy_bind_begin() and
         * policy_bind_end(). */
        int (*bind_begin)(void *userdata, Str namespace_, Str uid, Str node, usec_t now, Buf *annotations,
                          Buf *labels, Fault *fault);
        void (*bind_end)(void *userdata, Str uid, Str node, bool bound, uint32_t generation);
} UnitHooks;
