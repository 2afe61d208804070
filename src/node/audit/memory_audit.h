/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Does anybody hold more than his slice? The gate keeps programs to their slices as long as they
 * let it: one that unsets the preload, or makes system calls of its own, passes it by. So what the
 * driver says each process holds is compared with what its container was given: host pid to cgroup
 * to pod and container, the latter by what the pod's status says of the runtime's IDs. As long as
 * it does not say it of one process, the pod is judged as a whole, by the sum of its slices. More
 * than slice + 64 MiB for long (node/audit/hysteresis.h) is an excess. What a process left behind that
 * has ended is its container's still (node/audit/pid_owner_cache.h). The card as a whole:
 * node/audit/unaccounted.h. */

#include "gpu/cards/card_source.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"

typedef struct MemoryAudit MemoryAudit;

typedef struct ExcessPid {
        uint32_t pid;
        bool ended; /* and its memory lives on in another one's file */
} ExcessPid;

typedef struct MemoryExcess {
        const RosterPod *pod;
        const char *container; /* NULL: which one cannot be told */
        uint32_t card;
        uint64_t used, limit;  /* bytes */
        const ExcessPid *pids; /* all of them */
        size_t n_pids, n_ended;
        bool again; /* it was told before, and is not over */
} MemoryExcess;

/* Memory that nobody accounts for, of one card. */
typedef struct UnaccountedMemory {
        uint32_t card;
        uint64_t bytes, used; /* used: of the card, by whomever */
        uint32_t pid;         /* of no pod, and the largest of those; 0: no process is listed with it */
        uint64_t pid_bytes;
} UnaccountedMemory;

typedef struct MemoryAuditOptions {
        const Roster *roster; /* these outlive it */
        const Records *records;
        const Inventory *inventory;
        const char *proc; /* NULL: /proc */
        const char
                *cgroups; /* where the host's cgroup tree is mounted; NULL: nobody can be told to be frozen */
        bool ignores_disable; /* CGPU_DISABLE is not honoured on this node */
        /* At each census as long as it lasts. */
        void (*on_excess)(void *userdata, const MemoryExcess *excess);
        void (*on_stray)(void *userdata, const UnaccountedMemory *stray);
        void *userdata;
} MemoryAuditOptions;

int memory_audit_new(const MemoryAuditOptions *options, MemoryAudit **ret); /* 0 or -ENOMEM */
MemoryAudit *memory_audit_free(MemoryAudit *a);

void memory_audit_take(MemoryAudit *a, const CardCensus *census);

/* SIGKILL to those of the processes that are still the container's; where it cannot be told, the
 * pod's. Where some of them have ended, it is not known who has the driver's file now: then to all
 * processes of the container. */
typedef struct KilledProcesses {
        size_t killed; /* not those that were killed at an earlier census, and take their time to end */
        size_t failed;
        bool all; /* all of the container were meant */
} KilledProcesses;
KilledProcesses memory_audit_kill(MemoryAudit *a, const MemoryExcess *excess);

/* The same to all processes of a container, those that are begun meanwhile too, whatever they
 * hold. */
KilledProcesses memory_audit_end_container(MemoryAudit *a, const RosterPod *pod, const char *container);

/* Of a container's processes that the last census found on the card, or all of them where it found
 * none. works: whether one had the card lately. */
typedef struct PausedProcesses {
        size_t n_paused; /* stopped, or frozen */
        size_t n_work;   /* of the others, that had the card lately */
} PausedProcesses;
PausedProcesses memory_audit_paused(const MemoryAudit *a, const RosterPod *pod, const char *container,
                                    uint32_t card, bool (*works)(void *userdata, uint32_t card, uint32_t pid),
                                    void *userdata);

/* What the last census showed, for the metrics: pod NULL where the process is nobody's of ours,
 * container where it is not known. */
typedef struct ProcessMemory {
        const RosterPod *pod;
        const char *container;
        uint32_t card, pid;
        uint64_t bytes;
} ProcessMemory;
void memory_audit_each(const MemoryAudit *a, void (*visit)(void *userdata, const ProcessMemory *process),
                       void *userdata);

/* Excesses that were told and are not over. */
void memory_audit_each_excess(const MemoryAudit *a, void (*visit)(void *userdata, const MemoryExcess *excess),
                              void *userdata);
bool memory_audit_unaccounted(const MemoryAudit *a, uint32_t card,
                              uint64_t *ret_bytes);            /* false: it cannot be said */
uint64_t memory_audit_excesses(const MemoryAudit *a);          /* ever */
uint64_t memory_audit_unaccounted_count(const MemoryAudit *a); /* ever */

DEFINE_CLEANUP(MemoryAudit *, memory_audit_free)
