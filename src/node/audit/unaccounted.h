/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of a card that no pod accounts for: what the driver says is in use of the whole card, less
 * what the known processes of pods hold. A process outside Kubernetes takes it from slices that
 * were promised, and so does memory that no process is listed with. It is reported, and no process
 * is killed: it may belong to the machine itself.
 *
 * 64 MiB are tolerated, as of a slice, and 32 MiB for each living process of a pod. The driver
 * itself takes memory for a client (contexts of its channel groups, page tables), which counts as
 * used and is in no process's number. Two groups of 16 MiB are more than a program usually has.
 * Processes outside of pods are what the check looks for, so all of them together have the 64 MiB
 * alone.
 *
 * The two figures are read one after the other, so a difference must last to be reported
 * (node/audit/hysteresis.h). Pure. */

#include "gpu/cards/card_list.h"
#include "node/audit/hysteresis.h"

#define UNACCOUNTED_BASE        (UINT64_C(64) << 20)
#define UNACCOUNTED_PER_PROCESS (UINT64_C(32) << 20)

typedef struct UnaccountedCard {
        /* bytes in this census: in use on the card, and held by processes of pods */
        uint64_t used, known;
        uint64_t outside; /* bytes held by processes of no pod with slices */
        uint64_t largest;
        uint32_t pid;      /* the one of these that holds the most; 0: none */
        uint32_t n_living; /* processes of pods */
        bool total;        /* `used` is known in this census */
        bool unclear;      /* the driver does not tell of some process how much it holds */
        bool told_holders; /* the finding was reported with those that may hold the memory */
        Hysteresis found;
} UnaccountedCard;

typedef struct Unaccounted {
        UnaccountedCard cards[CARDS_MAX]; /* by index; all zero at first */
} Unaccounted;

void unaccounted_begin(Unaccounted *u); /* begins a census */
typedef enum ProcessKind {
        PROCESS_OUTSIDE,
        PROCESS_LIVES, /* a living process of a pod with slices */
        PROCESS_ENDED, /* an ended process of such a pod (pid_owner_cache.h, left_memory.h) */
} ProcessKind;
void unaccounted_process(Unaccounted *u, uint32_t card, uint32_t pid, ProcessKind kind,
                         uint64_t bytes); /* UINT64_MAX: not known */
void unaccounted_total(Unaccounted *u, uint32_t card, uint64_t used);
/* At the end of a census, once for each card: what is to be reported now. A finding that was
 * reported without holders is told again when there are some, because a descriptor can wait in a
 * socket until then. has_holders: of what is left on the card (left_memory.h). */
typedef enum UnaccountedReport {
        UNACCOUNTED_NOTHING,
        UNACCOUNTED_FOUND,
        UNACCOUNTED_HOLDERS_FOUND,
} UnaccountedReport;
UnaccountedReport unaccounted_check(Unaccounted *u, uint32_t card, bool has_holders);

/* The bytes that no pod accounts for; false: not known of the card. */
bool unaccounted_bytes(const Unaccounted *u, uint32_t card, uint64_t *ret);
