/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory that the process did not allocate itself, but has by a duplicate or from a descriptor: its
 * size, and its charge. */

#include "preload/memory/rm_call.h"

/* Returns the bytes of the card behind an object; 0: the object has no memory of the card.
 * FOREIGN_MEM_UNKNOWN: the driver does not report them, and the object must not be kept. */
#define FOREIGN_MEM_UNKNOWN UINT64_MAX
uint64_t foreign_mem_size(const RmCall *c, uint32_t object);

/* Returns the bytes of a duplicate of a charged object: an object without memory is a channel
 * group. The handle may name another object when the driver looks, and a larger one.
 * FOREIGN_MEM_UNKNOWN, too. */
uint64_t foreign_mem_charged_size(const RmCall *c, uint32_t object, uint8_t card);

/* Charges an object that the driver has just made below c->parent. Returns false if there is no
 * room, or the bytes are FOREIGN_MEM_UNKNOWN; then the object is freed again. */
bool foreign_mem_charge_bytes(RmCall *c, uint32_t object, uint64_t bytes);

/* Like foreign_mem_charge_bytes(), for memory of another process, by its size. It is charged for as
 * long as it is here, because this process cannot know whether the other one still has it. While
 * both have it, it is charged twice; it is never uncharged. */
bool foreign_mem_charge(RmCall *c, uint32_t object);

/* Adds the object as a holder of a charge, and takes over the reference. Charge 0: the object has
 * bytes of its own. source: row, card and units of the charge. */
void foreign_mem_add_holder(RmCall *c, uint32_t object, uint32_t charge, const RmObject *source);
