/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/uvm_object.h"

#include "preload/memory/driver_fd.h"
#include "preload/memory/foreign_mem.h"
#include "preload/memory/reserve.h"
#include "preload/memory/rows.h"

enum { FILES_MAX = 1024 /* descriptors that are searched: the default limit of a process */ };

static uint32_t newest_object(Gate *g) {
        return atomic_load(&g->objects.serial);
}

static uint64_t size_by(const Gate *g, int fd, const UvmObject *m) {
        RmCall c = {.g = (Gate *) g, .fd = fd, .request = {.client = m->client}};

        return foreign_mem_size(&c, m->memory);
}

/* Queries the size of an object that this process has not charged. The driver answers on the file
 * of the client, which `ctl` should be. */
static uint64_t size_of_unknown(const Gate *g, int ctl, const UvmObject *m) {
        uint64_t bytes = FOREIGN_MEM_UNKNOWN;

        for (int fd = -1; fd < FILES_MAX && bytes == FOREIGN_MEM_UNKNOWN; fd++) {
                int held = fd < 0 ? ctl : fd;

                if (gate_file(g, held) != GATE_FILE_RM || !gate_hold_fd(&held))
                        continue;
                if (gate_file(g, held) == GATE_FILE_RM)
                        bytes = size_by(g, held, m);
                gate_release_fd(held);
        }
        return bytes;
}

/* Charges memory that the process has not charged, such as another process's: by its size, on the
 * card that maps it. */
static bool charge_unknown(Gate *g, int ctl, uint32_t card, UvmObject *m) {
        uint64_t bytes = size_of_unknown(g, ctl, m);

        if (bytes == 0)
                return true;
        if (bytes == FOREIGN_MEM_UNKNOWN || !g->cards[card].usable ||
            gate_reserve_managed(g, (int) card, bytes) < 0)
                return false;
        m->charge = charges_new(&g->objects.charges);
        m->source = (RmObject){
                .units = (uint32_t) (bytes / SLICE_UNIT), .card = (uint8_t) card, .row = GATE_ROW_OWN};
        if (m->charge == 0)
                slice_release(gate_slice(g, (int) card, GATE_ROW_OWN), bytes);
        else
                /* charges_new() made two holders */
                (void) charges_drop(&g->objects.charges, m->charge);
        return m->charge != 0;
}

bool uvm_object_look_up(Gate *g, int ctl, uint32_t card, UvmObject *m) {
        RmObjectMark mark;

        m->objects = newest_object(g);
        m->source = (RmObject){.kind = 0};
        m->charge = rm_objects_ref_charge(&g->objects, m->client, m->memory, &m->source);
        if (m->charge != 0)
                return true;
        if (rm_objects_find(&g->objects, m->client, m->memory, &mark) && mark.object.kind == RM_OBJECT_LEAF)
                return false; /* there is no memory for a charge with several holders */
        return charge_unknown(g, ctl, card, m);
}

bool uvm_object_has_changed(Gate *g, const UvmObject *m) {
        RmObjectMark mark;
        bool leaf = rm_objects_find(&g->objects, m->client, m->memory, &mark) &&
                    mark.object.kind == RM_OBJECT_LEAF;

        if (m->source.serial != 0)
                return !leaf || mark.object.serial != m->source.serial;
        return leaf || newest_object(g) != m->objects;
}

void uvm_object_drop(Gate *g, const UvmObject *m) {
        if (m->charge != 0)
                gate_drop_charge(g, m->charge, &m->source);
}

void uvm_object_add_mapping(Gate *g, const UvmObject *m, const UvmNote *where) {
        UvmNote note = *where;

        note.client = m->client;
        note.memory = m->memory;
        uvm_note_hold(&note, m->charge, &m->source);
        if (m->charge != 0 && !charges_ref(&g->objects.charges, m->charge))
                return;
        (void) uvm_maps_add(&g->maps, &note); /* if not: charged until the process ends */
}
