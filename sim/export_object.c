/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/export.h"

#include "sim/export.h"

/* Objects of class 0xE0 (mem_export.c): memory that they hold with the driver's own client, and
 * give back as a new object of the client. A client counts as subscribed to an IMEX channel, and
 * each object has the same number of indices. Objects by UUID are not simulated. */

void sim_export_object_done(SimObject *o) {
        for (size_t i = 0; o->exports && i < RM_EXPORT_MEM_MAX; i++)
                if (o->exports[i] != 0)
                        sim_export_drop(o->client->file->sim, o->exports[i]);
        free(o->exports);
        o->exports = NULL;
}

/* memoryexportCtrlExportMem_IMPL(): all new duplicates are made before an old one is dropped. */
uint32_t sim_export_object(SimObject *o, const RmExportMem *p) {
        uint32_t handles[RM_EXPORT_MEM_MAX] = {0}, device, status = RM_OK;

        if (p->n == 0 || p->n > RM_EXPORT_MEM_MAX)
                return RM_ERR_INVALID_ARGUMENT;
        if (p->index + p->n > RM_EXPORT_MEM_MAX)
                return RM_ERR_OUT_OF_RANGE;
        if (!o->exports)
                o->exports = calloc(RM_EXPORT_MEM_MAX, sizeof *o->exports);
        if (!o->exports)
                return RM_ERR_NO_MEMORY;
        for (uint32_t i = 0; i < p->n && status == RM_OK; i++)
                if (p->handles[i] != 0)
                        status = sim_export(o->client, p->handles[i], &handles[i], &device);
        for (uint32_t i = 0; i < p->n; i++) {
                uint32_t *handle = &o->exports[p->index + i];
                uint32_t old = status == RM_OK ? *handle : handles[i];

                if (status == RM_OK)
                        *handle = handles[i];
                if (old != 0)
                        sim_export_drop(o->client->file->sim, old);
        }
        return status;
}

/* _memoryexportFindImporterParent(): a device of the client, or the subdevice below it. NULL: the
 * client has none of this card. */
static const SimObject *find_parent(const SimClient *c, const SimObject *what) {
        for (const SimObject *device = c->root->children; device; device = device->next) {
                if (device->class_ != RM_CLASS_DEVICE || device->card != what->card)
                        continue;
                if (what->parent->class_ == RM_CLASS_DEVICE)
                        return device;
                for (const SimObject *o = device->children; o; o = o->next)
                        if (o->class_ == RM_CLASS_SUBDEVICE)
                                return o;
        }
        return NULL;
}

static uint32_t import_one(const SimObject *o, uint32_t handle, uint32_t *object, RmImportMemInfo *ret) {
        SimClient *own = o->client->file->sim->exporter->clients;
        const SimObject *parent = find_parent(o->client, sim_object_find(own, handle));
        uint32_t status;
        SimObject *made;

        if (*object == 0)
                return RM_ERR_INVALID_OBJECT_HANDLE;
        if (!parent)
                return RM_ERR_OBJECT_NOT_FOUND;
        status = sim_import(o->client, parent->handle, *object, handle, &made);
        if (status == RM_OK)
                *ret = (RmImportMemInfo){.parent = parent->handle, .kind = RM_ADDR_SPACE_VIDMEM};
        return status;
}

/* memoryexportCtrlImportMem_IMPL() */
uint32_t sim_import_object(const SimObject *o, RmImportMem *p) {
        uint32_t status = RM_OK, n;

        if (p->n == 0 || p->n > RM_IMPORT_MEM_MAX)
                return RM_ERR_INVALID_ARGUMENT;
        if (p->index + p->n > RM_EXPORT_MEM_MAX)
                return RM_ERR_OUT_OF_RANGE;
        for (n = 0; n < p->n && status == RM_OK; n++) {
                uint32_t handle = o->exports ? o->exports[p->index + n] : 0;

                p->infos[n] = (RmImportMemInfo){0};
                if (handle != 0)
                        status = import_one(o, handle, &p->handles[n], &p->infos[n]);
        }
        for (uint32_t i = 0; status != RM_OK && i + 1 < n; i++)
                if (p->infos[i].parent != 0)
                        sim_object_free(sim_object_find(o->client, p->handles[i]));
        return status;
}

/* Attached memory of a multicast object, by offset in units of MULTICAST_PAGE. Teams and mappings
 * are not simulated, nor duplicates of the object. From 570 on nothing is duplicated. */
enum { MULTICAST_PAGE = 2 * 1024 * 1024, MAPS_FROM = 570 };

uint32_t sim_attach_object(SimObject *o, const RmAttachMulticast *p) {
        uint64_t i = p->offset / MULTICAST_PAGE;
        RmExportMem one = {.index = (uint16_t) i, .handles = {p->memory}, .n = 1};

        if (i >= RM_EXPORT_MEM_MAX || (o->exports && o->exports[i] != 0))
                return RM_ERR_INVALID_ARGUMENT;
        if (o->client->file->sim->release.facts->branch >= MAPS_FROM)
                return sim_object_find(o->client, p->memory) ? RM_OK : RM_ERR_OBJECT_NOT_FOUND;
        return sim_export_object(o, &one);
}

uint32_t sim_detach_object(SimObject *o, const RmDetachMulticast *p) {
        uint64_t i = p->offset / MULTICAST_PAGE;
        RmExportMem none = {.index = (uint16_t) i, .n = 1};

        return i < RM_EXPORT_MEM_MAX ? sim_export_object(o, &none) : RM_ERR_INVALID_ARGUMENT;
}
