/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which processes have a slice: those that have its counters mapped, or, children of fork that have
 * not called the driver yet, its limits as their parent had them: only to be read, unlike the
 * arbiter's. Whoever is not root sees only his own. */

#include <sys/stat.h>
#include <sys/types.h>

enum { PROCESSES_MAX = 1024 };

typedef struct Processes {
        pid_t pids[PROCESSES_MAX]; /* ascending as /proc lists them; those beyond are counted only */
        size_t n;
} Processes;

/* ret->n is 0 where /proc cannot be read. */
void processes_find(const struct stat *counters, const struct stat *limits, Processes *ret);
