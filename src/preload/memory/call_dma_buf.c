/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "gpu/rm/dma_buf.h"
#include "preload/inject/bytes.h"
#include "preload/inject/usermem.h"
#include "preload/memory/driver_fd.h"
#include "preload/memory/export_fd.h"
#include "preload/memory/rm_call.h"
#include "preload/memory/rows.h"
#include "slice/pin.h"

/* A dma-buf is one more holder of its objects, until it is closed. It has an inode of its own, so
 * only the kernel's list of locks shows whether it is still open. The call goes to a card's file,
 * where the driver makes no duplicates and answers no questions about objects. So only objects that
 * are counted already are exported, and only if their handles stay theirs during the call. */

typedef struct DmaBufCall {
        Gate *g;
        int fd;
        unsigned long ioctl;
        uint64_t argument, key, call;
        uint32_t size, n; /* n: number of objects that hold a charge for the file */
        RmDmaBuf params;  /* in the layout of its size (before 570 it is 8 bytes shorter) */
        RmObject objects[RM_DMA_BUF_MAX];
} DmaBufCall;

static uint32_t handle_at(const DmaBufCall *d, uint32_t i) {
        size_t at = offsetof(RmDmaBuf, handles) - (sizeof(RmDmaBuf) - d->size) / 2;

        return get32((const uint8_t *) &d->params + at + 4 * (size_t) i);
}

static uint8_t *status_at(DmaBufCall *d) {
        return (uint8_t *) &d->params + d->size - (sizeof(RmDmaBuf) - offsetof(RmDmaBuf, status));
}

static long answer(DmaBufCall *d, long r) {
        return usermem_write(d->argument, &d->params, d->size) < 0 ? -EFAULT : r;
}

static long refuse(DmaBufCall *d, uint32_t status) {
        gate_log(d->g, "refused: a dma-buf, with status", d->key, status);
        export_fd_drop_call(d->g, d->call);
        d->params.fd = -1;
        put32(status_at(d), status);
        return answer(d, 0);
}

/* Adds the file as a holder of object i. false: this process has not charged the object, or a call
 * frees it. */
static bool hold_object(DmaBufCall *d, uint32_t i) {
        RmObject *o = &d->objects[i];
        ExportedObject x = {.key = d->key, .call = d->call, .since = EXPORT_PENDING, .index = i};

        x.charge = rm_objects_ref_charge(&d->g->objects, d->params.client, handle_at(d, i), o);
        if (x.charge == 0)
                return false;
        x.units = o->units;
        x.card = o->card;
        x.row = o->row;
        /* on failure it stays charged until the process ends */
        (void) export_table_add(&d->g->exports, &x);
        return o->freeing == 0;
}

static bool hold_objects(DmaBufCall *d) {
        /* if there are more, the driver refuses */
        uint32_t n = d->params.n <= RM_DMA_BUF_MAX ? d->params.n : 0;

        for (d->n = 0; d->n < n; d->n++)
                if (!hold_object(d, d->n))
                        return false;
        return true;
}

/* Locks the file for its key, and for the rows that count its objects after the process's end. */
static bool lock_file(DmaBufCall *d, int fd) {
        if (pin_file(fd, d->key) < 0)
                return false;
        for (uint32_t i = 0; i < d->n; i++)
                if ((i == 0 || d->objects[i].row != d->objects[i - 1].row) &&
                    !gate_pin(d->g, fd, (GateRow) d->objects[i].row))
                        return false;
        /* on failure it stays charged until the process ends */
        (void) export_table_add_file(&d->g->exports, &(ExportFile){.key = d->key});
        export_table_confirm(&d->g->exports, d->call);
        return true;
}

static bool are_kept(const DmaBufCall *d) {
        for (uint32_t i = 0; i < d->n; i++)
                if (!rm_objects_is_kept(&d->g->objects, &d->objects[i]))
                        return false;
        return true;
}

static long export_objects(DmaBufCall *d) {
        int fd;
        long r;

        d->key = pin_key_new() | PIN_KEY_END;
        d->call = export_table_next_sequence(&d->g->exports);
        /* A further call for a dma-buf, with more than 128 objects in all, could not be undone. */
        if (d->params.fd != -1 || !hold_objects(d))
                return refuse(d, RM_ERR_NOT_SUPPORTED);
        r = gate_next_ioctl(d->fd, d->ioctl, &d->params);
        if (r < 0 || get32(status_at(d)) != RM_OK) {
                export_fd_drop_call(d->g, d->call);
                return answer(d, r);
        }
        fd = d->params.fd;
        if (are_kept(d) && lock_file(d, fd))
                return answer(d, r);
        (void) sys_call(SYS_close, fd); /* no other thread has been told of it */
        return refuse(d, RM_ERR_NO_MEMORY);
}

long rm_call_dma_buf(Gate *g, int fd, unsigned long request, uint64_t argument, uint32_t size) {
        DmaBufCall d;

        if (gate_file(g, fd) != GATE_FILE_RM)
                return GATE_NOT_OURS;
        if (usermem_read(&d.params, argument, size) < 0)
                return -EFAULT;
        d.g = g;
        d.fd = fd;
        d.ioctl = request;
        d.argument = argument;
        d.size = size;
        return export_objects(&d);
}
