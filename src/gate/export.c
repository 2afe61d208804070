/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/rows.h"
#include "gate/travel.h"
#include "guest/bytes.h"
#include "guest/peek.h"
#include "rm/travel.h"
#include "slice/pin.h"

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

static uint32_t count_share(Call *c, Export *x, uint32_t object, uint32_t copy) {
        Object source;

        x->share = objects_share(&c->g->objects, c->ask.client, object, &source);
        if (x->share == 0)
                return 0;
        x->units = source.units;
        x->card = source.card;
        x->row = source.row;
        if (copy != 0 && call_measure_charged(c, copy, x->card) > (uint64_t) x->units * SLICE_UNIT) {
                filed_drop(c->g, x);
                x->share = 0;
        }
        return x->share;
}

/* What was charged already. Where the files can have no row of their own the file keeps the one that it is in, and so with what is shared: those
 * who have it are not pinned for the exports of one process. */
static bool count_charged(Call *c, Export *x, int fd, bool pinned) {
        x->apart = pinned && x->row == GATE_ROW_OWN &&
                   gate_open_row(c->g, x->card, GATE_ROW_EXPORTS, c->fd) && filed_set_apart(c->g, x);
        if (!x->apart && gate_file(c->g, fd) == GATE_FILE_RM && !gate_pin(c->g, fd, x->row)) {
                filed_drop(c->g, x);
                return false;
        }
        (void) exports_add(&c->g->exports, x); /* else charged until the end */
        return true;
}

/* What nobody here has charged yet. */
static bool count_foreign(Call *c, Export *x, int fd, bool pinned, uint32_t device, uint64_t bytes) {
        GateRow row = GATE_ROW_OWN;
        int card;

        c->seat = objects_seat(&c->g->objects, c->ask.client, device);
        card = gate_card(c->g, c->fd, &c->seat);
        if (!call_known(c->g, card).limit)
                return false;
        x->apart = pinned && gate_open_row(c->g, card, GATE_ROW_EXPORTS, c->fd);
        if (x->apart)
                row = GATE_ROW_EXPORTS;
        else if (gate_file(c->g, fd) == GATE_FILE_RM && !gate_pin(c->g, fd, row))
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
        bool pinned;                          /* the files' row is, by this one */
        bool locked;                          /* it has the lock of this call */
        bool counted;                         /* some of it is memory of the card */
        uint64_t dev, ino;                    /* then: which one it is */
        uint64_t copies[RM_EXPORTS_MAX / 64]; /* those of them that are our duplicates */
} Places;

/* Before the driver is asked. false: its bytes are nobody's yet, and there is no room. copy: its duplicate, or 0. */
static bool count(Call *c, uint64_t key, Places *p, uint32_t place, uint32_t object, uint32_t copy) {
        Export x = {.key = key, .since = p->locked ? EXPORT_ASKED : EXPORT_UNSEEN, .place = place};
        uint64_t bytes;

        if (count_share(c, &x, object, copy) != 0) {
                p->counted = true;
                return count_charged(c, &x, p->fd, p->pinned);
        }
        bytes = call_measure(c, copy != 0 ? copy : object);
        p->counted |= bytes != 0;
        return bytes == 0 || count_foreign(c, &x, p->fd, p->pinned, p->device, bytes);
}

/* Before the driver is asked: whoever imports what this call puts there finds the lock. */
static bool lock_places(Places *p, uint64_t key) {
        for (uint32_t i = 0; i < p->n; i++)
                if (get32(p->objects + 4 * (size_t) i) != 0)
                        return filed_inode(p->fd, &p->dev, &p->ino) && pin_file(p->fd, key) == 0;
        return false; /* nothing comes, what was there goes */
}

static void forget_exports(Gate *g, uint64_t key, const Places *p) {
        Export x;

        while (exports_take(&g->exports, key, EXPORTS_ANY, &x))
                filed_drop(g, &x);
        if (p->locked)
                pin_release(p->fd, key);
}

/* The status with which it is refused, or RM_OK. Of what cannot have a duplicate below its device the driver makes none either. */
static uint32_t count_places(Call *c, uint64_t key, Places *p) {
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
                if (!count(c, key, p, p->first + i, object, copy))
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
        uint64_t key = pin_new_key() | PIN_KEYS, turn;
        uint32_t status;
        long r = 0;

        p->locked = lock_places(p, key);
        p->pinned = gate_file(c->g, p->fd) == GATE_FILE_RM && gate_pin_export(c->g, p->fd);
        status = count_places(c, key, p);
        turn = exports_turn(&c->g->exports);
        if (status == RM_OK)
                r = call_driver_with(c, params);
        free_copies(c, p);
        if (status != RM_OK || !call_agreed(c, r))
                forget_exports(c->g, key, p);
        else {
                if (c->ask.what == RM_EXPORT_MANY) /* a single one only goes to a file that has none */
                        filed_drop_replaced(c->g, p->fd, p->first, p->n, turn);
                if (p->locked && !p->counted)
                        pin_release(p->fd, key);
                else if (p->locked) /* else charged until the end */
                        exports_confirm(&c->g->exports, key, p->dev, p->ino);
        }
        return status == RM_OK ? call_answer(c, r) : call_refuse(c, status);
}

static long export_many(Call *c) {
        RmExportMany p;
        int fd;
        long r;

        if (peek(&p, c->ask.params, sizeof p) < 0)
                return call_refuse(c, RM_ERR_INVALID_ADDRESS);
        fd = p.fd;
        p.fd = filed_hold(fd);
        r = export_places(c, &p,
                          &(Places){.fd = p.fd,
                                    .device = p.device,
                                    .parent = p.device,
                                    .first = p.index,
                                    .n = p.n <= RM_EXPORTS_MAX ? p.n : 0,
                                    .objects = (uint8_t *) &p.objects});
        filed_let_go(p.fd, fd);
        return r;
}

long call_export(Call *c) {
        RmExport p;
        int fd;
        long r;

        if (c->ask.what == RM_EXPORT_MANY)
                return export_many(c);
        if (peek(&p, c->ask.params, sizeof p) < 0)
                return call_refuse(
                        c, RM_ERR_INVALID_ADDRESS); /* it could be there by the time the driver looks */
        fd = p.fd;
        p.fd = filed_hold(fd);
        r = export_places(c, &p,
                          &(Places){.fd = p.fd,
                                    .device = p.device,
                                    .parent = p.parent,
                                    .n = 1,
                                    .objects = (uint8_t *) &p.object});
        filed_let_go(p.fd, fd);
        return r;
}
