/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A simulated driver on this node (aliquot-sim, mounted in a directory). Its files take the place
 * of /dev/nvidia*, and its libcuda, NVML and nvidia-smi that of the driver's. So pods find what
 * they would find on a machine with cards, isolation and audit included. The kubelet mounts them,
 * and no CDI device is needed: they are plain files.
 *
 * The directory must have the same path on the host. The libraries are copied into the state
 * directory, which has. */

#include "base/arena.h"
#include "node/records/inventory.h"
#include "slice/page.h"

enum { SIMULATED_DRIVER_FILES = 3 };

typedef struct SimulatedDriver {
        char *dir;       /* where it is mounted; NULL: there is none */
        char *libraries; /* the directory where its libraries are installed */
        /* descriptors of the libraries, kept open (install.h); -1: none */
        int held[SIMULATED_DRIVER_FILES];
} SimulatedDriver;

#define SIMULATED_DRIVER_NULL ((SimulatedDriver){.held = {-1, -1, -1}})

/* dir: NULL for none. state_dir exists. 0, or negative errno with a fault: the object is usable,
 * but lacks libraries. Done in either case. */
int simulated_driver_init(SimulatedDriver *s, const char *dir, const char *state_dir, Fault *fault);
void simulated_driver_done(SimulatedDriver *s);

/* Appends the path of its installed NVML; nothing where there is none. 0 or -ENOMEM. */
int simulated_driver_nvml(const SimulatedDriver *s, Buf *out);

/* The mounts of a container with these devices; texts are in the arena. Returns how many, or
 * -ENOMEM. */
enum { SIMULATED_DRIVER_CARDS = 32, SIMULATED_DRIVER_MOUNTS = 3 + SIMULATED_DRIVER_CARDS + 5 };
int simulated_driver_mounts(const SimulatedDriver *s, const Inventory *v, const DeviceSet *mem, Arena *arena,
                            PluginMount ret[static SIMULATED_DRIVER_MOUNTS]);

/* Identifies one of its files ("nvidiactl") to the preload library. 0, or
 * SIMULATED_DRIVER_E_MISSING with a fault. */
enum { SIMULATED_DRIVER_E_MISSING = 1 };
int simulated_driver_file(const SimulatedDriver *s, const char *name, SliceFile *ret, Fault *fault);
