/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What all simulated machines of a run share: copies of the gate, of the simulator's libraries and
 * programs, and a loader's cache that knows them, so that programs find libcuda also where their
 * manifest or a cleared environment has no LD_LIBRARY_PATH. They lie below a /run of our own;
 * inside containers other things have these names. */

#include "base/fault.h"

#define MACHINE_PARTS    "/run/aliquot"
#define MACHINE_GATE     MACHINE_PARTS "/gate/libaliquot.so"
#define MACHINE_PRELOAD  MACHINE_PARTS "/gate/ld.so.preload"
#define MACHINE_CACHE    MACHINE_PARTS "/gate/ld.so.cache" /* not there where there is no ldconfig */
#define MACHINE_PROGRAMS MACHINE_PARTS "/sim"              /* the same path inside containers */
#define MACHINE_SLICES   MACHINE_PARTS "/slices" /* a small file system of its own: containers write to it */

/* Puts this process into namespaces of its own (simulator_enter()), with a /run that has the parts.
 * Nothing is changed before all is there that can be looked for. 0, or negative errno with a
 * fault. */
int machine_parts_enter(Fault *fault);
