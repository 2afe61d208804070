/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state of one process: its cards, devices and contexts, and the lock that every call holds. An
 * exported function begins with LOCKED and only calls inner functions, which never lock; a function
 * that waits releases the lock meanwhile. After fork() the child has no driver: every call returns
 * CUDA_ERROR_NOT_INITIALIZED, as with the real libcuda. */

#include <pthread.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "sim/cuda/api.h"
#include "sim/user/driver.h"

enum {
        CONTEXT_PARTS = 4, /* memory objects of a context */
        GRANULE = 2 << 20, /* granularity of large allocations: a large page */
};

/* Card memory that a context takes: as much as a real one, but at most a 16th of the card as the
 * process sees it. A small slice must have room for work. */
#define CONTEXT_BYTES (300ull << 20)

typedef struct Engine Engine;
typedef struct Pool Pool;
typedef struct Timeline Timeline;
typedef struct Heap Heap;

typedef struct Device {
        int ordinal;
        DriverCard *card;
        Engine *engine;   /* once there was a context */
        int major, minor; /* compute capability */
        int processors;
        bool registered; /* with uvm: managed memory can be on it */
        CUcontext primary;
        unsigned primary_users;
        CUmemoryPool default_pool; /* made when first asked for */
} Device;

typedef struct CUctx_st {
        CUcontext next; /* all that ever existed, so that a handle of a dead one is recognised */
        bool alive;
        Device *device;
        uint32_t space, group, channel, parts[CONTEXT_PARTS];
        Heap *heap;
        Timeline *timeline; /* NULL when the context has ended */
        CUstream legacy;    /* the stream 0 */
        CUstream streams;
        CUmodule modules;
        CUresult fault; /* stays until the context ends */
} CUctx_st;

typedef struct State {
        pthread_mutex_t lock;
        pthread_cond_t progress; /* a queue of a stream has moved */
        bool ready, forked;
        Driver driver;
        int uvm;
        unsigned n;
        Device devices[DRIVER_CARDS];
        CUcontext contexts;
        uint64_t next_id; /* of captures and allocations */
} State;

extern State state;

int state_lock(void);
void state_unlock(const int *unused);
#define LOCKED _cleanup_(state_unlock) _unused_ int locked_ = state_lock()

CUresult state_init(void);  /* cuInit */
CUresult state_check(void); /* NOT_INITIALIZED, or success */
CUresult state_device(CUdevice ordinal, Device **ret);
CUresult from_status(uint32_t status); /* of the driver */

/* The context of the calling thread; INVALID_CONTEXT: there is none; or the context's fault. */
CUresult context_enter(CUcontext *ret);

uint64_t clock_now(void); /* ns, CLOCK_MONOTONIC */
