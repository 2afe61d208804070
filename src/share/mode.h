/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a node shares its cards: the values of LABEL_SCHEDULE (docs/reference/reference.md). */

#include "base/str.h"

typedef enum ShareMode {
        SHARE_MODE_NONE,     /* no label */
        SHARE_MODE_SHARE,    /* the ledger alone divides the cards */
        SHARE_MODE_CGPU,     /* memory isolated */
        SHARE_MODE_CORE_MEM, /* memory and compute isolated */
        SHARE_MODE_DEFAULT,  /* whole cards, given out by another device plugin */
        SHARE_MODE_DISABLED,
        SHARE_MODE_MPS,
        SHARE_MODE_TOPOLOGY,
        SHARE_MODE_MIG,
        SHARE_MODE_UNKNOWN, /* any other value of the label */
} ShareMode;

ShareMode share_mode_from_label(Str label);

/* Static text; "none" and "unknown" for the modes without a label value. */
const char *share_mode_to_string(ShareMode mode);

/* Whether a node in this mode offers aliyun.com/gpu-mem (has_memory), whole cards, any resource of
 * ours, or percentages of compute; and whether it limits containers to their slices. */
bool share_mode_has_memory(ShareMode mode);
bool share_mode_has_whole(ShareMode mode); /* offers aliyun.com/gpu: the unit is then a card */
bool share_mode_is_served(ShareMode mode); /* offers some resource of ours */
bool share_mode_has_core(ShareMode mode);
bool share_mode_is_isolated(ShareMode mode);

/* Whether a node in this mode offers what a request asks for: whole cards, or memory, with
 * percentages of compute if core. */
bool share_mode_offers(ShareMode mode, bool whole, bool core);

/* The modes that offer it, in words: "compute percent needs core_mem". */
const char *share_mode_needed(bool whole, bool core);

/* Whether the driver limits the memory of pods beside the library, as the node's agent says. */
typedef enum MemoryLimiting { MEMORY_LIMITS_NONE, MEMORY_LIMITS_SET, MEMORY_LIMITS_MISSING } MemoryLimiting;
