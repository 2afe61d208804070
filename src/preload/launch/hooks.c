/* SPDX-License-Identifier: Apache-2.0 */

/* The hooked functions of libcuda: their signatures, and which arguments matter to admission.h. */

#include <stddef.h>

#include "preload/launch/admission.h"
#include "preload/launch/context.h"
#include "preload/launch/hooks.h"
#include "preload/memory/hook.h"

/* One hook, exported under its symbol. function, blocks, stream: expressions for the kernel or
 * graph, its grid size and its stream. */
#define LAUNCH(symbol, twin, types, names, function, blocks, stream)                                         \
        CuResult aliquot_##symbol types EXPORTED(#symbol);                                                   \
        CuResult aliquot_##symbol types {                                                                    \
                CuResult(*real) types = (CuResult(*) types) real_get(REAL_##symbol);                         \
                Gate *g = admission_gate();                                                                  \
                CuResult r;                                                                                  \
                AdmittedLaunch l;                                                                            \
                                                                                                             \
                if (!real)                                                                                   \
                        return CU_ERROR_NOT_INITIALIZED;                                                     \
                if (LIKELY(!g))                                                                              \
                        return real names;                                                                   \
                admission_enter(g, &l, function, blocks, stream, twin);                                      \
                r = real names;                                                                              \
                admission_leave(&l, r);                                                                      \
                return r;                                                                                    \
        }

static uint64_t count_blocks(uint64_t x, uint64_t y, uint64_t z) {
        return x * y * z;
}

/* ---- kernels ---- */

#define KERNEL_TYPES                                                                                         \
        (CuHandle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,           \
         unsigned shared, CuHandle stream, void **params, void **extra)
#define KERNEL_NAMES (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra)

LAUNCH(cuLaunchKernel, false, KERNEL_TYPES, KERNEL_NAMES, f, count_blocks(gx, gy, gz), stream)
LAUNCH(cuLaunchKernel_ptsz, true, KERNEL_TYPES, KERNEL_NAMES, f, count_blocks(gx, gy, gz), stream)

#define COOPERATIVE_TYPES                                                                                    \
        (CuHandle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,           \
         unsigned shared, CuHandle stream, void **params)
#define COOPERATIVE_NAMES (f, gx, gy, gz, bx, by, bz, shared, stream, params)

LAUNCH(cuLaunchCooperativeKernel, false, COOPERATIVE_TYPES, COOPERATIVE_NAMES, f, count_blocks(gx, gy, gz),
       stream)
LAUNCH(cuLaunchCooperativeKernel_ptsz, true, COOPERATIVE_TYPES, COOPERATIVE_NAMES, f,
       count_blocks(gx, gy, gz), stream)

typedef struct LaunchConfig { /* the first members of CUlaunchConfig */
        unsigned gx, gy, gz, bx, by, bz, shared;
        CuHandle stream;
} LaunchConfig;

#define EX_TYPES  (const LaunchConfig *config, CuHandle f, void **params, void **extra)
#define EX_NAMES  (config, f, params, extra)
#define EX_BLOCKS (config ? count_blocks(config->gx, config->gy, config->gz) : 0)
#define EX_STREAM (config ? config->stream : NULL)

LAUNCH(cuLaunchKernelEx, false, EX_TYPES, EX_NAMES, f, EX_BLOCKS, EX_STREAM)
LAUNCH(cuLaunchKernelEx_ptsz, true, EX_TYPES, EX_NAMES, f, EX_BLOCKS, EX_STREAM)

typedef struct LaunchParams { /* CUDA_LAUNCH_PARAMS */
        CuHandle function;
        unsigned gx, gy, gz, bx, by, bz, shared;
        CuHandle stream;
        void **params;
} LaunchParams;

/* Admitted as its first kernel, on the card of that one's stream; the other kernels run on other
 * cards at the same time. */
LAUNCH(cuLaunchCooperativeKernelMultiDevice, false, (LaunchParams * list, unsigned n, unsigned flags),
       (list, n, flags), list &&n > 0 ? list->function : NULL,
       list &&n > 0 ? count_blocks(list->gx, list->gy, list->gz) : 0, list &&n > 0 ? list->stream : NULL)

/* ---- launches of the API before CUDA 4 ---- */

LAUNCH(cuLaunch, false, (CuHandle f), (f), f, 1, NULL)
LAUNCH(cuLaunchGrid, false, (CuHandle f, int width, int height), (f, width, height), f,
       count_blocks((unsigned) width, (unsigned) height, 1), NULL)
LAUNCH(cuLaunchGridAsync, false, (CuHandle f, int width, int height, CuHandle stream),
       (f, width, height, stream), f, count_blocks((unsigned) width, (unsigned) height, 1), stream)

/* ---- graphs ---- */

LAUNCH(cuGraphLaunch, false, (CuHandle graph, CuHandle stream), (graph, stream), graph, 0, stream)
LAUNCH(cuGraphLaunch_ptsz, true, (CuHandle graph, CuHandle stream), (graph, stream), graph, 0, stream)

/* ---- host functions of the application ---- */

#define HOST(symbol, twin, types, names, call, ours)                                                         \
        CuResult aliquot_##symbol types EXPORTED(#symbol);                                                   \
        CuResult aliquot_##symbol types {                                                                    \
                CuResult(*real) types = (CuResult(*) types) real_get(REAL_##symbol);                         \
                Gate *g = admission_gate();                                                                  \
                HostFuncSlot *p;                                                                             \
                CuResult r;                                                                                  \
                                                                                                             \
                if (!real)                                                                                   \
                        return CU_ERROR_NOT_INITIALIZED;                                                     \
                p = LIKELY(!g) || !run ? NULL : admission_host_func(g, &(HostFunc) call, stream, twin);      \
                if (!p)                                                                                      \
                        return real names;                                                                   \
                r = real ours;                                                                               \
                admission_host_func_given(p, r);                                                             \
                return r;                                                                                    \
        }

#define FUNC_TYPES (CuHandle stream, CuHostFn run, void *data)
#define FUNC_CALL                                                                                            \
        { run, NULL, data }
HOST(cuLaunchHostFunc, false, FUNC_TYPES, (stream, run, data), FUNC_CALL, (stream, host_func_run, p))
HOST(cuLaunchHostFunc_ptsz, true, FUNC_TYPES, (stream, run, data), FUNC_CALL, (stream, host_func_run, p))

#define BACK_TYPES (CuHandle stream, CuCallback run, void *data, unsigned flags)
#define BACK_CALL                                                                                            \
        { NULL, run, data }
HOST(cuStreamAddCallback, false, BACK_TYPES, (stream, run, data, flags), BACK_CALL,
     (stream, host_func_callback, p, flags))
HOST(cuStreamAddCallback_ptsz, true, BACK_TYPES, (stream, run, data, flags), BACK_CALL,
     (stream, host_func_callback, p, flags))

/* ---- initialization ---- */

CuResult aliquot_cuInit(unsigned flags) EXPORTED("cuInit");
CuResult aliquot_cuInit(unsigned flags) {
        CuResult (*real)(unsigned) = (CuResult(*)(unsigned)) real_get(REAL_cuInit), r;

        if (!real)
                return CU_ERROR_NOT_INITIALIZED;
        r = hook_redirect_driver() ? real(flags) : CU_ERROR_OPERATING_SYSTEM;
        if (r == CU_SUCCESS)
                real_note_initialized();
        return r;
}

/* ---- destroyed contexts ---- */

#define ENDS(symbol, ends, is_gone)                                                                          \
        CuResult aliquot_##symbol(CuHandle which) EXPORTED(#symbol);                                         \
        CuResult aliquot_##symbol(CuHandle which) {                                                          \
                CuResult (*real)(CuHandle) = (CuResult(*)(CuHandle)) real_get(REAL_##symbol);                \
                CuHandle context;                                                                            \
                Context *slot;                                                                               \
                CuResult r;                                                                                  \
                                                                                                             \
                if (!real)                                                                                   \
                        return CU_ERROR_NOT_INITIALIZED;                                                     \
                context = (ends);                                                                            \
                slot = context_destroy_begin(context);                                                       \
                r = real(which);                                                                             \
                context_destroy_end(slot, context, r == CU_SUCCESS && (is_gone));                            \
                return r;                                                                                    \
        }

ENDS(cuCtxDestroy, which, true)
ENDS(cuCtxDestroy_v2, which, true)
ENDS(cuCtxDetach, which, !context_is_current(which)) /* the last detach destroys it */
ENDS(cuGreenCtxDestroy, context_of_green(which), true)

/* Other holders may keep a primary context alive: only after the call is it known whether it was
 * destroyed. */
#define RELEASES(symbol)                                                                                     \
        CuResult aliquot_##symbol(int device) EXPORTED(#symbol);                                             \
        CuResult aliquot_##symbol(int device) {                                                              \
                CuResult (*real)(int) = (CuResult(*)(int)) real_get(REAL_##symbol);                          \
                CuHandle context;                                                                            \
                CuResult r;                                                                                  \
                                                                                                             \
                if (!real)                                                                                   \
                        return CU_ERROR_NOT_INITIALIZED;                                                     \
                context = context_primary_begin(device);                                                     \
                r = real(device);                                                                            \
                context_primary_end(device, context);                                                        \
                return r;                                                                                    \
        }

RELEASES(cuDevicePrimaryCtxRelease)
RELEASES(cuDevicePrimaryCtxRelease_v2)
RELEASES(cuDevicePrimaryCtxReset)
RELEASES(cuDevicePrimaryCtxReset_v2)

/* ---- destroyed streams ---- */

#define STREAM_ENDS(symbol)                                                                                  \
        CuResult aliquot_##symbol(CuHandle stream) EXPORTED(#symbol);                                        \
        CuResult aliquot_##symbol(CuHandle stream) {                                                         \
                CuResult (*real)(CuHandle) = (CuResult(*)(CuHandle)) real_get(REAL_##symbol);                \
                                                                                                             \
                if (!real)                                                                                   \
                        return CU_ERROR_NOT_INITIALIZED;                                                     \
                context_destroy_stream(stream);                                                              \
                return real(stream);                                                                         \
        }

STREAM_ENDS(cuStreamDestroy)
STREAM_ENDS(cuStreamDestroy_v2)

/* ---- functions by name ---- */

enum {
        PER_THREAD = 2,   /* flag of cuGetProcAddress(): per-thread default stream */
        WIDE_SINCE = 3020 /* version since which addresses have 64 bits (_v2) */
};

static void put_ours(const char *symbol, void **function, int version, bool twin) {
        uintptr_t ours;

        if (!symbol || !function || !*function)
                return;
        ours = hooks_replace((uintptr_t) *function);
        if (ours == 0)
                ours = hooks_for(symbol, version, twin);
        if (ours != 0)
                *function = (void *) ours;
}

#define LOOKUP(symbol, twin, types, names)                                                                   \
        CuResult aliquot_##symbol types EXPORTED(#symbol);                                                   \
        CuResult aliquot_##symbol types {                                                                    \
                CuResult(*real) types = (CuResult(*) types) real_get(REAL_##symbol);                         \
                CuResult r = real ? real names : CU_ERROR_NOT_INITIALIZED;                                   \
                                                                                                             \
                if (r == CU_SUCCESS)                                                                         \
                        put_ours(name, function, version, twin || (flags & PER_THREAD));                     \
                return r;                                                                                    \
        }

LOOKUP(cuGetProcAddress, false, (const char *name, void **function, int version, uint64_t flags),
       (name, function, version, flags))
LOOKUP(cuGetProcAddress_ptsz, true, (const char *name, void **function, int version, uint64_t flags),
       (name, function, version, flags))
LOOKUP(cuGetProcAddress_v2, false,
       (const char *name, void **function, int version, uint64_t flags, int *status),
       (name, function, version, flags, status))
LOOKUP(cuGetProcAddress_v2_ptsz, true,
       (const char *name, void **function, int version, uint64_t flags, int *status),
       (name, function, version, flags, status))

/* ---- the table ---- */

typedef struct Hook {
        const char *name, *symbol;
        bool twin;
        uintptr_t ours;
} Hook;

#define IN_COPY_HOOKS(name, symbol, twin) extern const char aliquot_##symbol[] EXPORTED(#symbol);
GATE_COPIES(IN_COPY_HOOKS)

#define HOOK(name, symbol, twin) {#name, #symbol, twin, (uintptr_t) aliquot_##symbol},
static const Hook hooks[REAL_HOOKED] = {GATE_CUDA(HOOK)};

bool hooks_same(const char *a, const char *b) {
        for (; *a != '\0' && *a == *b; a++)
                b++;
        return *a == *b;
}

int hooks_find(const char *symbol) {
        for (int i = 0; i < REAL_HOOKED; i++)
                if (hooks_same(hooks[i].symbol, symbol))
                        return i;
        return -1;
}

uintptr_t hooks_replace(uintptr_t function) {
        for (unsigned i = 0; i < REAL_HOOKED; i++)
                if (atomic_load_explicit(&real_table[i], memory_order_acquire) == function)
                        return hooks[i].ours;
        return 0;
}

/* Variants of a name with other arguments (cuCtxDestroy onwards) can only be told apart by
 * address. */
uintptr_t hooks_for(const char *name, int version, bool twin) {
        for (unsigned i = 0; i < (version < WIDE_SINCE ? REAL_cuMemcpy : REAL_cuCtxDestroy); i++)
                if (hooks[i].twin == twin && hooks_same(hooks[i].name, name))
                        return hooks[i].ours;
        return 0;
}

uintptr_t hooks_at(unsigned number) {
        return hooks[number].ours;
}
