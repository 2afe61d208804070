/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/uvm.h"

#include <errno.h>
#include <sys/mman.h>

static int grow_ranges(Uvm *u) {
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
                (void) sys_call(SYS_munmap, u->ranges, u->size * sizeof(UvmRange)); /* our own mapping */
        u->ranges = ranges;
        u->size = size;
        return 0;
}

static int append_range(Uvm *u, const UvmRange *range) {
        uint32_t n = atomic_load_explicit(&u->n, memory_order_relaxed);

        if (n == u->size && grow_ranges(u) < 0)
                return -ENOMEM;
        u->ranges[n] = *range;
        atomic_store_explicit(&u->n, n + 1, memory_order_relaxed);
        return 0;
}

int uvm_add(Uvm *u, uint64_t start, uint64_t end, uint32_t cards, bool guessed) {
        UvmRange range = {.start = start, .end = end, .cards = cards, .guessed = guessed};
        uint32_t now;
        int r;

        if (!spin_take(&u->lock))
                return -ENOMEM;
        now = atomic_load_explicit(&u->cards, memory_order_relaxed);
        range.serial = atomic_fetch_add_explicit(&u->serial, 1, memory_order_relaxed) + 1;
        r = now != (guessed ? 0 : cards) ? -EAGAIN : append_range(u, &range);
        spin_drop(&u->lock);
        return r;
}

/* Removes a part from range i, and keeps what is before and after it. Without memory for a second
 * piece the whole range stays charged. */
static bool cut_range(Uvm *u, uint32_t i, const UvmRange *part) {
        UvmRange *range = &u->ranges[i], after = *range;
        uint32_t n = atomic_load_explicit(&u->n, memory_order_relaxed);

        after.start = part->end;
        if (range->start == part->start && range->end == part->end) {
                *range = u->ranges[n - 1];
                atomic_store_explicit(&u->n, n - 1, memory_order_relaxed);
        } else if (range->start == part->start) {
                range->start = part->end;
        } else if (range->end == part->end) {
                range->end = part->start;
        } else {
                if (append_range(u, &after) < 0)
                        return false;
                u->ranges[i].end = part->start;
        }
        return true;
}

uint32_t uvm_now(Uvm *u) {
        return atomic_load_explicit(&u->serial, memory_order_acquire);
}

/* Whether a range lies partly within start and end, and is not younger than now; *ret: that part.
 * Serials wrap, as those of objects do. */
static bool is_within(const UvmRange *range, uint64_t start, uint64_t end, uint32_t now, UvmRange *ret) {
        *ret = *range;
        ret->start = range->start > start ? range->start : start;
        ret->end = range->end < end ? range->end : end;
        return ret->start < ret->end && (int32_t) (range->serial - now) <= 0;
}

bool uvm_take(Uvm *u, uint64_t start, uint64_t end, uint32_t now, UvmRange *ret) {
        bool taken = false;

        if (!spin_take(&u->lock))
                return false;
        for (uint32_t i = 0; i < atomic_load_explicit(&u->n, memory_order_relaxed) && !taken; i++) {
                UvmRange part;

                if (!is_within(&u->ranges[i], start, end, now, &part))
                        continue;
                taken = cut_range(u, i, &part);
                if (taken)
                        *ret = part;
        }
        spin_drop(&u->lock);
        return taken;
}

/* ---- bytes ---- */

uint64_t uvm_bytes_on(const UvmBytes *b, uint32_t card) {
        return b->cards >> card & 1 ? b->card[card] : 0;
}

void uvm_bytes_add(UvmBytes *b, uint32_t cards, uint64_t bytes) {
        for (; cards != 0; cards &= cards - 1) {
                uint32_t i = (uint32_t) __builtin_ctz(cards);

                b->card[i] = uvm_bytes_on(b, i) + bytes;
                b->cards |= 1u << i;
        }
}

void uvm_charged(Uvm *u, uint64_t start, uint64_t end, uint32_t now, UvmBytes *ret) {
        UvmRange part;

        uvm_bytes_none(ret);
        if (!spin_take(&u->lock))
                return;
        for (uint32_t i = 0; i < atomic_load_explicit(&u->n, memory_order_relaxed); i++)
                if (is_within(&u->ranges[i], start, end, now, &part))
                        uvm_bytes_add(ret, part.cards, part.end - part.start);
        spin_drop(&u->lock);
}

/* ---- cards ---- */

static uint64_t lacking_bytes(Uvm *u, uint32_t card) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < atomic_load_explicit(&u->n, memory_order_relaxed); i++)
                if (!(u->ranges[i].cards >> card & 1))
                        sum += u->ranges[i].end - u->ranges[i].start;
        return sum;
}

uint64_t uvm_lacks(Uvm *u, uint32_t card) {
        uint64_t sum;

        if (!spin_take(&u->lock))
                return 0;
        sum = lacking_bytes(u, card);
        spin_drop(&u->lock);
        return sum;
}

static void forget_guess(UvmRange *range, uint32_t card, UvmBytes *freed) {
        uvm_bytes_add(freed, range->cards & ~(1u << card), range->end - range->start);
        range->cards = 0;
        range->guessed = false;
}

bool uvm_register(Uvm *u, uint32_t card, uint64_t charged, UvmBytes *freed) {
        uvm_bytes_none(freed);
        if (!spin_take(&u->lock))
                return false;
        if (lacking_bytes(u, card) != charged) {
                spin_drop(&u->lock);
                return false;
        }
        for (uint32_t i = 0; i < atomic_load_explicit(&u->n, memory_order_relaxed); i++) {
                if (u->ranges[i].guessed)
                        forget_guess(&u->ranges[i], card, freed);
                u->ranges[i].cards |= 1u << card;
        }
        u->times[card]++;
        atomic_fetch_or_explicit(&u->cards, 1u << card, memory_order_relaxed);
        spin_drop(&u->lock);
        return true;
}

uint64_t uvm_unregister(Uvm *u, uint32_t card) {
        uint64_t sum = 0;

        if (!spin_take(&u->lock))
                return 0;
        if (u->times[card] > 0 && --u->times[card] == 0) {
                for (uint32_t i = 0; i < atomic_load_explicit(&u->n, memory_order_relaxed); i++)
                        if (u->ranges[i].cards >> card & 1) {
                                sum += u->ranges[i].end - u->ranges[i].start;
                                u->ranges[i].cards &= ~(1u << card);
                        }
                atomic_fetch_and_explicit(&u->cards, ~(1u << card), memory_order_relaxed);
        }
        spin_drop(&u->lock);
        return sum;
}

void uvm_after_fork(Uvm *u) {
        u->ranges = (UvmRange *) 0;
        u->size = 0;
        atomic_store_explicit(&u->n, 0, memory_order_relaxed);
        atomic_store_explicit(&u->cards, 0, memory_order_relaxed);
        for (uint32_t i = 0; i < UVM_CARDS; i++)
                u->times[i] = 0;
        spin_drop(&u->lock);
}
