/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an isolated container is given beside its card: its slice pages, and the preload library
 * that enforces them. Both are mounted, and Allocate names the mounts before it is proved which
 * container the devices are for. So a slice is named by its devices, and its pages are written in
 * PreStart, once the identity is proved. No other container has these devices meanwhile, except
 * init containers of the same pod, which have ended when a later container has them.
 *
 * A container does not start if its pages or library cannot be made: isolation fails closed.
 * isolation_pages.c reads the pages again. */

#include "base/arena.h"
#include "node/isolation/node_compute.h"
#include "node/isolation/preload_files.h"
#include "node/isolation/simulated_driver.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"
#include "slicedir/slicedir.h"

typedef struct IsolationOptions {
        const char *slices;    /* the directory of slices */
        const char *proc;      /* as in Slicedir: each slice gets its own file system; NULL: none does.
                                * Outlives it */
        bool labels;           /* the machine has SELinux: base/selinux.h */
        const char *state_dir; /* the library is installed below it; the same path on the host */
        const char *library;   /* libaliquot.so to install; NULL: the one beside this program */
        bool ignores_disable;  /* CGPU_DISABLE is not honoured on this node */
        bool says_refusals;    /* a process says on its standard error that it was refused memory */
        const char *simulated; /* where a simulated driver is mounted; NULL: the machine's own */
        ComputePolicy policy;  /* the default where the node's annotation names none */
        /* A container starts with compute settings that are not understood (c->compute_fault). May
         * be NULL. */
        void (*on_compute_fault)(void *userdata, const RosterPod *pod, const RosterContainer *c);
        void *userdata;
} IsolationOptions;

typedef struct Isolation {
        Slicedir slicedir;
        PreloadFiles preload;
        bool ignores_disable, says_refusals;
        SimulatedDriver simulated;
        NodeCompute compute;
        void (*on_compute_fault)(void *userdata, const RosterPod *pod, const RosterContainer *c);
        void *userdata;
        Fault unavailable; /* why no isolated container can start; "" when they can */
        Fault unsupported; /* the same, by the driver, which may change; those that run go on */
} Isolation;

/* Installs the preload library by rename, so that running containers keep the one that they have. A
 * failure is kept: no isolated container starts then. 0 or -ENOMEM; done in either case. */
int isolation_init(Isolation *i, const IsolationOptions *options);
void isolation_done(Isolation *i);

/* The name of the container's slice, a directory, which follows from its devices. */
void isolation_slice_name(const RecordContainer *c, char ret[static SLICEDIR_ID_SIZE]);

/* The mounts of a container with these devices, for the answer to Allocate. First the files of a
 * simulated driver, where there is one. Then, where the mode isolates, SLICE_MOUNT_DIR, library and
 * pages, each directory before what is mounted in it. Each directory in SLICE_MOUNT_DIR is a mount
 * of its own: containerd leaves out a VOLUME of the image only where a mount has exactly its path
 * (internal/cri/server, volumeMounts).
 *
 * The kubelet asks once and keeps the answer as long as the pod lives. So a source that is missing
 * now is named as well, and isolation_prepare() lets no container start without it. ret has room
 * for ISOLATION_MOUNTS; texts are in the arena. Returns how many, or -ENOMEM. */
enum { ISOLATION_MOUNTS = SIMULATED_DRIVER_MOUNTS + 4 + 4 * SLICEDIR_CARDS_MAX };
int isolation_mounts(const Isolation *i, const Inventory *v, const DeviceSet *mem, Arena *arena,
                     PluginMount ret[static ISOLATION_MOUNTS]);

/* Writes the pages of a container that is about to start. given: of its record; one that has not
 * started before gets new counters. 0; ISOLATION_E_MISSING or negative errno, both with a fault. */
enum { ISOLATION_E_MISSING = 1 };
int isolation_prepare(Isolation *i, const Inventory *v, const RosterPod *pod, const RosterContainer *c,
                      const RecordContainer *given, Fault *fault);

/* The bytes of a card that the slice of these devices shows, by the size in force; 0: the card is
 * not known. count: devices of that card. */
uint64_t isolation_slice_bytes(const Inventory *v, const RecordContainer *given, uint32_t index,
                               uint32_t count);

/* Writes the size of the record into the pages of a container that has started. 0;
 * ISOLATION_E_MISSING, SLICE_FILES_E_DAMAGED or negative errno, all with a fault. */
int isolation_resize(Isolation *i, const Inventory *v, const RosterContainer *c, const RecordContainer *given,
                     Fault *fault);

/* The name of a container in its pages: NAMESPACE/POD/CONTAINER. Where that is longer than a page
 * and an owner's line hold, POD is the pod's UID. */
enum { ISOLATION_CONTAINER_NAME = SLICEDIR_OWNER_SIZE - sizeof SLICEDIR_AGENT + 1 };
void isolation_container_name(const RosterPod *pod, const char *container,
                              char ret[static ISOLATION_CONTAINER_NAME]);

/* Units of a card that the processes of a container hold or may take, by its page and counters,
 * rounded up. 0 for a container that has no page, or is not isolated. UINT32_MAX: not known, as the
 * card is missing or a file could not be read. The container writes the counters, so they may be
 * false. */
uint32_t isolation_held(const Isolation *i, const Inventory *v, const RecordContainer *given, uint32_t index);

/* The size in force of a container that may be running, by its pages, as a record has it: units of
 * all its cards and percent; 0: its limit. Also 0 where a page cannot be read, or is another
 * container's. owner: isolation_container_name(). It needs no inventory: units are in proportion to
 * the devices. Where the pages differ, because a resize was interrupted, it is the largest. */
typedef struct IsolationSize {
        uint32_t mem, core;
} IsolationSize;
IsolationSize isolation_page_size(const Isolation *i, const RecordContainer *given, const char *owner);

/* Whether library and pages of this container are where its mounts lead. Makes missing mount points
 * and the file that names the library. A runtime may make an empty directory of a missing source
 * (containerd) and start the container. True where the mode does not isolate. */
bool isolation_is_complete(Isolation *i, const Inventory *v, const RecordContainer *given);

/* Writes the policies of compute into the pages again, where the node's settings or the containers
 * that ask for weights have changed. */
void isolation_publish_compute(Isolation *i, const Inventory *v);

/* Removes the slices that no record names any more. */
void isolation_sweep(Isolation *i, const Records *records);
