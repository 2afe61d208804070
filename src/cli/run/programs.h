/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What `aliquot run` needs beside itself (base/locate.h): the gate, and the driver, real or
 * simulated. */

#include <sys/types.h>

#include "base/locate.h"
#include "cli/run/reaper.h"

typedef struct Programs {
        char gate[LOCATE_PATH];    /* libaliquot.so */
        char devices[LOCATE_PATH]; /* directory of the driver's files */
        const char *nvml;          /* NULL: by the loader's own search */
        char simulated[LOCATE_PATH];
        pid_t simulator; /* 0: the card is real */
        Reaper reaper;
} Programs;

#define PROGRAMS_NULL ((Programs){.gate = "", .reaper = REAPER_NULL})

/* cards: simulated ones, or NULL. Simulated cards get a server of their own, which ends with us,
 * and so does all that is started here (cli/run/reaper.h), in a mount namespace of our own (and a
 * user namespace for whoever is not root). Their UUIDs are of this run alone. libcuda, NVML and
 * nvidia-smi of the simulator come first in what the command finds. 0, or negative errno with a
 * fault. programs_done() in either case. */
int programs_find(const char *cards, Programs *ret, Fault *fault);
void programs_done(Programs *p);
