/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The slices of this machine, or of this process's container, for aliquot-smi. */

#include "cli/run/processes.h"
#include "cli/run/utilization.h"
#include "slicedir/slicedir.h"

enum { SMI_TEXT = 64 };

/* One card of one slice. Texts have no control characters, quotes or backslashes. */
typedef struct SmiSlice {
        char container[256];
        char user[SMI_TEXT], command[SMI_TEXT]; /* of its first process; empty: not known */
        int64_t age;                            /* seconds; negative: not known */
        uint32_t card, core;
        uint64_t card_bytes;
        uint64_t used, limit, peak, refused; /* bytes, bytes, bytes, reservations */
        /* counters that cannot be read; only the limit is known */
        bool damaged;
        UtilizationSample look;
        double busy; /* percent of the card's time; negative: not known */
        char uuid[SLICE_UUID];
        Processes processes;
} SmiSlice;

typedef struct SmiSlices {
        SmiSlice *list;
        size_t n;
} SmiSlices;

/* Returns the directory of this process's slices, in a container or inside `aliquot run`. NULL: it
 * has none. */
const char *smi_slices_own(void);

/* Read what smi_slices_own() named, or a directory of slices; path as slicedir_open() takes it.
 * Then they measure for a moment, if a slice has a compute limit, and sort by card and container.
 * Return 0, or negative errno; the fault may be empty. */
int smi_slices_read_own(const char *slices, SmiSlices *ret);
int smi_slices_read(const char *path, SmiSlices *ret, Fault *fault);
void smi_slices_done(SmiSlices *s);
