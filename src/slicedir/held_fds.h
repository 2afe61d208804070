/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pages that are kept open for writing, by whoever made them, so that no container can lease one,
 * neither before the arbiter has found it nor between two arbiters (slicedir/file_lease.h). A page is
 * called as on the board: by its slice, and its number there. */

#include "base/fault.h"
#include "slicedir/slice_files.h"

typedef struct HeldPage HeldPage;

typedef struct HeldFds {
        HeldPage *pages; /* owned */
        size_t n;
} HeldFds;

/* Each of the two that is open in held is taken in place of what was kept of that page, which is
 * closed then. 0, or -ENOMEM, and they stay the caller's. id is shorter than SLICEDIR_ID_SIZE. */
int held_fds_put(HeldFds *h, const char *id, uint32_t number, SliceFds *fds);

bool held_fds_has(const HeldFds *h, const char *id, uint32_t number); /* both files */

void held_fds_drop(HeldFds *h, const char *id); /* all of a slice */
void held_fds_sweep(HeldFds *h, bool (*keep)(void *userdata, const char *id), void *userdata);
void held_fds_done(HeldFds *h);
