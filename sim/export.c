/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "gpu/rm/export.h"
#include "sim/export.h"

/* An export is a duplicate that a client of the driver's own has, below a device that it makes for
 * each card (rmobjexportimport.c). That client exists while anything is exported. */

static uint32_t device_of(uint32_t card) {
        return 2 * card + 1;
}

static uint32_t subdevice_of(uint32_t card) {
        return 2 * card + 2;
}

static void drop_exporter(Sim *s) {
        SimFile *f = s->exporter;

        if (!f || s->n_exported > 0)
                return;
        sim_file_close(f);
        s->exporter = NULL;
}

static uint32_t take_exporter(Sim *s, SimClient **ret) {
        SimFile *f = s->exporter ? s->exporter : sim_file_open(s, SIM_FILE_CTL, SIM_CARDS_MAX);
        uint32_t status = RM_OK;
        SimClient *c;

        if (!f)
                return RM_ERR_NO_MEMORY;
        s->exporter = f;
        if (!f->clients)
                status = sim_client_new(f, 0, (SimProcess){0}, &c);
        if (status == RM_OK)
                *ret = f->clients;
        else
                drop_exporter(s);
        return status;
}

/* The device and the subdevice of a card in the driver's own client. */
static uint32_t have_device(SimClient *c, uint32_t card) {
        SimObject *o = sim_object_find(c, device_of(card));
        uint32_t status = RM_OK;

        if (!o)
                status = sim_object_new(c, &(SimWish){c->handle, device_of(card), RM_CLASS_DEVICE, card, 0},
                                        &o);
        if (status == RM_OK && !sim_object_find(c, subdevice_of(card)))
                status = sim_object_new(
                        c, &(SimWish){device_of(card), subdevice_of(card), RM_CLASS_SUBDEVICE, 0, 0}, &o);
        return status;
}

static uint32_t keep(SimClient *own, SimClient *c, const SimObject *what, uint32_t *ret_handle) {
        bool on_card = what->card < c->file->sim->n_cards;
        uint32_t status = on_card ? have_device(own, what->card) : RM_OK;
        SimObject *o;

        if (status == RM_OK)
                status = sim_object_dup(own, on_card ? device_of(what->card) : own->handle, 0, c,
                                        what->handle, &o);
        if (status == RM_ERR_INVALID_OBJECT_PARENT && on_card)
                status = sim_object_dup(own, subdevice_of(what->card), 0, c, what->handle, &o);
        if (status == RM_OK)
                *ret_handle = o->handle;
        return status;
}

uint32_t sim_export(SimClient *c, uint32_t object, uint32_t *ret_handle, uint32_t *ret_device) {
        const SimObject *what = sim_object_find(c, object);
        Sim *s = c->file->sim;
        SimClient *own;
        uint32_t status;

        if (!what)
                return RM_ERR_OBJECT_NOT_FOUND;
        status = take_exporter(s, &own);
        if (status != RM_OK)
                return status;
        status = keep(own, c, what, ret_handle);
        s->n_exported += status == RM_OK;
        drop_exporter(s);
        *ret_device = what->card < s->n_cards ? what->card : SIM_CARDS_MAX;
        return status;
}

void sim_export_drop(Sim *s, uint32_t handle) {
        SimObject *o = s->exporter ? sim_object_find(s->exporter->clients, handle) : NULL;

        assert(o && s->n_exported > 0);
        sim_object_free(o);
        s->n_exported--;
        drop_exporter(s);
}

uint32_t sim_import(SimClient *c, uint32_t parent, uint32_t wanted, uint32_t handle, SimObject **ret) {
        const Sim *s = c->file->sim;

        assert(s->exporter);
        return sim_object_dup(c, parent, wanted, s->exporter->clients, handle, ret);
}

uint32_t sim_exports_init(SimFile *f, const SimClient *c, uint32_t device, uint16_t n,
                          const uint8_t *metadata) {
        const SimObject *o = NULL;
        uint32_t *handles;

        if (f->exports.handles)
                return RM_ERR_STATE_IN_USE;
        if (device != 0) {
                o = sim_object_find(c, device);
                if (!o)
                        return RM_ERR_OBJECT_NOT_FOUND;
                if (o->class_ != RM_CLASS_DEVICE)
                        return RM_ERR_INVALID_PARAMETER;
        }
        handles = calloc(n, sizeof *handles);
        if (!handles)
                return RM_ERR_NO_MEMORY;
        f->exports = (SimExports){.handles = handles, .n = n, .device = o ? o->card : SIM_CARDS_MAX};
        if (metadata)
                memcpy(f->exports.metadata, metadata, sizeof f->exports.metadata);
        return RM_OK;
}

void sim_exports_done(SimFile *f) {
        for (size_t i = 0; i < f->exports.n; i++)
                if (f->exports.handles[i] != 0)
                        sim_export_drop(f->sim, f->exports.handles[i]);
        free(f->exports.handles);
        f->exports = (SimExports){0};
}
