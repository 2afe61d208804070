/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Descriptors of slice pages that their maker keeps open for writing, so that no container can
 * lease one. That covers the time before the arbiter opens a page and between two arbiters
 * (file_lease.h). A page is named by its slice's id and the number of its directory there. */

#include "base/fault.h"
#include "slicedir/slice_files.h"

typedef struct HeldPage HeldPage;

typedef struct HeldFds {
        HeldPage *pages; /* owned */
        size_t n;
} HeldFds;

/* Takes ownership of each open descriptor of fds, and closes the one that it replaces. Returns 0,
 * or -ENOMEM, and fds stay the caller's. id is shorter than SLICEDIR_ID_SIZE. */
int held_fds_put(HeldFds *h, const char *id, uint32_t number, SliceFds *fds);

/* Are both files of the page held? */
bool held_fds_has(const HeldFds *h, const char *id, uint32_t number);

/* Closes all pages of a slice. */
void held_fds_drop(HeldFds *h, const char *id);

/* Closes the pages of all slices for which keep() is false. */
void held_fds_sweep(HeldFds *h, bool (*keep)(void *userdata, const char *id), void *userdata);
void held_fds_done(HeldFds *h);
