/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Does anybody have more of a card's time than his share? Windows are kept by the gate inside the
 * container, and by what its own pages say of its work: who passes the gate by, or lies, has what
 * the driver's time slicing gives. So what the driver says that each process used is summed up by
 * container, as the audit of memory does it (node/audit/memory_audit.h), and held against the share
 * wherever that is a cap (arbiter/tenant_policy.h), and else against what the arbiter gave windows for, to
 * him and to the others of the card (node/audit/window_totals.h). Where nobody is held to windows, nobody
 * is judged. A container that was given nothing of the card has a share of 0. As long as one
 * process of a pod on the card cannot be told, the pod is judged as a whole. What is too much:
 * node/audit/overuse.h. */

#include "gpu/cards/card_source.h"
#include "node/isolation/node_compute.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"
#include "slicedir/slicedir.h"

typedef struct ComputeAudit ComputeAudit;

typedef struct ComputeExcess {
        const RosterPod *pod;
        const char *container; /* NULL: which one cannot be told */
        uint32_t card;
        uint32_t used, share; /* ppm of the card's time; share: that it might have had */
        bool shared;          /* that is no cap, but what others left, or it was given */
        uint64_t nsec;        /* of so long */
        uint32_t pid;         /* that used most of it lately */
        bool several;         /* it was not the only one */
        bool again;           /* it was told before, and is not over */
} ComputeExcess;

typedef struct ComputeAuditOptions {
        const Roster *roster; /* these outlive it */
        const Records *records;
        const Inventory *inventory;
        const NodeCompute *compute;
        const Slicedir *board; /* whose pages say what was given; NULL: only caps are known */
        const char *proc;      /* NULL: /proc */
        bool ignores_disable;  /* CGPU_DISABLE is not honoured on this node */
        uint64_t window;       /* ns */
        /* At the end of each window as long as it lasts. */
        void (*on_excess)(void *userdata, const ComputeExcess *excess);
        void *userdata;
} ComputeAuditOptions;

int compute_audit_new(const ComputeAuditOptions *options, ComputeAudit **ret); /* 0 or -ENOMEM */
ComputeAudit *compute_audit_free(ComputeAudit *m);

void compute_audit_take(ComputeAudit *m, const CardCensus *census);

/* Whether this node holds anybody, and so wants the driver's numbers. */
bool compute_audit_wants(const ComputeAudit *m);

/* Whether the process had any of the card's time in the last census. */
bool compute_audit_had(const ComputeAudit *m, uint32_t card, uint32_t pid);

/* What the last census showed, for the metrics: pod NULL where the process is nobody's of ours,
 * container where it is not known. */
typedef struct ProcessCompute {
        const RosterPod *pod;
        const char *container;
        uint32_t card, pid;
        uint32_t percent; /* of the card's SMs */
} ProcessCompute;
void compute_audit_each(const ComputeAudit *m, void (*visit)(void *userdata, const ProcessCompute *process),
                        void *userdata);

/* Excesses that were told and are not over. */
void compute_audit_each_excess(const ComputeAudit *m,
                               void (*visit)(void *userdata, const ComputeExcess *excess), void *userdata);
uint64_t compute_audit_excesses(const ComputeAudit *m); /* ever */

DEFINE_CLEANUP(ComputeAudit *, compute_audit_free)
