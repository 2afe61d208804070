/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim/cuda/module.h"
#include "sim/cuda/streamed.h"

typedef struct Shape {
        unsigned grid[3], block[3], shared;
} Shape;

static CUresult check_shape(const Shape *s) {
        uint64_t threads = 1;

        for (size_t i = 0; i < 3; i++) {
                if (s->grid[i] == 0 || s->block[i] == 0 || s->block[i] > 1024)
                        return CUDA_ERROR_INVALID_VALUE;
                threads *= s->block[i];
        }
        if (s->grid[1] > 65535 || s->grid[2] > 65535 || s->grid[0] > INT32_MAX || threads > 1024)
                return CUDA_ERROR_INVALID_VALUE;
        return s->shared > 227 * 1024 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult launch(CUstream handle, CUfunction f, const Shape *shape, void **params, void **extra) {
        Work w = {.kind = WORK_KERNEL};
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                r = function_check(f);
        if (r == CUDA_SUCCESS)
                r = check_shape(shape);
        if (r != CUDA_SUCCESS)
                return r;
        if (params && extra)
                return CUDA_ERROR_INVALID_VALUE;
        w.kernel.ns = function_time(f, params, extra);
        w.kernel.params = (CUDA_KERNEL_NODE_PARAMS){.func = f,
                                                    .gridDimX = shape->grid[0],
                                                    .gridDimY = shape->grid[1],
                                                    .gridDimZ = shape->grid[2],
                                                    .blockDimX = shape->block[0],
                                                    .blockDimY = shape->block[1],
                                                    .blockDimZ = shape->block[2],
                                                    .sharedMemBytes = shape->shared,
                                                    .kernelParams = params,
                                                    .extra = extra};
        r = stream_make_room(s);
        return r == CUDA_SUCCESS ? stream_submit(s, &w) : r;
}

#define SHAPE                                                                                                \
        &(const Shape) {                                                                                     \
                {gx, gy, gz}, {bx, by, bz}, shared                                                           \
        }

IN_STREAM(launch, cuLaunchKernel, cuLaunchKernel_ptsz,
          (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
           unsigned shared, CUstream stream, void **params, void **extra),
          f, SHAPE, params, extra)
IN_STREAM(launch, cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz,
          (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
           unsigned shared, CUstream stream, void **params),
          f, SHAPE, params, NULL)

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **params, void **extra,
                          bool per_thread) {
        Shape shape;

        if (!c)
                return CUDA_ERROR_INVALID_VALUE;
        shape = (Shape){{c->gridDimX, c->gridDimY, c->gridDimZ},
                        {c->blockDimX, c->blockDimY, c->blockDimZ},
                        c->sharedMemBytes};
        return launch(per_thread && !c->hStream ? CU_STREAM_PER_THREAD : c->hStream, f, &shape, params,
                      extra);
}

CUDA_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra) {
        LOCKED;

        return launch_ex(config, f, params, extra, false);
}

CUDA_API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params,
                                        void **extra) {
        LOCKED;

        return launch_ex(config, f, params, extra, true);
}

CUDA_API CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned n, unsigned flags) {
        LOCKED;
        CUresult r = list && n > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

        for (unsigned i = 0; i < n && r == CUDA_SUCCESS; i++) {
                const CUDA_LAUNCH_PARAMS *p = &list[i];

                r = launch(p->hStream, p->function,
                           &(const Shape){{p->gridDimX, p->gridDimY, p->gridDimZ},
                                          {p->blockDimX, p->blockDimY, p->blockDimZ},
                                          p->sharedMemBytes},
                           p->kernelParams, NULL);
        }
        return r;
}

/* ---- as it was before CUDA 4 ---- */

CUDA_API CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z) {
        LOCKED;
        CUresult r = function_check(f);

        if (r != CUDA_SUCCESS)
                return r;
        f->block[0] = x;
        f->block[1] = y;
        f->block[2] = z;
        return x > 0 && y > 0 && z > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuParamSetSize(CUfunction f, unsigned bytes) {
        LOCKED;

        return function_check(f);
}

/* Only the first bytes are kept; the others are never read. */
static CUresult set_parameter(CUfunction f, int offset, const void *data, size_t n) {
        CUresult r = function_check(f);

        if (r != CUDA_SUCCESS)
                return r;
        if (offset < 0 || !data)
                return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < n && (size_t) offset + i < sizeof f->parameters; i++)
                f->parameters[(size_t) offset + i] = ((const unsigned char *) data)[i];
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuParamSeti(CUfunction f, int offset, unsigned value) {
        LOCKED;

        return set_parameter(f, offset, &value, sizeof value);
}

static CUresult launch_grid(CUstream stream, CUfunction f, int width, int height) {
        CUresult r = function_check(f);
        void *params[1];

        if (r != CUDA_SUCCESS)
                return r;
        params[0] = f->parameters;
        return launch(stream, f,
                      &(const Shape){{(unsigned) width, (unsigned) height, 1},
                                     {(unsigned) f->block[0], (unsigned) f->block[1], (unsigned) f->block[2]},
                                     0},
                      params, NULL);
}

CUDA_API CUresult cuLaunch(CUfunction f) {
        LOCKED;

        return launch_grid(NULL, f, 1, 1);
}

CUDA_API CUresult cuLaunchGrid(CUfunction f, int width, int height) {
        LOCKED;

        return launch_grid(NULL, f, width, height);
}

CUDA_API CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream) {
        LOCKED;

        return launch_grid(stream, f, width, height);
}
