/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of the host that the card sees: pinned, registered, and managed.
 *
 * Managed memory is announced as the real libcuda announces it: by mmap of its address range on
 * nvidia-uvm, which whoever counts sees and may refuse. What lies there afterwards is ordinary
 * memory, put in its place by a raw system call. */

#include "sim/cuda/memory.h"

void host_free(Range *r);
