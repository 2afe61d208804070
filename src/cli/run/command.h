/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command in its slice: its environment, its signals, its status. */

#include "cli/run/slicing.h"

typedef struct Command {
        const char *gate;    /* path of libaliquot.so */
        const char *slices;  /* BOARD/ID */
        const char *devices; /* directory of the driver's files */
        int owner; /* as slicedir_create() gave it: the command and its children inherit it, so that they have the slice until they end */
        const SliceRequest *request;
        const char *unit; /* as it was written */
        const HostCard *const *cards;
        uint32_t n_cards;
        char **command; /* NULL-terminated */
} Command;

/* Proves first that the gate holds what is started here (cli/run/gate_probe.h). Runs the command to its
 * end; signals that people send are passed on. Returns its exit status, 128 + the signal that
 * killed it, 127 when there is no such command, 126 when it cannot be run, or negative errno with a
 * fault. */
int command_run(const Command *c, Fault *fault);
