/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What all simulated machines of a run share: copies of the library and of the simulator's
 * libraries and programs, and a loader cache for them. With the cache programs find libcuda without
 * LD_LIBRARY_PATH, which a manifest or a cleared environment may lack. The files are below a /run
 * of our own; inside containers they have other names. */

#include "base/fault.h"

#define MACHINE_PARTS   "/run/aliquot"
#define MACHINE_LIBRARY MACHINE_PARTS "/library/libaliquot.so"
#define MACHINE_PRELOAD MACHINE_PARTS "/library/ld.so.preload"
/* absent without ldconfig */
#define MACHINE_CACHE    MACHINE_PARTS "/library/ld.so.cache"
#define MACHINE_PROGRAMS MACHINE_PARTS "/sim" /* the same path inside containers */
/* a small file system, because containers write to it */
#define MACHINE_SLICES MACHINE_PARTS "/slices"

/* Puts this process into new namespaces (simulator_enter()), with a /run that has the parts. All
 * requirements are checked before anything is changed. Returns 0, or negative errno with
 * a fault. */
int machine_parts_enter(Fault *fault);
