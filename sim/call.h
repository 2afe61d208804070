/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One system call: its number and the address of its parameters become their new contents. It
 * stands for nvidia_ioctl() of kernel-open/nvidia/nv.c, for RmIoctl() of escape.c on the control
 * file and the cards, and for uvm_ioctl() of uvm.c. */

#include "gpu/rm/rm.h"
#include "sim/caller.h"
#include "sim/sim.h"

/* What ioctl(2) returns: a negative errno, or 0, also when the status in the parameters is an
 * error. */
int sim_call(SimFile *f, SimCaller *c, uint32_t request, uint64_t at);

/* The descriptor in the parameters of a call, if the answer depends on which open file it is of;
 * else -1. The caller's memory may change afterwards. */
int sim_call_descriptor(SimCaller *c, uint32_t request, uint64_t at);

/* ---- its parts, for call.c only ---- */

typedef struct SimCall {
        SimFile *file;
        SimCaller *caller;
} SimCall;

int sim_call_alloc_memory(SimCall *k, void *params, size_t n);
int sim_call_alloc_object(SimCall *k, void *params, size_t n);
int sim_call_alloc(SimCall *k, void *params, size_t n);
int sim_call_heap(SimCall *k, void *params, size_t n);
int sim_call_control(SimCall *k, void *params, size_t n);
bool sim_call_is_export(uint32_t cmd); /* the controls of the next one */
uint32_t sim_call_export(SimCall *k, const RmControl *p);
int sim_call_uvm(SimCall *k, uint32_t request, uint64_t at);

/* The client of this call, by sim_client_get(). */
uint32_t sim_call_client(SimCall *k, uint32_t handle, SimClient **ret);
uint32_t sim_gpu_id(uint32_t card);
void sim_uuid_bytes(const SimCard *c, uint8_t ret[static 16]);
