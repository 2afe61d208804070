/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/travel.h"
#include "preload/inject/peek.h"
#include "preload/memory/rows.h"
#include "preload/memory/travel.h"
#include "slice/pin.h"

/* Which calls of this process have put there what is at these places of the file, and is charged
 * already; 0: none. */
typedef struct Owned {
        Gate *g;
        uint32_t first, n;
        bool unsure; /* of all: another process has exported to the file */
        uint64_t calls[RM_IMPORTS_MAX];
} Owned;

static void look_at(void *userdata, uint64_t key) {
        Owned *o = userdata;

        if (exports_have_file(&o->g->exports, key))
                exports_look(&o->g->exports, key, o->first, o->n, o->calls);
        else
                o->unsure = true;
}

static void owned_look(Owned *o, Gate *g, int fd, uint32_t first, uint32_t n) {
        o->g = g;
        o->first = first;
        o->n = n;
        o->unsure = false;
        for (uint32_t i = 0; i < n; i++)
                o->calls[i] = 0;
        if (exports_count(&g->exports) > 0 && pin_each_export(fd, look_at, o) < 0)
                o->unsure = true;
}

/* Which call has put there what the driver gave in between; 0: none of ours, or it is not sure. */
static uint64_t owned_call(const Owned *before, const Owned *after, uint32_t i) {
        bool sure = !before->unsure && !after->unsure && before->calls[i] == after->calls[i] &&
                    after->calls[i] != EXPORTS_UNSURE;

        return sure ? after->calls[i] : 0;
}

/* false: there is no room for it, and it is gone again. call: our export, 0: it is not ours. */
static bool came(Call *c, uint64_t call, uint32_t place, uint32_t parent, uint32_t object) {
        Object source;
        uint64_t has;
        Export own;

        c->ask.parent = parent;
        c->seat = objects_seat(&c->g->objects, c->ask.client, parent);
        if (call == 0 || !exports_ref(&c->g->exports, call, place, &c->g->objects, &own))
                return call_charge_foreign(c, object);
        source = filed_source(&own);
        if (!gate_pin_row(c->g, c->fd, &c->seat, own.row)) {
                gate_drop_share(c->g, own.share, &source);
                call_free_again(c, object);
                return false;
        }
        has = call_measure_charged(c, object, own.card);
        if (has > (uint64_t) own.units * SLICE_UNIT) { /* then it is not what we think */
                gate_drop_share(c->g, own.share, &source);
                return call_charge(c, object, has);
        }
        call_add_holder(c, object, own.share, &source);
        return true;
}

typedef struct Arrivals { /* of a file, and what came from them: in the copy that the driver got */
        int fd;
        uint32_t parent, first, n;
        const uint32_t *objects;
        const uint8_t *types; /* NULL: from each one something */
} Arrivals;

static bool is_empty(const Arrivals *p, uint32_t i) {
        return p->types && p->types[i] == RM_IMPORT_NONE;
}

/* The first n, which are charged already, and the others, but one, which is gone. */
static void send_back(Call *c, const Arrivals *p, uint32_t n) {
        ObjectBytes freed;
        ObjectMark mark;

        object_bytes_none(&freed);
        for (uint32_t i = 0; i < p->n; i++) {
                if (is_empty(p, i) || i == n)
                        continue;
                call_free_again(c, p->objects[i]);
                if (i < n && objects_find(&c->g->objects, c->ask.client, p->objects[i], &mark))
                        objects_forget(&c->g->objects, &mark, &freed);
        }
        gate_give_back(c->g, &freed);
}

/* true: the driver has agreed, and there is room for all of it. Otherwise *ret is what to
 * answer. */
static bool import_places(Call *c, void *params, const Arrivals *p, long *ret) {
        uint64_t replaced = exports_replaced(&c->g->exports);
        Owned before, after;

        owned_look(&before, c->g, p->fd, p->first, p->n);
        *ret = call_driver_with(c, params);
        if (!call_agreed(c, *ret)) {
                *ret = call_answer(c, *ret);
                return false;
        }
        owned_look(&after, c->g, p->fd, p->first, p->n);
        after.unsure |= exports_replaced(&c->g->exports) != replaced;
        for (uint32_t i = 0; i < p->n; i++)
                if (!is_empty(p, i) &&
                    !came(c, owned_call(&before, &after, i), p->first + i, p->parent, p->objects[i])) {
                        send_back(c, p, i);
                        *ret = call_refuse(c, RM_ERR_NO_MEMORY);
                        return false;
                }
        return true;
}

/* By the copy: what is in the program's memory could be another by the time the driver looks. */
static long hand_over(Call *c, const void *params, size_t size, long r) {
        if (poke(c->ask.params, params, size) < 0)
                rm_set_status(&c->ask, c->outer,
                              RM_ERR_INVALID_ADDRESS); /* it is there, as with the driver */
        return call_answer(c, r);
}

static long import_many(Call *c) {
        RmImportMany p;
        bool came_all;
        int fd;
        long r;

        if (peek(&p, c->ask.params, sizeof p) < 0)
                return call_refuse(c, RM_ERR_INVALID_ADDRESS);
        fd = p.fd;
        if (!filed_hold(&p.fd))
                return call_refuse(c, RM_ERR_NO_MEMORY);
        came_all = import_places(c, &p,
                                 &(Arrivals){.fd = p.fd,
                                             .parent = p.parent,
                                             .first = p.index,
                                             .n = p.n <= RM_IMPORTS_MAX ? p.n : RM_IMPORTS_MAX,
                                             .objects = p.objects,
                                             .types = p.types},
                                 &r);
        filed_let_go(p.fd);
        p.fd = fd;
        return came_all ? hand_over(c, &p, sizeof p, r) : r;
}

long call_import(Call *c) {
        RmImport p;
        bool came_all;
        int fd;
        long r;

        if (c->ask.what == RM_IMPORT_MANY)
                return import_many(c);
        if (peek(&p, c->ask.params, sizeof p) < 0)
                return call_refuse(c, RM_ERR_INVALID_ADDRESS);
        fd = p.fd;
        if (!filed_hold(&p.fd))
                return call_refuse(c, RM_ERR_NO_MEMORY);
        came_all = import_places(
                c, &p, &(Arrivals){.fd = p.fd, .parent = p.parent, .n = 1, .objects = &p.object}, &r);
        filed_let_go(p.fd);
        p.fd = fd;
        return came_all ? hand_over(c, &p, sizeof p, r) : r;
}
