/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds containers that have more of a card's time than their share. Compute windows are enforced
 * by the preload library inside the container, and by what its own pages report of its work. A
 * process that bypasses the library, or reports falsely, has what the driver's time slicing gives.
 *
 * So the time that the driver says each process used is summed up by container, as the memory audit
 * does (node/audit/memory_audit.h). Where the share is a cap (arbiter/tenant_policy.h), the sum is
 * compared with the cap. Else it is compared with the windows that the arbiter gave the container
 * and the others of the card (node/audit/window_totals.h). Where the arbiter limits no container,
 * none is checked.
 *
 * A container that was given nothing of the card has a share of 0. While a process of a pod has no
 * known container, the pod is checked as a whole. What counts as too much: node/audit/overuse.h. */

#include "gpu/cards/card_source.h"
#include "node/isolation/node_compute.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"
#include "slicedir/slicedir.h"

typedef struct ComputeAudit ComputeAudit;

typedef struct ComputeExcess {
        const RosterPod *pod;
        const char *container; /* NULL: not known */
        uint32_t card;
        uint32_t used, share; /* ppm of the card's time: had, and allowed */
        bool shared;          /* the share is no cap, but what it was given or others left */
        uint64_t nsec;        /* ns over which `used` and `share` were taken */
        uint32_t pid;         /* the process that used most of it in the last window */
        bool several;         /* other processes used it, too */
        bool again;           /* the excess was reported before and still lasts */
} ComputeExcess;

typedef struct ComputeAuditOptions {
        const Roster *roster; /* all that is pointed to outlives the audit */
        const Records *records;
        const Inventory *inventory;
        const NodeCompute *compute;
        const Slicedir *slicedir; /* with the windows that were given; NULL: only caps are known */
        const char *proc;         /* NULL: /proc */
        bool ignores_disable;     /* CGPU_DISABLE is not honoured on this node */
        uint64_t window;          /* ns */
        /* At the end of each window while the excess lasts. */
        void (*on_excess)(void *userdata, const ComputeExcess *excess);
        void *userdata;
} ComputeAuditOptions;

int compute_audit_new(const ComputeAuditOptions *options, ComputeAudit **ret); /* 0 or -ENOMEM */
ComputeAudit *compute_audit_free(ComputeAudit *m);

void compute_audit_take(ComputeAudit *m, const CardCensus *census);

/* Whether this node limits any container, so that the driver's numbers are needed. */
bool compute_audit_wants(const ComputeAudit *m);

/* Whether the process used the card in the last census. */
bool compute_audit_had(const ComputeAudit *m, uint32_t card, uint32_t pid);

/* What the last census showed, for the metrics. pod: NULL where the process is in no pod of ours;
 * container: NULL where it is not known. */
typedef struct ProcessCompute {
        const RosterPod *pod;
        const char *container;
        uint32_t card, pid;
        uint32_t percent; /* the process's use of the card's SMs */
} ProcessCompute;
void compute_audit_each(const ComputeAudit *m, void (*visit)(void *userdata, const ProcessCompute *process),
                        void *userdata);

/* Visits the excesses that were reported and still last. */
void compute_audit_each_excess(const ComputeAudit *m,
                               void (*visit)(void *userdata, const ComputeExcess *excess), void *userdata);
uint64_t compute_audit_excesses(const ComputeAudit *m); /* ever */
