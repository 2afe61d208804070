/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/admission.h"

#include "preload/launch/admission-internal.h"
#include "preload/launch/batch.h"
#include "preload/launch/context.h"
#include "preload/launch/unbatched.h"
#include "preload/memory/gate_state.h"

Gate *admission_gate(void) {
        Gate *g = gate_get();

        for (uint32_t i = 0; g && i < g->n_cards && i < GATE_CARDS; i++)
                if (g->cards[i].usable && admission_is_limited(g->cards[i].slice.limits))
                        return g;
        return NULL;
}

/* Makes the stream's context current for our own calls, if it is not. */
static bool push(const AdmittedLaunch *l) {
        return l->foreign && admission_push_context((CuHandle) l->handle);
}

/* The first limited card, for a launch whose card is not known; -1: none. */
static int first_limited(const Gate *g) {
        for (uint32_t i = 0; i < g->n_cards && i < GATE_CARDS; i++)
                if (g->cards[i].usable && admission_is_limited(g->cards[i].slice.limits))
                        return (int) i;
        return -1;
}

/* With the launch's context current. */
static void enter(Gate *g, AdmittedLaunch *l, CuHandle function, uint64_t blocks, CuHandle named) {
        ProcessState *a = process_get(g);
        unsigned how = l->copy || blocks == 0 ? 0 : BATCH_OPEN_KERNEL;
        int card;

        l->context = context_get(a, l->handle, &card);
        if (card < 0)
                card = first_limited(g);
        if (card < 0 || !admission_is_limited(g->cards[card].slice.limits) || real_is_captured(named))
                return;
        l->process = a;
        l->card = (uint32_t) card;
        l->estimate = estimate_find(&a->estimates, (uintptr_t) function, blocks);
        admission_wait(l, named);
        process_count_launch(a, l->card);
        if (estimate_is_uncertain(l->estimate) || estimate_varies(l->estimate))
                how |= BATCH_OPEN_COLD;
        if (l->context)
                l->batch = batch_open(a, l->context, l->handle, named, how, l->now);
}

static void enter_any(Gate *g, AdmittedLaunch *l, CuHandle function, uint64_t blocks, CuHandle stream,
                      bool twin) {
        ProcessState *a = process_get(g);
        bool pushed;

        l->stream = twin && !stream ? STREAM_PER_THREAD : stream;
        l->process = NULL;
        l->batch = NULL;
        l->handle = context_handle(a, l->stream, &l->foreign);
        l->no_context = l->handle == 0;
        if (l->no_context && !atomic_load_explicit(&a->without_context, memory_order_relaxed))
                return; /* the driver returns the error; if it does not, this was the last such launch */
        pushed = push(l);
        if (l->foreign && !pushed)
                l->handle = 0;
        enter(g, l, function, blocks, l->stream);
        admission_pop_context(pushed);
}

void admission_enter(Gate *g, AdmittedLaunch *l, CuHandle function, uint64_t blocks, CuHandle stream,
                     bool twin) {
        l->copy = l->blocks = false;
        enter_any(g, l, function, blocks, stream, twin);
}

/* Copies of one kind and a similar size have an estimate, as the launches of a function have. */
void admission_enter_copy(Gate *g, AdmittedLaunch *l, const Copy *copy, CuHandle stream, bool twin) {
        static char keys[COPY_FILL + 1];
        uint64_t size = MIN_HELD_BYTES;

        while (size < copy->bytes && size < UINT64_MAX / 2)
                size *= 2;
        l->copy = true;
        l->blocks = copy->blocks;
        enter_any(g, l, &keys[copy->kind], size, stream, twin);
        if (l->process && l->blocks)
                process_begin_call(l->process, l->card, l->nsec, l->now);
}

/* Whether the error ends the context: its work is gone, and no callback will come. */
static bool is_fatal(int result) {
        return (result >= 700 && result < 720 && result != 701 && result != 708) || result == 214 ||
               result == 999;
}

static void leave(AdmittedLaunch *l, int result) {
        ProcessState *a = l->process;
        bool made = result == CU_SUCCESS;
        LaunchOutcome done = {l->estimate, l->nsec, l->now, made, l->waited || l->fills, l->copy};

        if (l->batch)
                batch_add(a, l->batch, &done);
        else if (made)
                unbatched_launched(a, l->card, l->stream, l->estimate, l->nsec, l->now);
        else
                process_return(a, l->card, l->nsec, 1);
        if (l->copy && !(l->batch && made))
                process_copies_ended(a, l->card, 1);
        if (is_fatal(result) && l->context)
                context_destroy_now(a, l->handle, false);
        if (l->blocks)
                process_end_call(a, l->card);
        if (l->waited && atomic_load(&a->usage[l->card].closed) == 0)
                process_report_idle(a, l->card); /* it reported work, and has none on the card */
}

void admission_leave(AdmittedLaunch *l, int result) {
        bool pushed;

        if (l->process) {
                pushed = push(l);
                leave(l, result);
                admission_pop_context(pushed);
        } else if (l->no_context && result == CU_SUCCESS && gate_get()) {
                atomic_store(&process_get(gate_get())->without_context, true);
        }
}

/* With the stream's context current. */
static HostFuncSlot *wrap(Gate *g, const AdmittedLaunch *l, const HostFunc *call) {
        ProcessState *a = process_get(g);
        int card;
        Context *c = context_get(a, l->handle, &card);

        if (!c || card < 0 || !admission_is_limited(g->cards[card].slice.limits) ||
            real_is_captured(l->stream))
                return NULL; /* a captured function runs with each launch of the graph */
        batch_close_of_stream(a, c, batch_key(l->stream), launch_now());
        return host_func_take(a, (uint32_t) card, batch_key(l->stream), call);
}

HostFuncSlot *admission_host_func(Gate *g, const HostFunc *call, CuHandle stream, bool twin) {
        AdmittedLaunch l = {.stream = twin && !stream ? STREAM_PER_THREAD : stream};
        HostFuncSlot *p = NULL;
        bool pushed;

        l.handle = context_handle(process_get(g), l.stream, &l.foreign);
        if (l.handle == 0)
                return NULL; /* the driver returns the error */
        pushed = push(&l);
        if (pushed || !l.foreign)
                p = wrap(g, &l, call);
        admission_pop_context(pushed);
        return p;
}

/* After an error that ends the context, the driver still calls some host functions. */
void admission_host_func_given(Gate *g, HostFuncSlot *p, int result) {
        if (result != CU_SUCCESS && !is_fatal(result))
                host_func_drop(process_get(g), p);
}
