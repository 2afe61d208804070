/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/host_func.h"

enum { SLOTS = 256 };

struct HostFuncSlot {
        _Atomic uint32_t used;
        uint32_t card;
        HostFunc call;
};

/* Static: the library does not use the application's allocator. */
static HostFuncSlot slots[SLOTS];

HostFuncSlot *host_func_take(uint32_t card, const HostFunc *call) {
        for (unsigned i = 0; i < SLOTS; i++) {
                uint32_t none = 0;

                if (atomic_load_explicit(&slots[i].used, memory_order_relaxed) != 0 ||
                    !atomic_compare_exchange_strong(&slots[i].used, &none, 1))
                        continue;
                slots[i].card = card;
                slots[i].call = *call;
                return &slots[i];
        }
        return NULL;
}

void host_func_drop(HostFuncSlot *p) {
        atomic_store(&p->used, 0);
}

void host_func_reset(void) {
        for (unsigned i = 0; i < SLOTS; i++)
                host_func_drop(&slots[i]);
}

/* ---- in the driver's thread, which must not call the driver ---- */

/* Adds `more` to the running host functions, and wakes waiting launches to compute their times
 * again. A function that comes and goes beside one that stays does not renew host_since. */
static void note(uint32_t card, uint32_t more) {
        ProcessState *a = process_known();
        const SliceSchedule *schedule = &a->gate->cards[card].slice.limits->schedule;

        if (atomic_load(&a->usage[card].n_host_running) == 0)
                atomic_store(&a->usage[card].host_since, launch_now());
        (void) atomic_fetch_add(&a->usage[card].n_host_running, more);
        process_wake(a, card);
        if (atomic_load(&a->usage[card].waiters) > 0)
                launch_wake(&schedule->window, false);
}

/* Frees the slot before the call: the function may queue the next one. */
void host_func_callback(CuHandle stream, CuResult result, void *slot) {
        HostFuncSlot *p = slot;
        uint32_t card = p->card;
        HostFunc call = p->call;

        host_func_drop(p);
        note(card, 1);
        if (call.run)
                call.run(call.data);
        else
                call.back(stream, result, call.data);
        note(card, UINT32_MAX); /* minus one */
}

void host_func_run(void *slot) {
        host_func_callback(NULL, CU_SUCCESS, slot);
}
