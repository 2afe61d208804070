/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One metered call of the resource manager. The driver gets copies of the parameters, so it acts on
 * exactly what was decided about. The answer is known even if the application's memory cannot be
 * written; without copies, the driver would have done the work and returned EFAULT. */

#include "preload/memory/admit.h"
#include "preload/memory/gate.h"

typedef struct RmCall {
        Gate *g;
        int fd;
        /* the request for the driver's own number, also for a call that came by XFER_CMD */
        unsigned long ioctl;
        uint64_t argument;
        RmRequest request;
        RmParent parent;   /* parent of the new object; unset in a call that frees */
        RmObjectMark mark; /* the object that is freed */
        bool known;        /* the parent, or the object that is freed, is in the table of objects */
        int card;          /* GATE_NO_CARD: none, or not looked up */
        uint32_t n_inner;  /* 0: the driver reads the application's own parameters */
        uint8_t outer[RM_OUTER_MAX] __attribute__((aligned(8)));
        uint8_t sent[RM_OUTER_MAX] __attribute__((aligned(8)));
        uint8_t inner[RM_INNER_MAX] __attribute__((aligned(8)));
        uint8_t inner_sent[RM_INNER_MAX] __attribute__((aligned(8)));
} RmCall;

/* Decides about a call and makes it. request: the ioctl that calls the driver directly; nr and
 * size: its number and size. Returns what the system call shall return, or GATE_NOT_OURS. */
long gate_call(Gate *g, int fd, unsigned long request, uint64_t argument, uint32_t nr, uint32_t size);

/* ---- for the parts of a call ---- */

/* Writes the structures back to the application; r: the driver's return value. rm_call_refuse()
 * writes back what the application sent, with a status. Both return what the system call shall
 * return. */
long rm_call_answer(RmCall *c, long r);
long rm_call_refuse(RmCall *c, uint32_t status);

/* Calls the driver with the copies, the second form with params as the parameters of a control. */
long rm_call_driver(RmCall *c);
long rm_call_driver_with(RmCall *c, void *params);

bool rm_call_ok(const RmCall *c, long r); /* whether the driver has executed the call */
/* Frees an object that the driver made, but the slice has no room for. */
void rm_call_free_object(RmCall *c, uint32_t object);
/* Pins the client's file; false: it cannot be pinned, so no memory is allocated. */
bool rm_call_pin(RmCall *c, int card);
/* A card that is not usable has a limit of 0. */
RmSliceInfo rm_call_slice_info(Gate *g, int card);

/* RM_DUPLICATE, RM_IMPORT and RM_IMPORT_MANY, RM_EXPORT and RM_EXPORT_MANY. The parameters have the
 * known size: rm_admit() refuses any other. */
long rm_call_duplicate(RmCall *c);
long rm_call_import(RmCall *c);
long rm_call_export(RmCall *c);

/* RM_ATTACH (call_attach.c); the parameters have the known size. */
long rm_call_attach(RmCall *c);

/* RM_ALLOC_FABRIC (call_fabric.c): the object is one more holder of the memory that it names. */
long rm_call_fabric(RmCall *c);

/* An export to a dma-buf, as gate_call() (call_dma_buf.c). */
long rm_call_dma_buf(Gate *g, int fd, unsigned long request, uint64_t argument, uint32_t size);

/* RM_SET_TIMESLICE, RM_SET_PREEMPTION and RM_SET_CHANNELS; the parameters have the known size. */
long rm_call_schedule(RmCall *c);
