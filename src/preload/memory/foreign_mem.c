/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/foreign_mem.h"

#include "gpu/rm/export.h"
#include "preload/memory/card_lookup.h"
#include "preload/memory/reserve.h"
#include "preload/memory/rows.h"

static uint32_t ask(const RmCall *c, uint32_t object, uint32_t index, uint32_t *ret) {
        RmFbEntry entry = {.index = index};
        RmSurfaceInfo info = {.n = 1, .list = (uint64_t) (uintptr_t) &entry};
        RmControl control = {.client = c->request.client,
                             .object = object,
                             .cmd = RM_CTRL_SURFACE_INFO,
                             .params = (uint64_t) (uintptr_t) &info,
                             .params_size = sizeof info,
                             .status = RM_ERR_INVALID_STATE};

        if (gate_driver(c->fd, RM_IOCTL(RM_ESC_CONTROL, sizeof control), &control) < 0)
                return RM_ERR_INVALID_STATE;
        *ret = entry.data;
        return control.status;
}

/* Whether the status of the query for RM_SURFACE_ADDR_SPACE means an object without memory of its
 * own. Drivers 535 to 595 answer it with OK for memory of the card. The others are, in this order:
 * - not memory at all: rs_resource.c, resControlLookup_IMPL();
 * - fabric memory: mem_fabric.c, memoryfabricControl_IMPL();
 * - a multicast object without a team yet: mem_multicast_fabric.c;
 * - a memory object without a descriptor: mem.c, memIsReady_IMPL(). */
static bool has_no_memory(uint32_t status) {
        return status == RM_ERR_NOT_SUPPORTED || status == RM_ERR_INVALID_ARGUMENT ||
               status == RM_ERR_NOT_READY || status == RM_ERR_INVALID_OBJECT;
}

uint64_t foreign_mem_size(const RmCall *c, uint32_t object) {
        uint32_t data = 0, status = ask(c, object, RM_SURFACE_ADDR_SPACE, &data);

        if (has_no_memory(status) || (status == RM_OK && data != RM_ADDR_SPACE_VIDMEM))
                return 0;
        if (status == RM_OK)
                status = ask(c, object, RM_SURFACE_SIZE, &data);
        return status == RM_OK ? (uint64_t) data * RM_SURFACE_UNIT : FOREIGN_MEM_UNKNOWN;
}

uint64_t foreign_mem_charged_size(const RmCall *c, uint32_t object, uint8_t card) {
        uint64_t bytes = foreign_mem_size(c, object);

        return bytes > 0 ? bytes : rm_call_slice_info(c->g, card).group_bytes;
}

bool foreign_mem_charge_bytes(RmCall *c, uint32_t object, uint64_t bytes) {
        FreedBytes freed;
        int card = gate_card(c->g, c->fd, &c->parent);

        freed_bytes_clear(&freed);
        if (bytes == FOREIGN_MEM_UNKNOWN || !rm_call_slice_info(c->g, card).limit || !rm_call_pin(c, card) ||
            gate_reserve(c->g, card, c->parent.row, bytes, c->fd, c->request.client) < 0) {
                rm_call_free_object(c, object);
                return false;
        }
        if (c->parent.handle != 0 && !rm_objects_is_valid(&c->g->objects, &c->parent)) {
                slice_release(gate_slice(c->g, card, c->parent.row), bytes);
                rm_call_free_object(c, object);
                return false;
        }
        c->parent.card = (uint8_t) card;
        (void) rm_objects_add(&c->g->objects, &c->parent, object, RM_OBJECT_LEAF, bytes, 0,
                              &freed); /* if not: charged until the process ends */
        return true;
}

bool foreign_mem_charge(RmCall *c, uint32_t object) {
        uint64_t bytes = foreign_mem_size(c, object);

        return bytes == 0 || foreign_mem_charge_bytes(c, object, bytes);
}

void foreign_mem_add_holder(RmCall *c, uint32_t object, uint32_t charge, const RmObject *source) {
        FreedBytes freed;

        freed_bytes_clear(&freed);
        c->parent.card = source->card;
        c->parent.row = source->row;
        (void) rm_objects_add(&c->g->objects, &c->parent, object, RM_OBJECT_LEAF,
                              (uint64_t) source->units * SLICE_UNIT, charge,
                              &freed); /* if not: charged until the process ends */
}
