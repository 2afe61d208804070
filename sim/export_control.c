/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/export.h"

#include "sim/call.h"
#include "sim/export.h"

/* The controls that export and import objects: cliresCtrlCmdOsUnix...() in os.c. They go to a
 * client's own object. */

typedef struct Travel {
        SimCall *call;
        Sim *sim;
        SimClient *client;
} Travel;

static SimFile *file_of(const Travel *t, int fd) {
        SimCaller *c = t->call->caller;

        return fd >= 0 ? c->file(c, fd) : NULL;
}

static uint32_t export_one(Travel *t, void *params) {
        const RmExport *p = params;
        uint32_t handle, device, status;
        SimFile *f;

        if ((p->flags & RM_EXPORT_FLAG_EMPTY) || p->type != RM_EXPORT_TYPE_RM || p->fd == -1)
                return RM_ERR_INVALID_PARAMETER;
        status = sim_export(t->client, p->object, &handle, &device);
        if (status != RM_OK)
                return status;
        f = file_of(t, p->fd);
        status = f ? sim_exports_init(f, t->client, p->device, 1, NULL) : RM_ERR_INVALID_PARAMETER;
        if (status == RM_OK)
                f->exports.handles[0] = handle;
        else
                sim_export_drop(t->sim, handle);
        return status;
}

static uint32_t export_empty(Travel *t, void *params) {
        const RmExportEmpty *p = params;
        SimFile *f = p->max > 0 ? file_of(t, p->fd) : NULL;

        return f ? sim_exports_init(f, t->client, p->device, p->max, p->metadata) : RM_ERR_INVALID_PARAMETER;
}

/* All new duplicates are made before an old one is dropped. */
static uint32_t export_list(Travel *t, SimFile *f, const RmExportMany *p) {
        uint32_t handles[RM_EXPORTS_MAX] = {0}, device, status = RM_OK;

        for (uint32_t i = 0; i < p->n && status == RM_OK; i++) {
                if (p->objects[i] == 0)
                        continue;
                status = sim_export(t->client, p->objects[i], &handles[i], &device);
                if (status == RM_OK && device != f->exports.device)
                        status = RM_ERR_INVALID_PARAMETER;
        }
        for (uint32_t i = 0; i < p->n; i++) {
                uint32_t *handle = &f->exports.handles[p->index + i];
                uint32_t old = status == RM_OK ? *handle : handles[i];

                if (status == RM_OK)
                        *handle = handles[i];
                if (old != 0)
                        sim_export_drop(t->sim, old);
        }
        return status;
}

static uint32_t export_many(Travel *t, void *params) {
        const RmExportMany *p = params;
        SimFile *f = file_of(t, p->fd);
        bool fresh = f && !f->exports.handles;
        uint32_t status = RM_OK;

        if (!f)
                return RM_ERR_INVALID_PARAMETER;
        if (fresh)
                status = p->max > 0 ? sim_exports_init(f, t->client, p->device, p->max, p->metadata)
                                    : RM_ERR_INVALID_PARAMETER;
        if (status != RM_OK)
                return status;
        if (p->n > RM_EXPORTS_MAX)
                status = RM_ERR_INVALID_PARAMETER;
        else if ((uint32_t) p->n + p->index > f->exports.n)
                status = RM_ERR_OUT_OF_RANGE;
        else
                status = export_list(t, f, p);
        if (status != RM_OK && fresh)
                sim_exports_done(f);
        return status;
}

static uint32_t import_one(Travel *t, void *params) {
        RmImport *p = params;
        const SimFile *f = p->type == RM_EXPORT_TYPE_RM ? file_of(t, p->fd) : NULL;
        uint32_t status;
        SimObject *o;

        if (!f || !f->exports.handles || f->exports.handles[0] == 0)
                return RM_ERR_INVALID_PARAMETER;
        status = sim_import(t->client, p->parent, p->object, f->exports.handles[0], &o);
        if (status == RM_OK)
                p->object = o->handle;
        return status;
}

/* RmImportObject() asks first for the kind of memory: of the card or of the machine. */
static uint32_t import_into(Travel *t, RmImportMany *p, uint32_t i, uint32_t handle) {
        const SimObject *what = sim_object_find(t->sim->exporter->clients, handle);
        uint32_t status = RM_ERR_INVALID_ARGUMENT;
        SimObject *o;

        if (what && (what->class_ == RM_CLASS_MEMORY_LOCAL || what->class_ == RM_CLASS_MEMORY_SYSTEM))
                status = sim_import(t->client, p->parent, p->objects[i], handle, &o);
        if (status != RM_OK)
                return status;
        p->objects[i] = o->handle;
        p->types[i] = o->class_ == RM_CLASS_MEMORY_LOCAL ? RM_IMPORT_VIDMEM : RM_IMPORT_SYSMEM;
        return RM_OK;
}

/* If one object cannot be imported, those before it are freed again. As in the driver, an object
 * with the handle that was given for an empty index is freed, too. */
static void take_back(const Travel *t, const RmImportMany *p, uint32_t n) {
        while (n-- > 0) {
                SimObject *o = p->objects[n] != 0 ? sim_object_find(t->client, p->objects[n]) : NULL;

                if (o && o->parent)
                        sim_object_free(o);
        }
}

static uint32_t import_many(Travel *t, void *params) {
        RmImportMany *p = params;
        const SimFile *f = file_of(t, p->fd);
        uint32_t status = RM_OK, i;

        if (!f || !f->exports.handles || p->n > RM_IMPORTS_MAX)
                return RM_ERR_INVALID_PARAMETER;
        if ((uint32_t) p->n + p->index > f->exports.n)
                return RM_ERR_OUT_OF_RANGE;
        for (i = 0; i < p->n; i++) {
                uint32_t handle = f->exports.handles[p->index + i];

                if (handle == 0) {
                        p->types[i] = RM_IMPORT_NONE;
                        continue;
                }
                status = import_into(t, p, i, handle);
                if (status != RM_OK)
                        break;
        }
        if (status != RM_OK)
                take_back(t, p, i);
        return status;
}

static uint32_t export_info(Travel *t, void *params) {
        RmExportInfo *p = params;
        const SimFile *f = file_of(t, p->fd);

        if (!f || !f->exports.handles)
                return RM_ERR_INVALID_PARAMETER;
        p->device = f->exports.device;
        p->instance = UINT32_MAX;
        p->max_objects = f->exports.n;
        memcpy(p->metadata, f->exports.metadata, sizeof p->metadata);
        if (t->sim->release.facts->export_info < sizeof *p) /* without the instance */
                memmove(&p->instance, &p->max_objects, sizeof *p - offsetof(RmExportInfo, max_objects));
        return RM_OK;
}

static const struct {
        uint32_t cmd, size, fd_at;
        uint32_t (*run)(Travel *t, void *params);
} controls[] = {
        {RM_CTRL_EXPORT_TO_FD, sizeof(RmExport), offsetof(RmExport, fd), export_one},
        {RM_CTRL_IMPORT_FROM_FD, sizeof(RmImport), offsetof(RmImport, fd), import_one},
        {RM_CTRL_EXPORT_INFO, sizeof(RmExportInfo), offsetof(RmExportInfo, fd), export_info},
        {RM_CTRL_EXPORT_EMPTY, sizeof(RmExportEmpty), offsetof(RmExportEmpty, fd), export_empty},
        {RM_CTRL_EXPORT_MANY, sizeof(RmExportMany), offsetof(RmExportMany, fd), export_many},
        {RM_CTRL_IMPORT_MANY, sizeof(RmImportMany), offsetof(RmImportMany, fd), import_many},
};

enum { CONTROLS = sizeof controls / sizeof *controls };

static size_t find(uint32_t cmd) {
        size_t i = 0;

        while (i < CONTROLS && controls[i].cmd != cmd)
                i++;
        return i;
}

bool sim_call_is_export(uint32_t cmd) {
        return find(cmd) < CONTROLS;
}

static uint32_t size_of(const Sim *s, size_t which) {
        return controls[which].cmd == RM_CTRL_EXPORT_INFO ? s->release.facts->export_info
                                                          : controls[which].size;
}

static uint32_t execute(SimCall *k, const RmControl *p, size_t which) {
        _Alignas(8) uint8_t params[sizeof(RmExportMany)];
        uint32_t size = size_of(k->file->sim, which);
        Travel t = {.call = k, .sim = k->file->sim};
        uint32_t status = sim_call_client(k, p->client, &t.client);
        const SimObject *o;

        if (status != RM_OK)
                return status;
        o = sim_object_find(t.client, p->object);
        if (!o)
                return RM_ERR_OBJECT_NOT_FOUND;
        if (o->class_ != RM_CLASS_ROOT_CLIENT)
                return RM_ERR_NOT_SUPPORTED;
        if (p->params_size != size)
                return t.sim->release.wrong_size;
        if (k->caller->read(k->caller, p->params, params, size) < 0)
                return RM_ERR_INVALID_ADDRESS;
        status = controls[which].run(&t, params);
        if (status == RM_OK && k->caller->write(k->caller, p->params, params, size) < 0)
                return RM_ERR_INVALID_ADDRESS;
        return status;
}

uint32_t sim_call_export(SimCall *k, const RmControl *p) {
        size_t which = find(p->cmd);

        const SimRelease *release = &k->file->sim->release;

        if ((p->params_size != 0) != (p->params != 0) || (release->wrong_size == RM_ERR_INVALID_ARGUMENT &&
                                                          p->params_size != size_of(k->file->sim, which)))
                return RM_ERR_INVALID_ARGUMENT;
        return execute(k, p, which);
}

int sim_call_descriptor(SimCaller *c, uint32_t request, uint64_t at) {
        uint32_t nr = rm_ioctl_nr(request), size = rm_ioctl_size(request);
        RmControl p;
        RmXfer x;
        size_t which;
        int fd;

        if (nr == RM_ESC_XFER_CMD && size == sizeof x) {
                if (c->read(c, at, &x, sizeof x) < 0)
                        return -1;
                nr = x.cmd;
                size = x.size;
                at = x.ptr;
        }
        if (nr != RM_ESC_CONTROL || size != sizeof p || c->read(c, at, &p, sizeof p) < 0)
                return -1;
        which = find(p.cmd);
        if (which == CONTROLS || c->read(c, p.params + controls[which].fd_at, &fd, sizeof fd) < 0)
                return -1;
        return fd >= 0 ? fd : -1;
}
