/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/cuda/api.h"
#include "sim/cuda/names.h"

/* cuGetProcAddress: the newest form of a function that is not newer than the version asked for. */

#define DECLARE(name, symbol, version, twin) extern const char address_of_##symbol[] __asm__(#symbol);
SERVED(DECLARE)

typedef struct Served {
        const char *name;
        const char *address;
        int version;
        bool twin; /* for programs with one default stream per thread */
} Served;

#define ROW(name, symbol, version, twin) {#name, address_of_##symbol, version, twin},
static const Served served[] = {SERVED(ROW)};

static CUresult find(const char *name, void **ret, int version, cuuint64_t flags, int *status) {
        const Served *best = NULL;
        bool known = false, twins = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;

        for (size_t i = 0; i < ELEMENTSOF(served); i++) {
                const Served *s = &served[i];

                if (strcmp(s->name, name) != 0 || (s->twin && !twins))
                        continue;
                known = true;
                if (s->version <= version &&
                    (!best || s->twin > best->twin || (s->twin == best->twin && s->version > best->version)))
                        best = s;
        }
        *ret = best ? (void *) (uintptr_t) best->address : NULL;
        *status = best    ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        return best ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult get(const char *name, void **ret, int version, cuuint64_t flags, int *status) {
        int found;
        CUresult r;

        if (!name || !ret || flags > 3)
                return CUDA_ERROR_INVALID_VALUE;
        r = find(name, ret, version, flags, &found);
        if (!status)
                return r;
        *status = found; /* a program that asks for it finds it there only */
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuGetProcAddress(const char *name, void **ret, int version, cuuint64_t flags) {
        return get(name, ret, version, flags, NULL);
}

CUDA_API CUresult cuGetProcAddress_v2(const char *name, void **ret, int version, cuuint64_t flags,
                                      int *status) {
        return get(name, ret, version, flags, status);
}

CUDA_API CUresult cuGetProcAddress_v2_ptsz(const char *name, void **ret, int version, cuuint64_t flags,
                                           int *status) {
        return get(name, ret, version,
                   flags == CU_GET_PROC_ADDRESS_DEFAULT ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                                        : flags,
                   status);
}

/* The tables of private functions for the CUDA runtime. */
CUDA_API CUresult cuGetExportTable(const void **ret, const CUuuid *id) {
        if (!ret || !id)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = NULL;
        return CUDA_ERROR_NOT_FOUND;
}

/* ---- profiling: there is nothing to see ---- */
