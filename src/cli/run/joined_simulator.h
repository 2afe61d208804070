/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A simulator that several `aliquot run` processes share. The first one with these cards and this
 * slice directory starts it, and writes its process into a file of that directory. The others enter
 * the first one's namespaces, where the driver's files are mounted. */

#include <stdbool.h>

#include "base/locate.h"
#include "slicedir/slicedir.h"

enum { JOINED_SIMULATOR_NAME = 32 };

typedef struct JoinedSimulator {
        int fd;   /* the file; -1: the simulator is not shared */
        bool own; /* this run starts it */
        char path[SLICEDIR_PATH_SIZE + JOINED_SIMULATOR_NAME];
} JoinedSimulator;

#define JOINED_SIMULATOR_NULL ((JoinedSimulator){.fd = -1})

/* Enters the namespaces of a run that has a simulator of these cards, and keeps the working
 * directory. d: with an absolute path. The caller has one thread. Returns 1 with the directory of
 * the driver's files, or 0: there is none to join, and the caller starts one. Where joining fails,
 * that is said on standard error, and the caller's is not shared. */
int joined_simulator_find(JoinedSimulator *j, const Slicedir *d, const char *cards,
                          char ret_devices[static LOCATE_PATH]);

/* Lets others join the simulator that this run has started. */
void joined_simulator_publish(JoinedSimulator *j, const char *cards, const char *devices);

/* Waits until no other run uses this one's simulator. A run that has joined keeps its lock until
 * its process ends. */
void joined_simulator_leave(JoinedSimulator *j);
