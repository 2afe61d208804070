/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/rows.h"
#include "gate/travel.h"
#include "guest/peek.h"
#include "rm/travel.h"
#include "slice/pin.h"

/* What this process has exported to that file itself is charged already. */
static bool is_own(Call *c, int fd, uint32_t place, Export *ret) {
        Export x;

        for (uint32_t i = exports_count(&c->g->exports); i-- > 0;)
                if (exports_at(&c->g->exports, i, &x) && !x.pending && x.place == place &&
                    pin_is_here(fd, x.key) && exports_ref(&c->g->exports, x.key, place, &c->g->objects, ret))
                        return true;
        return false;
}

/* false: there is no room for it, and it is gone again. */
static bool came(Call *c, int fd, uint32_t place, uint32_t parent, uint32_t object) {
        Object source;
        Export own;

        c->ask.parent = parent;
        c->seat = objects_seat(&c->g->objects, c->ask.client, parent);
        if (!is_own(c, fd, place, &own))
                return call_charge_foreign(c, object);
        source = filed_source(&own);
        if (!gate_pin_row(c->g, c->fd, &c->seat, own.row)) {
                gate_drop_share(c->g, own.share, &source);
                call_free_again(c, object);
                return false;
        }
        call_add_holder(c, object, own.share, &source);
        return true;
}

/* What was charged already, of a call that is refused in the end. */
static void send_back(Call *c, const RmImportMany *p, uint32_t n) {
        ObjectBytes freed;
        ObjectMark mark;

        object_bytes_none(&freed);
        for (uint32_t i = 0; i < n; i++) {
                if (p->types[i] == RM_IMPORT_NONE)
                        continue;
                call_free_again(c, p->objects[i]);
                if (objects_find(&c->g->objects, c->ask.client, p->objects[i], &mark))
                        objects_forget(&c->g->objects, &mark, &freed);
        }
        gate_give_back(c->g, &freed);
}

static long import_many(Call *c) {
        RmImportMany p;
        uint32_t n, i;
        long r;

        if (peek(&p, c->ask.params, sizeof p) < 0)
                return call_refuse(c, RM_ERR_INVALID_ADDRESS);
        r = call_driver_with(c, &p);
        if (!call_agreed(c, r))
                return call_answer(c, r);
        n = p.n <= RM_IMPORTS_MAX ? p.n : RM_IMPORTS_MAX;
        for (i = 0; i < n; i++)
                if (p.types[i] != RM_IMPORT_NONE &&
                    !came(c, p.fd, (uint32_t) p.index + i, p.parent, p.objects[i]))
                        break;
        if (i < n) {
                send_back(c, &p, i);
                for (i++; i < n; i++)
                        if (p.types[i] != RM_IMPORT_NONE)
                                call_free_again(c, p.objects[i]);
                return call_refuse(c, RM_ERR_NO_MEMORY);
        }
        if (poke(c->ask.params, &p, sizeof p) < 0)
                rm_set_status(&c->ask, c->outer,
                              RM_ERR_INVALID_ADDRESS); /* it is there, as with the driver */
        return call_answer(c, r);
}

long call_import(Call *c) {
        RmImport p;
        long r;

        if (c->ask.what == RM_IMPORT_MANY)
                return import_many(c);
        if (peek(&p, c->ask.params, sizeof p) < 0)
                return call_refuse(
                        c, RM_ERR_INVALID_ADDRESS); /* it could be there by the time the driver looks */
        r = call_driver_with(c, &p);
        if (!call_agreed(c, r))
                return call_answer(c, r);
        if (!came(c, p.fd, 0, p.parent, p.object))
                return call_refuse(c, RM_ERR_NO_MEMORY);
        if (poke(c->ask.params, &p, sizeof p) < 0)
                rm_set_status(&c->ask, c->outer, RM_ERR_INVALID_ADDRESS); /* as above */
        return call_answer(c, r);
}
