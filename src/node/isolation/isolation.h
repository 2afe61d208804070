/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an isolated container is given beside its card: its slice pages, and the gate that keeps to
 * them. Both are mounted, and mounts are named in Allocate, before it is sure whose the devices
 * are. So the slice on the board is called by the devices, which nobody else has, and is written in
 * PreStart, once the identity is proved.
 *
 * A container whose page or gate cannot be made does not start: isolation fails closed. */

#include "base/arena.h"
#include "node/isolation/node_compute.h"
#include "node/isolation/preload_files.h"
#include "node/isolation/simulated_driver.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"
#include "slicedir/slicedir.h"

typedef struct IsolationOptions {
        const char *slices; /* the board */
        const char *
                proc; /* as in Slicedir: slices get file systems of their own; NULL: they do not. Outlives it */
        const char *
                state_dir; /* the gate is installed below it (node/isolation/preload_files.h); the same path on the host */
        const char *gate;      /* libaliquot.so to install; NULL: the one beside this program */
        bool ignores_disable;  /* CGPU_DISABLE is not honoured on this node */
        const char *simulated; /* where a simulated driver is mounted; NULL: the machine's own */
        uint32_t policy;       /* of compute, 0..5, where the node's annotation says none */
        /* A container starts that says something of compute (c->odd) which is not understood; NULL:
         * nobody asks. */
        void (*on_odd)(void *userdata, const RosterPod *pod, const RosterContainer *c);
        void *userdata;
} IsolationOptions;

typedef struct Isolation {
        Slicedir board;
        PreloadFiles preload;
        bool ignores_disable;
        SimulatedDriver simulated;
        NodeCompute compute;
        void (*on_odd)(void *userdata, const RosterPod *pod, const RosterContainer *c);
        void *userdata;
        Fault trouble; /* why no isolated container can start; "" when they can */
} Isolation;

/* Installs the gate by rename: running containers keep the one that they have. What is wrong is kept for those it concerns. 0 or
 * -ENOMEM; done in either case. */
int isolation_init(Isolation *i, const IsolationOptions *options);
void isolation_done(Isolation *i);

/* The directory of the container's slice pages: as its record says, or, where the record says
 * nothing (an earlier version wrote it), as a slice of its devices is named. */
void isolation_slice_name(const RecordContainer *c, char ret[static SLICEDIR_ID_SIZE]);

/* Notes that name in the container's record, where the mode isolates. */
void isolation_record_slice(const Inventory *v, Record *record, Str container);

/* For the answer to Allocate: the files of a simulated driver, where there is one; where the mode
 * isolates, SLICE_MOUNT_DIR, gate and pages, each directory before what is mounted in it. Each
 * directory in SLICE_MOUNT_DIR is a mount of its own, because containerd leaves a VOLUME of the image
 * out only where a mount has exactly its path (internal/cri/server, volumeMounts).
 *
 * The kubelet asks once, and keeps the answer as long as the pod lives. So a source that is missing
 * now is named as well, and isolation_prepare() lets no container start without it. ret has room
 * for ISOLATION_MOUNTS; texts are in the arena. Returns how many, or -ENOMEM. */
enum { ISOLATION_MOUNTS = SIMULATED_DRIVER_MOUNTS + 4 + 4 * SLICEDIR_CARDS_MAX };
int isolation_mounts(const Isolation *i, const Inventory *v, const DeviceSet *mem, Arena *arena,
                     PluginMount ret[static ISOLATION_MOUNTS]);

/* Writes the pages of a container that is about to start. given: of its record. 0, ISOLATION_E_MISSING or negative errno,
 * both with a fault. */
enum { ISOLATION_E_MISSING = 1 };
int isolation_prepare(Isolation *i, const Inventory *v, const RosterPod *pod, const RosterContainer *c,
                      const RecordContainer *given, Fault *fault);

/* Are the gate, and the pages of this container, where its mounts lead? A runtime
 * may make an empty folder of what is missing (containerd), and start it. True where the mode does
 * not isolate. */
bool isolation_is_complete(Isolation *i, const Inventory *v, const RecordContainer *given);

/* Policies of compute are said anew where the node says something else, or who asked for weights
 * has come or gone. */
void isolation_publish_compute(Isolation *i, const Inventory *v);

/* Slices that no record names any more are taken off the board. */
void isolation_sweep(Isolation *i, const Records *records);
