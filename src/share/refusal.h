/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why a pod or a node is refused, in numbers. The sentence is made only where people read it,
 * because a filter over 5,000 nodes may refuse most of them. Every sentence names the object, the
 * value and the rule. */

#include "base/str.h"

/* One list: enum, metric label, and the sentence in refusal_format.c. The codes before NODE_UNKNOWN
 * refuse the pod on every node, the others on this node. */
#define REFUSAL_LIST(X)                                                                                      \
        X(CORE_STEP, "core_step")          /* compute percent not a multiple of 5 in 5..100 */               \
        X(CORE_SUM, "core_sum")            /* the pod's containers ask for more than 100 % of a card */      \
        X(MALFORMED, "malformed_quantity") /* not a whole number */                                          \
        X(RANGE, "out_of_range")           /* negative or beyond what the ledger counts */                   \
        X(MIXED_KINDS, "mixed_kinds")      /* containers of one pod ask for different kinds */               \
        X(CORE_WITHOUT_MEM, "core_without_mem")                                                              \
        X(COUNT_MALFORMED, "count_malformed")     /* gpu-count is no number from 1, or said twice */         \
        X(COUNT_UNEVEN, "count_uneven")           /* N/M is not whole */                                     \
        X(COUNT_WITH_CORE, "count_with_core")     /* M cards together with compute percent */                \
        X(COUNT_WITHOUT_MEM, "count_without_mem") /* cards, but no memory of them */                         \
        X(TOO_MANY_CONTAINERS, "too_many_containers")                                                        \
        X(NODE_UNKNOWN, "node_unknown")                                                                      \
        X(NODE_MODE, "node_mode")           /* the node offers no such resource */                           \
        X(NODE_CHANGING, "node_changing")   /* no new slice while a change of mode or unit waits */          \
        X(NODE_NOT_READY, "node_no_cards")  /* a sharing node that has not reported cards yet */             \
        X(NODE_MIXED, "node_mixed")         /* memory-only beside memory+compute */                          \
        X(CARD_TOO_SMALL, "card_too_small") /* too few healthy cards are that large, even empty */           \
        X(CARDS_TOO_FEW, "cards_too_few")   /* fewer healthy cards than M */                                 \
        X(NO_ROOM, "no_room")               /* no card, or not M cards, with that much free now */           \
        X(PODS_PER_CARD, "pods_per_card")   /* room, but the ceiling of pods is reached */                   \
        X(UNHEALTHY, "unhealthy")           /* every card is fenced */

typedef enum RefusalCode {
        REFUSAL_NONE,
#define X(name, label) REFUSAL_##name,
        REFUSAL_LIST(X)
#undef X
                REFUSAL_MAX_,
} RefusalCode;

struct LedgerNode;

typedef struct Refusal {
        RefusalCode code;
        uint32_t mem, core, cards; /* what the request needs of each card, and of how many */
        /* The rule's number: largest card, cards of the node, pods per card. */
        uint32_t limit;
        /* The container, and the text of its limit; views of the pod. */
        Str container, text;
        /* Its cards stand in the sentence; NULL for faults of the pod. */
        const struct LedgerNode *node;
} Refusal;

/* The label of the metric; static text. */
const char *refusal_label(RefusalCode code);

/* Whether no node can ever take the pod. */
bool refusal_is_final(RefusalCode code);

/* Whether other pods could make room on this node by going away: for preemption and the
 * autoscaler. */
bool refusal_may_pass(RefusalCode code);
