/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files that `aliquot run` needs (base/locate.h): the gate, and the driver, real
 * or simulated. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/locate.h"
#include "cli/run/joined_simulator.h"
#include "cli/run/reaper.h"

typedef struct Programs {
        char gate[LOCATE_PATH];    /* libaliquot.so */
        char devices[LOCATE_PATH]; /* directory of the driver's files */
        const char *nvml;          /* path of NVML; NULL: the loader searches */
        char simulated[LOCATE_PATH];
        pid_t simulator;  /* 0: the card is real, or simulated by another program */
        bool own_devices; /* `devices` is ours: unmounted and removed at the end */
        Reaper reaper;
        JoinedSimulator joined;
} Programs;

#define PROGRAMS_NULL ((Programs){.gate = "", .reaper = REAPER_NULL, .joined = JOINED_SIMULATOR_NULL})

/* cards: simulated cards, or NULL for the real ones, or those of the simulator that ALIQUOT_SIM_DIR
 * names. Simulated cards are those of another run on the same directory of slices, where one has
 * them (cli/run/joined_simulator.h). Else they have a server in a new mount namespace, which ends
 * with this process, as does everything started here (cli/run/reaper.h). Their UUIDs are valid that
 * long. The simulator's libcuda, NVML and nvidia-smi come first in the command's search paths.
 *
 * Returns 0, or negative errno with a fault. Call programs_done() in either case. It waits until no
 * other run uses the cards. */
int programs_find(const char *cards, const Slicedir *slices, Programs *ret, Fault *fault);
void programs_done(Programs *p);

/* Finds the simulator's NVML beside this program. dir: ALIQUOT_SIM_DIR. Returns the path in `ret`;
 * or NULL where dir is NULL or empty, or where the library is not there: then the loader searches,
 * by LD_LIBRARY_PATH. */
const char *programs_find_simulated(const char *dir, char ret[LOCATE_PATH]);
