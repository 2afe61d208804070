/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A program in a test: an open control file, memory, and the calls as a library would make them. */

#include "../../fake/memory-caller.h"
#include "gpu/rm/heap.h"
#include "gpu/rm/query.h"
#include "machine.h"
#include "sim/call.h"

#define PARAMS_AT MEMORY_START /* address for the parameters of calls */
#define NESTED_AT (MEMORY_START + MEMORY_PAGE)

typedef struct Program {
        SimFile *ctl;
        MemoryCaller memory;
} Program;

static inline Program program_open(Sim *s, uint32_t pid, uint32_t uid) {
        Program p = {.ctl = machine_open(s)};

        memory_caller_init(&p.memory, pid, uid);
        return p;
}

static inline void *program_bytes(Program *p, uint64_t at) {
        return p->memory.bytes + (at - MEMORY_READ_ONLY);
}

/* Passes the parameters in and out; returns what ioctl(2) returns. */
static inline int program_call_on(Program *p, SimFile *f, uint32_t nr, void *params, size_t n) {
        int r;

        memcpy(program_bytes(p, PARAMS_AT), params, n);
        r = sim_call(f, &p->memory.caller, RM_IOCTL(nr, n), PARAMS_AT);
        memcpy(params, program_bytes(p, PARAMS_AT), n);
        return r;
}

static inline int program_call(Program *p, uint32_t nr, void *params, size_t n) {
        return program_call_on(p, p->ctl, nr, params, n);
}

static inline uint32_t program_alloc(Program *p, uint32_t client, uint32_t parent, uint32_t handle,
                                     uint32_t class_, const void *params, size_t n) {
        RmAlloc a = {.root = client, .parent = parent, .new = handle, .class_ = class_};

        if (n > 0) {
                memcpy(program_bytes(p, NESTED_AT), params, n);
                a.params = NESTED_AT;
                a.params_size = (uint32_t) n;
        }
        ASSERT_OK(program_call(p, RM_ESC_ALLOC, &a, sizeof a));
        return a.status;
}

static inline uint32_t program_client(Program *p) {
        RmAlloc a = {.class_ = RM_CLASS_ROOT};

        ASSERT_OK(program_call(p, RM_ESC_ALLOC, &a, sizeof a));
        ASSERT_INT(a.status, RM_OK);
        ASSERT_INT(a.class_, RM_CLASS_ROOT_CLIENT);
        return a.new;
}

/* A client with device 1 and subdevice 2 of this card. */
static inline uint32_t program_start(Program *p, uint32_t card) {
        uint32_t c = program_client(p);

        ASSERT_INT(program_alloc(p, c, c, 1, RM_CLASS_DEVICE, &(RmDeviceParams){.device = card},
                                 sizeof(RmDeviceParams)),
                   RM_OK);
        ASSERT_INT(program_alloc(p, c, 1, 2, RM_CLASS_SUBDEVICE, NULL, 0), RM_OK);
        return c;
}

static inline uint32_t program_memory(Program *p, uint32_t c, uint32_t handle, uint64_t bytes) {
        RmMemoryParams m = {.owner = 1, .size = bytes};

        return program_alloc(p, c, 1, handle, RM_CLASS_MEMORY_LOCAL, &m, sizeof m);
}

static inline uint32_t program_free(Program *p, uint32_t c, uint32_t handle) {
        RmFree f = {.root = c, .old = handle};

        ASSERT_OK(program_call(p, RM_ESC_FREE, &f, sizeof f));
        return f.status;
}

static inline uint32_t program_control(Program *p, uint32_t c, uint32_t object, uint32_t cmd, void *params,
                                       size_t n) {
        RmControl k = {
                .client = c, .object = object, .cmd = cmd, .params = NESTED_AT, .params_size = (uint32_t) n};

        memcpy(program_bytes(p, NESTED_AT), params, n);
        ASSERT_OK(program_call(p, RM_ESC_CONTROL, &k, sizeof k));
        memcpy(params, program_bytes(p, NESTED_AT), n);
        return k.status;
}
