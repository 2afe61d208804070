/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/export.h"
#include "preload/inject/bytes.h"
#include "preload/inject/usermem.h"
#include "preload/memory/card_lookup.h"
#include "preload/memory/driver_fd.h"
#include "preload/memory/export_fd.h"
#include "preload/memory/foreign_mem.h"
#include "preload/memory/reserve.h"
#include "preload/memory/rows.h"
#include "slice/pin.h"

/* Makes a duplicate of an object, to be exported instead. No other thread knows its handle, so the
 * driver exports exactly what was charged. Returns the status; *ret is 0 on failure. */
static uint32_t duplicate_below(const RmCall *c, uint32_t parent, uint32_t object, uint32_t *ret) {
        RmDup d = {.client = c->request.client,
                   .parent = parent,
                   .source_client = c->request.client,
                   .source_object = object,
                   .status = RM_ERR_INVALID_ARGUMENT};

        if (gate_driver(c->fd, RM_IOCTL(RM_ESC_DUP_OBJECT, sizeof d), &d) < 0)
                d.status = RM_ERR_INVALID_ARGUMENT;
        *ret = d.status == RM_OK ? d.object : 0;
        return d.status;
}

static uint32_t ref_charge(RmCall *c, ExportedObject *x, uint32_t object, uint32_t copy) {
        RmObject source;

        x->charge = rm_objects_ref_charge(&c->g->objects, c->request.client, object, &source);
        if (x->charge == 0)
                return 0;
        x->units = source.units;
        x->card = source.card;
        x->row = source.row;
        if (copy != 0 && foreign_mem_charged_size(c, copy, x->card) > (uint64_t) x->units * SLICE_UNIT) {
                export_fd_drop(c->g, x);
                x->charge = 0;
        }
        return x->charge;
}

/* Adds the file as a holder of an object that is charged already: in the files' row, or in the
 * object's row in two cases. The files can have no row of their own, or the object's row is the
 * shared one. Files that other processes have are not pinned for the exports of this process. */
static bool track_charged(RmCall *c, ExportedObject *x, int fd, bool pinned) {
        x->in_file_row = pinned && x->row == GATE_ROW_OWN &&
                         gate_open_row(c->g, x->card, GATE_ROW_EXPORTS, c->fd) &&
                         export_fd_move_to_file_row(c->g, x);
        if (!x->in_file_row && gate_file(c->g, fd) == GATE_FILE_RM && !gate_pin(c->g, fd, x->row)) {
                export_fd_drop(c->g, x);
                return false;
        }
        /* on failure it stays charged until the process ends */
        (void) export_table_add(&c->g->exports, x);
        return true;
}

/* Charges an object that this process has not charged yet. */
static bool charge_uncharged(RmCall *c, ExportedObject *x, int fd, bool pinned, uint32_t device,
                             uint64_t bytes) {
        GateRow row = GATE_ROW_OWN;
        int card;

        c->parent = rm_objects_parent(&c->g->objects, c->request.client, device);
        card = gate_card(c->g, c->fd, &c->parent);
        if (!rm_call_slice_info(c->g, card).limit)
                return false;
        x->in_file_row = pinned && gate_open_row(c->g, card, GATE_ROW_EXPORTS, c->fd);
        if (x->in_file_row)
                row = GATE_ROW_EXPORTS;
        else if (gate_file(c->g, fd) == GATE_FILE_RM && !gate_pin(c->g, fd, row))
                return false;
        if (gate_reserve(c->g, card, row, bytes, c->fd, c->request.client) < 0)
                return false;
        x->units = (uint32_t) (bytes / SLICE_UNIT);
        x->card = (uint8_t) card;
        /* on failure it stays charged until the process ends */
        (void) export_table_add(&c->g->exports, x);
        return true;
}

/* What one call exports, to the indices first to first + n - 1 of a file. */
typedef struct ExportBatch {
        int fd;
        uint32_t device, parent, first, n;
        uint8_t *objects;                     /* handles, in the copy of the parameters for the driver */
        bool pinned;                          /* the file is pinned for GATE_ROW_EXPORTS */
        uint64_t key, call;                   /* of the file, or 0; sequence number of the call */
        uint64_t copies[RM_EXPORTS_MAX / 64]; /* bits: the handle is a duplicate that is to be freed */
} ExportBatch;

/* Charges an object to the file, before the driver is called. false: it was not charged before, and
 * there is no room, or the driver does not report its size. copy: its duplicate. */
static bool charge_export(RmCall *c, const ExportBatch *p, uint32_t index, uint32_t object, uint32_t copy) {
        ExportedObject x = {.key = p->key,
                            .call = p->call,
                            .since = p->key != 0 ? EXPORT_PENDING : EXPORT_UNLOCKED,
                            .index = index};
        uint64_t bytes;

        if (ref_charge(c, &x, object, copy) != 0)
                return track_charged(c, &x, p->fd, p->pinned);
        bytes = foreign_mem_size(c, copy);
        return bytes == 0 ||
               (bytes != FOREIGN_MEM_UNKNOWN && charge_uncharged(c, &x, p->fd, p->pinned, p->device, bytes));
}

/* Makes a duplicate below a parent that the call names, or below the client. An object that cannot
 * be duplicated is not exported: its handle may be another object's when the driver looks. */
static uint32_t copy_of(const RmCall *c, const ExportBatch *p, uint32_t object, uint32_t *ret) {
        const uint32_t parents[] = {p->device, p->parent, c->request.client};
        uint32_t status = RM_ERR_INVALID_ARGUMENT;

        for (unsigned i = 0; i < sizeof parents / sizeof *parents; i++) {
                status = duplicate_below(c, parents[i], object, ret);
                if (status == RM_OK || status == RM_ERR_OBJECT_NOT_FOUND)
                        break;
        }
        return status;
}

/* Charges all objects of the call. Returns RM_OK, or the status to refuse with. */
static uint32_t charge_batch(RmCall *c, ExportBatch *p) {
        for (uint32_t i = 0; i < p->n; i++) {
                uint32_t object = get32(p->objects + 4 * (size_t) i), copy, status;

                if (object == 0)
                        continue;
                status = copy_of(c, p, object, &copy);
                if (status != RM_OK)
                        return status;
                put32(p->objects + 4 * (size_t) i, copy);
                p->copies[i / 64] |= UINT64_C(1) << i % 64;
                if (!charge_export(c, p, p->first + i, object, copy))
                        return RM_ERR_NO_MEMORY;
        }
        return RM_OK;
}

static void free_copies(const RmCall *c, const ExportBatch *p) {
        for (uint32_t i = 0; i < p->n; i++) {
                RmFree f = {.root = c->request.client, .old = get32(p->objects + 4 * (size_t) i)};

                if (p->copies[i / 64] >> i % 64 & 1)
                        (void) gate_driver(c->fd, RM_IOCTL(RM_ESC_FREE, sizeof f),
                                           &f); /* on failure the copy ends with the client */
        }
}

static long export_batch(RmCall *c, void *params, ExportBatch *p) {
        uint32_t status = RM_ERR_NO_MEMORY;
        bool agreed = false;
        long r = 0;

        p->call = export_table_next_sequence(&c->g->exports);
        p->pinned = gate_file(c->g, p->fd) == GATE_FILE_RM && gate_pin_export(c->g, p->fd);
        if (export_fd_key(c->g, p->fd, &p->key))
                status = charge_batch(c, p);
        if (status == RM_OK) {
                r = rm_call_driver_with(c, params);
                agreed = rm_call_ok(c, r);
        }
        free_copies(c, p);
        if (!agreed)
                export_fd_drop_call(c->g, p->call);
        else {
                /* A single object is only exported to a file that has none. */
                if (c->request.kind == RM_EXPORT_MANY)
                        export_fd_drop_replaced(c->g, p->fd, p->first, p->n, p->call);
                export_table_confirm(&c->g->exports, p->call);
        }
        return status == RM_OK ? rm_call_answer(c, r) : rm_call_refuse(c, status);
}

static long export_many(RmCall *c) {
        RmExportMany p;
        long r;

        if (usermem_read(&p, c->request.params, sizeof p) < 0)
                return rm_call_refuse(c, RM_ERR_INVALID_ADDRESS);
        if (!gate_hold_fd(&p.fd))
                return rm_call_refuse(c, RM_ERR_NO_MEMORY);
        r = export_batch(c, &p,
                         &(ExportBatch){.fd = p.fd,
                                        .device = p.device,
                                        .parent = p.device,
                                        .first = p.index,
                                        .n = p.n <= RM_EXPORTS_MAX ? p.n : 0,
                                        .objects = (uint8_t *) &p.objects});
        gate_release_fd(p.fd);
        return r;
}

long rm_call_export(RmCall *c) {
        RmExport p;
        long r;

        if (c->request.kind == RM_EXPORT_MANY)
                return export_many(c);
        if (usermem_read(&p, c->request.params, sizeof p) < 0)
                return rm_call_refuse(c, RM_ERR_INVALID_ADDRESS); /* it may be mapped when the driver looks */
        if (!gate_hold_fd(&p.fd))
                return rm_call_refuse(c, RM_ERR_NO_MEMORY);
        r = export_batch(c, &p,
                         &(ExportBatch){.fd = p.fd,
                                        .device = p.device,
                                        .parent = p.parent,
                                        .n = 1,
                                        .objects = (uint8_t *) &p.object});
        gate_release_fd(p.fd);
        return r;
}
