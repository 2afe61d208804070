/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The option --memory-limits: which account of memory the simulated driver keeps, over the cgroups
 * of this machine. KIND[,WORD...]: none, misc or dmem, then "orphans" (counts_orphans), "forget"
 * (forgets) and "reuse" (a new cgroup inherits the entry of a removed one). */

#include "sim/account.h"

typedef struct SimMemoryLimits {
        SimAccountOptions account;
        const char *cgroups; /* where cgroup v2 is mounted */
        const char *dmem;    /* a tree with its paths, where files of the dmem controller stand */
} SimMemoryLimits;

/* text: NULL for none. cgroups, dmem: as in the options; NULL: /sys/fs/cgroup. What is kept
 * outlives ret, which stays where it is. 0 or -EINVAL. */
int sim_memory_limits_parse(const char *text, const char *cgroups, const char *dmem, SimMemoryLimits *ret);
