/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What `aliquot run` needs beside itself: the gate, and the driver, real or simulated. Looked for beside this executable (as the build
 * leaves them) and in ../lib/aliquot (as they are installed). */

#include <sys/types.h>

#include "base/fault.h"

enum { PROGRAMS_PATH = 512 };

typedef struct Programs {
        char gate[PROGRAMS_PATH];    /* libaliquot.so */
        char devices[PROGRAMS_PATH]; /* directory of the driver's files */
        const char *nvml;            /* NULL: by the loader's own search */
        char simulated[PROGRAMS_PATH];
        pid_t simulator; /* 0: the card is real */
} Programs;

#define PROGRAMS_NULL ((Programs){.gate = ""})

/* cards: simulated ones, or NULL. Simulated cards get a server of their own, which ends with us, in a mount namespace of our own (and a user
 * namespace for whoever is not root); libcuda, NVML and nvidia-smi of the simulator come first in what the command finds. 0, or
 * PROGRAMS_E_NONE with a fault. */
enum { PROGRAMS_E_NONE = 1 };
int programs_find(const char *cards, Programs *ret, Fault *fault);
void programs_done(Programs *p);
