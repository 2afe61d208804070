/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/foreign_mem.h"
#include "preload/memory/rows.h"

static long duplicate_leaf(RmCall *c, const RmObject *source, uint32_t charge) {
        uint64_t bytes = (uint64_t) source->units * SLICE_UNIT, has = 0;
        long r = rm_call_driver(c);
        uint32_t object = rm_new_handle(&c->request, c->outer);
        bool agreed = rm_call_ok(c, r);

        if (agreed)
                has = foreign_mem_charged_size(c, object, source->card);
        if (agreed && has <= bytes) {
                foreign_mem_add_holder(c, object, charge, source);
                return rm_call_answer(c, r);
        }
        gate_drop_charge(c->g, charge, source);
        return agreed && !foreign_mem_charge_bytes(c, object, has) ? rm_call_refuse(c, RM_ERR_NO_MEMORY)
                                                                   : rm_call_answer(c, r);
}

long rm_call_duplicate(RmCall *c) {
        FreedBytes freed;
        RmObjectMark mark;
        RmObject source;
        uint32_t charge = rm_objects_ref_charge(&c->g->objects, c->request.source_client,
                                                c->request.source_object, &source);
        bool known;
        long r;

        freed_bytes_clear(&freed);
        if (charge != 0 && !gate_pin_row(c->g, c->fd, &c->parent, source.row)) {
                gate_drop_charge(c->g, charge, &source);
                return rm_call_refuse(c, RM_ERR_NO_MEMORY);
        }
        if (charge != 0)
                return duplicate_leaf(c, &source, charge);
        known = rm_objects_find(&c->g->objects, c->request.source_client, c->request.source_object, &mark) &&
                mark.object.kind != RM_OBJECT_LEAF;
        r = rm_call_driver(c);
        if (!rm_call_ok(c, r))
                return rm_call_answer(c, r);
        if (known && foreign_mem_size(c, rm_new_handle(&c->request, c->outer)) == 0)
                (void) rm_objects_add(&c->g->objects, &c->parent, rm_new_handle(&c->request, c->outer),
                                      /* on failure the driver is asked for its card when that
                                       * matters */
                                      mark.object.kind, 0, 0, &freed);
        else if (!foreign_mem_charge(c, rm_new_handle(&c->request, c->outer)))
                return rm_call_refuse(c, RM_ERR_NO_MEMORY);
        gate_release_bytes(c->g, &freed);
        return rm_call_answer(c, r);
}
