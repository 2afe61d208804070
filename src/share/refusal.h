/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why a pod or a node is refused, in numbers. The sentence is made only where people read it,
 * because a filter over 5,000 nodes may refuse most of them. Every sentence names the object, the
 * value and the rule. */

#include "base/str.h"

/* Code, metric label, and RefusalKind. refusal_format() has the sentences. */
#define REFUSAL_LIST(X)                                                                                      \
        X(CORE_STEP, "core_step", FINAL)                     /* not a multiple of 5 in 5..100 */             \
        X(CORE_SUM, "core_sum", FINAL)                       /* more than 100 % of a card together */        \
        X(MALFORMED, "malformed_quantity", FINAL)            /* not a whole number */                        \
        X(RANGE, "out_of_range", FINAL)                      /* beyond what the ledger counts */             \
        X(MIXED_KINDS, "mixed_kinds", FINAL)                 /* containers ask for different kinds */        \
        X(CORE_WITHOUT_MEM, "core_without_mem", FINAL)       /* compute percent, but no memory */            \
        X(COUNT_MALFORMED, "count_malformed", FINAL)         /* no number from 1, or two differ */           \
        X(COUNT_UNEVEN, "count_uneven", FINAL)               /* memory is not a multiple of the cards */     \
        X(COUNT_WITH_CORE, "count_with_core", FINAL)         /* several cards, and compute percent */        \
        X(COUNT_WITHOUT_MEM, "count_without_mem", FINAL)     /* a number of cards, but no memory */          \
        X(TOO_MANY_CONTAINERS, "too_many_containers", FINAL) /* more than REQUEST_MAX_CONTAINERS */          \
        X(WHOLE, "whole_cards", FINAL)                       /* a wrong request of whole cards */            \
        X(CARD_LIST, "card_list", FINAL)                     /* a list of wanted cards is malformed */       \
        X(NODE_UNKNOWN, "node_unknown", NODE)                /* there is no Node object */                   \
        X(NODE_MODE, "node_mode", NODE)                      /* its mode does not offer the resource */      \
        X(NODE_CHANGING, "node_changing", NODE)              /* a change of mode or unit waits */            \
        X(NODE_NOT_READY, "node_no_cards", NODE)             /* it has not reported cards yet */             \
        X(NODE_MIXED, "node_mixed", PODS)                    /* pods with and without compute */             \
        X(NO_SUCH_CARD, "no_such_card", NODE)                /* too few cards that the pod may use */        \
        X(CARD_TOO_SMALL, "card_too_small", NODE)            /* too few healthy cards of that size */        \
        X(CARDS_TOO_FEW, "cards_too_few", NODE)              /* fewer healthy cards than gpu-count */        \
        X(NO_ROOM, "no_room", CARDS)                         /* too few cards have room now */               \
        X(PODS_PER_CARD, "pods_per_card", CARDS)             /* room, but max-pods-per-card is reached */    \
        X(UNHEALTHY, "unhealthy", NODE)                      /* no card that it may use is healthy */        \
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
        uint32_t mem, core, cards; /* what the request needs on each card; number of cards */
        /* The number that the sentence names: units of the largest card, number of healthy cards,
         * pods per card, or number of cards that the pod may use. */
        uint32_t limit;
        bool whole; /* the request is of whole cards */
        /* The container, and the text of its limit; they point into the pod. CARD_LIST: the
         * annotation, and its entry. */
        Str container, text;
        /* Unit of the cluster's nodes, for a hint when gpu-mem was written in bytes; set by the
         * caller. 0: not known. */
        uint32_t unit_mib;
        /* the node that refuses; NULL if the pod itself is wrong */
        const struct LedgerNode *node;
        union {
                const struct CardChoice *choice; /* of the request; NULL: any card */
                /* CARD_LIST, WHOLE: the rule that `text` breaks. POLICY, GANG: the whole reason. */
                const char *rule;
        };
} Refusal;

/* The value of the metric's label; static text. */
const char *refusal_label(RefusalCode code);

/* Whether no node can ever take the pod. */
bool refusal_is_final(RefusalCode code);

/* Whether the pod might fit if other pods of the node went away, as by preemption. */
bool refusal_may_pass(RefusalCode code);

/* Whether only room on the cards is missing: mode, kind of pods, health and size of the cards suit
 * the pod. */
bool refusal_is_for_cards(RefusalCode code);

/* Whether size, health or room of the cards is the reason, so that card_lack.h can explain it by
 * card. */
bool refusal_has_cards(RefusalCode code);

/* Whether the limit was written as bytes (`3Gi`) instead of units. *ret_units: the number to write
 * instead, rounded up. The unit is GiB if unit_mib is 0. */
bool refusal_is_in_bytes(const Refusal *refusal, uint64_t *ret_units);
