/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The environment of CONTRACT section 5. */

#include "share/ledger.h"
#include "wire/card_info.h"

typedef void (*EnvironmentVariable)(void *userdata, const char *name, Str value);

/* What one container gets that holds `slices` (its own ones, of one pod, n > 0). pod_mem: units of
 * the whole pod over all its cards. cards: the node's, for units and UUIDs. A card the node does
 * not describe has no UUID and is left out of NVIDIA_VISIBLE_DEVICES. ALIYUN_COM_GPU_MEM_DEV is the
 * units of the largest of the container's cards: an application takes the fraction CONTAINER / DEV
 * of every card that it sees, and that must not exceed its slice on any of them. Returns 0 or
 * -ENOMEM. */
int environment_make(const Slice *slices, size_t n_slices, uint32_t pod_mem, MemoryUnit unit,
                     const CardInfo *cards, size_t n_cards, EnvironmentVariable variable, void *userdata);
