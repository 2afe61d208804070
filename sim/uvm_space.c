/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/uvm_space.h"

#include <stdlib.h>

#include "gpu/rm/rm.h"

enum { PAGE = 4096 };

/* ---- mappings ---- */

static SimUvmMap *map_new(SimFile *f, SimUvmRange *r, const SimUvmMap *what) {
        SimUvmMap *m;

        if (f->n_uvm >= SIM_FILE_OBJECTS_MAX)
                return NULL;
        m = malloc(sizeof *m);
        if (!m)
                return NULL;
        *m = *what;
        m->block = what->block ? sim_block_ref(what->block) : NULL;
        m->next = r->maps;
        r->maps = m;
        f->n_uvm++;
        return m;
}

static void map_free(SimFile *f, SimUvmMap **link) {
        SimUvmMap *m = *link;

        *link = m->next;
        (void) sim_block_unref(m->block); /* it is always NULL */
        free(m);
        f->n_uvm--;
}

/* uvm_unmap_external_in_range(): a mapping that reaches beyond the part is split. */
static uint32_t clear(SimFile *f, SimUvmRange *r, uint32_t card, uint64_t start, uint64_t end) {
        SimUvmMap **link = &r->maps;

        while (*link) {
                SimUvmMap *m = *link, upper = *m;

                upper.start = end;
                if (m->card != card || m->end <= start || m->start >= end) {
                        link = &m->next;
                } else if (m->start >= start && m->end <= end) {
                        map_free(f, link);
                } else if (m->start < start && m->end > end) {
                        if (!map_new(f, r, &upper))
                                return RM_ERR_NO_MEMORY;
                        m->end = start;
                        link = &m->next;
                } else if (m->start < start) {
                        m->end = start;
                        link = &m->next;
                } else {
                        m->start = end;
                        link = &m->next;
                }
        }
        return RM_OK;
}

/* ---- ranges ---- */

static bool is_bad(SimUvmPart part) {
        return part.base % PAGE != 0 || part.length % PAGE != 0 || part.base == 0 || part.length == 0 ||
               part.base + part.length < part.base;
}

static SimUvmRange *range_around(const SimFile *f, SimUvmKind kind, SimUvmPart part) {
        for (SimUvmRange *r = f->uvm; r; r = r->next)
                if (r->kind == kind && r->start <= part.base && part.base + part.length <= r->end)
                        return r;
        return NULL;
}

static void range_free(SimFile *f, SimUvmRange **link) {
        SimUvmRange *r = *link;

        while (r->maps)
                map_free(f, &r->maps);
        *link = r->next;
        free(r);
        f->n_uvm--;
}

uint32_t sim_uvm_create(SimFile *f, SimUvmKind kind, SimUvmPart part) {
        SimUvmRange *r;

        if (is_bad(part))
                return RM_ERR_INVALID_ADDRESS;
        for (r = f->uvm; r; r = r->next)
                if (part.base < r->end && r->start < part.base + part.length)
                        return RM_ERR_UVM_ADDRESS_IN_USE;
        r = f->n_uvm < SIM_FILE_OBJECTS_MAX ? malloc(sizeof *r) : NULL;
        if (!r)
                return RM_ERR_NO_MEMORY;
        *r = (SimUvmRange){.kind = kind, .start = part.base, .end = part.base + part.length, .next = f->uvm};
        f->uvm = r;
        f->n_uvm++;
        return RM_OK;
}

static SimUvmRange **range_at(SimFile *f, uint64_t base) {
        SimUvmRange **link = &f->uvm;

        while (*link && (*link)->start != base)
                link = &(*link)->next;
        return link;
}

uint32_t sim_uvm_free(SimFile *f, SimUvmPart part) {
        SimUvmRange **link = range_at(f, part.base);

        if (!*link || (part.length != 0 && (*link)->end - (*link)->start != part.length))
                return RM_ERR_INVALID_ADDRESS;
        range_free(f, link);
        return RM_OK;
}

/* ---- memory objects ---- */

/* nvUvmInterfaceDupMemory() and set_ext_gpu_map_location(). No card here has access to a peer. */
static uint32_t check_object(uint32_t card, const SimObject *object, uint64_t offset, uint64_t length) {
        if (object->class_ == RM_CLASS_MEMORY_SYSTEM || object->class_ == RM_CLASS_OS_DESCRIPTOR)
                return RM_OK;
        if (object->class_ != RM_CLASS_MEMORY_LOCAL)
                return RM_ERR_INVALID_OBJECT;
        if (object->card != card)
                return RM_ERR_INVALID_DEVICE;
        if (!object->block || offset + length < offset || offset + length > object->block->bytes)
                return RM_ERR_INVALID_OFFSET;
        return RM_OK;
}

uint32_t sim_uvm_map(SimFile *f, uint32_t card, SimUvmPart part, uint64_t offset, const SimObject *object) {
        SimUvmMap map = {.card = card,
                         .start = part.base,
                         .end = part.base + part.length,
                         .block = object ? object->block : NULL};
        SimUvmRange *r;
        uint32_t status;

        if (is_bad(part))
                return RM_ERR_INVALID_ADDRESS;
        r = range_around(f, SIM_UVM_EXTERNAL, part);
        if (!r)
                return RM_ERR_INVALID_ADDRESS;
        if (!(f->uvm_spaces >> card & 1))
                return RM_ERR_INVALID_DEVICE;
        status = clear(f, r, card, map.start, map.end);
        if (status == RM_OK && object)
                status = check_object(card, object, offset, part.length);
        if (status == RM_OK && !map_new(f, r, &map))
                status = RM_ERR_NO_MEMORY;
        return status;
}

uint32_t sim_uvm_unmap(SimFile *f, uint32_t card, SimUvmPart part) {
        SimUvmRange *r = is_bad(part) ? NULL : range_around(f, SIM_UVM_EXTERNAL, part);

        if (!r)
                return RM_ERR_INVALID_ADDRESS;
        if (!(f->uvm_cards >> card & 1))
                return RM_ERR_INVALID_DEVICE;
        return clear(f, r, card, part.base, part.base + part.length);
}

uint32_t sim_uvm_map_p2p(SimFile *f, uint32_t card, SimUvmPart part, uint64_t offset,
                         const SimObject *object) {
        SimUvmMap map = {
                .card = card, .start = part.base, .end = part.base + part.length, .block = object->block};
        uint32_t status;

        if (!(f->uvm_cards >> card & 1))
                return RM_ERR_INVALID_DEVICE;
        status = check_object(card, object, offset, part.length);
        if (status == RM_OK)
                status = sim_uvm_create(f, SIM_UVM_P2P, part);
        if (status == RM_OK && !map_new(f, f->uvm, &map)) {
                range_free(f, &f->uvm);
                status = RM_ERR_NO_MEMORY;
        }
        return status;
}

/* ---- managed memory ---- */

static SimUvmRange *managed_range(SimFile *f, SimUvmPart part) {
        SimUvmRange *r = range_around(f, SIM_UVM_MANAGED, part);

        if (!r && sim_uvm_create(f, SIM_UVM_MANAGED, part) == RM_OK)
                r = f->uvm;
        return r && r->start == part.base && r->end == part.base + part.length ? r : NULL;
}

uint32_t sim_uvm_migrate(SimFile *f, uint32_t card, SimUvmPart part) {
        SimUvmMap map = {.card = card, .start = part.base, .end = part.base + part.length};
        uint32_t status = RM_OK;
        SimUvmRange *r;

        if (is_bad(part))
                return RM_ERR_INVALID_ADDRESS;
        if (!(f->uvm_spaces >> card & 1))
                return RM_ERR_INVALID_DEVICE;
        r = managed_range(f, part);
        if (!r)
                return RM_ERR_INVALID_ADDRESS;
        if (r->maps && r->maps->card == card)
                return RM_OK;
        if (sim_card_take(&f->sim->cards[card], part.length, &map.block) != 0)
                return RM_ERR_NO_MEMORY;
        while (r->maps)
                map_free(f, &r->maps);
        if (!map_new(f, r, &map))
                status = RM_ERR_NO_MEMORY;
        (void) sim_block_unref(map.block); /* the mapping has it */
        return status;
}

/* ---- cards ---- */

uint32_t sim_uvm_register(SimFile *f, uint32_t card) {
        if (f->uvm_cards >> card & 1)
                return RM_ERR_INVALID_DEVICE;
        f->uvm_cards |= 1u << card;
        return RM_OK;
}

uint32_t sim_uvm_add_space(SimFile *f, uint32_t card) {
        if (!(f->uvm_cards >> card & 1) || (f->uvm_spaces >> card & 1))
                return RM_ERR_INVALID_DEVICE;
        f->uvm_spaces |= 1u << card;
        return RM_OK;
}

uint32_t sim_uvm_remove_space(SimFile *f, uint32_t card) {
        if (!(f->uvm_spaces >> card & 1))
                return RM_ERR_INVALID_DEVICE;
        for (SimUvmRange *r = f->uvm; r; r = r->next)
                (void) clear(f, r, card, 0, UINT64_MAX); /* nothing is split */
        f->uvm_spaces &= ~(1u << card);
        return RM_OK;
}

uint32_t sim_uvm_unregister(SimFile *f, uint32_t card) {
        if (!(f->uvm_cards >> card & 1))
                return RM_ERR_INVALID_DEVICE;
        if (f->uvm_spaces >> card & 1)
                (void) sim_uvm_remove_space(f, card); /* it is there */
        f->uvm_cards &= ~(1u << card);
        return RM_OK;
}

void sim_uvm_done(SimFile *f) {
        while (f->uvm)
                range_free(f, &f->uvm);
}
