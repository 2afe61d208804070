/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The machines that stand behind the nodes of a run: per node one simulated driver, started when
 * its first container with a slice starts, and for each such container its cards, libcuda, NVML and
 * nvidia-smi, and where its node isolates, the gate and its slice pages. It is what a node agent
 * gives, as mounts.
 *
 * All of it lies in a mount namespace and below a /run of our own, and the drivers end with us:
 * nothing is left, however the run ends. */

#include "base/buf.h"
#include "local/pod_slices.h"
#include "local/sandbox.h"
#include "slicedir/slicedir.h"

typedef struct MachineNode MachineNode;

typedef struct Machines {
        bool asked;    /* somebody wanted a card: entered, or there is trouble */
        Fault trouble; /* why no container has a card here; "" when they can */
        Slicedir board;
        MachineNode *nodes; /* owned */
        size_t n_nodes;
        bool ignores_disable; /* CGPU_DISABLE is not honoured */
        int arbiter;          /* closed, it ends; -1: none yet, or negative errno: there cannot be one */
} Machines;

#define MACHINES_NULL ((Machines){.board = SLICEDIR_NULL, .arbiter = -1})

/* Ends the drivers; containers that still run get ENOTCONN. */
void machines_done(Machines *m);

typedef struct MachineMounts {
        SandboxMount mounts[SANDBOX_MOUNTS]; /* texts in the arena */
        size_t n;
} MachineMounts;

/* For a container that is about to start; id: one that no other container of the run has; name: for
 * people. The first call changes the namespaces of this process. Returns 0 with nothing in *ret
 * when it has no slice or when cards cannot be had here (machines_print_troubles() says why);
 * MACHINES_E_REFUSED with a fault when it must not start; -ENOMEM. */
enum { MACHINES_E_REFUSED = 1 };
int machines_attach(Machines *m, const BoundPod *place, const PodSlices *slices, const char *id,
                    const char *name, Arena *arena, MachineMounts *ret, Fault *fault);

/* One line each: why there are no cards here, nodes whose cards are not simulated, drivers that
 * ended before their containers. */
void machines_print_troubles(Machines *m, Buf *out);
