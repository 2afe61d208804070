/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which processes use a slice, for aliquot-smi (smi.c). A process uses it when it has the slice's
 * counters mapped. A child of fork() that has not called the driver yet has only its parent's
 * read-only mapping of the limits; the arbiter's mapping of them is writable. A process without
 * root sees only processes of its own user. */

#include <sys/stat.h>
#include <sys/types.h>

enum { PROCESSES_MAX = 1024 };

typedef struct Processes {
        /* ascending, as /proc lists them; n also counts the pids that have no place here */
        pid_t pids[PROCESSES_MAX];
        size_t n;
} Processes;

/* Finds the processes that use the slice with these files. ret->n is 0 where /proc cannot be
 * read. */
void processes_find(const struct stat *counters, const struct stat *limits, Processes *ret);
