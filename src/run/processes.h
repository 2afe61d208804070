/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which processes have a slice: those that have its counters mapped. Whoever is not root sees only his own. */

#include <sys/types.h>

enum { PROCESSES_MAX = 1024 };

typedef struct Processes {
        pid_t pids[PROCESSES_MAX]; /* ascending as /proc lists them; those beyond are counted only */
        size_t n;
} Processes;

void processes_find(dev_t dev, ino_t ino, Processes *ret);
