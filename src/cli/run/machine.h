/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards of this machine for a command that is about to run on one of them, by NVML's word:
 * asked once, in this process. */

#include "base/fault.h"
#include "slicedir/slicedir.h"

typedef struct RunCard {
        uint32_t index; /* NVML's */
        uint32_t minor; /* /dev/nvidia<minor> */
        uint64_t bytes; /* what nvidia-smi shows as the total, whole MiB */
        char uuid[SLICE_UUID];
        SliceFile device;
        uint64_t taken; /* bytes of the slices that others have of it */
        uint32_t core_taken;
} RunCard;

typedef struct Machine {
        RunCard cards[SLICEDIR_CARDS_MAX];
        uint32_t n;
        SliceFile ctl, uvm;
} Machine;

/* devices: where the driver's files are: /dev, or the directory of a simulated driver. library: as
 * nvml_load() takes it. 0, MACHINE_E_NONE with a fault (no driver, no card), or negative errno with
 * a fault. */
enum { MACHINE_E_NONE = 1 };
int machine_read(const char *devices, const char *library, Machine *ret, Fault *fault);

/* What the living slices on the board have of the cards. Under the board's lock. 0 or negative
 * errno. */
int machine_count(Machine *m, Slicedir *b);
