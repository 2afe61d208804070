/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/context.h"

#include <sys/mman.h>

#include "preload/launch/batch.h"

enum { DEFAULT_STREAMS = 2 }; /* default streams: handles 0, 1 and 2 exist in every context */

/* ---- cards ---- */

static uint32_t digit(char c) {
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
                if (digit(text[at]) * 16 + digit(text[at + 1]) != uuid->bytes[i])
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

static void *map(size_t size) {
        long p = sys_call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p < 0 && p > -4096 ? NULL : (void *) p;
}

static void init_slot(Context *c, uint32_t card) {
        Intervals none = {0};

        c->card = card;
        c->watch = c->origin = NULL;
        c->origin_nsec =
                UINT64_C(1)
                << 48; /* work that began before the first measured event still has a positive time */
        c->intervals = none;
        atomic_store(&c->over, 0);
        atomic_store(&c->end_asked_at, launch_now());
        batch_release_all(c);
}

static bool reuse_slot(Context *c) {
        uintptr_t handle = 0;

        if (!atomic_compare_exchange_strong(&c->handle, &handle, 1))
                return false;
        if (batch_reclaim_all(c))
                return true;
        atomic_store(&c->handle, 0);
        return false;
}

static Context *map_slot(void) {
        Context *c = map(sizeof *c);

        if (!c)
                return NULL;
        atomic_store(&c->handle, 1);
        batch_init_all(c);
        return c;
}

/* A slot whose context has ended and which neither the driver nor a thread uses any more; or a new
 * one. The caller owns its batches. NULL: no room or no memory. */
static Context *take_slot(ProcessState *a) {
        Context *fresh = NULL;

        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);

                if (!fresh && c && reuse_slot(c))
                        return c;
                if (c)
                        continue;
                fresh = fresh ? fresh : map_slot();
                if (!fresh || atomic_compare_exchange_strong(&a->contexts[i], &c, fresh))
                        return fresh;
        }
        if (fresh)
                (void) sys_call(SYS_munmap, fresh, sizeof *fresh);
        return NULL;
}

static Context *find(ProcessState *a, uintptr_t handle, const Context *but) {
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load_explicit(&a->contexts[i], memory_order_acquire);

                if (!c)
                        return NULL;
                if (c != but && atomic_load_explicit(&c->handle, memory_order_acquire) == handle)
                        return c;
        }
        return NULL;
}

static void end_slot(ProcessState *a, Context *c, uintptr_t there, bool gone) {
        if (!atomic_compare_exchange_strong(&c->handle, &there, 1))
                return; /* another thread ends it */
        batch_drop_all(a, c, gone);
        batch_charge_all(a, c, true);
        atomic_store(&c->handle, 0);
}

/* Adds a context. Two threads may add the same one: both write the handle before they look for it,
 * so at least one sees the other and gives up its slot. */
static Context *add_context(ProcessState *a, uintptr_t handle, int *ret_card) {
        Context *c, *other;

        *ret_card = card_of_current(a->gate);
        c = *ret_card >= 0 ? take_slot(a) : NULL;
        if (!c)
                return NULL;
        init_slot(c, (uint32_t) *ret_card);
        atomic_store(&c->handle, handle);
        other = find(a, handle, c);
        if (!other)
                return c;
        end_slot(a, c, handle, false);
        return other;
}

/* ---- contexts ---- */

uintptr_t context_handle(const ProcessState *a, CuHandle stream, bool *ret_foreign) {
        int (*get_current)(CuHandle *) = (int (*)(CuHandle *)) real_get(REAL_cuCtxGetCurrent);
        int (*get_of)(CuHandle, CuHandle *) = (int (*)(CuHandle, CuHandle *)) real_get(REAL_cuStreamGetCtx);
        CuHandle handle = NULL, of = NULL;

        *ret_foreign = false;
        if (!get_current || get_current(&handle) != 0 || (uintptr_t) handle <= 1)
                handle = NULL;
        if ((handle && a->gate->n_cards == 1) || (uintptr_t) stream <= DEFAULT_STREAMS || !get_of)
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
        c = find(a, handle, NULL);
        if (!c)
                return add_context(a, handle, ret_card);
        *ret_card = (int) c->card;
        return c;
}

void context_destroy_now(ProcessState *a, uintptr_t handle, bool gone) {
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);
                uintptr_t there = c ? atomic_load(&c->handle) : 0;

                if (there > 1 && (handle == 0 || there == handle))
                        end_slot(a, c, there, gone);
        }
}

bool context_destroy_is_known(ProcessState *a, uintptr_t handle) {
        return handle > 1 && find(a, handle, NULL);
}

void context_destroy_mark(ProcessState *a, uintptr_t handle, bool ends) {
        Context *c = handle > 1 ? find(a, handle, NULL) : NULL;

        if (c)
                batch_mark_all(a, c, ends);
}

/* While the driver destroys the context, its slot has handle 1, so that no thread takes or finds
 * it. */
void context_destroy_begin(ProcessState *a, uintptr_t handle) {
        Context *c = handle > 1 ? find(a, handle, NULL) : NULL;
        uintptr_t there = handle;

        if (!c || !atomic_compare_exchange_strong(&c->handle, &there, 1))
                return;
        batch_drop_all(a, c, false);
        atomic_store(&c->ending, handle);
}

void context_destroy_end(ProcessState *a, uintptr_t handle, bool gone) {
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);
                uintptr_t there = handle;

                if (!c)
                        return;
                if (handle <= 1 || !atomic_compare_exchange_strong(&c->ending, &there, 0))
                        continue;
                batch_charge_all(a, c, gone);
                atomic_store(&c->handle, 0);
        }
}

void context_destroy_stream(ProcessState *a, CuHandle stream) {
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);

                if (c && atomic_load(&c->handle) > 1)
                        batch_end_stream(a, c, stream);
        }
}
