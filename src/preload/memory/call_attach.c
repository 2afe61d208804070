/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/multicast.h"
#include "gpu/rm/query.h"
#include "preload/inject/usermem.h"
#include "preload/memory/rm_call.h"
#include "preload/memory/rows.h"

/* Before this release the driver duplicates attached memory, for as long as any client has the
 * multicast object, or until it is detached. From then on it maps the memory, and the mapping ends
 * with the memory (_memorymulticastfabricCtrlAttachMem() in mem_multicast_fabric.c). */
enum { MAPS_FROM = 570 };

/* Returns the driver's branch, the first number of its version; 0: not known. A driver that takes
 * the query for another one answers EINVAL, but returns the version all the same. */
static uint32_t driver_branch(int fd) {
        RmVersion v = {.cmd = RM_VERSION_QUERY};
        uint32_t branch = 0;

        (void) gate_driver(fd, RM_IOCTL(RM_ESC_CHECK_VERSION, sizeof v), &v);
        for (unsigned i = 0; i < 4 && v.version[i] >= '0' && v.version[i] <= '9'; i++)
                branch = branch * 10 + (uint32_t) (v.version[i] - '0');
        return branch;
}

static void detach(const RmCall *c, const RmAttachMulticast *p) {
        RmDetachMulticast d = {.subdevice = p->subdevice, .offset = p->offset};
        RmControl control = {.client = c->request.client,
                             .object = c->request.object,
                             .cmd = RM_CTRL_DETACH_MULTICAST,
                             .params = (uint64_t) (uintptr_t) &d,
                             .params_size = sizeof d};

        (void) gate_driver(c->fd, RM_IOCTL(RM_ESC_CONTROL, sizeof control), &control); /* as with a free */
}

/* Takes a reference that is never dropped, so the memory counts until the process ends: other
 * clients and processes may have the multicast object, too. */
static long attach(RmCall *c, RmAttachMulticast *p) {
        RmObject source;
        uint32_t charge = rm_objects_ref_charge(&c->g->objects, c->request.client, p->memory, &source);
        long r;

        if (charge == 0)
                return rm_call_refuse(c, RM_ERR_NO_MEMORY); /* this process has not charged it */
        r = rm_call_driver_with(c, p);
        if (rm_call_ok(c, r) && source.freeing == 0 && rm_objects_is_kept(&c->g->objects, &source))
                return rm_call_answer(c, r);
        gate_drop_charge(c->g, charge, &source);
        if (!rm_call_ok(c, r))
                return rm_call_answer(c, r);
        detach(c, p); /* the handle may have become another object's meanwhile */
        return rm_call_refuse(c, RM_ERR_NO_MEMORY);
}

long rm_call_attach(RmCall *c) {
        RmAttachMulticast p;

        if (driver_branch(c->fd) >= MAPS_FROM)
                return rm_call_answer(c, rm_call_driver(c));
        if (usermem_read(&p, c->request.params, sizeof p) < 0)
                return rm_call_refuse(c, RM_ERR_INVALID_ADDRESS);
        return attach(c, &p);
}
