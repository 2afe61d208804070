/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of a card that the driver names under an ended process whose container was never seen: it
 * ended before the first census that named it. The memory lives on in a driver file that another
 * process has open. Its holders may be processes of pods with a slice of the card that have a
 * driver file open and that the driver does not name on the card. One with an ancestor of its own
 * container that the driver names has its files from there, and counts only if there is no other.
 *
 * The memory is charged to a container while two things hold. All holders without such an ancestor
 * are that container's. And one of them began in the second in which the driver first named the
 * memory, or no other pod has a slice of the card. The second condition is there because a
 * descriptor can be hidden, in a socket or in a process that the driver names. Then the only holder
 * that can be seen may be another container's monitor. A charge stays without it while the first
 * condition holds, so that passing the file on does not end it.
 *
 * Memory of an ended process of a known container stays charged to that container. Only where
 * no process there has a driver file open any more, one other container of its pod is charged, the
 * only one with holders (left_memory_heir()).
 *
 * Descriptors outside of pods are not looked for. */

#include "base/clock.h"
#include "node/audit/card_files.h"
#include "node/kubelet/process_owner.h"
#include "node/records/records.h"

typedef struct LeftHolder {
        ProcessOwner owner;
        uint32_t pid;
        uint64_t start; /* the kernel's ticks since boot */
        bool inherits;  /* an ancestor of the container is named by the driver */
} LeftHolder;

typedef struct LeftHolders { /* of one card; all zero: none */
        LeftHolder *list;    /* owned */
        size_t n, room;
        bool alone; /* one pod alone has a slice of the card */
} LeftHolders;

void left_memory_done_holders(LeftHolders *h);

/* Whether holder i is to be reported: the first one of its container, and without an ancestor that
 * the driver names, unless all have one. */
bool left_memory_is_told(const LeftHolders *h, size_t i);

/* Adds the holders on a card. named: the pids that the driver names there. When out of memory, *ret
 * is empty. */
typedef struct LeftSearch {
        const char *proc;
        const Records *records;
        const CardFiles *files;
        uint32_t card;
        const uint32_t *named;
        size_t n_named;
} LeftSearch;
void left_memory_find_holders(const LeftSearch *s, LeftHolders *ret);

typedef struct LeftMemory { /* all zero: empty */
        struct LeftPid *pids;
        /* In ticks since boot: when the census before was asked for, when this one was, and when it
         * came; 0: not known */
        uint64_t before, asked, came;
} LeftMemory;

void left_memory_done(LeftMemory *m);

/* Begins a census. The times are as in CardCensus. */
void left_memory_begin(LeftMemory *m, usec_t asked, usec_t came);
/* The container that the memory of that ended process is charged to; NULL: none. Call it once in a
 * census for each ended process that the driver names. */
const ProcessOwner *left_memory_judge(LeftMemory *m, uint32_t card, uint32_t pid, const LeftHolders *holders);
/* The only container of the former owner's pod with holders; NULL: none, or several. Call it where
 * no process of the former owner has a driver file open. */
const ProcessOwner *left_memory_heir(const LeftHolders *holders, const ProcessOwner *former);
/* Whether that container has a holder. */
bool left_memory_has_holder(const LeftHolders *holders, const ProcessOwner *owner);
void left_memory_end(LeftMemory *m); /* forgets those that the driver names no more */
