/* SPDX-License-Identifier: Apache-2.0 */
#include "turnstile/account.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <time.h>

#include "guest/loaded.h"
#include "turnstile/batch.h"

enum {
        CLOCK_NONE = 1,
        MAKING = -1, /* in Account.pid */
};

/* ---- time ---- */

typedef int ClockGettime(clockid_t clock, struct timespec *ret);

/* The kernel's own page of code, where there is one: a tenth of a system call. */
static uintptr_t find_clock(void) {
        uint64_t p = 0;
        ElfObject o;

        if (loaded_object("linux-vdso.so.1", &o)) {
                p = loaded_function(&o, "__vdso_clock_gettime");
                if (p == 0)
                        p = loaded_function(&o, "__kernel_clock_gettime");
        }
        return p != 0 ? (uintptr_t) p : CLOCK_NONE;
}

uint64_t account_now(void) {
        static _Atomic uintptr_t known;
        uintptr_t p = atomic_load_explicit(&known, memory_order_relaxed);
        struct timespec t = {0, 0};

        if (p == 0) {
                p = find_clock();
                atomic_store_explicit(&known, p, memory_order_relaxed);
        }
        if (p == CLOCK_NONE || ((ClockGettime *) p)(CLOCK_MONOTONIC, &t) != 0)
                (void) sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, &t); /* cannot fail */
        return (uint64_t) t.tv_sec * UINT64_C(1000000000) + (uint64_t) t.tv_nsec;
}

/* ---- memory ---- */

static void *map(size_t size) {
        long p = sys_call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p < 0 && p > -4096 ? NULL : (void *) p;
}

static _Atomic(Account *) the_account;

static Account *make(Gate *g) {
        Account *a = map(sizeof *a), *first = NULL;

        if (!a)
                return NULL;
        (void) sys_call(SYS_madvise, a, sizeof *a, MADV_WIPEONFORK); /* kernels that cannot: the pid tells */
        a->gate = g;
        a->pid = g->pid;
        if (atomic_compare_exchange_strong(&the_account, &first, a))
                return a;
        (void) sys_call(SYS_munmap, a, sizeof *a); /* another thread was first */
        return first;
}

/* In a child of fork there is nothing on the card. Whoever comes first begins again. */
static Account *begin_again(Account *a, Gate *g, long pid) {
        if (pid == MAKING || !atomic_compare_exchange_strong(&a->pid, &pid, MAKING))
                return NULL;
        for (unsigned i = 0; i < ACCOUNT_CONTEXTS; i++)
                atomic_store(&a->contexts[i], NULL);
        for (unsigned i = 0; i < GATE_CARDS; i++) {
                atomic_store(&a->meters[i].in_flight, 0);
                atomic_store(&a->meters[i].used, 0);
                atomic_store(&a->meters[i].closed, 0);
                atomic_store(&a->meters[i].marks, 0);
                atomic_store(&a->meters[i].waiters, 0);
        }
        a->gate = g;
        atomic_store_explicit(&a->pid, g->pid, memory_order_release);
        return a;
}

Account *account_get(Gate *g) {
        Account *a = atomic_load_explicit(&the_account, memory_order_acquire);
        long pid;

        if (!a)
                return make(g);
        pid = atomic_load_explicit(&a->pid, memory_order_acquire);
        return pid == g->pid ? a : begin_again(a, g, pid);
}

/* ---- contexts ---- */

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
                if (g->cards[i].good && same_card(g->cards[i].uuid, &uuid))
                        return (int) i;
        return -1;
}

static void begin(Context *c, uint32_t card) {
        Spans none = {0};

        c->card = card;
        c->watch = c->origin = NULL;
        c->origin_nsec =
                UINT64_C(1) << 48; /* what began before the first that was measured is after zero, too */
        c->spans = none;
        atomic_store(&c->over, 0);
        atomic_store(&c->measuring, 0);
        for (unsigned i = 0; i < ACCOUNT_BATCHES; i++) {
                Batch *b = &c->batches[i];

                b->context = c;
                b->begin = b->end = NULL;
                atomic_store(&b->state, BATCH_FREE);
        }
}

/* A place whose context has ended, and of which the driver has nothing to say any more. */
static Context *take_place(Account *a) {
        for (unsigned i = 0; i < ACCOUNT_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]), *fresh;
                uintptr_t handle = 0;

                if (c && atomic_load(&c->calls) == 0 &&
                    atomic_compare_exchange_strong(&c->handle, &handle, 1))
                        return c;
                if (c)
                        continue;
                fresh = map(sizeof *fresh);
                if (!fresh)
                        return NULL;
                atomic_store(&fresh->handle, 1);
                if (atomic_compare_exchange_strong(&a->contexts[i], &c, fresh))
                        return fresh;
                (void) sys_call(SYS_munmap, fresh, sizeof *fresh);
        }
        return NULL;
}

static Context *add_context(Account *a, uintptr_t handle, int *ret_card) {
        Context *c;

        *ret_card = card_of_current(a->gate);
        c = *ret_card >= 0 ? take_place(a) : NULL;
        if (!c)
                return NULL;
        begin(c, (uint32_t) *ret_card);
        atomic_store_explicit(&c->handle, handle, memory_order_release);
        return c;
}

Context *account_context(Account *a, int *ret_card) {
        int (*get_current)(CuHandle *) = (int (*)(CuHandle *)) real_get(REAL_cuCtxGetCurrent);
        CuHandle handle = NULL;

        *ret_card = -1;
        if (!get_current || get_current(&handle) != 0 || (uintptr_t) handle <= 1)
                return NULL;
        for (unsigned i = 0; i < ACCOUNT_CONTEXTS; i++) {
                Context *c = atomic_load_explicit(&a->contexts[i], memory_order_acquire);

                if (!c)
                        break;
                if (atomic_load_explicit(&c->handle, memory_order_acquire) == (uintptr_t) handle) {
                        *ret_card = (int) c->card;
                        return c;
                }
        }
        return add_context(a, (uintptr_t) handle, ret_card);
}

void account_context_ends(Account *a, uintptr_t handle) {
        for (unsigned i = 0; i < ACCOUNT_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);
                uintptr_t there = c ? atomic_load(&c->handle) : 0;

                if (there <= 1 || (handle != 0 && there != handle))
                        continue;
                batches_end(a, c);
                (void) atomic_compare_exchange_strong(&c->handle, &there, 0); /* somebody else did the same */
        }
}

void account_stream_ends(Account *a, CuHandle stream) {
        for (unsigned i = 0; i < ACCOUNT_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);

                if (c && atomic_load(&c->handle) > 1)
                        batches_end_stream(a, c, stream);
        }
}

/* ---- sums ---- */

static SliceWork *row_of(Account *a, uint32_t card) {
        Slice *s = &a->gate->cards[card].slice;

        return &s->counters->rows[s->row].work;
}

static const SliceTurn *turn_of(Account *a, uint32_t card) {
        return &a->gate->cards[card].slice.limits->turn;
}

/* Never less than what was said before: a correction downwards is taken from what comes. */
static void say_busy(Account *a, uint32_t card) {
        int64_t used = atomic_load_explicit(&a->meters[card].used, memory_order_relaxed);
        _Atomic uint64_t *busy = &row_of(a, card)->busy;
        uint64_t said = atomic_load_explicit(busy, memory_order_relaxed);

        while (used > 0 && (uint64_t) used > said)
                if (atomic_compare_exchange_weak(busy, &said, (uint64_t) used))
                        return;
}

void account_settle(Account *a, uint32_t card, uint64_t nsec) {
        account_return(a, card, nsec);
        (void) atomic_fetch_add_explicit(&a->meters[card].used, (int64_t) nsec, memory_order_relaxed);
}

void account_correct(Account *a, uint32_t card, int64_t nsec) {
        Meter *m = &a->meters[card];

        (void) atomic_fetch_add_explicit(&m->used, nsec, memory_order_relaxed);
        (void) atomic_fetch_sub_explicit(&m->balance, nsec, memory_order_relaxed);
        say_busy(a, card);
}

void account_return(Account *a, uint32_t card, uint64_t nsec) {
        _Atomic uint64_t *in_flight = &a->meters[card].in_flight;
        uint64_t was = atomic_load_explicit(in_flight, memory_order_relaxed);

        while (!atomic_compare_exchange_weak(in_flight, &was, was > nsec ? was - nsec : 0))
                ;
}

void account_charge(Account *a, uint32_t card, uint64_t in_flight, uint64_t nsec) {
        account_settle(a, card, in_flight);
        account_correct(a, card, (int64_t) nsec - (int64_t) in_flight);
}

/* ---- the row ---- */

static bool has_waiters(const Meter *m) {
        uint64_t now;

        if (atomic_load(&m->waiters) == 0)
                return false;
        now = account_now();
        return now - atomic_load(&m->waited) < UINT64_C(1000000000) || atomic_load(&m->waited) > now;
}

void account_want(Account *a, uint32_t card, uint64_t now) {
        SliceWork *row = row_of(a, card);
        uint64_t none = 0;

        atomic_store_explicit(
                &row->in_flight,
                atomic_load(&a->meters[card].closed) > 0 ? atomic_load(&a->meters[card].in_flight) : 0,
                memory_order_relaxed);
        say_busy(a, card);
        if (atomic_load_explicit(&row->wants, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&row->wants, &none, now))
                peers_ring(&a->gate->cards[card].slice);
}

/* Also by its time, before the arbiter has said so: it hears that it may look. Whoever makes a window longer gives it another number
 * where somebody takes it for over. */
static bool is_over(const SliceTurn *t, uint32_t window) {
        uint64_t closes = atomic_load(&t->closes);

        return !(window & TURN_OPEN) || (account_now() >= closes && atomic_load(&t->window) == window);
}

void account_drained(Account *a, uint32_t card) {
        uint32_t window = atomic_load(&turn_of(a, card)->window), number = window >> 1;
        SliceWork *row = row_of(a, card);

        if (!is_over(turn_of(a, card), window) || atomic_load(&a->meters[card].closed) != 0 ||
            atomic_load(&row->drained) == number)
                return;
        atomic_store(&row->in_flight, 0);
        atomic_store(&row->drained, number);
        peers_ring(&a->gate->cards[card].slice);
}

/* Between the question and the words another thread may have begun; it says so once more, then. */
void account_idle(Account *a, uint32_t card) {
        Meter *m = &a->meters[card];
        SliceWork *row = row_of(a, card);

        say_busy(a, card);
        atomic_store(&row->in_flight, 0);
        if (!has_waiters(m))
                atomic_store(&row->wants, 0);
        account_drained(a, card);
        if (atomic_load(&m->closed) > 0 || has_waiters(m))
                account_want(a, card, account_now());
}

void account_begins(Account *a, uint32_t card, uint32_t window, uint64_t now) {
        atomic_store_explicit(&a->meters[card].window, window, memory_order_relaxed);
        atomic_store_explicit(&row_of(a, card)->began, TURN_BEGAN(now), memory_order_relaxed);
}

void account_wake(Account *a, uint32_t card) {
        Meter *m = &a->meters[card];

        (void) atomic_fetch_add(&m->wake, 1);
        if (atomic_load(&m->waiters) > 0)
                (void) sys_call(SYS_futex, &m->wake, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, 0, 0, 0);
}

Account *account_known(void) {
        return atomic_load_explicit(&the_account, memory_order_acquire);
}
