/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/rows.h"
#include "preload/memory/travel.h"

static long duplicate_leaf(Call *c, const Object *source, uint32_t share) {
        uint64_t bytes = (uint64_t) source->units * SLICE_UNIT, has = 0;
        long r = call_driver(c);
        uint32_t object = rm_new_handle(&c->ask, c->outer);
        bool agreed = call_agreed(c, r);

        if (agreed)
                has = call_measure_charged(c, object, source->card);
        if (agreed && has <= bytes) {
                call_add_holder(c, object, share, source);
                return call_answer(c, r);
        }
        gate_drop_share(c->g, share, source);
        return agreed && !call_charge(c, object, has) ? call_refuse(c, RM_ERR_NO_MEMORY) : call_answer(c, r);
}

long call_duplicate(Call *c) {
        ObjectBytes freed;
        ObjectMark mark;
        Object source;
        uint32_t share = objects_share(&c->g->objects, c->ask.source_client, c->ask.source_object, &source);
        bool known;
        long r;

        object_bytes_none(&freed);
        if (share != 0 && !gate_pin_row(c->g, c->fd, &c->seat, source.row)) {
                gate_drop_share(c->g, share, &source);
                return call_refuse(c, RM_ERR_NO_MEMORY);
        }
        if (share != 0)
                return duplicate_leaf(c, &source, share);
        known = objects_find(&c->g->objects, c->ask.source_client, c->ask.source_object, &mark) &&
                mark.object.kind != OBJECT_LEAF;
        r = call_driver(c);
        if (!call_agreed(c, r))
                return call_answer(c, r);
        if (known && call_measure(c, rm_new_handle(&c->ask, c->outer)) == 0)
                (void) objects_add(&c->g->objects, &c->seat, rm_new_handle(&c->ask, c->outer),
                                   mark.object.kind, 0, 0, &freed); /* else it is asked for */
        else if (!call_charge_foreign(c, rm_new_handle(&c->ask, c->outer)))
                return call_refuse(c, RM_ERR_NO_MEMORY);
        gate_give_back(c->g, &freed);
        return call_answer(c, r);
}
