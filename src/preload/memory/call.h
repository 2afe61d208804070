/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One metered call, between call.c and those who move memory from process to process. */

#include "preload/memory/admit.h"
#include "preload/memory/gate.h"

typedef struct Call {
        Gate *g;
        int fd;
        unsigned long request; /* the direct one, also for what came by XFER_CMD */
        uint64_t argument;
        RmAsk ask;
        ObjectSeat seat;  /* below the parent; of a free, nothing */
        ObjectMark mark;  /* of a free: what is freed */
        bool known;       /* the parent, or what is freed */
        int card;         /* GATE_NO_CARD: not asked for, or none */
        uint32_t n_inner; /* 0: the driver reads the application's own */
        uint8_t outer[RM_OUTER_MAX] __attribute__((aligned(8)));
        uint8_t sent[RM_OUTER_MAX] __attribute__((aligned(8)));
        uint8_t inner[RM_INNER_MAX] __attribute__((aligned(8)));
        uint8_t inner_sent[RM_INNER_MAX] __attribute__((aligned(8)));
} Call;

/* What the system call returns: the answer with the structures written back, and with a status of
 * ours in them. */
long call_answer(Call *c, long r);
long call_refuse(Call *c, uint32_t status);

long call_driver(Call *c);                    /* the driver's word on copies of the parameters */
long call_driver_with(Call *c, void *params); /* with these as the parameters of a control */
bool call_agreed(const Call *c, long r);
void call_free_again(Call *c, uint32_t object); /* what the driver made, and the slice has no room for */
bool call_pin(Call *c, int card);      /* the file of the client that gets memory; false: no memory */
RmKnown call_known(Gate *g, int card); /* a card whose slice is not good has one of nothing */

/* Memory that came from elsewhere, and goes there: RM_DUPLICATE, RM_IMPORT and RM_IMPORT_MANY,
 * RM_EXPORT and RM_EXPORT_MANY, the parameters of the size that is known: rm_admit() has refused
 * any other. */
long call_duplicate(Call *c);
long call_import(Call *c);
long call_export(Call *c);
