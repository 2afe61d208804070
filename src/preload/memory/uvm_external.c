/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/uvm_external.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "preload/memory/driver_fd.h"
#include "preload/memory/managed.h"
#include "preload/memory/uvm_mapping.h"
#include "preload/memory/uvm_range.h"

/* Makes UVM_UNMAP_EXTERNAL or UVM_MAP_EXTERNAL_SPARSE. */
static long unmap(const UvmCall *u, uint32_t request) {
        uint32_t now = uvm_maps_now(&u->g->maps);
        UvmUnmapExternal p;
        uint8_t card;
        long r;

        if (usermem_read(&p, u->argument, sizeof p) < 0)
                return -EFAULT;
        p.status = UVM_NO_ANSWER;
        r = uvm_call_driver(u, request, &p);
        if (r < 0)
                return r;
        card = uvm_call_card(u, p.uuid);
        if (p.status == RM_OK && card < GATE_CARDS)
                uvm_call_end_part(u, p.base, p.length, 1u << card, now);
        return uvm_call_answer(u, offsetof(UvmUnmapExternal, status), p.status);
}

static long remove_space(const UvmCall *u) {
        uint32_t now = uvm_maps_now(&u->g->maps);
        UvmUnregisterGpu p;
        uint8_t card;
        long r;

        if (usermem_read(&p, u->argument, sizeof p) < 0)
                return -EFAULT;
        r = uvm_call_driver(u, UVM_UNREGISTER_VASPACE_CMD, &p);
        if (r < 0)
                return r;
        card = uvm_call_card(u, p.uuid);
        if (p.status == RM_OK && card < GATE_CARDS && u->key != 0)
                uvm_file_end(u->g, &(UvmEnd){.key = u->key,
                                             .end = UINT64_MAX,
                                             .kinds = UVM_NOTE_MAPPINGS,
                                             .gpus = 1u << card,
                                             .now = now});
        return uvm_call_answer(u, offsetof(UvmUnregisterGpu, status), p.status);
}

bool uvm_external_follows(uint32_t request) {
        return request == UVM_MAP_EXTERNAL_CMD || request == UVM_ALLOC_P2P_CMD ||
               request == UVM_UNREGISTER_VASPACE_CMD || request == UVM_FREE_CMD ||
               request == UVM_UNMAP_EXTERNAL_CMD || request == UVM_ALLOC_POOL_CMD ||
               request == UVM_CREATE_RANGE_CMD || request == UVM_MAP_SPARSE_CMD;
}

static long run(const UvmCall *u, uint32_t request) {
        switch (request) {
        case UVM_MAP_EXTERNAL_CMD:
                return uvm_mapping_external(u);
        case UVM_ALLOC_P2P_CMD:
                return uvm_mapping_p2p(u);
        case UVM_UNMAP_EXTERNAL_CMD:
        case UVM_MAP_SPARSE_CMD:
                return unmap(u, request);
        case UVM_FREE_CMD:
                return uvm_range_release(u);
        case UVM_CREATE_RANGE_CMD:
                return uvm_range_create(u);
        case UVM_ALLOC_POOL_CMD:
                return uvm_range_alloc_pool(u);
        case UVM_UNREGISTER_VASPACE_CMD:
        default:
                return remove_space(u);
        }
}

/* The answer without a descriptor: no notes can be made then. A call that only removes goes on;
 * what it removes stays charged until the file is closed, or the range is freed. */
static long without_descriptor(uint32_t request) {
        return request == UVM_UNMAP_EXTERNAL_CMD || request == UVM_UNREGISTER_VASPACE_CMD ? GATE_NOT_OURS
                                                                                          : -ENOMEM;
}

/* Works through a descriptor of the gate's own: the notes are those of the file that the driver
 * sees. */
long uvm_external_call(Gate *g, int fd, uint32_t request, uint64_t argument) {
        UvmCall u = {.g = g, .fd = fd, .argument = argument, .frees = uvm_maps_frees(&g->maps)};
        long r;

        if (!gate_hold_fd(&u.fd))
                return without_descriptor(request);
        if (u.fd < 0 || !gate_is_uvm(g, u.fd)) { /* another file has its number by now */
                gate_release_fd(u.fd);
                return -EBADF;
        }
        r = uvm_file_make_key(g, u.fd, fd, &u.key) ? run(&u, request) : -ENOMEM;
        gate_release_fd(u.fd);
        return r;
}

/* ---- mmap ---- */

long uvm_external_mmap(Gate *g, void *address, size_t length, int protection, int flags, int fd,
                       off_t offset) {
        uint64_t start = (uint64_t) offset, end = start + gate_page_up(length), key = 0;
        uint32_t now = uvm_now(&g->uvm), serial;
        long r = GATE_NOT_OURS;

        if (atomic_load_explicit(&g->maps.n, memory_order_relaxed) == 0 || !(flags & MAP_FIXED) ||
            start != (uint64_t) (uintptr_t) address || !gate_hold_fd(&fd))
                return r;
        if (fd >= 0)
                /* if it is not known, it counts as managed memory */
                (void) uvm_file_key(g, fd, &key);
        serial = key != 0 ? uvm_maps_pool(&g->maps, key, start, end) : 0;
        if (serial != 0)
                r = next_mmap(address, length, protection, flags, fd, offset);
        if (serial != 0 && !gate_failed(r)) {
                gate_unmap_managed(g, start, end, now);
                /* the addresses may be managed memory by now */
                if (uvm_maps_pool(&g->maps, key, start, end) != serial) {
                        (void) next_munmap(address, length); /* the mapping that was just made */
                        r = -ENOMEM;
                }
        }
        gate_release_fd(fd);
        return r;
}
