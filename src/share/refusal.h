/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why a pod or a node is refused, in numbers. The sentence is made only where people read it,
 * because a filter over 5,000 nodes may refuse most of them. Every sentence names the object, the
 * value and the rule. */

#include "base/str.h"

/* One list: code, metric label, and kind. refusal_format() has the sentences. */
#define REFUSAL_LIST(X)                                                                                      \
        X(CORE_STEP, "core_step", FINAL)                     /* not a multiple of 5 in 5..100 */             \
        X(CORE_SUM, "core_sum", FINAL)                       /* more than 100 % of a card together */        \
        X(MALFORMED, "malformed_quantity", FINAL)            /* not a whole number */                        \
        X(RANGE, "out_of_range", FINAL)                      /* beyond what the ledger counts */             \
        X(MIXED_KINDS, "mixed_kinds", FINAL)                 /* containers ask for different kinds */        \
        X(CORE_WITHOUT_MEM, "core_without_mem", FINAL)       /* compute percent, but no memory */            \
        X(COUNT_MALFORMED, "count_malformed", FINAL)         /* no number from 1, or said twice */           \
        X(COUNT_UNEVEN, "count_uneven", FINAL)               /* memory is not a multiple of the cards */     \
        X(COUNT_WITH_CORE, "count_with_core", FINAL)         /* cards together with compute percent */       \
        X(COUNT_WITHOUT_MEM, "count_without_mem", FINAL)     /* cards, but no memory of them */              \
        X(TOO_MANY_CONTAINERS, "too_many_containers", FINAL) /* more than REQUEST_MAX_CONTAINERS */          \
        X(WHOLE, "whole_cards", FINAL)                       /* a wrong request of whole cards */            \
        X(CARD_LIST, "card_list", FINAL)                     /* a list of wanted cards is malformed */       \
        X(NODE_UNKNOWN, "node_unknown", NODE)                /* no node object that shares cards */          \
        X(NODE_MODE, "node_mode", NODE)                      /* the node offers no such resource */          \
        X(NODE_CHANGING, "node_changing", NODE)              /* a change of mode or unit waits */            \
        X(NODE_NOT_READY, "node_no_cards", NODE)             /* it has not reported cards yet */             \
        X(NODE_MIXED, "node_mixed", PODS)                    /* memory-only beside memory+compute */         \
        X(NO_SUCH_CARD, "no_such_card", NODE)                /* too few cards that the pod may use */        \
        X(CARD_TOO_SMALL, "card_too_small", NODE)            /* too few healthy cards of that size */        \
        X(CARDS_TOO_FEW, "cards_too_few", NODE)              /* fewer healthy cards than gpu-count */        \
        X(NO_ROOM, "no_room", CARDS)                         /* not that many cards with room now */         \
        X(PODS_PER_CARD, "pods_per_card", CARDS)             /* room, but the ceiling of pods is reached */  \
        X(UNHEALTHY, "unhealthy", NODE)                      /* every card is fenced */                      \
        X(POLICY, "policy", NODE)                            /* a ResourcePolicy keeps the pod off */        \
        X(GANG, "gang", NODE)                                /* its gang is not placed there, or not now */

typedef enum RefusalCode {
        REFUSAL_NONE,
#define X(name, label, kind) REFUSAL_##name,
        REFUSAL_LIST(X)
#undef X
                REFUSAL_MAX_,
} RefusalCode;

/* What would have to change before the pod fits. */
typedef enum RefusalKind {
        REFUSAL_KIND_NODE,  /* the node, its settings or its healthy cards */
        REFUSAL_KIND_FINAL, /* the pod: no node can ever take it */
        REFUSAL_KIND_PODS,  /* the kind of the node's pods: others could go away */
        REFUSAL_KIND_CARDS, /* the room on the cards: others could go away */
} RefusalKind;

struct CardChoice;
struct LedgerNode;

typedef struct Refusal {
        RefusalCode code;
        uint32_t mem, core, cards; /* what the request needs of each card, and of how many */
        /* The rule's number: largest card, healthy cards of the node, pods per card, cards that the
         * pod may use. */
        uint32_t limit;
        bool whole; /* the request is of whole cards */
        /* The container, and the text of its limit; views of the pod. CARD_LIST: the annotation,
         * and its entry. */
        Str container, text;
        /* The unit of the cluster's nodes, for a gpu-mem that was written in bytes; set by the
         * caller, 0: not known. */
        uint32_t unit_mib;
        /* Its cards stand in the sentence; NULL for faults of the pod. */
        const struct LedgerNode *node;
        union {
                const struct CardChoice *choice; /* of the request; NULL: any card */
                /* CARD_LIST, WHOLE: that `text` breaks. POLICY, GANG: the whole reason */
                const char *rule;
        };
} Refusal;

/* The label of the metric; static text. */
const char *refusal_label(RefusalCode code);

/* Whether no node can ever take the pod. */
bool refusal_is_final(RefusalCode code);

/* Whether other pods could make room on this node by going away: for preemption. */
bool refusal_may_pass(RefusalCode code);

/* Whether only room on the cards is missing: the mode of the node, the kind of its pods, and the
 * health and size of its cards suit the pod. */
bool refusal_is_for_cards(RefusalCode code);

/* Whether the node refuses by the size, the health or the room of its cards: what each card lacks
 * (card_lack.h) tells why. */
bool refusal_has_cards(RefusalCode code);

/* Whether the text is an amount of bytes, as `3Gi`, and not a number of units: then the number to
 * write instead, rounded up. unit: GiB where unit_mib is 0. */
bool refusal_is_in_bytes(const Refusal *refusal, uint64_t *ret_units);
