/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The environment variables of a container with slices: docs/reference/reference.md. */

#include "share/ledger.h"
#include "wire/card_info.h"

typedef void (*EnvironmentVariable)(void *userdata, const char *name, Str value);

/* Calls `variable` for each variable of the container that holds `slices` (all its slices and no
 * other, n > 0). pod_mem: units of the whole pod over all its cards. cards: those of the node, for
 * units and UUIDs. A card that the node does not describe has no UUID and is left out of
 * NVIDIA_VISIBLE_DEVICES.
 *
 * ALIYUN_COM_GPU_MEM_DEV has the units of the largest of the container's cards. An application
 * takes the fraction CONTAINER / DEV of every card that it sees, and that must not exceed its slice
 * on any of them. Returns 0 or -ENOMEM. */
int environment_make(const Slice *slices, size_t n_slices, uint32_t pod_mem, MemoryUnit unit,
                     const CardInfo *cards, size_t n_cards, EnvironmentVariable variable, void *userdata);

/* Makes the variable of a container with whole cards: NVIDIA_VISIBLE_DEVICES. 0 or -ENOMEM. */
int environment_make_whole(const Slice *slices, size_t n_slices, const CardInfo *cards, size_t n_cards,
                           EnvironmentVariable variable, void *userdata);
