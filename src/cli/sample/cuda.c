/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sample/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
                {"cuMemcpyHtoD_v2", &c->copy},
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
        /* Set by Allocate, also where the runtime has no CDI, and by aliquot run with the other. */
        if (getenv("ALIYUN_COM_GPU_MEM_CONTAINER") && !getenv("ALIQUOT_SLICES"))
                (void) fprintf(stderr,
                               "aliquot-sample: this container has a share of a card, and the container "
                               "runtime gave it no driver: CDI may be off there. aliquot doctor on the node "
                               "tells\n");
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

static double now_ms(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec * 1000 + (double) t.tv_nsec / 1e6;
}

static int copy_again(const Cuda *c, unsigned long long to, const void *from, unsigned long mib,
                      double seconds) {
        double start = now_ms(), last = start;
        int r = 0;

        for (unsigned long n = 1; r == 0 && (seconds > 0 ? last - start < seconds * 1000 : n <= CUDA_COPIES);
             n++) {
                double end;

                r = cuda_check(c, "cuMemcpyHtoD", c->copy(to, from, (size_t) mib << 20));
                end = now_ms();
                if (r == 0)
                        (void) printf("copy %lu: %lu MiB in %.1f ms\n", n, mib, end - last);
                last = end;
        }
        return r;
}

int cuda_print_copies(const Cuda *c, unsigned long mib, double seconds) {
        void *from = malloc((size_t) mib << 20);
        unsigned long long to;
        int r;

        if (!from) {
                (void) fprintf(stderr, "aliquot-sample: no %lu MiB of memory\n", mib);
                return -1;
        }
        r = cuda_check(c, "cuMemAlloc", c->allocate(&to, (size_t) mib << 20));
        if (r == 0)
                memset(from, 1, (size_t) mib << 20); /* no copy pays for the pages */
        if (r == 0)
                r = copy_again(c, to, from, mib, seconds);
        free(from);
        return r;
}

int cuda_print_memory(const Cuda *c) {
        size_t rest, total;
        int r = cuda_check(c, "cuMemGetInfo", c->info(&rest, &total));

        if (r == 0)
                (void) printf("memory: %zu MiB used, %zu MiB free, %zu MiB in all\n", (total - rest) >> 20,
                              rest >> 20, total >> 20);
        return r;
}
