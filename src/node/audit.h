/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Does anybody hold more than his slice? The gate keeps programs to their slices as long as they let it: one that unsets the preload, or
 * makes system calls of its own, passes it by. So what the driver says each process holds is compared with what its pod was given:
 * host pid to cgroup to pod. Three times in a row over slice + 64 MiB is an excess, told once until it is over. */

#include "cards/source.h"
#include "node/inventory.h"
#include "node/records.h"
#include "node/roster.h"

typedef struct Audit Audit;

typedef struct AuditExcess {
        const RosterPod *pod;
        uint32_t card;
        uint64_t used, limit; /* bytes */
        const uint32_t *pids;
        size_t n_pids;
} AuditExcess;

typedef struct AuditOptions {
        const Roster *roster; /* these outlive it */
        const Records *records;
        const Inventory *inventory;
        const char *proc; /* NULL: /proc */
        void (*on_excess)(void *userdata, const AuditExcess *excess);
        void *userdata;
} AuditOptions;

int audit_new(const AuditOptions *options, Audit **ret); /* 0 or -ENOMEM */
Audit *audit_free(Audit *a);

void audit_take(Audit *a, const CardUsage *usage, size_t n); /* one census */

/* SIGKILL to those of the processes that are still the pod's. Returns how many. */
size_t audit_kill(const Audit *a, const AuditExcess *excess);

/* What the last census showed, for the metrics: pod NULL where the process is nobody's of ours. */
typedef struct AuditProcess {
        const RosterPod *pod;
        uint32_t card, pid;
        uint64_t bytes;
} AuditProcess;
void audit_each(const Audit *a, void (*visit)(void *userdata, const AuditProcess *process), void *userdata);
uint64_t audit_excesses(const Audit *a); /* ever */

DEFINE_CLEANUP(Audit *, audit_free)
