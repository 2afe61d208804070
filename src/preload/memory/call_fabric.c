/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/fabric.h"
#include "gpu/rm/query.h"
#include "preload/inject/bytes.h"
#include "preload/inject/usermem.h"
#include "preload/memory/foreign_mem.h"
#include "preload/memory/rows.h"

_Static_assert(offsetof(RmAlloc, params) == offsetof(RmAllocRights, params), "both have it there");

/* Makes the call with a copy of the parameters, which no other thread can change. The driver writes
 * nothing into it. */
static long alloc(RmCall *c, RmFabricParams *p) {
        uint8_t *at = c->outer + offsetof(RmAlloc, params);
        long r;

        put64(at, (uint64_t) (uintptr_t) p);
        r = rm_call_driver(c);
        put64(at, c->request.params);
        return r;
}

/* The driver duplicates the memory for as long as the object lives (memoryfabricConstruct_IMPL() in
 * mem_fabric.c), so the object is one more holder. */
static long alloc_with_memory(RmCall *c, RmFabricParams *p) {
        RmObject source;
        uint32_t charge = rm_objects_ref_charge(&c->g->objects, c->request.client, p->memory, &source),
                 object;
        long r;

        if (charge == 0)
                return rm_call_refuse(c, RM_ERR_NO_MEMORY); /* this process has not charged it */
        r = alloc(c, p);
        object = rm_new_handle(&c->request, c->outer);
        if (rm_call_ok(c, r) && source.freeing == 0 && rm_objects_is_kept(&c->g->objects, &source)) {
                c->parent = rm_objects_parent(&c->g->objects, c->request.client, c->request.parent);
                foreign_mem_add_holder(c, object, charge, &source);
                return rm_call_answer(c, r);
        }
        gate_drop_charge(c->g, charge, &source);
        if (!rm_call_ok(c, r))
                return rm_call_answer(c, r);
        rm_call_free_object(c, object); /* the handle may have become another object's meanwhile */
        return rm_call_refuse(c, RM_ERR_NO_MEMORY);
}

/* NOT_SUPPORTED is the driver's answer for a flexible object on a card that has none. Until 565
 * such an object would hold what is attached to it. */
long rm_call_fabric(RmCall *c) {
        RmFabricParams p;

        if (c->request.params == 0)
                return rm_call_refuse(c, RM_ERR_INVALID_ARGUMENT);
        if (usermem_read(&p, c->request.params, sizeof p) < 0)
                return rm_call_refuse(c, RM_ERR_INVALID_ADDRESS);
        if (p.flags & RM_FABRIC_FLEXIBLE)
                return rm_call_refuse(c, RM_ERR_NOT_SUPPORTED);
        return p.memory != 0 ? alloc_with_memory(c, &p) : rm_call_answer(c, alloc(c, &p));
}
