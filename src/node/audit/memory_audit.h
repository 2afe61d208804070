/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds containers that hold more memory of a card than their slice. The preload library enforces
 * slices only as long as the program lets it. One that unsets the preload, or makes system calls of
 * its own, is not limited.
 *
 * So what the driver says each process holds is summed up by container and compared with what the
 * container was given. A host pid leads to a cgroup, to a pod, and by the runtime's IDs in the
 * pod's status to a container. While a process of the pod has no known container, the pod is
 * checked as a whole, against the sum of its slices. More than slice + 64 MiB for long
 * (node/audit/hysteresis.h) is an excess. Memory that an ended process left behind still counts for
 * its container (node/audit/pid_owner_cache.h, node/audit/left_memory.h). The card as a whole:
 * node/audit/unaccounted.h.
 *
 * An audit reports and never acts. */

#include "gpu/cards/card_source.h"
#include "node/audit/left_memory.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"

#define MEMORY_AUDIT_GRACE (UINT64_C(64) << 20) /* figures are read one after the other */

typedef struct MemoryAudit MemoryAudit;

typedef struct ExcessPid {
        uint32_t pid;
        bool ended; /* its memory lives on in a driver file that another process has open */
} ExcessPid;

typedef struct MemoryExcess {
        const RosterPod *pod;
        const char *container; /* NULL: not known */
        uint32_t card;
        uint64_t used, limit;  /* bytes */
        const ExcessPid *pids; /* all of them */
        size_t n_pids, n_ended;
        bool again; /* the excess was reported before and still lasts */
} MemoryExcess;

/* Memory of one card that no pod accounts for (unaccounted.h). */
typedef struct UnaccountedMemory {
        uint32_t card;
        uint64_t bytes, used; /* bytes that no pod accounts for; bytes in use on the card, by all */
        uint32_t pid;         /* the largest process of no pod with slices; 0: none is listed */
        uint64_t pid_bytes;
        bool pid_ended;
        const LeftHolders *holders; /* processes that may hold what ended ones left */
} UnaccountedMemory;

typedef struct MemoryAuditOptions {
        const Roster *roster; /* all that is pointed to outlives the audit */
        const Records *records;
        const Inventory *inventory;
        const char *proc;      /* NULL: /proc */
        const char *cgroups;   /* the host's cgroup tree; NULL: a frozen process is not recognised */
        bool ignores_disable;  /* CGPU_DISABLE is not honoured on this node */
        const char *simulated; /* where a simulated driver is mounted; NULL: there is none */
        /* At each census while the excess lasts. */
        void (*on_excess)(void *userdata, const MemoryExcess *excess);
        void (*on_unaccounted)(void *userdata, const UnaccountedMemory *found);
        void *userdata;
} MemoryAuditOptions;

int memory_audit_new(const MemoryAuditOptions *options, MemoryAudit **ret); /* 0 or -ENOMEM */
MemoryAudit *memory_audit_free(MemoryAudit *a);

/* Takes a census of all cards, and reports what it finds. */
void memory_audit_take(MemoryAudit *a, const CardCensus *census);

/* Counts processes of a container: those that the last census found on the card, or, if it found
 * none, all of the container. works() tells whether a process used the card lately. */
typedef struct PausedProcesses {
        size_t n_paused; /* stopped, or frozen */
        size_t n_work;   /* not paused, and works() said so */
} PausedProcesses;
PausedProcesses memory_audit_paused(const MemoryAudit *a, const RosterPod *pod, const char *container,
                                    uint32_t card, bool (*works)(void *userdata, uint32_t card, uint32_t pid),
                                    void *userdata);

/* What the last census showed, for the metrics. pod: NULL where the process is in no pod of ours;
 * container: NULL where it is not known. */
typedef struct ProcessMemory {
        const RosterPod *pod;
        const char *uid; /* UID of its pod, also of one that is gone; "": it is in none */
        const char *container;
        uint32_t card, pid;
        uint64_t bytes;
} ProcessMemory;
void memory_audit_each(const MemoryAudit *a, void (*visit)(void *userdata, const ProcessMemory *process),
                       void *userdata);

/* Visits the excesses that were reported and still last. */
void memory_audit_each_excess(const MemoryAudit *a, void (*visit)(void *userdata, const MemoryExcess *excess),
                              void *userdata);
bool memory_audit_unaccounted(const MemoryAudit *a, uint32_t card,
                              uint64_t *ret_bytes); /* false: not known */
/* Whether the card's unaccounted memory was reported and still lasts. */
bool memory_audit_unaccounted_lasts(const MemoryAudit *a, uint32_t card);
bool memory_audit_card_used(const MemoryAudit *a, uint32_t card,
                            uint64_t *ret_bytes);              /* in use, by all; false: not known */
uint64_t memory_audit_excesses(const MemoryAudit *a);          /* ever */
uint64_t memory_audit_unaccounted_count(const MemoryAudit *a); /* ever */
