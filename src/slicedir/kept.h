/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pages that are kept open for writing, by whoever made them, so that no container can lease one,
 * neither before the arbiter has found it nor between two arbiters (slicedir/lease.h). A page is
 * called as on the board: by its slice, and its number there. */

#include "base/fault.h"
#include "slicedir/files.h"

typedef struct KeptPage KeptPage;

typedef struct Kept {
        KeptPage *pages; /* owned */
        size_t n;
} Kept;

/* Each of the two that is open in held is taken in place of what was kept of that page, which is
 * closed then. 0, or -ENOMEM, and they stay the caller's. id is shorter than BOARD_ID. */
int kept_put(Kept *k, const char *id, uint32_t number, SliceHeld *held);

bool kept_has(const Kept *k, const char *id, uint32_t number); /* both files */

void kept_drop(Kept *k, const char *id); /* all of a slice */
void kept_sweep(Kept *k, bool (*keep)(void *userdata, const char *id), void *userdata);
void kept_done(Kept *k);
