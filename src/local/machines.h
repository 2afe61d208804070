/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The machines behind the nodes of a run. Each node has a simulated driver, started with its first
 * container that has a slice. Such a container gets as mounts what a node agent gives: cards,
 * libcuda, NVML and nvidia-smi, and, where the node isolates, the library and its slice pages.
 *
 * Everything lies in a mount namespace and below a /run of our own, and the drivers end with this
 * process, so nothing is left behind. */

#include "base/buf.h"
#include "local/pod_slices.h"
#include "local/sandbox.h"
#include "slicedir/slicedir.h"

typedef struct MachineNode MachineNode;

typedef struct Machines {
        /* a container wanted a card: the namespaces are entered, or `trouble` is set */
        bool asked;
        Fault trouble; /* why containers have no cards; "" when they can */
        Slicedir slicedir;
        MachineNode *nodes; /* owned */
        size_t n_nodes;
        bool ignores_disable; /* CGPU_DISABLE is not honoured */
        /* a descriptor: closing it ends the arbiter; -1: not started; other negative errno: it
         * cannot start */
        int arbiter;
} Machines;

#define MACHINES_NULL ((Machines){.slicedir = SLICEDIR_NULL, .arbiter = -1})

/* Ends the simulated drivers; containers that still run get ENOTCONN. */
void machines_done(Machines *m);

typedef struct MachineMounts {
        SandboxMount mounts[SANDBOX_MOUNTS]; /* texts in the arena */
        size_t n;
} MachineMounts;

/* Mounts for a container that is about to start. id: unique among the containers of the run; name:
 * for people. The first call moves this process into new namespaces.
 *
 * Returns 0, with nothing in *ret when the container has no slice or no cards can be had
 * (machines_print_troubles() prints why). MACHINES_E_REFUSED with a fault when the container must
 * not start. Or -ENOMEM. */
enum { MACHINES_E_REFUSED = 1 };
int machines_attach(Machines *m, const BoundPod *place, const PodSlices *slices, const char *id,
                    const char *name, Arena *arena, MachineMounts *ret, Fault *fault);

/* Appends a line each: why there are no cards, nodes without simulated cards, drivers that ended
 * before their containers. */
void machines_print_troubles(Machines *m, Buf *out);
