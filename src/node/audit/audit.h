/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Does anybody hold more than his slice? The gate keeps programs to their slices as long as they
 * let it: one that unsets the preload, or makes system calls of its own, passes it by. So what the
 * driver says each process holds is compared with what its container was given: host pid to cgroup
 * to pod and container, the latter by what the pod's status says of the runtime's IDs. As long as
 * it does not say it of one process, the pod is judged as a whole, by the sum of its slices. More
 * than slice + 64 MiB for long (node/audit/lasting.h) is an excess. What a process left behind that
 * has ended is its container's still (node/audit/witness.h). The card as a whole:
 * node/audit/stray.h. */

#include "gpu/cards/source.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"

typedef struct Audit Audit;

typedef struct AuditPid {
        uint32_t pid;
        bool ended; /* and its memory lives on in another one's file */
} AuditPid;

typedef struct AuditExcess {
        const RosterPod *pod;
        const char *container; /* NULL: which one cannot be told */
        uint32_t card;
        uint64_t used, limit; /* bytes */
        const AuditPid *pids; /* all of them */
        size_t n_pids, n_ended;
        bool again; /* it was told before, and is not over */
} AuditExcess;

/* Memory that nobody accounts for, of one card. */
typedef struct AuditStray {
        uint32_t card;
        uint64_t bytes, used; /* used: of the card, by whomever */
        uint32_t pid;         /* of no pod, and the largest of those; 0: no process is listed with it */
        uint64_t pid_bytes;
} AuditStray;

typedef struct AuditOptions {
        const Roster *roster; /* these outlive it */
        const Records *records;
        const Inventory *inventory;
        const char *proc; /* NULL: /proc */
        const char
                *cgroups; /* where the host's cgroup tree is mounted; NULL: nobody can be told to be frozen */
        bool ignores_disable; /* CGPU_DISABLE is not honoured on this node */
        /* At each census as long as it lasts. */
        void (*on_excess)(void *userdata, const AuditExcess *excess);
        void (*on_stray)(void *userdata, const AuditStray *stray);
        void *userdata;
} AuditOptions;

int audit_new(const AuditOptions *options, Audit **ret); /* 0 or -ENOMEM */
Audit *audit_free(Audit *a);

void audit_take(Audit *a, const CardCensus *census);

/* SIGKILL to those of the processes that are still the container's; where it cannot be told, the
 * pod's. Where some of them have ended, it is not known who has the driver's file now: then to all
 * processes of the container. */
typedef struct AuditKilled {
        size_t killed; /* not those that were killed at an earlier census, and take their time to end */
        size_t failed;
        bool all; /* all of the container were meant */
} AuditKilled;
AuditKilled audit_kill(Audit *a, const AuditExcess *excess);

/* The same to all processes of a container, those that are begun meanwhile too, whatever they
 * hold. */
AuditKilled audit_end_container(Audit *a, const RosterPod *pod, const char *container);

/* Of a container's processes that the last census found on the card, or all of them where it found
 * none. works: whether one had the card lately. */
typedef struct AuditPaused {
        size_t n_paused; /* stopped, or frozen */
        size_t n_work;   /* of the others, that had the card lately */
} AuditPaused;
AuditPaused audit_paused(const Audit *a, const RosterPod *pod, const char *container, uint32_t card,
                         bool (*works)(void *userdata, uint32_t card, uint32_t pid), void *userdata);

/* What the last census showed, for the metrics: pod NULL where the process is nobody's of ours,
 * container where it is not known. */
typedef struct AuditProcess {
        const RosterPod *pod;
        const char *container;
        uint32_t card, pid;
        uint64_t bytes;
} AuditProcess;
void audit_each(const Audit *a, void (*visit)(void *userdata, const AuditProcess *process), void *userdata);

/* Excesses that were told and are not over. */
void audit_each_excess(const Audit *a, void (*visit)(void *userdata, const AuditExcess *excess),
                       void *userdata);
bool audit_stray(const Audit *a, uint32_t card, uint64_t *ret_bytes); /* false: it cannot be said */
uint64_t audit_excesses(const Audit *a);                              /* ever */
uint64_t audit_strays(const Audit *a);                                /* ever */

DEFINE_CLEANUP(Audit *, audit_free)
