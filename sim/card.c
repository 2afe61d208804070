/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/card.h"

#include <assert.h>
#include <errno.h>

#include "gpu/rm/rm.h"

enum { KIB = 1024, MIB = 1024 * KIB, PAGE_BIG = 64 * KIB, PAGE_HUGE = 2 * MIB };

static_assert(PAGE_HUGE % PAGE_BIG == 0, "pieces are whole big pages");

/* A release may add a hole for each piece that is held, and one more. Room for all of them is made
 * before a piece is taken. */
static int grow(SimCard *c, size_t more) {
        size_t need = c->n_held + more + 1;
        SimExtent *grown;

        if (need <= c->capacity)
                return 0;
        need += need / 2;
        grown = reallocarray(c->free, need, sizeof *grown);
        if (!grown)
                return -ENOMEM;
        c->free = grown;
        c->capacity = need;
        return 0;
}

int sim_card_init(SimCard *c, const MachineCard *about, uint64_t reserved) {
        *c = (SimCard){.about = *about, .bytes = (uint64_t) about->mib * MIB, .reserved = reserved};
        if (reserved > c->bytes)
                return -ERANGE;
        if (grow(c, 0) < 0)
                return -ENOMEM;
        if (reserved < c->bytes)
                c->free[c->n_free++] = (SimExtent){reserved, c->bytes - reserved};
        return 0;
}

void sim_card_done(SimCard *c) {
        assert(c->used == 0 && c->n_held == 0);
        free(c->free);
        *c = (SimCard){0};
}

uint64_t sim_card_free(const SimCard *c) {
        return c->bytes - c->reserved - c->used;
}

SimExtent sim_card_largest(const SimCard *c) {
        SimExtent largest = {0};

        for (size_t i = 0; i < c->n_free; i++)
                if (c->free[i].bytes > largest.bytes)
                        largest = c->free[i];
        return largest;
}

/* Takes the first hole that is large enough, or else as many holes as needed, from the first on.
 * Returns how many. */
static size_t choose(const SimCard *c, uint64_t bytes, size_t *ret_first) {
        uint64_t sum = 0;

        for (size_t i = 0; i < c->n_free; i++)
                if (c->free[i].bytes >= bytes) {
                        *ret_first = i;
                        return 1;
                }
        *ret_first = 0;
        for (size_t i = 0; i < c->n_free; i++) {
                sum += c->free[i].bytes;
                if (sum >= bytes)
                        return i + 1;
        }
        assert(false && "the sum of the holes is what is free");
        return 0;
}

static void drop(SimCard *c, size_t at, size_t n) {
        memmove(c->free + at, c->free + at + n, (c->n_free - at - n) * sizeof *c->free);
        c->n_free -= n;
}

int sim_card_take(SimCard *c, uint64_t bytes, SimBlock **ret) {
        size_t first, n;
        uint64_t left = bytes;
        SimBlock *b;

        assert(bytes > 0);
        if (bytes > sim_card_free(c))
                return SIM_CARD_E_FULL;
        n = choose(c, bytes, &first);
        b = malloc(sizeof *b + n * sizeof *b->extents);
        if (!b || grow(c, n) < 0) {
                free(b);
                return -ENOMEM;
        }
        *b = (SimBlock){.card = c, .bytes = bytes, .refs = 1, .n = n};
        for (size_t i = 0; i < n; i++) {
                SimExtent *hole = &c->free[first + i];
                uint64_t part = hole->bytes < left ? hole->bytes : left;

                b->extents[i] = (SimExtent){hole->start, part};
                hole->start += part;
                hole->bytes -= part;
                left -= part;
        }
        drop(c, first, n - (c->free[first + n - 1].bytes > 0)); /* only the last can have something left */
        c->used += bytes;
        c->n_held += n;
        *ret = b;
        return 0;
}

SimBlock *sim_block_ref(SimBlock *b) {
        assert(b->refs > 0);
        b->refs++;
        return b;
}

static void put_back(SimCard *c, SimExtent e) {
        size_t at = 0, end = c->n_free;
        bool below, above;

        while (at < end) { /* the first hole behind it */
                size_t middle = at + (end - at) / 2;

                if (c->free[middle].start < e.start)
                        at = middle + 1;
                else
                        end = middle;
        }
        below = at > 0 && c->free[at - 1].start + c->free[at - 1].bytes == e.start;
        above = at < c->n_free && e.start + e.bytes == c->free[at].start;
        if (below) {
                c->free[at - 1].bytes += e.bytes + (above ? c->free[at].bytes : 0);
                if (above)
                        drop(c, at, 1);
                return;
        }
        if (above) {
                c->free[at].start = e.start;
                c->free[at].bytes += e.bytes;
                return;
        }
        assert(c->n_free < c->capacity);
        memmove(c->free + at + 1, c->free + at, (c->n_free - at) * sizeof *c->free);
        c->free[at] = e;
        c->n_free++;
}

SimBlock *sim_block_unref(SimBlock *b) {
        if (!b || --b->refs > 0)
                return NULL;
        for (size_t i = 0; i < b->n; i++)
                put_back(b->card, b->extents[i]);
        b->card->used -= b->bytes;
        b->card->n_held -= b->n;
        sim_account_release(b->charge);
        free(b);
        return NULL;
}

/* mem_mgr.c: memmgrDeterminePageSize() takes the page size that the client asks for. By default it
 * takes huge pages from their size on, and big ones for all else that a client allocates
 * (_memmgrPickDefaultGpuPageSize()). memmgrAllocDetermineAlignment() rounds up to it. Nothing is
 * smaller than a big page, which is the least of the allocator (video_mem.c, _vidmemPmaAllocate()).
 * 512 MiB and 256 GiB pages exist on newer cards only. */
int sim_card_round(uint64_t bytes, uint32_t *attr, uint32_t attr2, uint64_t *ret_bytes) {
        uint32_t page = *attr >> RM_ATTR_PAGE_SHIFT & RM_ATTR_PAGE_MASK;
        uint32_t huge = attr2 >> RM_ATTR2_HUGE_SHIFT & RM_ATTR2_HUGE_MASK;
        uint64_t size, pages;

        if (page == RM_ATTR_PAGE_HUGE && huge > 1)
                return SIM_CARD_E_ATTRIBUTE;
        if (page == RM_ATTR_PAGE_DEFAULT)
                page = bytes >= PAGE_HUGE ? RM_ATTR_PAGE_HUGE : RM_ATTR_PAGE_BIG;
        size = page == RM_ATTR_PAGE_HUGE ? PAGE_HUGE : PAGE_BIG;
        pages = bytes / size + (bytes % size > 0);
        if (pages > UINT32_MAX) /* as _vidmemPmaAllocate() counts them */
                return SIM_CARD_E_FULL;
        *ret_bytes = pages * size;
        *attr = (*attr & ~((uint32_t) RM_ATTR_PAGE_MASK << RM_ATTR_PAGE_SHIFT)) | page << RM_ATTR_PAGE_SHIFT;
        return 0;
}
