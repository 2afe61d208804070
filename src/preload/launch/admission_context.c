/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/admission.h"
#include "preload/launch/context.h"
#include "preload/memory/gate_state.h"

static CuHandle current_context(void) {
        int (*get_current)(CuHandle *) = (int (*)(CuHandle *)) real_get(REAL_cuCtxGetCurrent);
        CuHandle context = NULL;

        return get_current && get_current(&context) == CU_SUCCESS ? context : NULL;
}

bool context_push(CuHandle context) {
        CuResult (*push_current)(CuHandle) = (CuResult(*)(CuHandle)) real_get(REAL_cuCtxPushCurrent_v2);

        return push_current && push_current(context) == CU_SUCCESS;
}

void context_pop(bool pushed) {
        int (*pop_current)(CuHandle *) = (int (*)(CuHandle *)) real_get(REAL_cuCtxPopCurrent_v2);
        CuHandle context;

        if (pushed && pop_current)
                (void) pop_current(&context);
}

/* Marks the end of the context's work, with the context made current. */
static void mark_ends(ProcessState *a, CuHandle context, bool ends) {
        CuHandle current = current_context();
        bool pushed = false;

        if (!context_destroy_is_known(a, (uintptr_t) context))
                return;
        if (current != context)
                pushed = context_push(context);
        if (current == context || pushed)
                context_destroy_mark(a, (uintptr_t) context, ends);
        context_pop(pushed);
}

void admission_context_destroy(CuHandle context) {
        Gate *g = gate_get();

        if (!g || !context)
                return;
        mark_ends(process_get(g), context, true);
        context_destroy_begin(process_get(g), (uintptr_t) context);
}

void admission_context_destroyed(CuHandle context, bool gone) {
        Gate *g = gate_get();

        if (g && context)
                context_destroy_end(process_get(g), (uintptr_t) context, gone);
}

bool admission_is_current(CuHandle context) {
        return current_context() == context;
}

CuHandle admission_green_context(CuHandle green) {
        int (*get)(CuHandle *, CuHandle) = (int (*)(CuHandle *, CuHandle)) real_get(REAL_cuCtxFromGreenCtx);
        CuHandle context = NULL;

        return gate_get() && get && get(&context, green) == CU_SUCCESS ? context : NULL;
}

/* Whether the primary context is active; false if the driver cannot tell. */
static bool is_active(int device) {
        int (*get)(int, unsigned *, int *) =
                (int (*)(int, unsigned *, int *)) real_get(REAL_cuDevicePrimaryCtxGetState);
        unsigned flags;
        int active = 0;

        return get && get(device, &flags, &active) == 0 && active;
}

CuHandle admission_primary_context(int device) {
        int (*retain)(CuHandle *, int) = (int (*)(CuHandle *, int)) real_get(REAL_cuDevicePrimaryCtxRetain);
        int (*release)(int) = (int (*)(int)) real_get(REAL_cuDevicePrimaryCtxRelease_v2);
        CuHandle context = NULL;

        if (!release)
                release = (int (*)(int)) real_get(REAL_cuDevicePrimaryCtxRelease);
        if (!gate_get() || !retain || !release || !is_active(device) || retain(&context, device) != 0)
                return NULL;
        mark_ends(process_get(gate_get()), context, false);
        (void) release(device); /* undoes the retain */
        return context;
}

void admission_primary_released(int device, CuHandle context) {
        Gate *g = gate_get();

        if (g && !is_active(device))
                context_destroy_now(process_get(g), (uintptr_t) context, true);
}

void admission_stream_destroy(CuHandle stream) {
        Gate *g = gate_get(); /* batches of a time with a limit may still be open */

        if (g)
                context_destroy_stream(process_get(g), stream);
}
