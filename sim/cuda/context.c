/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/ioctl.h>

#include "gpu/rm/fifo.h"
#include "gpu/rm/uvm_ioctl.h"
#include "sim/cuda/array.h"
#include "sim/cuda/memory.h"
#include "sim/cuda/module.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/state.h"
#include "sim/cuda/stream.h"
#include "sim/cuda/timeline.h"

enum { DEPTH = 64 }; /* of a thread's stack of contexts */

static __thread CUcontext stack[DEPTH];
static __thread unsigned depth;

/* ---- the driver's objects ---- */

enum {
        CLASS_CHANNEL = 0xC46F, /* TURING_CHANNEL_GPFIFO_A: the first cards of the open drivers */
        CLASS_COMPUTE = 0xC5C0, /* TURING_COMPUTE_A */
};

static uint32_t register_card(Device *device) {
        UvmRegisterGpu p = {.ctl = state.driver.ctl, .client = state.driver.client};

        if (device->registered || state.uvm < 0)
                return RM_OK;
        memcpy(p.uuid, device->card->uuid_bytes, sizeof p.uuid);
        if (ioctl(state.uvm, (unsigned long) UVM_REGISTER_GPU_CMD, &p) < 0)
                return DRIVER_E_FILE;
        device->registered = p.status == RM_OK;
        return p.status;
}

/* As libcuda 580 does for each context (reindertpelsma/nvkvm-old, traces/host_reference_ga106). */
static uint32_t set_schedule(CUcontext c) {
        RmPreemptionMode mode = {
                .flags = RM_PREEMPT_FLAG_COMPUTE, .channel = c->group, .compute = RM_PREEMPT_COMPUTE_CILP};
        RmTimeslice slice = {.usec = 2048};
        uint32_t status = driver_control(&state.driver, c->device->card->subdevice, RM_CTRL_PREEMPTION_MODE,
                                         &mode, sizeof mode);

        if (status != RM_OK)
                return status;
        return driver_control(&state.driver, c->group, RM_CTRL_SET_TIMESLICE, &slice, sizeof slice);
}

/* As libcuda 535 and 550 do when all objects are made (docs/internals/native-driver.md). */
static uint32_t schedule_group(CUcontext c) {
        RmGroupSchedule p = {.enable = 1};

        return driver_control_by_release(&state.driver, c->group, RM_CTRL_GROUP_SCHEDULE, &p, sizeof p);
}

/* A real context takes memory twice: what it allocates (the parts), and what the driver keeps for
 * its channel group. */
static uint32_t make_objects(CUcontext c) {
        Driver *d = &state.driver;
        const DriverCard *card = c->device->card;
        uint32_t compute, status = driver_alloc(d, card->device, RM_CLASS_VASPACE, NULL, &c->space);

        if (status == RM_OK)
                status = register_card(c->device);
        if (status == RM_OK)
                status = driver_alloc(d, card->device, RM_CLASS_CHANNEL_GROUP, NULL, &c->group);
        if (status == RM_OK)
                status = set_schedule(c);
        if (status == RM_OK)
                status = driver_alloc(d, c->group, CLASS_CHANNEL, NULL, &c->channel);
        if (status == RM_OK)
                status = driver_alloc(d, c->channel, CLASS_COMPUTE, NULL, &compute);
        if (status == RM_OK)
                status = schedule_group(c);
        return status;
}

/* Split into a half, a quarter, an eighth and the rest, in whole granules. */
static uint32_t take_memory(CUcontext c) {
        DriverMemory memory = {0};
        uint32_t status = driver_memory(&state.driver, c->device->card, &memory);
        uint64_t all = memory.total / 16 < CONTEXT_BYTES ? memory.total / 16 : CONTEXT_BYTES;
        uint64_t rest = all / GRANULE;

        for (size_t i = 0; i < CONTEXT_PARTS && rest > 0 && status == RM_OK; i++) {
                uint64_t part = i + 1 < CONTEXT_PARTS && rest > 1 ? rest / 2 : rest, bytes = part * GRANULE;

                status = driver_alloc_memory(&state.driver, c->device->card, &bytes, &c->parts[i]);
                rest -= part;
        }
        return status;
}

static void free_objects(CUcontext c) {
        for (size_t i = 0; i < CONTEXT_PARTS; i++)
                if (c->parts[i] != 0)
                        (void) driver_free(&state.driver, c->parts[i]);
        if (c->group != 0) {
                RmPreempt preempt = {.wait = 1};

                (void) driver_control(&state.driver, c->group, RM_CTRL_PREEMPT, &preempt, sizeof preempt);
                (void) driver_free(&state.driver, c->group);
        }
        if (c->space != 0)
                (void) driver_free(&state.driver, c->space);
        memset(c->parts, 0, sizeof c->parts);
        c->group = c->space = 0;
}

/* ---- contexts ---- */

static CUresult furnish(CUcontext c) {
        uint32_t status = make_objects(c);
        CUresult r;

        if (status == RM_OK)
                status = take_memory(c);
        if (status == RM_ERR_NO_MEMORY) { /* kept chunks may be enough */
                free_objects(c);
                memory_reclaim(c->device);
                status = make_objects(c);
                if (status == RM_OK)
                        status = take_memory(c);
        }
        r = from_status(status);
        if (r == CUDA_SUCCESS)
                r = timeline_open(c);
        if (r == CUDA_SUCCESS && !(c->legacy = stream_new(c, CU_STREAM_DEFAULT))) {
                timeline_close(c);
                r = CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (r != CUDA_SUCCESS)
                free_objects(c);
        return r;
}

static CUresult new_context(Device *device, CUcontext *ret) {
        CUcontext c = calloc(1, sizeof *c);
        CUresult r;

        if (!c)
                return CUDA_ERROR_OUT_OF_MEMORY;
        c->device = device;
        c->heap = calloc(1, sizeof *c->heap);
        r = c->heap ? furnish(c) : CUDA_ERROR_OUT_OF_MEMORY;
        if (r != CUDA_SUCCESS) {
                free(c->heap);
                free(c);
                return r;
        }
        c->heap->device = device;
        c->alive = true;
        c->next = state.contexts;
        state.contexts = c;
        *ret = c;
        return CUDA_SUCCESS;
}

static bool is_last_of_device(CUcontext gone) {
        for (CUcontext c = state.contexts; c; c = c->next)
                if (c->alive && c != gone && c->device == gone->device)
                        return false;
        return true;
}

/* Frees everything of it, without waiting. */
static void end_context(CUcontext c) {
        if (!c->alive)
                return;
        c->alive = false;
        modules_end_context(c);
        streams_end_context(c);
        range_end_context(c);
        arrays_end_context(c);
        heap_done(c->heap);
        if (is_last_of_device(c)) { /* kept chunks are of no more use */
                graph_memory_end_device(c->device);
                memory_reclaim(c->device);
        }
        free(c->heap);
        c->heap = NULL;
        timeline_close(c);
        free_objects(c);
        c->fault = CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* Checks a handle from the caller; not NULL. */
static CUresult check(CUcontext c) {
        for (CUcontext known = state.contexts; known; known = known->next)
                if (known == c)
                        return c->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
        return CUDA_ERROR_INVALID_CONTEXT;
}

/* ---- the calling thread's ---- */

static CUcontext current(void) {
        return depth > 0 ? stack[depth - 1] : NULL;
}

CUresult context_enter(CUcontext *ret) {
        CUresult r = state_check();
        CUcontext c = current();

        if (r != CUDA_SUCCESS)
                return r;
        if (!c)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (!c->alive)
                return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        *ret = c;
        return c->fault;
}

static void push(CUcontext c) {
        if (depth < DEPTH)
                stack[depth++] = c;
}

static void set_current(CUcontext c) {
        if (!c) {
                depth -= depth > 0 ? 1 : 0;
                return;
        }
        if (depth == 0)
                depth = 1;
        stack[depth - 1] = c;
}

static void pop_if_current(CUcontext c) {
        if (current() == c)
                depth--;
}

/* ---- exported: contexts ---- */

static CUresult create(CUcontext *ret, unsigned flags, CUdevice device) {
        Device *d;
        CUresult r = state_device(device, &d);

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || flags & ~(unsigned) CU_CTX_FLAGS_MASK)
                return CUDA_ERROR_INVALID_VALUE;
        r = new_context(d, ret);
        if (r != CUDA_SUCCESS)
                return r;
        push(*ret);
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxCreate(CUcontext *ret, unsigned flags, CUdevice device) {
        LOCKED;

        return create(ret, flags, device);
}

CUDA_API CUresult cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice device) {
        LOCKED;

        return create(ret, flags, device);
}

CUDA_API CUresult cuCtxCreate_v3(CUcontext *ret, void *affinity, int n, unsigned flags, CUdevice device) {
        LOCKED;

        return n != 0 ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(ret, flags, device);
}

CUDA_API CUresult cuCtxCreate_v4(CUcontext *ret, const CUctxCreateParams *params, unsigned flags,
                                 CUdevice device) {
        LOCKED;

        if (params && (params->numExecAffinityParams != 0 || params->cigParams))
                return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
        return create(ret, flags, device);
}

static CUresult destroy(CUcontext c) {
        CUresult r = state_check();

        if (r == CUDA_SUCCESS)
                r = check(c);
        if (r != CUDA_SUCCESS)
                return r;
        if (c->device->primary == c)
                return CUDA_ERROR_INVALID_CONTEXT;
        (void) context_wait(c);
        end_context(c);
        pop_if_current(c);
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxDestroy_v2(CUcontext c) {
        LOCKED;

        return destroy(c);
}

CUDA_API CUresult cuCtxDestroy(CUcontext c) {
        LOCKED;

        return destroy(c);
}

CUDA_API CUresult cuCtxDetach(CUcontext c) {
        LOCKED;

        return destroy(c);
}

CUDA_API CUresult cuCtxPushCurrent_v2(CUcontext c) {
        LOCKED;
        CUresult r = state_check();

        if (r == CUDA_SUCCESS)
                r = check(c);
        if (r == CUDA_SUCCESS)
                push(c);
        return r;
}

CUDA_API CUresult cuCtxPopCurrent_v2(CUcontext *ret) {
        LOCKED;
        CUresult r = state_check();

        if (r != CUDA_SUCCESS)
                return r;
        if (depth == 0)
                return CUDA_ERROR_INVALID_CONTEXT;
        depth--;
        if (ret)
                *ret = stack[depth];
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxSetCurrent(CUcontext c) {
        LOCKED;
        CUresult r = state_check();

        if (r == CUDA_SUCCESS && c)
                r = check(c);
        if (r == CUDA_SUCCESS)
                set_current(c);
        return r;
}

CUDA_API CUresult cuCtxGetCurrent(CUcontext *ret) {
        LOCKED;
        CUresult r = state_check();

        if (r == CUDA_SUCCESS)
                *ret = current();
        return r;
}

/* ---- exported: primary contexts ---- */

CUDA_API CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device) {
        LOCKED;
        Device *d;
        CUresult r = state_device(device, &d);

        if (r != CUDA_SUCCESS)
                return r;
        if (!d->primary)
                r = new_context(d, &d->primary);
        if (r != CUDA_SUCCESS)
                return r;
        d->primary_users++;
        *ret = d->primary;
        return CUDA_SUCCESS;
}

static void end_primary(Device *d) {
        CUcontext c = d->primary;

        if (!c)
                return;
        (void) context_wait(c);
        d->primary = NULL;
        d->primary_users = 0;
        end_context(c);
}

CUDA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
        LOCKED;
        Device *d;
        CUresult r = state_device(device, &d);

        if (r != CUDA_SUCCESS)
                return r;
        if (d->primary_users == 0)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (d->primary_users == 1)
                end_primary(d);
        else
                d->primary_users--;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
        LOCKED;
        Device *d;
        CUresult r = state_device(device, &d);

        if (r == CUDA_SUCCESS)
                end_primary(d);
        return r;
}

CUDA_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
        LOCKED;
        Device *d;
        CUresult r = state_device(device, &d);

        if (r != CUDA_SUCCESS)
                return r;
        *flags = 0; /* nothing sets them */
        *active = d->primary ? 1 : 0;
        return CUDA_SUCCESS;
}

/* ---- exported: the context's card, and its work ---- */

static CUresult enter_or(CUcontext c, CUcontext *ret) {
        if (!c)
                return context_enter(ret);
        *ret = c;
        return state_check() != CUDA_SUCCESS ? CUDA_ERROR_NOT_INITIALIZED : check(c);
}

CUDA_API CUresult cuCtxGetDevice(CUdevice *ret) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                *ret = c->device->ordinal;
        return r;
}

CUDA_API CUresult cuCtxGetDevice_v2(CUdevice *ret, CUcontext given) {
        LOCKED;
        CUcontext c;
        CUresult r = enter_or(given, &c);

        if (r == CUDA_SUCCESS)
                *ret = c->device->ordinal;
        return r;
}

/* ---- synchronisation ---- */

static CUresult synchronize(CUcontext given) {
        CUcontext c;
        CUresult r = enter_or(given, &c);

        if (r == CUDA_SUCCESS)
                r = capture_refuse(c);
        return r == CUDA_SUCCESS ? context_wait(c) : r;
}

CUDA_API CUresult cuCtxSynchronize(void) {
        LOCKED;

        return synchronize(NULL);
}

CUDA_API CUresult cuCtxSynchronize_v2(CUcontext c) {
        LOCKED;

        return synchronize(c);
}
