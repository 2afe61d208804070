/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/export.h"
#include "preload/inject/usermem.h"
#include "preload/memory/driver_fd.h"
#include "preload/memory/export_fd.h"
#include "preload/memory/foreign_mem.h"
#include "preload/memory/rows.h"
#include "slice/pin.h"

/* Which export calls of this process put the objects at n indices of a file, which are then charged
 * already; 0: none. */
typedef struct OwnExports {
        Gate *g;
        uint32_t first, n;
        bool unsure; /* for all indices: another process has exported to the file */
        uint64_t calls[RM_IMPORTS_MAX];
} OwnExports;

static void find_calls(void *userdata, uint64_t key) {
        OwnExports *o = userdata;

        if (export_table_has_file(&o->g->exports, key))
                export_table_find_calls(&o->g->exports, key, o->first, o->n, o->calls);
        else
                o->unsure = true;
}

static void own_exports_find(OwnExports *o, Gate *g, int fd, uint32_t first, uint32_t n) {
        o->g = g;
        o->first = first;
        o->n = n;
        o->unsure = false;
        for (uint32_t i = 0; i < n; i++)
                o->calls[i] = 0;
        if (export_table_count(&g->exports) > 0 && pin_each_export(fd, find_calls, o) < 0)
                o->unsure = true;
}

/* Returns the export call of the object that the driver gave between the two looks; 0: no call of
 * this process, or that is not certain. */
static uint64_t own_export_call(const OwnExports *before, const OwnExports *after, uint32_t i) {
        bool sure = !before->unsure && !after->unsure && before->calls[i] == after->calls[i] &&
                    after->calls[i] != EXPORT_AMBIGUOUS;

        return sure ? after->calls[i] : 0;
}

/* Charges an imported object. false: there is no room, and the object is freed again. call: the
 * export call of this process, or 0. */
static bool charge_import(RmCall *c, uint64_t call, uint32_t index, uint32_t parent, uint32_t object) {
        RmObject source;
        uint64_t has;
        ExportedObject own;

        c->request.parent = parent;
        c->parent = rm_objects_parent(&c->g->objects, c->request.client, parent);
        if (call == 0 || !export_table_ref(&c->g->exports, call, index, &c->g->objects, &own))
                return foreign_mem_charge(c, object);
        source = export_fd_source(&own);
        if (!gate_pin_row(c->g, c->fd, &c->parent, own.row)) {
                gate_drop_charge(c->g, own.charge, &source);
                rm_call_free_object(c, object);
                return false;
        }
        has = foreign_mem_charged_size(c, object, own.card);
        if (has > (uint64_t) own.units * SLICE_UNIT) { /* then it is another object */
                gate_drop_charge(c->g, own.charge, &source);
                return foreign_mem_charge_bytes(c, object, has);
        }
        foreign_mem_add_holder(c, object, own.charge, &source);
        return true;
}

/* What one call imports, from the indices first to first + n - 1 of a file. */
typedef struct ImportBatch {
        int fd;
        uint32_t parent, first, n;
        const uint32_t *objects; /* in the copy of the parameters that the driver got */
        const uint8_t *types;    /* NULL: no index is empty */
} ImportBatch;

static bool is_empty(const ImportBatch *p, uint32_t i) {
        return p->types && p->types[i] == RM_IMPORT_NONE;
}

/* Frees the first n objects, which are charged, and those behind n, which are not. Object n is
 * freed already. */
static void free_batch(RmCall *c, const ImportBatch *p, uint32_t n) {
        FreedBytes freed;
        RmObjectMark mark;

        freed_bytes_clear(&freed);
        for (uint32_t i = 0; i < p->n; i++) {
                if (is_empty(p, i) || i == n)
                        continue;
                rm_call_free_object(c, p->objects[i]);
                if (i < n && rm_objects_find(&c->g->objects, c->request.client, p->objects[i], &mark))
                        rm_objects_remove(&c->g->objects, &mark, &freed);
        }
        gate_release_bytes(c->g, &freed);
}

/* Imports and charges a batch. Returns true if the driver has imported all, and all is charged;
 * otherwise *ret is the answer. */
static bool import_batch(RmCall *c, void *params, const ImportBatch *p, long *ret) {
        uint64_t replaced = export_table_replacements(&c->g->exports);
        OwnExports before, after;

        own_exports_find(&before, c->g, p->fd, p->first, p->n);
        *ret = rm_call_driver_with(c, params);
        if (!rm_call_ok(c, *ret)) {
                *ret = rm_call_answer(c, *ret);
                return false;
        }
        own_exports_find(&after, c->g, p->fd, p->first, p->n);
        after.unsure |= export_table_replacements(&c->g->exports) != replaced;
        for (uint32_t i = 0; i < p->n; i++)
                if (!is_empty(p, i) && !charge_import(c, own_export_call(&before, &after, i), p->first + i,
                                                      p->parent, p->objects[i])) {
                        free_batch(c, p, i);
                        *ret = rm_call_refuse(c, RM_ERR_NO_MEMORY);
                        return false;
                }
        return true;
}

/* Writes the copied parameters back: the program's memory may have changed since the driver was
 * called. */
static long answer_import(RmCall *c, const void *params, size_t size, long r) {
        if (usermem_write(c->request.params, params, size) < 0)
                rm_set_status(&c->request, c->outer, RM_ERR_INVALID_ADDRESS); /* the object stays */
        return rm_call_answer(c, r);
}

static long import_many(RmCall *c) {
        RmImportMany p;
        bool all_charged;
        int fd;
        long r;

        if (usermem_read(&p, c->request.params, sizeof p) < 0)
                return rm_call_refuse(c, RM_ERR_INVALID_ADDRESS);
        fd = p.fd;
        if (!gate_hold_fd(&p.fd))
                return rm_call_refuse(c, RM_ERR_NO_MEMORY);
        all_charged = import_batch(c, &p,
                                   &(ImportBatch){.fd = p.fd,
                                                  .parent = p.parent,
                                                  .first = p.index,
                                                  .n = p.n <= RM_IMPORTS_MAX ? p.n : RM_IMPORTS_MAX,
                                                  .objects = p.objects,
                                                  .types = p.types},
                                   &r);
        gate_release_fd(p.fd);
        p.fd = fd;
        return all_charged ? answer_import(c, &p, sizeof p, r) : r;
}

long rm_call_import(RmCall *c) {
        RmImport p;
        bool all_charged;
        int fd;
        long r;

        if (c->request.kind == RM_IMPORT_MANY)
                return import_many(c);
        if (usermem_read(&p, c->request.params, sizeof p) < 0)
                return rm_call_refuse(c, RM_ERR_INVALID_ADDRESS);
        fd = p.fd;
        if (!gate_hold_fd(&p.fd))
                return rm_call_refuse(c, RM_ERR_NO_MEMORY);
        all_charged = import_batch(
                c, &p, &(ImportBatch){.fd = p.fd, .parent = p.parent, .n = 1, .objects = &p.object}, &r);
        gate_release_fd(p.fd);
        p.fd = fd;
        return all_charged ? answer_import(c, &p, sizeof p, r) : r;
}
