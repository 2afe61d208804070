/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of a card that nobody accounts for: what the driver says is in use of the whole card, less
 * what the processes hold that are known as some pod's. A process outside Kubernetes takes from
 * slices that were promised, and so does memory that no process is listed with. It is told of and
 * nobody is killed: it may be the machine's own.
 *
 * Tolerated are 64 MiB, as of a slice, and 32 MiB for each living process of a pod: what the driver
 * itself takes for a client (contexts of its channel groups, page tables) counts as used and is in
 * no process's number; two groups of 16 MiB are more than a program usually has. What processes
 * outside hold is looked for, so it has the 64 MiB alone, however many they are. The two figures
 * are asked for one after the other, so that what comes between them is not believed at once:
 * node/audit/hysteresis.h. Pure. */

#include "gpu/cards/card_list.h"
#include "node/audit/hysteresis.h"

#define UNACCOUNTED_BASE        (UINT64_C(64) << 20)
#define UNACCOUNTED_PER_PROCESS (UINT64_C(32) << 20)

typedef struct UnaccountedCard {
        uint64_t used, known; /* bytes, in this census */
        uint64_t outside;     /* of them by processes of no pod */
        uint64_t largest;
        uint32_t pid;      /* the one outside that holds the most; 0: none */
        uint32_t n_living; /* of pods */
        bool total;        /* the driver told it in this census */
        bool unclear;      /* a process does not tell how much it holds */
        Hysteresis found;
} UnaccountedCard;

typedef struct Unaccounted {
        UnaccountedCard cards[CARDS_MAX]; /* by index; all zero at first */
} Unaccounted;

void unaccounted_begin(Unaccounted *s); /* of a census */
typedef enum ProcessKind {
        PROCESS_OUTSIDE,
        PROCESS_LIVES, /* of a pod */
        PROCESS_ENDED, /* of a pod, as it is remembered */
} ProcessKind;
void unaccounted_process(Unaccounted *s, uint32_t card, uint32_t pid, ProcessKind kind,
                         uint64_t bytes); /* UINT64_MAX: not known */
void unaccounted_total(Unaccounted *s, uint32_t card, uint64_t used);
/* At its end, once for each card. True when this is to be told now. */
bool unaccounted_judge(Unaccounted *s, uint32_t card);

/* What nobody accounts for, in bytes; false: this cannot be said of the card. */
bool unaccounted_bytes(const Unaccounted *s, uint32_t card, uint64_t *ret);
