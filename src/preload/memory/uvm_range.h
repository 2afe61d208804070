/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ranges of addresses and pools of uvm (uvm_call.h). */

#include "preload/memory/uvm_call.h"

/* Notes a range or a pool. A range that is not noted keeps what is mapped in it charged until the
 * file is closed, and a pool that is not noted is charged as managed memory. */
void uvm_range_add(const UvmCall *u, uint64_t base, uint64_t length, UvmNoteKind kind);

/* Makes the call UVM_FREE. params: base, length and status, or from 590 on base and status.
 * *status_at: where the driver has put its status. -EPERM: another process may have used the file;
 * -ENOMEM: no lock. */
long uvm_range_free(const UvmCall *u, uint64_t base, uint8_t *params, size_t *status_at);

long uvm_range_release(const UvmCall *u); /* the program's UVM_FREE */
long uvm_range_create(const UvmCall *u);
long uvm_range_alloc_pool(const UvmCall *u);
