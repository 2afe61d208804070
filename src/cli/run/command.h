/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs the command in its slice: environment, signals and exit status. */

#include "cli/run/slicing.h"

typedef struct Command {
        const char *gate;    /* path of libaliquot.so */
        const char *slices;  /* DIR/ID */
        const char *devices; /* directory of the driver's files */
        /* from slicedir_create(); the command and its children inherit it and so hold the slice */
        int owner;
        const SliceRequest *request;
        const char *unit; /* as the user wrote it */
        const HostCard *const *cards;
        uint32_t n_cards;
        char **command; /* NULL-terminated */
} Command;

/* Proves first that the gate limits the programs that are started here (cli/run/gate_probe.h). Then
 * runs the command to its end and passes on the signals that this process receives. Returns the
 * command's exit status, 128 + the signal that killed it, 127 when there is no such command, 126
 * when it cannot be executed, or negative errno with a fault. */
int command_run(const Command *c, Fault *fault);
