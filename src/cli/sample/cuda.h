/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The functions of libcuda.so.1 that the sample calls, loaded at run time, so that a missing driver
 * can be reported. Each function here prints its error on standard error, CUDA's by name and
 * number, and returns 0 or CUDA's error; -1 when libcuda cannot be loaded. */

#include <stddef.h>

enum { CUDA_OUT_OF_MEMORY = 2 }; /* CUDA_ERROR_OUT_OF_MEMORY of cuda.h */

typedef struct Cuda {
        void *library;
        int (*init)(unsigned flags);
        int (*device)(int *ret, int ordinal);
        int (*attribute)(int *ret, int attribute, int device);
        int (*retain)(void **ret_context, int device);
        int (*use)(void *context);
        int (*allocate)(unsigned long long *ret, size_t bytes);
        int (*copy)(unsigned long long to, const void *from, size_t bytes);
        int (*info)(size_t *ret_free, size_t *ret_total);
        int (*load)(void **ret_module, const void *image);
        int (*function)(void **ret, void *module, const char *name);
        int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *stream, void **parameters, void **extra);
        int (*synchronize)(void);
        int (*event)(void **ret, unsigned flags);
        int (*record)(void *event, void *stream);
        int (*elapsed)(float *ret_ms, void *start, void *end);
        int (*name)(int error, const char **ret);
} Cuda;

/* Loads the library and makes the first card's primary context current. Both stay until the process
 * ends. */
int cuda_open(Cuda *ret);

int cuda_allocate(const Cuda *c, unsigned long mib);

/* Prints "memory: 338 MiB used, 1816 MiB free, 2154 MiB in all", from cuMemGetInfo. */
int cuda_print_memory(const Cuda *c);

/* Copies this many MiB of the process to the card, CUDA_COPIES times, or for `seconds` where that
 * is not 0. Prints "copy 3: 31 MiB in 12.3 ms" for each. A limit of compute delays copies, too. */
enum { CUDA_COPIES = 10 };
int cuda_print_copies(const Cuda *c, unsigned long mib, double seconds);

/* Prints what failed when r is not 0. Returns r. */
int cuda_check(const Cuda *c, const char *what, int r);
