/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs the command in its slice: environment, signals and exit status. */

#include "cli/run/slicing.h"

typedef struct Command {
        const char *gate;    /* path of libaliquot.so */
        bool outside;        /* the command is not in the slice: it starts a container that is */
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

/* Calls `set` for each variable of a container in this slice, as on a cluster. Returns 0, or what
 * `set` returned first that is not 0. */
int command_variables(const Command *c, int (*set)(void *userdata, const char *name, const char *value),
                      void *userdata);

/* Runs the command to its end and passes on the signals that this process receives. Proves before,
 * unless it runs outside, that the gate limits the programs that are started here
 * (cli/run/gate_probe.h). Returns the command's exit status, 128 + the signal that killed it, 127
 * when there is no such command, 126 when it cannot be executed, or negative errno with a fault. */
int command_run(const Command *c, Fault *fault);
