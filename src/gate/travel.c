/* SPDX-License-Identifier: Apache-2.0 */
#include "rm/travel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "gate/call.h"
#include "gate/rows.h"
#include "guest/bytes.h"
#include "guest/peek.h"
#include "slice/hold.h"

/* Memory that comes from elsewhere, by a duplicate or by a descriptor, and what is exported to a descriptor. */

/* Bytes of the card behind an object; 0 where it is none of the card's memory. */
static uint64_t measure(const Call *c, uint32_t object) {
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

static bool charge(Call *c, uint32_t object, uint64_t bytes) {
        ObjectBytes freed;
        int card = gate_card(c->g, c->fd, &c->seat);

        object_bytes_none(&freed);
        if (!call_known(c->g, card).limit || !call_hold(c, card) ||
            gate_reserve(c->g, card, c->seat.row, bytes, c->fd, c->ask.client) < 0) {
                call_free_again(c, object);
                return false;
        }
        c->seat.card = (uint8_t) card;
        (void) objects_add(&c->g->objects, &c->seat, object, OBJECT_LEAF, bytes, 0,
                           &freed); /* else charged until the end */
        return true;
}

/* Another process's memory counts here as well, for as long as it is here: nobody in this process can know whether the other one still
 * has it. So it is counted twice while both have it, and never not at all. */
static bool charge_foreign(Call *c, uint32_t object) {
        uint64_t bytes = measure(c, object);

        return bytes == 0 || charge(c, object, bytes);
}

/* ---- duplicates ---- */

/* What a duplicate of something charged has, as the driver tells: what is no memory is a channel group. A handle may be another
 * object's by the time the driver looks, and a larger one's. */
static uint64_t measure_charged(const Call *c, uint32_t object, uint8_t card) {
        uint64_t bytes = measure(c, object);

        return bytes > 0 ? bytes : call_known(c->g, card).group_bytes;
}

static void add_holder(Call *c, uint32_t object, uint32_t share, const Object *source) {
        ObjectBytes freed;

        object_bytes_none(&freed);
        c->seat.card = source->card;
        c->seat.row = source->row;
        (void) objects_add(&c->g->objects, &c->seat, object, OBJECT_LEAF,
                           (uint64_t) source->units * SLICE_UNIT, share,
                           &freed); /* else charged until the end */
}

static void drop_share(Gate *g, uint32_t share, const Object *source) {
        ObjectBytes freed;

        object_bytes_none(&freed);
        objects_drop_share(&g->objects, share, source, &freed);
        gate_give_back(g, &freed);
}

static long duplicate_leaf(Call *c, const Object *source, uint32_t share) {
        uint64_t bytes = (uint64_t) source->units * SLICE_UNIT, has = 0;
        long r = call_driver(c);
        uint32_t object = rm_new_handle(&c->ask, c->outer);
        bool agreed = call_agreed(c, r);

        if (agreed)
                has = measure_charged(c, object, source->card);
        if (agreed && has <= bytes) {
                add_holder(c, object, share, source);
                return call_answer(c, r);
        }
        drop_share(c->g, share, source);
        return agreed && !charge(c, object, has) ? call_refuse(c, RM_ERR_NO_MEMORY) : call_answer(c, r);
}

long call_duplicate(Call *c) {
        ObjectBytes freed;
        ObjectMark mark;
        Object source;
        uint32_t share = objects_share(&c->g->objects, c->ask.source_client, c->ask.source_object, &source);
        bool known;
        long r;

        object_bytes_none(&freed);
        if (share != 0 && !gate_hold_row(c->g, c->fd, &c->seat, source.row)) {
                drop_share(c->g, share, &source);
                return call_refuse(c, RM_ERR_NO_MEMORY);
        }
        if (share != 0)
                return duplicate_leaf(c, &source, share);
        known = objects_find(&c->g->objects, c->ask.source_client, c->ask.source_object, &mark) &&
                mark.object.kind != OBJECT_LEAF;
        r = call_driver(c);
        if (!call_agreed(c, r))
                return call_answer(c, r);
        if (known && measure(c, rm_new_handle(&c->ask, c->outer)) == 0)
                (void) objects_add(&c->g->objects, &c->seat, rm_new_handle(&c->ask, c->outer),
                                   mark.object.kind, 0, 0, &freed); /* else it is asked for */
        else if (!charge_foreign(c, rm_new_handle(&c->ask, c->outer)))
                return call_refuse(c, RM_ERR_NO_MEMORY);
        gate_give_back(c->g, &freed);
        return call_answer(c, r);
}

/* ---- the lock that says that an open file is still there ---- */

static bool lock_file(int fd, uint64_t key) {
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t) key, .l_len = 1};

        if (sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock) == 0)
                return true;
        lock.l_type = F_WRLCK; /* opened for writing only */
        return sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock) == 0;
}

static bool which_file(int fd, uint64_t *ret_dev, uint64_t *ret_ino) {
        struct stat st;

        st.st_dev = st.st_ino = 0;
        if (sys_call(SYS_fstat, fd, &st) < 0)
                return false;
        *ret_dev = st.st_dev;
        *ret_ino = st.st_ino;
        return true;
}

static Object source_of(const Export *x) {
        return (Object){.units = x->units, .card = x->card, .row = x->row};
}

/* From their own row to that of the files, and back. */
static bool move_apart(Gate *g, const Export *x, bool back) {
        Slice *own = gate_slice(g, x->card, x->row), *files = gate_slice(g, x->card, GATE_ROW_EXPORTS);

        return slice_move(back ? files : own, back ? own : files, (uint64_t) x->units * SLICE_UNIT) == 0;
}

/* The bytes are with the files as long as there is one; they are moved before that is said, so that no thread goes on to the driver while they
 * are not: who was second moves them back. */
static bool set_apart(Gate *g, Export *x) {
        bool moved = !shares_is_exported(&g->objects.shares, x->share);
        int first;

        if (moved && !move_apart(g, x, false))
                return false;
        first = shares_add_export(&g->objects.shares, x->share);
        if (moved && first != 1)
                (void) move_apart(g, x, true); /* else counted twice until the end */
        if (!moved && first == 1)
                (void) move_apart(g, x, false); /* else in the process's row */
        return first >= 0;
}

static void drop_apart(Gate *g, const Export *x) {
        ShareEnd end = x->share != 0 ? shares_drop_export(&g->objects.shares, x->share) : SHARE_FREED;

        if (end == SHARE_BACK)
                (void) move_apart(g, x, true); /* else they stay with the files */
        else if (end == SHARE_FREED)
                slice_release(gate_slice(g, x->card, GATE_ROW_EXPORTS), (uint64_t) x->units * SLICE_UNIT);
}

static void drop(Gate *g, const Export *x) {
        Object source = source_of(x);

        if (x->apart)
                drop_apart(g, x);
        else
                drop_share(g, x->share, &source);
}

static uint32_t how_many(Gate *g) {
        return atomic_load_explicit(&g->exports.n, memory_order_relaxed);
}

typedef struct Look {
        uint64_t keys[HOLD_MANY];
        uint32_t places[HOLD_MANY], n;
} Look;

static void drop_closed(Gate *g, int fd, const Look *look) {
        bool locked[HOLD_MANY];
        Export gone;

        hold_are_locked(fd, look->keys, locked, look->n);
        for (uint32_t i = 0; i < look->n; i++)
                if (!locked[i] && exports_take(&g->exports, look->keys[i], look->places[i], &gone))
                        drop(g, &gone);
}

/* From the last to the first: what is taken out leaves its place to one of those that were looked at. */
void gate_drop_closed_exports(Gate *g, int fd) {
        Look look;
        uint64_t dev, ino;
        Export x;

        look.n = 0;
        if (how_many(g) == 0 || !which_file(fd, &dev, &ino))
                return;
        for (uint32_t i = how_many(g); i-- > 0;) {
                if (!exports_at(&g->exports, i, &x) || x.pending || x.dev != dev || x.ino != ino)
                        continue;
                look.keys[look.n] = x.key;
                look.places[look.n++] = x.place;
                if (look.n == HOLD_MANY) {
                        drop_closed(g, fd, &look);
                        look.n = 0;
                }
        }
        drop_closed(g, fd, &look);
}

/* ---- exports ---- */

/* A duplicate of what is to be exported, which is exported in its stead: nobody else knows its handle, so it is still what was charged
 * when the driver looks. 0: there can be none. */
static uint32_t duplicate_below(const Call *c, uint32_t parent, uint32_t object, uint32_t *ret) {
        RmDup d = {.client = c->ask.client,
                   .parent = parent,
                   .source_client = c->ask.client,
                   .source_object = object,
                   .status = RM_ERR_INVALID_ARGUMENT};

        if (gate_driver(c->fd, RM_IOCTL(RM_ESC_DUP_OBJECT, sizeof d), &d) < 0)
                d.status = RM_ERR_INVALID_ARGUMENT;
        *ret = d.status == RM_OK ? d.object : 0;
        return d.status;
}

static uint32_t keep_share(Call *c, Export *x, uint32_t object, uint32_t copy) {
        Object source;

        x->share = objects_share(&c->g->objects, c->ask.client, object, &source);
        if (x->share == 0)
                return 0;
        x->units = source.units;
        x->card = source.card;
        x->row = source.row;
        if (copy != 0 && measure_charged(c, copy, x->card) > (uint64_t) x->units * SLICE_UNIT) {
                drop(c->g, x);
                x->share = 0;
        }
        return x->share;
}

/* What was charged already. Where the files can have no row of their own the file keeps the one that it is in, and so with what is shared: those
 * who have it are not held for the exports of one process. */
static bool keep_charged(Call *c, Export *x, int fd, bool held) {
        x->apart = held && x->row == GATE_ROW_OWN && gate_open_row(c->g, x->card, GATE_ROW_EXPORTS, c->fd) &&
                   set_apart(c->g, x);
        if (!x->apart && gate_file(c->g, fd) == GATE_FILE_RM && !gate_hold(c->g, fd, x->row)) {
                drop(c->g, x);
                return false;
        }
        (void) exports_add(&c->g->exports, x); /* else charged until the end */
        return true;
}

/* What nobody here has charged yet. */
static bool keep_foreign(Call *c, Export *x, int fd, bool held, uint32_t device, uint64_t bytes) {
        GateRow row = GATE_ROW_OWN;
        int card;

        c->seat = objects_seat(&c->g->objects, c->ask.client, device);
        card = gate_card(c->g, c->fd, &c->seat);
        if (!call_known(c->g, card).limit)
                return false;
        x->apart = held && gate_open_row(c->g, card, GATE_ROW_EXPORTS, c->fd);
        if (x->apart)
                row = GATE_ROW_EXPORTS;
        else if (gate_file(c->g, fd) == GATE_FILE_RM && !gate_hold(c->g, fd, row))
                return false;
        if (gate_reserve(c->g, card, row, bytes, c->fd, c->ask.client) < 0)
                return false;
        x->units = (uint32_t) (bytes / SLICE_UNIT);
        x->card = (uint8_t) card;
        (void) exports_add(&c->g->exports, x); /* else charged until the end */
        return true;
}

typedef struct Places { /* of a file, and what is to be exported to them: in the copy that the driver gets */
        int fd;
        uint32_t device, parent, first, n;
        uint8_t *objects;
        bool held;                            /* the files' row is, by this one */
        uint64_t copies[RM_EXPORTS_MAX / 64]; /* those of them that are our duplicates */
} Places;

/* Before the driver is asked. false: its bytes are nobody's yet, and there is no room. copy: its duplicate, or 0. */
static bool keep(Call *c, uint64_t key, const Places *p, uint32_t place, uint32_t object, uint32_t copy) {
        Export x = {.key = key, .place = place, .pending = true};
        uint64_t bytes;

        if (keep_share(c, &x, object, copy) != 0)
                return keep_charged(c, &x, p->fd, p->held);
        bytes = measure(c, copy != 0 ? copy : object);
        return bytes == 0 || keep_foreign(c, &x, p->fd, p->held, p->device, bytes);
}

/* What was in these places of the file before is in them no longer. */
static void drop_replaced(Gate *g, int fd, uint32_t first, uint32_t n) {
        Export x, gone;

        for (uint32_t i = how_many(g); i-- > 0;)
                if (exports_at(&g->exports, i, &x) && !x.pending && x.place >= first && x.place - first < n &&
                    hold_is_here(fd, x.key) && exports_take(&g->exports, x.key, x.place, &gone))
                        drop(g, &gone);
}

static void settle_exports(Gate *g, uint64_t key, int fd, uint32_t first, uint32_t n, bool agreed) {
        uint64_t dev, ino;
        Export x;

        if (agreed) {
                drop_replaced(g, fd, first, n);
                if (which_file(fd, &dev, &ino) && lock_file(fd, key))
                        exports_confirm(&g->exports, key, dev, ino); /* else charged until the end */
                return;
        }
        while (exports_take(&g->exports, key, EXPORTS_ANY, &x))
                drop(g, &x);
}

/* The status with which it is refused, or RM_OK. Of what cannot have a duplicate below its device the driver makes none either. */
static uint32_t keep_places(Call *c, uint64_t key, Places *p) {
        for (uint32_t i = 0; i < p->n; i++) {
                uint32_t object = get32(p->objects + 4 * (size_t) i), copy, status;

                if (object == 0)
                        continue;
                status = duplicate_below(c, p->device, object, &copy);
                if (status != RM_OK && p->parent != p->device)
                        status = duplicate_below(c, p->parent, object, &copy);
                if (status == RM_ERR_OBJECT_NOT_FOUND)
                        return status;
                if (copy != 0) {
                        put32(p->objects + 4 * (size_t) i, copy);
                        p->copies[i / 64] |= UINT64_C(1) << i % 64;
                }
                if (!keep(c, key, p, p->first + i, object, copy))
                        return RM_ERR_NO_MEMORY;
        }
        return RM_OK;
}

static void free_copies(const Call *c, const Places *p) {
        for (uint32_t i = 0; i < p->n; i++) {
                RmFree f = {.root = c->ask.client, .old = get32(p->objects + 4 * (size_t) i)};

                if (p->copies[i / 64] >> i % 64 & 1)
                        (void) gate_driver(c->fd, RM_IOCTL(RM_ESC_FREE, sizeof f), &f); /* as with others */
        }
}

static long export_places(Call *c, void *params, Places *p) {
        uint64_t key = hold_new_key() | HOLD_KEYS;
        uint32_t status;
        long r = 0;

        p->held = gate_file(c->g, p->fd) == GATE_FILE_RM && gate_hold_export(c->g, p->fd);
        status = keep_places(c, key, p);
        if (status == RM_OK)
                r = call_driver_with(c, params);
        free_copies(c, p);
        /* a single one only goes to a file that has none */
        settle_exports(c->g, key, p->fd, p->first, c->ask.what == RM_EXPORT_MANY ? p->n : 0,
                       status == RM_OK && call_agreed(c, r));
        return status == RM_OK ? call_answer(c, r) : call_refuse(c, status);
}

static long export_many(Call *c) {
        RmExportMany p;

        if (peek(&p, c->ask.params, sizeof p) < 0)
                return call_refuse(c, RM_ERR_INVALID_ADDRESS);
        return export_places(c, &p,
                             &(Places){.fd = p.fd,
                                       .device = p.device,
                                       .parent = p.device,
                                       .first = p.index,
                                       .n = p.n <= RM_EXPORTS_MAX ? p.n : 0,
                                       .objects = (uint8_t *) &p.objects});
}

long call_export(Call *c) {
        RmExport p;

        if (c->ask.what == RM_EXPORT_MANY)
                return c->ask.params_size == sizeof(RmExportMany) ? export_many(c)
                                                                  : call_answer(c, call_driver(c));
        if (c->ask.params_size != sizeof p)
                return call_answer(c, call_driver(c));
        if (peek(&p, c->ask.params, sizeof p) < 0)
                return call_refuse(
                        c, RM_ERR_INVALID_ADDRESS); /* it could be there by the time the driver looks */
        return export_places(c, &p,
                             &(Places){.fd = p.fd,
                                       .device = p.device,
                                       .parent = p.parent,
                                       .n = 1,
                                       .objects = (uint8_t *) &p.object});
}

/* ---- imports ---- */

/* What this process has exported to that file itself is charged already. */
static bool is_own(Call *c, int fd, uint32_t place, Export *ret) {
        Export x;

        for (uint32_t i = how_many(c->g); i-- > 0;)
                if (exports_at(&c->g->exports, i, &x) && !x.pending && x.place == place &&
                    hold_is_here(fd, x.key) &&
                    exports_hold(&c->g->exports, x.key, place, &c->g->objects, ret))
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
                return charge_foreign(c, object);
        source = source_of(&own);
        if (!gate_hold_row(c->g, c->fd, &c->seat, own.row)) {
                drop_share(c->g, own.share, &source);
                call_free_again(c, object);
                return false;
        }
        add_holder(c, object, own.share, &source);
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
                return c->ask.params_size == sizeof(RmImportMany) ? import_many(c)
                                                                  : call_answer(c, call_driver(c));
        if (c->ask.params_size != sizeof p)
                return call_answer(c, call_driver(c));
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
