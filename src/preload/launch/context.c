/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/context.h"

#include <sys/mman.h>

#include "preload/launch/batch.h"
#include "preload/memory/gate_state.h"

enum { DEFAULT_STREAMS = 2 }; /* default streams: handles 0, 1 and 2 exist in every context */

/* ---- cards ---- */

static uint32_t hex_digit(char c) {
        return c >= '0' && c <= '9'   ? (uint32_t) (c - '0')
               : c >= 'a' && c <= 'f' ? (uint32_t) (c - 'a' + 10)
                                      : 16;
}

static bool same_card(const char *text, const CuUuid *uuid) {
        size_t at = 4;

        if (text[0] != 'G' || text[1] != 'P' || text[2] != 'U' || text[3] != '-')
                return false;
        for (size_t i = 0; i < sizeof uuid->bytes; i++) {
                if (text[at] == '-')
                        at++;
                if (hex_digit(text[at]) * 16 + hex_digit(text[at + 1]) != uuid->bytes[i])
                        return false;
                at += 2;
        }
        return text[at] == '\0';
}

static int card_of_current(const Gate *g) {
        int (*get_device)(int *) = (int (*)(int *)) real_get(REAL_cuCtxGetDevice);
        int (*get_uuid)(CuUuid *, int) = (int (*)(CuUuid *, int)) real_get(REAL_cuDeviceGetUuid);
        CuUuid uuid;
        int device;

        if (g->n_cards == 1)
                return 0;
        if (!get_device || !get_uuid || get_device(&device) != 0 || get_uuid(&uuid, device) != 0)
                return -1;
        for (uint32_t i = 0; i < g->n_cards && i < GATE_CARDS; i++)
                if (g->cards[i].usable && same_card(g->cards[i].uuid, &uuid))
                        return (int) i;
        return -1;
}

/* ---- slots ---- */

static void *map_pages(size_t size) {
        long p = sys_call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p < 0 && p > -4096 ? NULL : (void *) p;
}

/* Initializes a slot. The caller owns its batches. */
static void init_slot(Context *c, uint32_t card) {
        Intervals none = {0};

        c->card = card;
        c->watch = c->origin = NULL;
        c->origin_nsec = UINT64_C(1) << 48; /* work before the first measured event has a positive time */
        c->intervals = none;
        atomic_store(&c->over, 0);
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                if (!c->batches[i].context) /* otherwise a thread may still read it */
                        c->batches[i].context = c;
                c->batches[i].begin = c->batches[i].end = NULL;
                batch_release(&c->batches[i]);
        }
}

/* Takes a slot: one whose context has ended and which neither the driver nor a thread uses any
 * more; or a new one. NULL: no room or no memory. */
static Context *take_slot(ProcessState *a) {
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);

                if (!c) {
                        c = map_pages(sizeof *c);
                        atomic_store(&a->contexts[i], c);
                        return c;
                }
                if (atomic_load(&c->handle) == 0 && batch_take_all(c))
                        return c;
        }
        return NULL;
}

static Context *find_known(ProcessState *a, uintptr_t handle) {
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load_explicit(&a->contexts[i], memory_order_acquire);

                if (!c)
                        return NULL;
                if (atomic_load_explicit(&c->handle, memory_order_acquire) == handle)
                        return c;
        }
        return NULL;
}

static Context *add_context(ProcessState *a, uintptr_t handle, int *ret_card) {
        Context *c;

        *ret_card = card_of_current(a->gate);
        if (*ret_card < 0 || !spin_take(&a->lock))
                return NULL;
        c = find_known(a, handle);
        if (!c) {
                c = take_slot(a);
                if (c) {
                        init_slot(c, (uint32_t) *ret_card);
                        atomic_store(&c->handle, handle);
                }
        }
        spin_drop(&a->lock);
        return c;
}

/* ---- contexts ---- */

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

static CuHandle current_context(void) {
        int (*get_current)(CuHandle *) = (int (*)(CuHandle *)) real_get(REAL_cuCtxGetCurrent);
        CuHandle context = NULL;

        return get_current && get_current(&context) == CU_SUCCESS ? context : NULL;
}

bool context_is_current(CuHandle context) {
        return current_context() == context;
}

/* Returns false if the driver refused. *ret_pushed: for context_pop(). */
static bool make_current(CuHandle context, bool *ret_pushed) {
        bool current = context_is_current(context);

        *ret_pushed = !current && context_push(context);
        return current || *ret_pushed;
}

uintptr_t context_handle(const ProcessState *a, CuHandle stream, bool *ret_foreign) {
        int (*get_of)(CuHandle, CuHandle *) = (int (*)(CuHandle, CuHandle *)) real_get(REAL_cuStreamGetCtx);
        CuHandle handle = current_context(), of = NULL;

        *ret_foreign = false;
        if ((handle && a->gate->n_cards == 1) || (uintptr_t) stream <= DEFAULT_STREAMS || !get_of ||
            real_is_captured(stream)) /* cuStreamGetCtx() would invalidate the capture */
                return (uintptr_t) handle;
        if (get_of(stream, &of) != 0 || (uintptr_t) of <= 1)
                return (uintptr_t) handle;
        *ret_foreign = of != handle;
        return (uintptr_t) of;
}

Context *context_get(ProcessState *a, uintptr_t handle, int *ret_card) {
        Context *c;

        *ret_card = -1;
        if (handle == 0)
                return NULL;
        c = find_known(a, handle);
        if (!c)
                return add_context(a, handle, ret_card);
        *ret_card = (int) c->card;
        return c;
}

/* ---- contexts and streams that end ---- */

/* Claims the slot; from then on no thread finds it. NULL: the context is not known. */
static Context *take_context(ProcessState *a, CuHandle context) {
        uintptr_t handle = (uintptr_t) context;
        Context *c = handle > 1 ? find_known(a, handle) : NULL;

        return c && atomic_compare_exchange_strong(&c->handle, &handle, 1) ? c : NULL;
}

static void drop_context(ProcessState *a, Context *c) {
        batch_end_all(a, c);
        atomic_store(&c->handle, 0);
}

void context_forget(ProcessState *a, CuHandle context) {
        Context *c = take_context(a, context);

        if (c)
                drop_context(a, c);
}

/* Marks the end of the context's work, with the context made current. */
static void mark_end(ProcessState *a, CuHandle context) {
        Context *c = find_known(a, (uintptr_t) context);
        bool pushed;

        if (c && make_current(context, &pushed)) {
                batch_poll(a, c, true, launch_now());
                context_pop(pushed);
        }
}

Context *context_destroy_begin(CuHandle context) {
        Gate *g = gate_get();

        if (!g || !context)
                return NULL;
        mark_end(process_get(g), context);
        return take_context(process_get(g), context);
}

void context_destroy_end(Context *c, CuHandle context, bool gone) {
        ProcessState *a = process_known();

        if (!c)
                return;
        if (!gone && spin_take(&a->lock)) {
                gone = find_known(a, (uintptr_t) context) != NULL; /* a thread has launched in it meanwhile */
                if (!gone)
                        atomic_store(&c->handle, (uintptr_t) context);
                spin_drop(&a->lock);
                if (!gone)
                        return;
        }
        drop_context(a, c);
}

CuHandle context_of_green(CuHandle green) {
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

CuHandle context_primary_begin(int device) {
        int (*retain)(CuHandle *, int) = (int (*)(CuHandle *, int)) real_get(REAL_cuDevicePrimaryCtxRetain);
        int (*release)(int) = (int (*)(int)) real_get(REAL_cuDevicePrimaryCtxRelease_v2);
        CuHandle context = NULL;

        if (!release)
                release = (int (*)(int)) real_get(REAL_cuDevicePrimaryCtxRelease);
        if (!gate_get() || !retain || !release || !is_active(device) || retain(&context, device) != 0)
                return NULL;
        mark_end(process_get(gate_get()), context);
        (void) release(device); /* undoes the retain */
        return context;
}

void context_primary_end(int device, CuHandle context) {
        if (context && !is_active(device))
                context_forget(process_known(), context);
}

void context_expire_others(ProcessState *a, const Context *except, uint32_t card, uint64_t now) {
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);

                if (!c)
                        return;
                if (c != except && atomic_load(&c->handle) > 1 && c->card == card)
                        batch_expire(a, c, now);
        }
}

void context_destroy_stream(CuHandle stream) {
        /* not admission_gate(): batches from a time with a limit may still be open */
        Gate *g = gate_get();
        ProcessState *a = g ? process_get(g) : NULL;
        uintptr_t key = (uintptr_t) stream;
        bool pushed;

        for (unsigned i = 0; a && key > DEFAULT_STREAMS && i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);
                uintptr_t handle = c ? atomic_load(&c->handle) : 0;

                if (!c)
                        return;
                if (handle <= 1 || !batch_is_of_stream(c, key) || !make_current((CuHandle) handle, &pushed))
                        continue;
                batch_end_of_stream(a, c, key, true);
                context_pop(pushed);
        }
}
