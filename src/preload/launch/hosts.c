/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/hosts.h"

#include <linux/futex.h>

#include "preload/launch/batch.h"

enum { PLACES = 256, LONGER = 4, ALLOWED = 64, FEW = 2, LEGACY = 1 };

#define LESS UINT32_MAX /* one */

#define WAIT_FIRST UINT64_C(2000000) /* ns of a function under way until it is taken to wait for a launch */
#define WAIT_LEAST UINT64_C(100000)
#define WAIT_MOST  UINT64_C(250000000)
#define AT_ONCE    UINT64_C(2000000) /* ns: what ends so soon after a launch was let in waited for it */

struct HostPlace {
        _Atomic uint32_t used;
        uint32_t card, lane;
        HostCall call;
};

/* Not asked for: the program's own memory is not ours to have. */
static HostPlace places[PLACES];

static void count(Meter *m, uint32_t lane, uint32_t more) {
        (void) atomic_fetch_add(&m->lanes[lane], more);
        (void) atomic_fetch_add(&m->hosts, more);
}

/* Streams of one lane are taken for one; the legacy one, under both of its names, has the first for
 * itself. */
static uint32_t lane_of(uintptr_t key) {
        return key <= LEGACY ? 0
                             : 1 + (uint32_t) (key * UINT64_C(0x9E3779B97F4A7C15) >> 32) % (METER_LANES - 1);
}

HostPlace *hosts_take(Account *a, uint32_t card, uintptr_t key, const HostCall *call) {
        for (unsigned i = 0; i < PLACES; i++) {
                uint32_t none = 0;

                if (atomic_load_explicit(&places[i].used, memory_order_relaxed) != 0 ||
                    !atomic_compare_exchange_strong(&places[i].used, &none, 1))
                        continue;
                places[i].card = card;
                places[i].lane = lane_of(key);
                places[i].call = *call;
                count(&a->meters[card], places[i].lane, 1);
                return &places[i];
        }
        return NULL;
}

void hosts_drop(Account *a, HostPlace *p) {
        count(&a->meters[p->card], p->lane, LESS);
        atomic_store(&p->used, 0);
}

void hosts_begin_again(void) {
        for (unsigned i = 0; i < PLACES; i++)
                atomic_store(&places[i].used, 0);
}

/* ---- what stands ---- */

static uint64_t wait_of(const Meter *m) {
        uint64_t wait = atomic_load_explicit(&m->host_wait, memory_order_relaxed);

        return wait != 0 ? wait : WAIT_FIRST;
}

uint64_t hosts_from(const Meter *m, uint64_t waits) {
        uint64_t since = atomic_load(&m->host_since);

        if (since == 0)
                return UINT64_MAX;
        return (since > waits ? since : waits) + wait_of(m);
}

/* A function is named by when it began: with its end all that was said of it is void. */
static bool is_of(uint64_t since, const Meter *m) {
        return since != 0 && since == atomic_load(&m->host_since);
}

bool hosts_stand(Meter *m, bool said) {
        uint64_t since = atomic_load(&m->host_since);

        uint32_t allowed = atomic_load(&m->allowed);

        if (said ? hosts_stands(m)
                 : hosts_excuse(m) && atomic_load(&m->launches) == atomic_load(&m->launches_before))
                return false; /* nothing has passed since that was said */
        atomic_store(&m->allowed, !hosts_excuse(m) ? 1 : allowed < ALLOWED ? 2 * allowed : ALLOWED);
        atomic_store(&m->before, atomic_load(&m->in_flight));
        atomic_store(&m->launches_before, atomic_load(&m->launches));
        atomic_store(&m->host_excused, since);
        if (said)
                atomic_store(&m->host_stands, since);
        return true;
}

bool hosts_stands(const Meter *m) {
        return is_of(atomic_load_explicit(&m->host_stands, memory_order_relaxed), m);
}

void hosts_take_back(Meter *m) {
        if (atomic_load_explicit(&m->host_stands, memory_order_relaxed) != 0)
                atomic_store(&m->host_stands, 0);
}

bool hosts_excuse(const Meter *m) {
        return is_of(atomic_load_explicit(&m->host_excused, memory_order_relaxed), m);
}

void hosts_let_in(Meter *m, uint64_t now) {
        uint64_t since = atomic_load_explicit(&m->host_since, memory_order_relaxed);

        if (since == 0)
                return;
        atomic_store_explicit(&m->host_passed, since, memory_order_relaxed);
        if (atomic_load(&m->host_excused) != since)
                return;
        atomic_store(&m->host_stands, 0);
        atomic_store(&m->freed_at, now);
        atomic_store(&m->host_freed, since);
}

static uint64_t time_left(const Meter *m, uint64_t now) {
        uint64_t since = atomic_load(&m->host_since),
                 mean = atomic_load_explicit(&m->host_nsec, memory_order_relaxed);

        return since != 0 && since + mean > now ? since + mean - now : 0;
}

static bool is_before(const Meter *m, uintptr_t key) {
        uint32_t lane = lane_of(key);

        return lane == 0 || atomic_load_explicit(&m->lanes[0], memory_order_relaxed) > 0 ||
               atomic_load_explicit(&m->lanes[lane], memory_order_relaxed) > 0;
}

/* Of a context that failed some may never be called, so those that have not begun count only beside
 * work. */
uint64_t hosts_time(const Meter *m, uintptr_t key, uint64_t now) {
        uint32_t hosts = atomic_load_explicit(&m->hosts, memory_order_relaxed), inside;
        uint64_t mean;

        if (hosts == 0 || !is_before(m, key))
                return 0;
        inside = atomic_load_explicit(&m->inside, memory_order_relaxed);
        mean = atomic_load_explicit(&m->host_nsec, memory_order_relaxed);
        return time_left(m, now) + (hosts > inside ? hosts - inside : 0) * mean;
}

/* ---- in the driver's thread, which must not call the driver ---- */

static void learn_time(Meter *m, uint64_t nsec) {
        uint64_t mean = atomic_load_explicit(&m->host_nsec, memory_order_relaxed);

        nsec = nsec < WAIT_MOST ? nsec : WAIT_MOST;
        atomic_store_explicit(&m->host_nsec, mean - mean / 8 + nsec / 8, memory_order_relaxed);
}

/* One that was waited for though nothing was let in, or that went on although something was, did
 * not wait for a launch: but who has a lock may give it back behind many, and then holds none that
 * is held. */
static bool waited(const Meter *m, uint64_t since, uint64_t now) {
        return atomic_load(&m->host_freed) == since && now - atomic_load(&m->freed_at) < AT_ONCE &&
               (atomic_load(&m->allowed) <= FEW || atomic_load(&m->waiters) == 0);
}

static uint64_t longer(uint64_t wait, uint64_t took) {
        uint64_t most = 2 * took < WAIT_MOST ? 2 * took : WAIT_MOST,
                 next = LONGER * wait < most ? LONGER * wait : most;

        return next > wait ? next : wait;
}

static uint64_t shorter(uint64_t wait) {
        return wait / 2 > WAIT_LEAST ? wait / 2 : WAIT_LEAST;
}

static void learn(Meter *m, uint64_t since, uint64_t now) {
        bool excused = atomic_load(&m->host_excused) == since, tied = excused && waited(m, since, now);
        uint64_t wait = wait_of(m);

        if (excused)
                wait = tied ? shorter(wait) : longer(wait, now - since);
        if (atomic_load(&m->host_passed) != since) /* else who knows what it waited for */
                learn_time(m, now - since);
        atomic_store_explicit(&m->host_wait, wait, memory_order_relaxed);
}

/* Who waits reckons from now on. */
static void wake(Account *a, uint32_t card) {
        const SliceSchedule *turn = &a->gate->cards[card].slice.limits->schedule;

        account_wake(a, card);
        if (atomic_load(&a->meters[card].waiters) > 0)
                (void) sys_call(SYS_futex, &turn->window, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

static void begins(Account *a, uint32_t card) {
        Meter *m = &a->meters[card];

        if (atomic_fetch_add(&m->inside, 1) == 0)
                atomic_store(&m->host_since, account_now());
        wake(a, card);
}

static void ends(Account *a, uint32_t card, uint32_t lane) {
        Meter *m = &a->meters[card];
        uint64_t now = account_now(), since = atomic_load(&m->host_since), next, there;
        bool stood = hosts_excuse(m);

        if (since != 0)
                learn(m, since, now);
        if (stood)
                atomic_store(&m->resumed, now);
        count(m, lane, LESS);
        next = atomic_fetch_sub(&m->inside, 1) == 1 ? 0 : now;
        there = since;
        (void) atomic_compare_exchange_strong(&m->host_since, &there,
                                              next); /* or another one began just now */
        if (since != 0 && atomic_load(&m->host_stands) == since && atomic_load(&m->closed) > 0)
                account_want(a, card, now); /* it is on the card again */
        account_wake(a, card);
}

/* It is free again at once: what is called may queue the next one. */
static HostPlace take_call(HostPlace *p) {
        HostPlace taken = {0, p->card, p->lane, p->call};

        atomic_store(&p->used, 0);
        return taken;
}

void hosts_run(void *place) {
        HostPlace p = take_call(place);

        begins(account_known(), p.card);
        p.call.run(p.call.data);
        ends(account_known(), p.card, p.lane);
}

void hosts_back(CuHandle stream, CuResult result, void *place) {
        HostPlace p = take_call(place);

        begins(account_known(), p.card);
        p.call.back(stream, result, p.call.data);
        ends(account_known(), p.card, p.lane);
}
