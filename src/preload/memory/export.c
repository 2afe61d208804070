/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/travel.h"
#include "preload/inject/bytes.h"
#include "preload/inject/peek.h"
#include "preload/memory/rows.h"
#include "preload/memory/travel.h"
#include "slice/pin.h"

/* A duplicate of what is to be exported, which is exported in its stead: nobody else knows its
 * handle, so it is still what was charged when the driver looks. 0: there can be none. */
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

/* What was charged already. Where the files can have no row of their own the file keeps the one
 * that it is in, and so with what is shared: those who have it are not pinned for the exports of
 * one process. */
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
        uint64_t key, call;                   /* of the file, or 0; and which call this is */
        uint64_t copies[RM_EXPORTS_MAX / 64]; /* those of them that are our duplicates */
} Places;

/* Before the driver is asked. false: its bytes are nobody's yet, and there is no room. copy: its
 * duplicate, or 0. */
static bool count(Call *c, const Places *p, uint32_t place, uint32_t object, uint32_t copy) {
        Export x = {.key = p->key,
                    .call = p->call,
                    .since = p->key != 0 ? EXPORT_ASKED : EXPORT_UNSEEN,
                    .place = place};
        uint64_t bytes;

        if (count_share(c, &x, object, copy) != 0)
                return count_charged(c, &x, p->fd, p->pinned);
        bytes = call_measure(c, copy);
        return bytes == 0 || count_foreign(c, &x, p->fd, p->pinned, p->device, bytes);
}

/* Below one that the call names, or the client. Of what cannot be copied nobody knows what it is
 * when the driver looks. */
static uint32_t copy_of(const Call *c, const Places *p, uint32_t object, uint32_t *ret) {
        const uint32_t parents[] = {p->device, p->parent, c->ask.client};
        uint32_t status = RM_ERR_INVALID_ARGUMENT;

        for (unsigned i = 0; i < sizeof parents / sizeof *parents; i++) {
                status = duplicate_below(c, parents[i], object, ret);
                if (status == RM_OK || status == RM_ERR_OBJECT_NOT_FOUND)
                        break;
        }
        return status;
}

/* The status with which it is refused, or RM_OK. */
static uint32_t count_places(Call *c, Places *p) {
        for (uint32_t i = 0; i < p->n; i++) {
                uint32_t object = get32(p->objects + 4 * (size_t) i), copy, status;

                if (object == 0)
                        continue;
                status = copy_of(c, p, object, &copy);
                if (status != RM_OK)
                        return status;
                put32(p->objects + 4 * (size_t) i, copy);
                p->copies[i / 64] |= UINT64_C(1) << i % 64;
                if (!count(c, p, p->first + i, object, copy))
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
        uint32_t status = RM_ERR_NO_MEMORY;
        bool agreed = false;
        long r = 0;

        p->call = exports_turn(&c->g->exports);
        p->pinned = gate_file(c->g, p->fd) == GATE_FILE_RM && gate_pin_export(c->g, p->fd);
        if (filed_key(c->g, p->fd, &p->key))
                status = count_places(c, p);
        if (status == RM_OK) {
                r = call_driver_with(c, params);
                agreed = call_agreed(c, r);
        }
        free_copies(c, p);
        if (!agreed)
                filed_drop_call(c->g, p->call);
        else {
                if (c->ask.what == RM_EXPORT_MANY) /* a single one only goes to a file that has none */
                        filed_drop_replaced(c->g, p->fd, p->first, p->n, p->call);
                exports_confirm(&c->g->exports, p->call);
        }
        return status == RM_OK ? call_answer(c, r) : call_refuse(c, status);
}

static long export_many(Call *c) {
        RmExportMany p;
        long r;

        if (peek(&p, c->ask.params, sizeof p) < 0)
                return call_refuse(c, RM_ERR_INVALID_ADDRESS);
        if (!filed_hold(&p.fd))
                return call_refuse(c, RM_ERR_NO_MEMORY);
        r = export_places(c, &p,
                          &(Places){.fd = p.fd,
                                    .device = p.device,
                                    .parent = p.device,
                                    .first = p.index,
                                    .n = p.n <= RM_EXPORTS_MAX ? p.n : 0,
                                    .objects = (uint8_t *) &p.objects});
        filed_let_go(p.fd);
        return r;
}

long call_export(Call *c) {
        RmExport p;
        long r;

        if (c->ask.what == RM_EXPORT_MANY)
                return export_many(c);
        if (peek(&p, c->ask.params, sizeof p) < 0)
                return call_refuse(
                        c, RM_ERR_INVALID_ADDRESS); /* it could be there by the time the driver looks */
        if (!filed_hold(&p.fd))
                return call_refuse(c, RM_ERR_NO_MEMORY);
        r = export_places(c, &p,
                          &(Places){.fd = p.fd,
                                    .device = p.device,
                                    .parent = p.parent,
                                    .n = 1,
                                    .objects = (uint8_t *) &p.object});
        filed_let_go(p.fd);
        return r;
}
