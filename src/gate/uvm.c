/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/uvm.h"

#include <errno.h>
#include <sys/mman.h>

static int grow(Uvm *u) {
        uint32_t size = u->size == 0 ? UVM_MIN : u->size * 2,
                 n = atomic_load_explicit(&u->n, memory_order_relaxed);
        long p = sys_call(SYS_mmap, 0, size * sizeof(UvmRange), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        UvmRange *ranges = (UvmRange *) p;

        if (p < 0 && p > -4096)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                ranges[i] = u->ranges[i];
        if (u->ranges)
                (void) sys_call(SYS_munmap, u->ranges, u->size * sizeof(UvmRange)); /* ours */
        u->ranges = ranges;
        u->size = size;
        return 0;
}

static int append(Uvm *u, const UvmRange *range) {
        uint32_t n = atomic_load_explicit(&u->n, memory_order_relaxed);

        if (n == u->size && grow(u) < 0)
                return -ENOMEM;
        u->ranges[n] = *range;
        atomic_store_explicit(&u->n, n + 1, memory_order_relaxed);
        return 0;
}

int uvm_add(Uvm *u, uint64_t start, uint64_t end, uint32_t card) {
        UvmRange range = {.start = start, .end = end, .card = card};
        int r;

        if (!spin_take(&u->lock))
                return -ENOMEM;
        r = append(u, &range);
        spin_drop(&u->lock);
        return r;
}

/* What is left of range i before and after the part. No memory for a second piece: then all of it stays, charged. */
static bool cut(Uvm *u, uint32_t i, const UvmRange *part) {
        UvmRange *range = &u->ranges[i], after = {.start = part->end, .end = range->end, .card = range->card};
        uint32_t n = atomic_load_explicit(&u->n, memory_order_relaxed);

        if (range->start == part->start && range->end == part->end) {
                *range = u->ranges[n - 1];
                atomic_store_explicit(&u->n, n - 1, memory_order_relaxed);
        } else if (range->start == part->start) {
                range->start = part->end;
        } else if (range->end == part->end) {
                range->end = part->start;
        } else {
                if (append(u, &after) < 0)
                        return false;
                u->ranges[i].end = part->start;
        }
        return true;
}

bool uvm_take(Uvm *u, uint64_t start, uint64_t end, UvmRange *ret) {
        bool taken = false;

        if (!spin_take(&u->lock))
                return false;
        for (uint32_t i = 0; i < atomic_load_explicit(&u->n, memory_order_relaxed) && !taken; i++) {
                UvmRange part = u->ranges[i];

                part.start = part.start > start ? part.start : start;
                part.end = part.end < end ? part.end : end;
                taken = part.start < part.end && cut(u, i, &part);
                if (taken)
                        *ret = part;
        }
        spin_drop(&u->lock);
        return taken;
}

void uvm_after_fork(Uvm *u) {
        u->ranges = (UvmRange *) 0;
        u->size = 0;
        atomic_store_explicit(&u->n, 0, memory_order_relaxed);
        spin_drop(&u->lock);
}
