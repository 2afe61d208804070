/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/host_func.h"

#include "preload/launch/tunables.h"

enum { SLOTS = 256, LONGER = 4, ALLOWED = 64, FEW = 2, LEGACY = 1 };

#define MINUS_ONE UINT32_MAX /* one */

struct HostFuncSlot {
        _Atomic uint32_t used;
        uint32_t card, lane;
        HostFunc call;
};

/* Static: the library does not use the application's allocator. */
static HostFuncSlot slots[SLOTS];

static void count(ProcessUsage *m, uint32_t lane, uint32_t more) {
        (void) atomic_fetch_add(&m->lanes[lane], more);
        (void) atomic_fetch_add(&m->n_host_funcs, more);
}

/* Streams are counted by hash (lanes). Lane 0 is for the legacy stream under both of its names. */
static uint32_t lane_of(uintptr_t key) {
        return key <= LEGACY ? 0
                             : 1 + (uint32_t) (key * UINT64_C(0x9E3779B97F4A7C15) >> 32) %
                                               (PROCESS_USAGE_LANES - 1);
}

HostFuncSlot *host_func_take(ProcessState *a, uint32_t card, uintptr_t key, const HostFunc *call) {
        for (unsigned i = 0; i < SLOTS; i++) {
                uint32_t none = 0;

                if (atomic_load_explicit(&slots[i].used, memory_order_relaxed) != 0 ||
                    !atomic_compare_exchange_strong(&slots[i].used, &none, 1))
                        continue;
                slots[i].card = card;
                slots[i].lane = lane_of(key);
                slots[i].call = *call;
                count(&a->usage[card], slots[i].lane, 1);
                return &slots[i];
        }
        return NULL;
}

void host_func_drop(ProcessState *a, HostFuncSlot *p) {
        count(&a->usage[p->card], p->lane, MINUS_ONE);
        atomic_store(&p->used, 0);
}

void host_func_reset(void) {
        for (unsigned i = 0; i < SLOTS; i++)
                atomic_store(&slots[i].used, 0);
}

/* ---- blocked work ---- */

static uint64_t wait_of(const ProcessUsage *m) {
        uint64_t wait = atomic_load_explicit(&m->host_wait, memory_order_relaxed);

        return wait != 0 ? wait : HOST_FUNC_WAIT_NS;
}

uint64_t host_func_blocked_from(const ProcessUsage *m, uint64_t waits) {
        uint64_t since = atomic_load(&m->host_running_since);

        if (since == 0)
                return UINT64_MAX;
        return (since > waits ? since : waits) + wait_of(m);
}

/* A host function is identified by its start time, so marks of an earlier one are void. */
static bool is_of(uint64_t since, const ProcessUsage *m) {
        return since != 0 && since == atomic_load(&m->host_running_since);
}

bool host_func_mark_blocked(ProcessUsage *m, bool reported) {
        uint64_t since = atomic_load(&m->host_running_since);
        uint32_t allowed = atomic_load(&m->backlog_allowed);

        if (reported ? host_func_is_blocked(m)
                     : host_func_excludes_backlog(m) &&
                               atomic_load(&m->launches) == atomic_load(&m->backlog_launches))
                return false; /* known already, and no launch was admitted since */
        atomic_store(&m->backlog_allowed, !host_func_excludes_backlog(m) ? 1
                                          : allowed < ALLOWED            ? 2 * allowed
                                                                         : ALLOWED);
        atomic_store(&m->backlog, atomic_load(&m->in_flight));
        atomic_store(&m->backlog_launches, atomic_load(&m->launches));
        atomic_store(&m->host_excluded, since);
        if (reported)
                atomic_store(&m->host_blocked, since);
        return true;
}

bool host_func_is_blocked(const ProcessUsage *m) {
        return is_of(atomic_load_explicit(&m->host_blocked, memory_order_relaxed), m);
}

void host_func_unblock(ProcessUsage *m) {
        if (atomic_load_explicit(&m->host_blocked, memory_order_relaxed) != 0)
                atomic_store(&m->host_blocked, 0);
}

bool host_func_excludes_backlog(const ProcessUsage *m) {
        return is_of(atomic_load_explicit(&m->host_excluded, memory_order_relaxed), m);
}

void host_func_admitted(ProcessUsage *m, uint64_t now) {
        uint64_t since = atomic_load_explicit(&m->host_running_since, memory_order_relaxed);

        if (since == 0)
                return;
        atomic_store_explicit(&m->host_admitted, since, memory_order_relaxed);
        if (atomic_load(&m->host_excluded) != since)
                return;
        atomic_store(&m->host_blocked, 0);
        atomic_store(&m->unblocked_at, now);
        atomic_store(&m->host_unblocked, since);
}

static uint64_t time_left(const ProcessUsage *m, uint64_t now) {
        uint64_t since = atomic_load(&m->host_running_since),
                 mean = atomic_load_explicit(&m->host_nsec, memory_order_relaxed);

        return since != 0 && since + mean > now ? since + mean - now : 0;
}

static bool may_be_before(const ProcessUsage *m, uintptr_t key) {
        uint32_t lane = lane_of(key);

        return lane == 0 || atomic_load_explicit(&m->lanes[0], memory_order_relaxed) > 0 ||
               atomic_load_explicit(&m->lanes[lane], memory_order_relaxed) > 0;
}

/* Functions of a failed context may never run, so those that have not begun only count beside other
 * work. */
uint64_t host_func_time(const ProcessUsage *m, uintptr_t key, uint64_t now) {
        uint32_t hosts = atomic_load_explicit(&m->n_host_funcs, memory_order_relaxed), inside;
        uint64_t mean;

        if (hosts == 0 || !may_be_before(m, key))
                return 0;
        inside = atomic_load_explicit(&m->n_host_funcs_running, memory_order_relaxed);
        mean = atomic_load_explicit(&m->host_nsec, memory_order_relaxed);
        return time_left(m, now) + (hosts > inside ? hosts - inside : 0) * mean;
}

/* ---- in the driver's thread, which must not call the driver ---- */

static void learn_time(ProcessUsage *m, uint64_t nsec) {
        uint64_t mean = atomic_load_explicit(&m->host_nsec, memory_order_relaxed);

        nsec = nsec < MAX_HOST_FUNC_WAIT_NS ? nsec : MAX_HOST_FUNC_WAIT_NS;
        atomic_store_explicit(&m->host_nsec, mean - mean / 8 + nsec / 8, memory_order_relaxed);
}

/* Whether the function waited for a launch: it ended soon after one was admitted. With many
 * admitted and others still waiting it did not, because its lock would have been free earlier. */
static bool did_wait(const ProcessUsage *m, uint64_t since, uint64_t now) {
        return atomic_load(&m->host_unblocked) == since &&
               now - atomic_load(&m->unblocked_at) < UNBLOCKED_END_NS &&
               (atomic_load(&m->backlog_allowed) <= FEW || atomic_load(&m->waiters) == 0);
}

static uint64_t longer(uint64_t wait, uint64_t took) {
        uint64_t most = 2 * took < MAX_HOST_FUNC_WAIT_NS ? 2 * took : MAX_HOST_FUNC_WAIT_NS,
                 next = LONGER * wait < most ? LONGER * wait : most;

        return next > wait ? next : wait;
}

static uint64_t shorter(uint64_t wait) {
        return wait / 2 > MIN_HOST_FUNC_WAIT_NS ? wait / 2 : MIN_HOST_FUNC_WAIT_NS;
}

static void learn(ProcessUsage *m, uint64_t since, uint64_t now) {
        bool excused = atomic_load(&m->host_excluded) == since, blocked = excused && did_wait(m, since, now);
        uint64_t wait = wait_of(m);

        if (excused)
                wait = blocked ? shorter(wait) : longer(wait, now - since);
        if (atomic_load(&m->host_admitted) != since) /* otherwise it may have waited for that launch */
                learn_time(m, now - since);
        atomic_store_explicit(&m->host_wait, wait, memory_order_relaxed);
}

/* Waiting launches compute their times again. */
static void wake(ProcessState *a, uint32_t card) {
        const SliceSchedule *schedule = &a->gate->cards[card].slice.limits->schedule;

        process_wake(a, card);
        if (atomic_load(&a->usage[card].waiters) > 0)
                launch_wake(&schedule->window, false);
}

static void on_begin(ProcessState *a, uint32_t card) {
        ProcessUsage *m = &a->usage[card];

        if (atomic_fetch_add(&m->n_host_funcs_running, 1) == 0)
                atomic_store(&m->host_running_since, launch_now());
        wake(a, card);
}

static void on_end(ProcessState *a, uint32_t card, uint32_t lane) {
        ProcessUsage *m = &a->usage[card];
        uint64_t now = launch_now(), since = atomic_load(&m->host_running_since), next, there;
        bool was_blocked = host_func_excludes_backlog(m);

        if (since != 0)
                learn(m, since, now);
        if (was_blocked)
                atomic_store(&m->resumed_at, now);
        count(m, lane, MINUS_ONE);
        next = atomic_fetch_sub(&m->n_host_funcs_running, 1) == 1 ? 0 : now;
        there = since;
        (void) atomic_compare_exchange_strong(&m->host_running_since, &there,
                                              next); /* unless another one has begun */
        if (since != 0 && atomic_load(&m->host_blocked) == since && atomic_load(&m->closed) > 0)
                process_report_want(a, card, now); /* the work is on the card again */
        process_wake(a, card);
}

/* Frees the slot before the call: the function may queue the next one. */
void host_func_callback(CuHandle stream, CuResult result, void *slot) {
        HostFuncSlot *p = slot;
        uint32_t card = p->card, lane = p->lane;
        HostFunc call = p->call;

        atomic_store(&p->used, 0);
        on_begin(process_known(), card);
        if (call.run)
                call.run(call.data);
        else
                call.back(stream, result, call.data);
        on_end(process_known(), card, lane);
}

void host_func_run(void *slot) {
        host_func_callback(NULL, CU_SUCCESS, slot);
}
