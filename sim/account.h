/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The driver's account of device memory by cgroup, as memacct.c of 615.71.09 keeps it. Pure:
 * cgroups are told by number and path, and the files of the dmem controller stand behind two
 * functions.
 *
 * SIM_LIMITS_MISC, the driver's own account: an entry for each cgroup that a limit was set on. The
 * nearest entry on the way up is charged, and no other one. Without an entry nothing is charged
 * (memacctTryChargeInternalLocked(), lines 127-165). An entry stays after its cgroup is removed,
 * and a new cgroup at the same address inherits limit and use: the map's key is the address.
 *
 * SIM_LIMITS_DMEM, the kernel's controller: each ancestor counts and limits, from the card's
 * initialisation on, whether it has a limit or not.
 *
 * With both, memory of a client whose creator has ended is not charged (memacctTryCharge(), lines
 * 179-184): osClientGroupID() finds no cgroup for the pid. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/user/limits.h"

enum { SIM_CGROUP_DEPTH = 24, SIM_CGROUP_PATH = 512 };

typedef struct SimProcess {
        uint32_t pid, uid;
        uint64_t started; /* by the clock ticks of /proc: it tells one process from a later one */
} SimProcess;

typedef struct SimCgroup {
        size_t n; /* levels below the root; 0: the root */
        /* inode numbers, the leaf's first; later cgroups have greater ones */
        uint64_t ids[SIM_CGROUP_DEPTH];
        char path[SIM_CGROUP_PATH]; /* of the leaf, below the root: "/a/b"; "" for the root */
} SimCgroup;

typedef struct SimAccountOptions {
        SimLimitsKind kind;
        /* memory of a client without a living creator is charged to the caller */
        bool counts_orphans;
        bool forgets; /* no persistence mode: a card's limits end with its last open file */
        /* Of SIM_LIMITS_MISC: whether that cgroup was removed. NULL: no address is used again. */
        bool (*is_gone)(void *data, const char *path, uint64_t id);
        /* Of SIM_LIMITS_DMEM: dmem.max and dmem.current of a cgroup, whose path has `len` bytes. */
        uint64_t (*limit)(void *data, uint32_t card, const char *path, size_t len);
        void (*tell)(void *data, uint32_t card, const char *path, size_t len, uint64_t used);
        void (*forget)(void *data, uint32_t card); /* the card's region is gone, with its limits */
        void *data;
} SimAccountOptions;

typedef struct SimAccountEntry SimAccountEntry;

typedef struct SimAccount {
        SimAccountOptions o;
        SimAccountEntry *entries; /* of MISC: limits; of DMEM: what is used */
        size_t n, room;
        uint32_t open[SIM_LIMITS_MAX];  /* files of each card */
        uint32_t epoch[SIM_LIMITS_MAX]; /* counts initialisations of each card */
} SimAccount;

typedef struct SimCharge {
        SimAccount *account;
        uint32_t card, epoch;
        uint64_t bytes;
        SimCgroup group; /* of MISC: the one entry that was charged */
} SimCharge;

/* Memory of `bytes`, as asked for and before rounding. creator: the cgroup of the process that made
 * the client, NULL: it has ended. current: that of the caller; NULL: not known. *ret: the charge,
 * or NULL when nothing was charged. RM_OK, RM_ERR_HARD_LIMIT_EXCEEDED or RM_ERR_NO_MEMORY. */
uint32_t sim_account_charge(SimAccount *a, uint32_t card, const SimCgroup *creator, const SimCgroup *current,
                            uint64_t bytes, SimCharge **ret);
void sim_account_release(SimCharge *c); /* NULL: nothing */

/* memacctSetLimits() and memacctGetLimits(): RM_ERR_NOT_SUPPORTED unless the kind is MISC, and for
 * the root; RM_ERR_OBJECT_NOT_FOUND or RM_ERR_INVALID_LIMIT for a card that is not initialised;
 * RM_ERR_INVALID_LIMIT for less than is used. */
uint32_t sim_account_set(SimAccount *a, uint32_t card, const SimCgroup *g, uint64_t soft, uint64_t hard);
uint32_t sim_account_get(SimAccount *a, uint32_t card, const SimCgroup *g, SimLimit *ret);

void sim_account_open(SimAccount *a, uint32_t card); /* a file of the card was opened */
void sim_account_close(SimAccount *a, uint32_t card);
void sim_account_done(SimAccount *a);
