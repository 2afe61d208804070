/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The text of ANNOTATION_CARDS: the cards of a node, as its agent describes them. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"

typedef struct CardInfo {
        uint32_t index;
        uint32_t units; /* the card's memory, in units of gpu-mem */
        uint32_t mib;   /* memory of the card; 0 when absent */
        int32_t numa;   /* NUMA node; -1 when absent */
        bool healthy;   /* true when absent */
        /* The text has links, but not as a list of at most CARD_INFO_PEERS_MAX numbers: the card
         * then has no peers, and is otherwise used like any other. */
        bool peers_malformed;
        Str uuid, model;
        const uint16_t *peers; /* rate of the link to the card of each index, in GB/s; 0: not known */
        size_t n_peers;        /* 0: the text has no links */
} CardInfo;

enum { CARD_INFO_PEERS_MAX = 32 };

enum { CARD_INFO_E_MALFORMED = 1 };

/* Decodes a JSON list into the arena, sorted by index. A list in which an index stands twice, or a
 * card has no index or no units, is refused. Returns 0, CARD_INFO_E_MALFORMED with a fault, or
 * -ENOMEM. */
int card_info_parse(Str text, Arena *arena, CardInfo **ret, size_t *ret_n, Fault *fault);

/* Appends the list. Absent values are left out. */
void card_info_format(const CardInfo *cards, size_t n, Buf *out);
