/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A server of simulated cards (aliquot-sim) that lives as long as we do: it is mounted in a mount
 * namespace of our own, so that its mount goes with the last process of that namespace, and it is
 * ended when the thread that started it ends, however that came. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"

/* Where what serves programs on top of the driver is: libcuda, NVML and nvidia-smi. */
#define SIMULATOR_NVML "sim/libnvidia-ml.so.1"

/* A mount namespace of our own, and a user namespace for whoever is not root: he keeps his ids, and
 * this process all rights over what it makes there. Must be called while there is one thread. 0, or
 * negative errno with a fault. */
int simulator_enter(Fault *fault);

/* Whether FUSE is to be had at all, before anything is changed for its sake. 0, or negative errno
 * with a fault. */
int simulator_check(Fault *fault);

typedef struct SimulatorSpec {
        const char *cards;   /* 4xTesla-V100-SXM2-16GB:16160MiB */
        const char *name;    /* the node's, which UUIDs are made from; NULL: aliquot-sim's own default */
        const char *devices; /* an empty directory, where the driver's files will be */
} SimulatorSpec;

/* Starts one and waits until it is mounted. 0, or negative errno with a fault, which has its own
 * words when it said any. */
int simulator_start(const SimulatorSpec *spec, pid_t *ret, Fault *fault);

/* Whether it has ended by itself; it is then waited for, and *pid is 0. */
bool simulator_ended(pid_t *pid);

/* Ends it, if it is there, and waits for that. What still has its files open gets ENOTCONN. *pid is
 * 0 then. */
void simulator_stop(pid_t *pid);
