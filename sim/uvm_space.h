/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an open nvidia-uvm file has: ranges of addresses, and mappings of memory objects below them
 * (uvm_va_range_external_t and uvm_ext_gpu_map_t of kernel-open/nvidia-uvm). A mapping is one more
 * reference to the memory of its object, all of it, also if it maps a part. Managed memory is here
 * as far as it was migrated to a card by a call: page faults and mmap() are not seen. Functions
 * return the driver's status. */

#include "sim/sim.h"

typedef enum SimUvmKind { SIM_UVM_EXTERNAL, SIM_UVM_POOL, SIM_UVM_P2P, SIM_UVM_MANAGED } SimUvmKind;

typedef struct SimUvmMap {
        uint32_t card; /* that sees the mapping */
        uint64_t start, end;
        SimBlock *block; /* NULL: the machine's memory, or none (sparse) */
        struct SimUvmMap *next;
} SimUvmMap;

typedef struct SimUvmRange {
        SimUvmKind kind;
        uint64_t start, end;
        SimUvmMap *maps;
        struct SimUvmRange *next;
} SimUvmRange;

typedef struct SimUvmPart {
        uint64_t base, length;
} SimUvmPart;

/* uvm_va_space_register_gpu() and uvm_va_space_register_gpu_va_space(), and their opposites. */
uint32_t sim_uvm_register(SimFile *f, uint32_t card);
uint32_t sim_uvm_unregister(SimFile *f, uint32_t card);
uint32_t sim_uvm_add_space(SimFile *f, uint32_t card);
uint32_t sim_uvm_remove_space(SimFile *f, uint32_t card);

/* uvm_create_external_range() and uvm_va_range_create_semaphore_pool(). */
uint32_t sim_uvm_create(SimFile *f, SimUvmKind kind, SimUvmPart part);

/* uvm_map_external_allocation_on_gpu(): what was mapped there ends first. object: NULL for a sparse
 * mapping. */
uint32_t sim_uvm_map(SimFile *f, uint32_t card, SimUvmPart part, uint64_t offset, const SimObject *object);
uint32_t sim_uvm_unmap(SimFile *f, uint32_t card, SimUvmPart part);

/* uvm_api_alloc_device_p2p(). */
uint32_t sim_uvm_map_p2p(SimFile *f, uint32_t card, SimUvmPart part, uint64_t offset,
                         const SimObject *object);

/* uvm_api_migrate() to a card: the whole range is there then, and nowhere else. Its pages come from
 * the card's allocator directly (uvm_pmm_gpu.c), so no client holds them, and no cgroup is charged.
 * The range stays until uvm_free(), and is not evicted. */
uint32_t sim_uvm_migrate(SimFile *f, uint32_t card, SimUvmPart part);

/* uvm_free(). length 0: any, as from 590 on. */
uint32_t sim_uvm_free(SimFile *f, SimUvmPart part);

void sim_uvm_done(SimFile *f);
