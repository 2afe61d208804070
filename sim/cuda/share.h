/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory that two processes have. A block with a file of its own is exported as by the real
 * libcuda: to an nvidiactl, whose descriptor is passed on. The nvidiactl holds the object while it
 * is open, even if its owner ends. It also has a note with the size and the card, and the server
 * keeps the block's file. */

#include "sim/cuda/memory.h"

/* A new nvidiactl, with the object of a block that has a file of its own. */
CUresult share_export(const Block *b, int *ret);
/* fd belongs to the caller. INVALID_HANDLE: no exported block; INVALID_DEVICE: of a card that this
 * process does not see. */
CUresult share_import(int fd, Block **ret);
/* Duplicates the object of another client on this card. */
CUresult share_duplicate(Device *d, uint32_t client, uint32_t object, uint32_t *ret);
Device *share_device(const uint8_t uuid[16]);
