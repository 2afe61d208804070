/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/state.h"
#include "sim/cuda/stream.h"

/* Settings and properties of a context. They have no effect on the simulated card. */

enum { PRIORITY_GREATEST = -5 };

static CUresult enter_or(CUcontext c, CUcontext *ret) {
        if (!c)
                return context_enter(ret);
        *ret = c;
        return state_check() != CUDA_SUCCESS ? CUDA_ERROR_NOT_INITIALIZED : context_check(c);
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

CUDA_API CUresult cuCtxGetFlags(unsigned *ret) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                *ret = c->flags;
        return r;
}

CUDA_API CUresult cuCtxSetFlags(unsigned flags) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                c->flags = flags;
        return r;
}

CUDA_API CUresult cuCtxGetId(CUcontext given, unsigned long long *ret) {
        LOCKED;
        CUcontext c;
        CUresult r = enter_or(given, &c);

        if (r == CUDA_SUCCESS)
                *ret = c->id;
        return r;
}

CUDA_API CUresult cuCtxGetApiVersion(CUcontext given, unsigned *ret) {
        LOCKED;
        CUcontext c;
        CUresult r = enter_or(given, &c);

        if (r == CUDA_SUCCESS)
                *ret = c->api_version;
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

/* ---- limits and preferences ---- */

CUDA_API CUresult cuCtxSetLimit(int limit, size_t value) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r != CUDA_SUCCESS)
                return r;
        if (limit < 0 || limit >= CU_LIMIT_MAX)
                return CUDA_ERROR_UNSUPPORTED_LIMIT;
        c->limits[limit] = value;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxGetLimit(size_t *ret, int limit) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r != CUDA_SUCCESS)
                return r;
        if (limit < 0 || limit >= CU_LIMIT_MAX)
                return CUDA_ERROR_UNSUPPORTED_LIMIT;
        *ret = c->limits[limit];
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxGetCacheConfig(int *ret) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                *ret = c->cache_config;
        return r;
}

CUDA_API CUresult cuCtxSetCacheConfig(int config) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                c->cache_config = config;
        return r;
}

CUDA_API CUresult cuCtxGetSharedMemConfig(int *ret) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                *ret = c->shared_config;
        return r;
}

CUDA_API CUresult cuCtxSetSharedMemConfig(int config) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                c->shared_config = config;
        return r;
}

CUDA_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r != CUDA_SUCCESS)
                return r;
        if (least)
                *least = 0;
        if (greatest)
                *greatest = PRIORITY_GREATEST;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxResetPersistingL2Cache(void) {
        LOCKED;
        CUcontext c;

        return context_enter(&c);
}

/* ---- peers ---- */

/* Every card sees the memory of every other, because one process has all of it at the same
 * addresses. */
CUDA_API CUresult cuDeviceCanAccessPeer(int *ret, CUdevice device, CUdevice peer) {
        LOCKED;
        Device *a, *b;
        CUresult r = state_device(device, &a);

        if (r == CUDA_SUCCESS)
                r = state_device(peer, &b);
        if (r == CUDA_SUCCESS)
                *ret = a != b;
        return r;
}

CUDA_API CUresult cuDeviceGetP2PAttribute(int *ret, int attribute, CUdevice device, CUdevice peer) {
        LOCKED;
        Device *a, *b;
        CUresult r = state_device(device, &a);

        if (r == CUDA_SUCCESS)
                r = state_device(peer, &b);
        if (r != CUDA_SUCCESS)
                return r;
        if (attribute < 1 || attribute > 5 || a == b)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = attribute == 1 ? 0 : 1; /* 1: the performance rank; the rest are capabilities */
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                r = context_check(peer);
        if (r != CUDA_SUCCESS)
                return r;
        return flags != 0                  ? CUDA_ERROR_INVALID_VALUE
               : peer->device == c->device ? CUDA_ERROR_INVALID_DEVICE
                                           : CUDA_SUCCESS;
}

CUDA_API CUresult cuCtxDisablePeerAccess(CUcontext peer) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        return r == CUDA_SUCCESS ? context_check(peer) : r;
}
