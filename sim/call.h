/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One system call, from its number and the address of its parameters to what is in them afterwards:
 * nvidia_ioctl() of kernel-open/nvidia/nv.c and RmIoctl() of escape.c for the control file and the
 * cards, uvm_ioctl() of uvm.c for UVM. */

#include "gpu/rm/rm.h"
#include "sim/caller.h"
#include "sim/sim.h"

#define SIM_VERSION "595.45.04" /* of the driver whose layouts and answers these are */

/* What ioctl(2) returns: 0, also when the driver's own status in the parameters is an error, or a
 * negative errno. */
int sim_call(SimFile *f, SimCaller *c, uint32_t request, uint64_t at);

/* The descriptor that a call speaks of, beside the one it comes in on, when the answer depends on
 * which open file that is; else -1. The caller's memory may be different a moment later. */
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
bool sim_call_travels(uint32_t cmd); /* the controls of the next one */
uint32_t sim_call_travel(SimCall *k, const RmControl *p);
int sim_call_uvm(SimCall *k, uint32_t request, uint64_t at);

/* The client of this call, by sim_client_get(). */
uint32_t sim_call_client(SimCall *k, uint32_t handle, SimClient **ret);
uint32_t sim_gpu_id(uint32_t card);
void sim_uuid_bytes(const SimCard *c, uint8_t ret[static 16]);
