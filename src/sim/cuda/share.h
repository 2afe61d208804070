/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory that two processes have. A block with a file of its own is exported as that file: behind the contents stands a page
 * that says which object of which client it is. Who imports it asks the driver for a duplicate of that object; if its owner has
 * gone already, and with it the object, for memory of the same size: it is the importer's from then on. */

#include "sim/cuda/memory.h"

/* A new block with a file of its own, and the page behind it. */
CUresult share_new(Device *d, uint64_t size, Block **ret);
/* fd is duplicated. INVALID_HANDLE: no exported block; INVALID_DEVICE: of a card that this process does not see. */
CUresult share_import(int fd, Block **ret);
/* The object of another client on this card, as an object of ours. */
CUresult share_duplicate(Device *d, uint32_t client, uint32_t object, uint32_t *ret);
Device *share_device(const uint8_t uuid[16]);
