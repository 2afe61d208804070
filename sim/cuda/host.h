/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of the host that the card sees: pinned, registered, and managed. Managed memory is
 * announced as by the real libcuda: by mmap of its address range on nvidia-uvm, which an interposed
 * library can count and refuse. Then ordinary memory is put in its place by a raw system call. */

#include "sim/cuda/memory.h"

void host_free(Range *r);
