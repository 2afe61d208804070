/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A simulated driver on this node (aliquot-sim, mounted in a folder): its files take the place of
 * /dev/nvidia*, and its libcuda, NVML and nvidia-smi that of the driver's, so that pods find what
 * they would find on a machine with cards, isolation and audit included. They are mounts of the
 * kubelet's, no CDI devices: plain files need nothing of the runtime.
 *
 * The folder must have the same path on the host. The libraries are put into the state directory,
 * which has. */

#include "base/arena.h"
#include "node/records/inventory.h"
#include "slice/page.h"

enum { SIMULATED_DRIVER_FILES = 3 };

typedef struct SimulatedDriver {
        char *dir;                        /* where it is mounted; NULL: there is none */
        char *libraries;                  /* where they are installed */
        int held[SIMULATED_DRIVER_FILES]; /* the libraries, open; -1: not (node/isolation/install.h) */
} SimulatedDriver;

#define SIMULATED_DRIVER_NULL ((SimulatedDriver){.held = {-1, -1, -1}})

/* dir: NULL for none. state_dir is there. 0, or negative errno with a fault: it can be used, and
 * lacks libraries; done in either case. */
int simulated_driver_init(SimulatedDriver *s, const char *dir, const char *state_dir, Fault *fault);
void simulated_driver_done(SimulatedDriver *s);

/* Its NVML, as installed; "" for none. */
int simulated_driver_nvml(const SimulatedDriver *s, Buf *out);

/* What a container of these devices gets mounted; texts are in the arena. Returns how many, or
 * -ENOMEM. */
enum { SIMULATED_DRIVER_CARDS = 32, SIMULATED_DRIVER_MOUNTS = 3 + SIMULATED_DRIVER_CARDS + 5 };
int simulated_driver_mounts(const SimulatedDriver *s, const Inventory *v, const DeviceSet *mem, Arena *arena,
                            PluginMount ret[static SIMULATED_DRIVER_MOUNTS]);

/* How the gate knows one of its files ("nvidiactl"). 0, or SIMULATED_DRIVER_E_MISSING with a fault. */
enum { SIMULATED_DRIVER_E_MISSING = 1 };
int simulated_driver_file(const SimulatedDriver *s, const char *name, SliceFile *ret, Fault *fault);
