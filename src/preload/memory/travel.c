/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/travel.h"

#include "gpu/rm/travel.h"
#include "preload/memory/rows.h"

uint64_t call_measure(const Call *c, uint32_t object) {
        RmFbEntry list[] = {
                {.index = RM_SURFACE_SIZE_LO}, {.index = RM_SURFACE_SIZE_HI}, {.index = RM_SURFACE_PLACE}};
        RmSurfaceInfo info = {.n = 3, .list = (uint64_t) (uintptr_t) list};
        RmControl control = {.client = c->ask.client,
                             .object = object,
                             .cmd = RM_CTRL_SURFACE_INFO,
                             .params = (uint64_t) (uintptr_t) &info,
                             .params_size = sizeof info,
                             .status = RM_ERR_INVALID_ARGUMENT};

        if (gate_driver(c->fd, RM_IOCTL(RM_ESC_CONTROL, sizeof control), &control) < 0 ||
            control.status != RM_OK || list[2].data != RM_PLACE_CARD)
                return 0;
        return (uint64_t) list[1].data << 32 | list[0].data;
}

uint64_t call_measure_charged(const Call *c, uint32_t object, uint8_t card) {
        uint64_t bytes = call_measure(c, object);

        return bytes > 0 ? bytes : call_known(c->g, card).group_bytes;
}

bool call_charge(Call *c, uint32_t object, uint64_t bytes) {
        ObjectBytes freed;
        int card = gate_card(c->g, c->fd, &c->seat);

        object_bytes_none(&freed);
        if (!call_known(c->g, card).limit || !call_pin(c, card) ||
            gate_reserve(c->g, card, c->seat.row, bytes, c->fd, c->ask.client) < 0) {
                call_free_again(c, object);
                return false;
        }
        if (c->seat.parent != 0 && !objects_still(&c->g->objects, &c->seat)) {
                slice_release(gate_slice(c->g, card, c->seat.row), bytes);
                call_free_again(c, object);
                return false;
        }
        c->seat.card = (uint8_t) card;
        (void) objects_add(&c->g->objects, &c->seat, object, OBJECT_LEAF, bytes, 0,
                           &freed); /* else charged until the end */
        return true;
}

bool call_charge_foreign(Call *c, uint32_t object) {
        uint64_t bytes = call_measure(c, object);

        return bytes == 0 || call_charge(c, object, bytes);
}

void call_add_holder(Call *c, uint32_t object, uint32_t share, const Object *source) {
        ObjectBytes freed;

        object_bytes_none(&freed);
        c->seat.card = source->card;
        c->seat.row = source->row;
        (void) objects_add(&c->g->objects, &c->seat, object, OBJECT_LEAF,
                           (uint64_t) source->units * SLICE_UNIT, share,
                           &freed); /* else charged until the end */
}

void gate_drop_share(Gate *g, uint32_t share, const Object *source) {
        ObjectBytes freed;

        object_bytes_none(&freed);
        objects_drop_share(&g->objects, share, source, &freed);
        gate_give_back(g, &freed);
}
