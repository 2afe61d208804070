/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a node shares its cards: CONTRACT section 1. */

#include "base/str.h"

typedef enum ShareMode {
        SHARE_MODE_NONE,     /* no label */
        SHARE_MODE_SHARE,    /* ledger only */
        SHARE_MODE_CGPU,     /* memory isolated */
        SHARE_MODE_CORE_MEM, /* memory and compute isolated */
        SHARE_MODE_DEFAULT,  /* whole cards, by another plugin */
        SHARE_MODE_DISABLED,
        SHARE_MODE_MPS,
        SHARE_MODE_TOPOLOGY,
        SHARE_MODE_MIG,
        SHARE_MODE_UNKNOWN, /* a value that CONTRACT does not list */
} ShareMode;

ShareMode share_mode_from_label(Str label);
const char *share_mode_to_string(
        ShareMode mode); /* static text; "none" and "unknown" for the two without a label */

/* Does a node in this mode offer aliyun.com/gpu-mem, and compute percent, and is memory held to the
 * slice there? */
bool share_mode_has_memory(ShareMode mode);
bool share_mode_has_core(ShareMode mode);
bool share_mode_is_isolated(ShareMode mode);
