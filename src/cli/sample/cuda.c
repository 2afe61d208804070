/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sample/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static int load(Cuda *c) {
        const struct {
                const char *name;
                void *into;
        } functions[] = {
                {"cuInit", &c->init},
                {"cuDeviceGet", &c->device},
                {"cuDeviceGetAttribute", &c->attribute},
                {"cuDevicePrimaryCtxRetain", &c->retain},
                {"cuCtxSetCurrent", &c->use},
                {"cuMemAlloc_v2", &c->allocate},
                {"cuMemGetInfo_v2", &c->info},
                {"cuModuleLoadData", &c->load},
                {"cuModuleGetFunction", &c->function},
                {"cuLaunchKernel", &c->launch},
                {"cuCtxSynchronize", &c->synchronize},
                {"cuEventCreate", &c->event},
                {"cuEventRecord", &c->record},
                {"cuEventElapsedTime", &c->elapsed},
                {"cuGetErrorName", &c->name},
        };

        c->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        for (size_t i = 0; c->library && i < ELEMENTSOF(functions); i++) {
                void *found = dlsym(c->library, functions[i].name);

                if (!found)
                        break;
                /* POSIX: function and object pointers have the same form */
                memcpy(functions[i].into, &found, sizeof found);
                if (i + 1 == ELEMENTSOF(functions))
                        return 0;
        }
        (void) fprintf(stderr, "aliquot-sample: no CUDA driver: %s\n", dlerror());
        return -1;
}

int cuda_check(const Cuda *c, const char *what, int r) {
        const char *name = NULL;

        if (r != 0)
                (void) fprintf(stderr, "aliquot-sample: %s: %s (%d)\n", what,
                               c->name(r, &name) == 0 && name ? name : "unknown error", r);
        return r;
}

int cuda_open(Cuda *ret) {
        Cuda c;
        void *context = NULL;
        int device = 0, r;

        r = load(&c);
        if (r == 0)
                r = cuda_check(&c, "cuInit", c.init(0));
        if (r == 0)
                r = cuda_check(&c, "cuDeviceGet", c.device(&device, 0));
        if (r == 0)
                r = cuda_check(&c, "cuDevicePrimaryCtxRetain", c.retain(&context, device));
        if (r == 0)
                r = cuda_check(&c, "cuCtxSetCurrent", c.use(context));
        *ret = c;
        return r;
}

int cuda_allocate(const Cuda *c, unsigned long mib) {
        unsigned long long at;
        char what[64];

        (void) snprintf(what, sizeof what, "cuMemAlloc of %lu MiB", mib); /* it fits */
        return cuda_check(c, what, c->allocate(&at, (size_t) mib << 20));
}

int cuda_print_memory(const Cuda *c) {
        size_t rest, total;
        int r = cuda_check(c, "cuMemGetInfo", c->info(&rest, &total));

        if (r == 0)
                (void) printf("memory: %zu MiB used, %zu MiB free, %zu MiB in all\n", (total - rest) >> 20,
                              rest >> 20, total >> 20);
        return r;
}
