/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/uvm_range.h"

#include <errno.h>

void uvm_range_add(const UvmCall *u, uint64_t base, uint64_t length, UvmNoteKind kind) {
        UvmNote note = {.key = u->key, .start = base, .end = base + length, .kind = (uint8_t) kind};

        if (!uvm_maps_is_sole(&u->g->maps, u->key))
                return;
        if (kind == UVM_NOTE_POOL)
                (void) uvm_maps_add_pool(&u->g->maps, &note, u->frees);
        else
                (void) uvm_maps_add(&u->g->maps, &note);
}

/* Takes out the note of a pool before the call: afterwards the addresses may be those of managed
 * memory. */
long uvm_range_free(const UvmCall *u, uint64_t base, uint8_t *params, size_t *status_at) {
        UvmEnd what = {.key = u->key,
                       .start = base,
                       .end = base + 1,
                       .kinds = 1u << UVM_NOTE_POOL,
                       .gpus = UINT32_MAX};
        uint64_t end;
        long r;

        if (!uvm_maps_is_sole(&u->g->maps, u->key))
                return -EPERM; /* another process may have noted the range or the pool */
        if (!uvm_maps_begin_free(&u->g->maps))
                return -ENOMEM;
        what.now = uvm_maps_now(&u->g->maps);
        end = uvm_maps_range_end(&u->g->maps, u->key, base);
        uvm_file_end(u->g, &what);
        *status_at = offsetof(UvmCreateRange, status);
        put32(params + *status_at, UVM_NO_ANSWER);
        r = uvm_call_driver(u, UVM_FREE_CMD, params);
        uvm_maps_end_free(&u->g->maps);
        if (get32(params + *status_at) == UVM_NO_ANSWER)
                *status_at = offsetof(UvmFree, status);
        if (r < 0 || get32(params + *status_at) != RM_OK || end == 0)
                return r;
        what.kinds = 1u << UVM_NOTE_RANGE;
        uvm_file_end(u->g, &what);
        what.end = end;
        what.kinds = UVM_NOTE_MAPPINGS;
        uvm_file_end(u->g, &what);
        return r;
}

long uvm_range_release(const UvmCall *u) {
        uint8_t params[sizeof(UvmCreateRange)] __attribute__((aligned(8))) = {0};
        size_t at;
        long r;

        if (uvm_call_copy_in(u, params, sizeof params) < sizeof(UvmFree))
                return -EFAULT;
        r = uvm_range_free(u, get64(params), params, &at);
        return r < 0 ? r : uvm_call_answer(u, at, get32(params + at));
}

long uvm_range_create(const UvmCall *u) {
        UvmCreateRange p;
        long r;

        if (usermem_read(&p, u->argument, sizeof p) < 0)
                return -EFAULT;
        p.status = UVM_NO_ANSWER;
        r = uvm_call_driver(u, UVM_CREATE_RANGE_CMD, &p);
        if (r < 0)
                return r;
        if (p.status == RM_OK)
                uvm_range_add(u, p.base, p.length, UVM_NOTE_RANGE);
        return uvm_call_answer(u, offsetof(UvmCreateRange, status), p.status);
}

long uvm_range_alloc_pool(const UvmCall *u) {
        uint8_t params[sizeof(UvmAllocPool)] __attribute__((aligned(8))) = {0};
        uint32_t gpus = uvm_call_gpus(u);
        size_t size = sizeof params - uvm_call_shorter(gpus),
               at = offsetof(UvmAllocPool, status) - uvm_call_shorter(gpus);
        long r;

        if (gpus == 0)
                return -EINVAL;
        if (uvm_call_copy_in(u, params, size) < size)
                return -EFAULT;
        put32(params + at, UVM_NO_ANSWER);
        r = uvm_call_driver(u, UVM_ALLOC_POOL_CMD, params);
        if (r < 0)
                return r;
        for (unsigned kind = UVM_NOTE_RANGE; get32(params + at) == RM_OK && kind <= UVM_NOTE_POOL; kind++)
                uvm_range_add(u, get64(params), get64(params + offsetof(UvmAllocPool, length)),
                              (UvmNoteKind) kind);
        return uvm_call_answer(u, at, get32(params + at));
}
