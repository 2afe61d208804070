/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/fifo.h"
#include "preload/inject/usermem.h"
#include "preload/memory/rm_call.h"

/* The list names the client of each channel (ctrl2080fifo.h, hClientList), and what the firmware
 * checks of them is not open. Only clients of this process are let through. */
static bool are_own_clients(const RmCall *c, const RmDisableChannels *p) {
        for (uint32_t i = 0; i < p->n; i++) {
                RmObjectMark client;

                if (!rm_objects_find(&c->g->objects, p->clients[i], p->clients[i], &client) ||
                    client.object.kind != RM_OBJECT_CLIENT)
                        return false;
        }
        return true;
}

static uint32_t status_of(const RmCall *c, void *params) {
        uint32_t status = rm_admit_scheduling(&c->request, params);

        if (status == RM_OK && c->request.kind == RM_SET_CHANNELS && !are_own_clients(c, params))
                status = RM_ERR_INSUFFICIENT_PERMISSIONS;
        return status;
}

long rm_call_schedule(RmCall *c) {
        RmDisableChannels params; /* the longest of the three */
        uint32_t status;

        if (c->request.params_size > sizeof params ||
            usermem_read(&params, c->request.params, c->request.params_size) < 0)
                return rm_call_refuse(c, RM_ERR_INVALID_ADDRESS); /* it may be mapped when the driver looks */
        status = status_of(c, &params);
        if (status == RM_OK)
                return rm_call_answer(c, rm_call_driver_with(c, &params));
        gate_log(c->g, "refused: a change of how the card's time is shared", c->request.kind, status);
        return rm_call_refuse(c, status);
}
