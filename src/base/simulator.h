/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A server of simulated cards (aliquot-sim) that lives as long as this process. It is mounted in a
 * mount namespace of its own, so the mount disappears with the last process of that namespace. The
 * kernel ends it when the thread that started it ends. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"

/* The simulator's NVML; its libcuda and nvidia-smi are beside it. */
#define SIMULATOR_NVML "sim/libnvidia-ml.so.1"

/* Moves this process into a new mount namespace. Without root it also gets a user namespace, in
 * which it keeps its ids and has all capabilities. Call it while the process has one thread.
 * Returns 0, or negative errno with a fault. */
int simulator_enter(Fault *fault);

/* Checks that FUSE is available, before anything is changed. Returns 0, or negative errno with a
 * fault. */
int simulator_check(Fault *fault);

typedef struct SimulatorSpec {
        const char *cards; /* 4xTesla-V100-SXM2-16GB:16160MiB */
        /* node name that UUIDs are made from; NULL: the default of aliquot-sim */
        const char *name;
        const char *devices; /* an empty directory, the mount point for the driver's files */
} SimulatorSpec;

/* Starts a simulator and waits until it is mounted. Returns 0, or negative errno with a fault,
 * which carries the simulator's own message when it printed one. */
int simulator_start(const SimulatorSpec *spec, pid_t *ret, Fault *fault);

/* Tells whether the simulator has ended by itself. If so it is reaped, and *pid becomes 0. */
bool simulator_ended(pid_t *pid);

/* Ends the simulator, if it runs, and waits for its end; *pid becomes 0. Processes that still have
 * its files open get ENOTCONN. */
void simulator_stop(pid_t *pid);
