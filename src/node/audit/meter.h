/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Does anybody have more of a card's time than his share? Windows are kept by the gate inside the
 * container, and by what its own pages say of its work: who passes the gate by, or lies, has what
 * the driver's time slicing gives. So what the driver says that each process used is summed up by
 * container, as the audit of memory does it (node/audit/audit.h), and held against the share
 * wherever that is a cap (arbiter/policy.h), and else against what the arbiter gave windows for, to
 * him and to the others of the card (node/audit/granted.h). Where nobody is held to windows, nobody
 * is judged. A container that was given nothing of the card has a share of 0. As long as one
 * process of a pod on the card cannot be told, the pod is judged as a whole. What is too much:
 * node/audit/overuse.h. */

#include "gpu/cards/source.h"
#include "node/isolation/compute.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"
#include "slicedir/board.h"

typedef struct Meter Meter;

typedef struct MeterExcess {
        const RosterPod *pod;
        const char *container; /* NULL: which one cannot be told */
        uint32_t card;
        uint32_t used, share; /* ppm of the card's time; share: that it might have had */
        bool shared;          /* that is no cap, but what others left, or it was given */
        uint64_t nsec;        /* of so long */
        uint32_t pid;         /* that used most of it lately */
        bool several;         /* it was not the only one */
        bool again;           /* it was told before, and is not over */
} MeterExcess;

typedef struct MeterOptions {
        const Roster *roster; /* these outlive it */
        const Records *records;
        const Inventory *inventory;
        const NodeCompute *compute;
        const Board *board;   /* whose pages say what was given; NULL: only caps are known */
        const char *proc;     /* NULL: /proc */
        bool ignores_disable; /* CGPU_DISABLE is not honoured on this node */
        uint64_t window;      /* ns */
        /* At the end of each window as long as it lasts. */
        void (*on_excess)(void *userdata, const MeterExcess *excess);
        void *userdata;
} MeterOptions;

int meter_new(const MeterOptions *options, Meter **ret); /* 0 or -ENOMEM */
Meter *meter_free(Meter *m);

void meter_take(Meter *m, const CardCensus *census);

/* Whether this node holds anybody, and so wants the driver's numbers. */
bool meter_wants(const Meter *m);

/* Whether the process had any of the card's time in the last census. */
bool meter_had(const Meter *m, uint32_t card, uint32_t pid);

/* What the last census showed, for the metrics: pod NULL where the process is nobody's of ours,
 * container where it is not known. */
typedef struct MeterProcess {
        const RosterPod *pod;
        const char *container;
        uint32_t card, pid;
        uint32_t percent; /* of the card's SMs */
} MeterProcess;
void meter_each(const Meter *m, void (*visit)(void *userdata, const MeterProcess *process), void *userdata);

/* Excesses that were told and are not over. */
void meter_each_excess(const Meter *m, void (*visit)(void *userdata, const MeterExcess *excess),
                       void *userdata);
uint64_t meter_excesses(const Meter *m); /* ever */

DEFINE_CLEANUP(Meter *, meter_free)
