/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/turnstile.h"

#include <linux/futex.h>
#include <time.h>

#include "preload/inject/spin.h"
#include "preload/launch/duty.h"
#include "preload/launch/ends.h"
#include "preload/launch/loose.h"

#define MSEC UINT64_C(1000000)

enum {
        PERCENT = 100,
        EXCUSED = 8,         /* launches */
        POLICY_FAIR = 1 + 0, /* SliceLimits.policy */
        POLICY_NATIVE = 1 + 5,
};

#define WINDOW_WAIT (20 * MSEC) /* until one looks again though nothing was said */
#define LOCAL_DEPTH (4 * MSEC)  /* in flight at once, while the arbiter is away */
#define COLD_MOST   (4 * MSEC)  /* what is supposed of work that was never measured, at most */
#define LATE_WAIT   (2 * MSEC)  /* the window is over, and the arbiter has not said so */
#define ROOM_MOST   (60000 * MSEC)
#define DEPTH_WAIT  (1 * MSEC)
#define DEPTH_LEAD  (2 * MSEC / 5) /* before what is marked is over: the window may have been made longer */
#define DEPTH_LEAST (MSEC / 10)
#define HELD_MOST   (250 * MSEC)  /* behind what takes longer than it should */
#define HELD_PAUSE  (1000 * MSEC) /* until the next time */
#define LONG_WAIT   (20 * MSEC) /* of a launch: then it is said, and what it may be waiting behind looked at */
#define STANDS_MOST (40 * MSEC) /* in flight: who has more stand waits as if nothing was known */
#define STAND_LOOK  (1 * MSEC)  /* until one looks again whether what is in flight stands */
#define LOST_AFTER                                                                                           \
        (2000 * MSEC) /* nothing is on the card, and something is in flight: a thread ended with it */

#define STREAM_MINE ((CuHandle) 2)

typedef enum Verdict { PASS, WAIT_WINDOW, WAIT_LATE, WAIT_DEPTH, WAIT_BALANCE } Verdict;

typedef struct Asking { /* one launch that wants to pass */
        Account *account;
        Context *context;
        const SliceLimits *limits;
        Meter *meter;
        uint32_t card;
        uint64_t nsec, now, since; /* since: it waits; 0: not yet */
        uint64_t known;            /* of nsec, if anything is */
        CuHandle stream;
        uint32_t window, wake; /* as they were when it was judged */
        uint64_t crowded;      /* since when there are too many; 0: there are not */
        uint64_t before;       /* ns in flight that are not counted in this window */
        uint32_t most, room;   /* launches in flight; beside those that are not counted */
        bool cold;             /* nsec is not known */
        bool fills;            /* there is no room for another one */
} Asking;

/* Differs between threads that say "mine". */
static uintptr_t key_of(CuHandle stream) {
        return stream == STREAM_MINE ? spin_self() : (uintptr_t) stream;
}

/* ---- limits ---- */

static uint32_t word(const uint32_t *p) {
        return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* What the container may have by itself; 0: no limit. */
static uint32_t percent_of(const SliceLimits *l) {
        uint32_t policy = word(&l->policy), percent = word(&l->core_percent);

        if (policy == POLICY_NATIVE)
                return 0;
        if (policy == POLICY_FAIR && word(&l->max_inst) > 0)
                percent = PERCENT / word(&l->max_inst);
        return percent < PERCENT ? percent : 0;
}

bool turnstile_limits(const SliceLimits *l) {
        if (atomic_load_explicit(&l->schedule.flags, memory_order_relaxed) & SCHED_F_GATED)
                return true;
        return !(word(&l->flags) & SLICE_FLAG_OPEN) && percent_of(l) > 0;
}

Gate *turnstile_gate(void) {
        Gate *g = gate_get();

        for (uint32_t i = 0; g && i < g->n_cards && i < GATE_CARDS; i++)
                if (g->cards[i].good && turnstile_limits(g->cards[i].slice.limits))
                        return g;
        return NULL;
}

/* ---- the judgement ---- */

/* What is not known yet counts as half of what may be in flight: few of it pass until one is
 * over. */
static void suppose(Asking *k, uint64_t depth) {
        uint64_t nsec = depth / 2 > COLD_MOST       ? COLD_MOST
                        : depth / 2 > ESTIMATE_COLD ? depth / 2
                                                    : ESTIMATE_COLD;

        if (k->cold)
                k->nsec = k->known > nsec ? k->known : nsec;
}

/* Not for ever: what is in front may wait for something that this thread does after its launch. */
static bool is_held(Asking *k) {
        if (!account_is_late(k->account, k->card, k->stream, k->now))
                return false;
        if (k->since == 0 || k->now - k->since < HELD_MOST)
                return true;
        atomic_store(&k->meter->due, k->now + HELD_PAUSE);
        return false;
}

static uint32_t launches_before(const Asking *k) {
        return k->before > 0 ? atomic_load(&k->meter->launches_before) : 0;
}

/* Estimates may be nothing: who is short, and then long, gets no further than so many, and to so
 * many only by having been measured. Not for ever, see above: then some more pass. */
static bool is_crowded(Asking *k) {
        uint32_t n = atomic_load_explicit(&k->meter->launches, memory_order_relaxed);

        if (n < launches_before(k) + k->room) {
                k->crowded = 0;
                return false;
        }
        if (k->crowded == 0)
                k->crowded = k->now;
        if (k->now - k->crowded < HELD_MOST || k->before > 0)
                return true;
        account_return(k->account, k->card, 0, EXCUSED);
        k->crowded = 0;
        return false;
}

static Verdict pass(Asking *k) {
        uint32_t n = atomic_fetch_add_explicit(&k->meter->launches, 1, memory_order_relaxed);

        k->fills = k->fills || n + 1 >= launches_before(k) + k->room;
        hosts_let_in(k->meter, k->now);
        return PASS;
}

/* Of the container's other processes. One that was killed may have left something there; then that
 * is missing. */
static uint64_t others_in_flight(const Asking *k) {
        const SliceUser *s = &k->account->gate->cards[k->card].slice;
        uint64_t sum = 0, one;

        for (uint32_t row = 0; row < SLICE_ROWS; row++) {
                if (row == s->row)
                        continue;
                one = atomic_load_explicit(&s->counters->rows[row].work.in_flight, memory_order_relaxed);
                sum += one < ROOM_MOST ? one : ROOM_MOST;
        }
        return sum;
}

/* What is in flight is over when the window is, or a little later. Several processes divide that,
 * and what some of them leave the others have. */
static uint64_t room_in(const Asking *k, uint64_t depth, uint64_t in_flight) {
        const SliceSchedule *t = &k->limits->schedule;
        uint64_t sharers = atomic_load_explicit(&t->sharers, memory_order_relaxed);
        uint64_t closes = atomic_load_explicit(&t->closes, memory_order_relaxed);
        uint64_t now = beat_time(&k->meter->beat, k->now), room = closes > now ? closes - now : 0, part,
                 others;

        room += atomic_load_explicit(&t->rest, memory_order_relaxed);
        if (sharers <= 1)
                return room < depth ? room : depth;
        part = room / sharers < depth ? room / sharers : depth;
        if (in_flight < part || depth > ROOM_MOST || k->before > 0)
                return part;
        others = others_in_flight(k);
        room = room < depth * sharers ? room : depth * sharers;
        return others < room && room - others > part ? room - others : part;
}

/* What stands may come to another one's window when the function returns, so not more than this is
 * said to. */
static bool may_stand(uint64_t in_flight) {
        return in_flight <= STANDS_MOST;
}

/* With this launch as well; or it has waited for long. Behind what is said to be over no window is
 * (SCHED_F_IGNORE_BACKLOG), so who said it and is refused for ever would never pass; but what is let in so can
 * not be said to stand any more, and others wait for all of it. */
static bool may_stand_with(const Asking *k, uint64_t in_flight) {
        return may_stand(in_flight) &&
               (may_stand(in_flight + k->nsec) || (k->since != 0 && k->now - k->since >= HELD_MOST));
}

/* The window is behind work that may wait for what comes, or that work stands: what was in flight
 * when this process saw it first is not counted, as long as it is. */
static void look_behind(Asking *k, uint64_t in_flight) {
        Meter *m = k->meter;
        uint32_t known = atomic_load(&m->behind);
        uint64_t before;

        bool behind = atomic_load_explicit(&k->limits->schedule.flags, memory_order_relaxed) &
                      SCHED_F_IGNORE_BACKLOG;

        k->before = 0;
        k->room = k->most;
        if (!behind && (!hosts_excuse(m) || !may_stand_with(k, in_flight)))
                return;
        if (hosts_excuse(m) && atomic_load(&m->allowed) < k->room)
                k->room = atomic_load(&m->allowed);
        if (behind && known != k->window) {
                atomic_store(&m->before, in_flight);
                atomic_store(&m->launches_before, atomic_load(&m->launches));
                (void) atomic_compare_exchange_strong(&m->behind, &known, k->window);
        }
        before = atomic_load(&m->before);
        if (in_flight < before && atomic_compare_exchange_strong(&m->before, &before, in_flight))
                before = in_flight;
        k->before = before;
}

static uint64_t counted(const Asking *k, uint64_t in_flight) {
        return in_flight > k->before ? in_flight - k->before : 0;
}

static Verdict by_window(Asking *k) {
        const SliceSchedule *t = &k->limits->schedule;
        uint64_t in_flight = atomic_load_explicit(&k->meter->in_flight, memory_order_relaxed);
        uint64_t depth = atomic_load_explicit(&t->depth, memory_order_relaxed), hosts, room;

        suppose(k, depth);
        k->room = k->most;
        if (!(atomic_load_explicit(&t->flags, memory_order_relaxed) & SCHED_F_GATED)) {
                (void) atomic_fetch_add(&k->meter->in_flight, k->nsec);
                return pass(k);
        }
        k->window = atomic_load_explicit(&t->window, memory_order_acquire);
        if (!(k->window & SCHED_WINDOW_OPEN))
                return WAIT_WINDOW;
        if (beat_time(&k->meter->beat, k->now) >= atomic_load_explicit(&t->closes, memory_order_relaxed))
                return WAIT_LATE;
        look_behind(k, in_flight);
        if (counted(k, in_flight) != 0 && (is_crowded(k) || (k->before == 0 && is_held(k))))
                return WAIT_DEPTH;
        hosts = k->before == 0 ? hosts_time(k->meter, key_of(k->stream), k->now) : 0;
        room = room_in(k, depth, counted(k, in_flight));
        do
                if (counted(k, in_flight) + hosts >= room && counted(k, in_flight) != 0)
                        return WAIT_DEPTH;
        while (!atomic_compare_exchange_weak(&k->meter->in_flight, &in_flight, in_flight + k->nsec));
        k->fills = counted(k, in_flight) + hosts + k->nsec >= room;
        if (atomic_load_explicit(&k->meter->window, memory_order_relaxed) != k->window)
                account_begins(k->account, k->card, k->window, k->now);
        return pass(k);
}

/* What is in flight may wait for this launch: one a second is let in behind it. */
static bool is_excused(const Asking *k) {
        return k->since != 0 && k->now - k->since >= HELD_PAUSE;
}

static Verdict by_balance(Asking *k, uint32_t percent) {
        uint64_t in_flight = atomic_load(&k->meter->in_flight);

        suppose(k, LOCAL_DEPTH);
        k->room = k->most;
        if (percent == 0) { /* nothing is known to keep to */
                (void) atomic_fetch_add(&k->meter->in_flight, k->nsec);
                return pass(k);
        }
        duty_fill(k->meter, &k->account->gate->cards[k->card].slice, percent, k->now);
        k->before = 0;
        if ((in_flight >= LOCAL_DEPTH && !is_excused(k) && !hosts_excuse(k->meter)) ||
            (in_flight != 0 && is_crowded(k)))
                return WAIT_DEPTH;
        if (!duty_take(k->meter, k->nsec))
                return WAIT_BALANCE;
        (void) atomic_fetch_add(&k->meter->in_flight, k->nsec);
        return pass(k);
}

static Verdict judge(Asking *k) {
        uint64_t seen = atomic_load_explicit(&k->limits->schedule.seen, memory_order_acquire);

        k->now = account_now(); /* behind it: nobody sees a time that is to come */
        k->wake = atomic_load(&k->meter->wake);
        loose_tend(k->account, k->card, k->now);
        if (!beat_is_there(&k->meter->beat, seen, k->now))
                return by_balance(k, percent_of(k->limits));
        if (atomic_load_explicit(&k->meter->filled, memory_order_relaxed) != 0)
                atomic_store(&k->meter->filled, 0); /* the arbiter is back: debts are his to know */
        return by_window(k);
}

/* ---- waiting ---- */

/* A signal, a change or the time ends it; all are looked at again. */
static void sleep_on(const _Atomic uint32_t *at, uint32_t value, int flags, uint64_t nsec) {
        struct timespec t = {.tv_sec = (time_t) (nsec / 1000000000), .tv_nsec = (long) (nsec % 1000000000)};

        (void) sys_call(SYS_futex, at, FUTEX_WAIT | flags, value, &t, 0, 0);
}

static uint64_t until_balance(Asking *k) {
        uint64_t nsec = duty_until(k->meter, percent_of(k->limits));

        return nsec < MSEC / 4 ? MSEC / 4 : nsec < WINDOW_WAIT ? nsec : WINDOW_WAIT;
}

static uint64_t until_depth(const Asking *k) {
        uint64_t due = atomic_load(&k->meter->due),
                 nsec = due > k->now + DEPTH_LEAD ? due - k->now - DEPTH_LEAD : 0;

        return nsec < DEPTH_LEAST ? DEPTH_LEAST : nsec < DEPTH_WAIT ? nsec : DEPTH_WAIT;
}

/* Until what is in flight may be found to stand. */
static uint64_t until_stand(const Asking *k) {
        uint64_t from = hosts_from(k->meter, k->since);

        if (from == UINT64_MAX || hosts_stands(k->meter))
                return WINDOW_WAIT;
        if (from <= k->now)
                return STAND_LOOK;
        return from - k->now < WINDOW_WAIT ? from - k->now : WINDOW_WAIT;
}

static void sleep_for(Asking *k, Verdict v) {
        uint64_t nsec = v == WAIT_WINDOW  ? WINDOW_WAIT
                        : v == WAIT_LATE  ? LATE_WAIT
                        : v == WAIT_DEPTH ? until_depth(k)
                                          : until_balance(k);

        nsec = until_stand(k) < nsec ? until_stand(k) : nsec;
        if (v == WAIT_WINDOW || v == WAIT_LATE)
                sleep_on(&k->limits->schedule.window, k->window, 0, nsec);
        else
                sleep_on(&k->meter->wake, k->wake, FUTEX_PRIVATE_FLAG, nsec);
}

/* A thread that was ended between its turn and its launch left something in flight that nobody
 * takes out. */
static void forget_lost(Asking *k) {
        if (k->now - k->since < LOST_AFTER || atomic_load(&k->meter->closed) != 0)
                return;
        atomic_store(&k->meter->in_flight, 0);
        atomic_store(&k->meter->launches, 0);
        k->since = k->now;
}

/* Whether it may be waited for by what it waits behind. */
static void say_flags(Asking *k) {
        bool tied = k->context && atomic_load(&k->meter->closed) > 0 &&
                    account_is_tied(k->account, k->context, k->now);

        atomic_store(&k->meter->flags, (uint32_t) WORK_F_WAITER | (tied ? WORK_F_BLOCKED : 0U));
}

/* Nothing in flight goes on, maybe because of this launch. True: it is to be judged anew. Where
 * there is more by now than may stand, what was said lets nobody in any more, and is taken back. */
static bool look_whether_it_stands(Asking *k, Verdict v) {
        if (!may_stand(atomic_load(&k->meter->in_flight))) {
                if (v == WAIT_DEPTH)
                        hosts_take_back(k->meter);
                return false;
        }
        if (!k->context || k->now < hosts_from(k->meter, k->since) ||
            !account_is_tied(k->account, k->context, k->now))
                return false;
        return hosts_stand(k->meter, v == WAIT_WINDOW || v == WAIT_LATE) && v == WAIT_DEPTH;
}

static void wait_once(Asking *k, Verdict v) {
        bool first = k->since == 0, again;

        atomic_store(&k->meter->waited, k->now);
        if (first) {
                k->since = k->now;
                (void) atomic_fetch_add(&k->meter->waiters, 1);
        }
        if (k->context)
                account_tend(k->account, k->context, ACCOUNT_ASK | (first ? ACCOUNT_CLOSE : 0), k->now);
        again = look_whether_it_stands(k, v);
        if (k->now - k->since >= LONG_WAIT)
                say_flags(k);
        account_want(k->account, k->card, k->now);
        account_drained(k->account, k->card);
        if (v == WAIT_DEPTH)
                forget_lost(k);
        if (again)
                return;
        sleep_for(k, v);
}

static void wait_for_turn(Launch *l, CuHandle stream) {
        Asking k = {.account = l->account,
                    .context = l->context,
                    .limits = l->account->gate->cards[l->card].slice.limits,
                    .meter = &l->account->meters[l->card],
                    .card = l->card,
                    .stream = stream,
                    .most = estimate_trust(l->estimate),
                    .cold = estimate_is_doubtful(l->estimate),
                    .nsec = estimate_nsec(l->estimate),
                    .known = estimate_is_cold(l->estimate) ? 0 : estimate_nsec(l->estimate)};
        uint32_t waiters;
        Verdict v;

        while ((v = judge(&k)) != PASS)
                wait_once(&k, v);
        l->now = k.now;
        l->nsec = k.nsec;
        l->waited = k.since != 0;
        l->fills = k.fills;
        if (!l->waited)
                return;
        atomic_store(&k.meter->flags, 0); /* who still waits says so again */
        waiters = atomic_load(&k.meter->waiters);
        while (waiters > 0 && !atomic_compare_exchange_weak(&k.meter->waiters, &waiters, waiters - 1))
                ;
}

/* ---- launches ---- */

/* For a launch whose card nobody knows. */
static int first_limited(const Gate *g) {
        for (uint32_t i = 0; i < g->n_cards && i < GATE_CARDS; i++)
                if (g->cards[i].good && turnstile_limits(g->cards[i].slice.limits))
                        return (int) i;
        return -1;
}

/* The stream's context is made the current one for what the gate asks and makes. */
static bool push(const Launch *l) {
        int (*push_current)(CuHandle) = (int (*)(CuHandle)) real_get(REAL_cuCtxPushCurrent_v2);

        return l->foreign && push_current && push_current((CuHandle) l->handle) == 0;
}

static void pop(bool pushed) {
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

/* In the launch's context. */
static void enter(Gate *g, Launch *l, CuHandle function, uint64_t blocks, CuHandle named) {
        Account *a = account_get(g);
        int card;

        l->context = account_context(a, l->handle, &card);
        if (card < 0)
                card = first_limited(g);
        if (card < 0 || !turnstile_limits(g->cards[card].slice.limits) || real_is_captured(named))
                return;
        l->account = a;
        l->card = (uint32_t) card;
        l->estimate = estimate_find(&a->estimates, (uintptr_t) function, blocks);
        wait_for_turn(l, named);
        account_launched(a, l->card);
        if (l->context)
                l->batch = account_open(a, l->context, l->handle, named, key_of(named),
                                        estimate_is_doubtful(l->estimate) || estimate_varies(l->estimate),
                                        l->now);
}

void turnstile_enter(Gate *g, Launch *l, CuHandle function, uint64_t blocks, CuHandle stream, bool twin) {
        Account *a = account_get(g);
        bool pushed;

        l->stream = twin && !stream ? STREAM_MINE : stream;
        l->account = NULL;
        l->batch = NULL;
        l->handle = account_handle(a, l->stream, &l->foreign);
        l->stray = l->handle == 0;
        if (l->stray && !atomic_load_explicit(&a->strays, memory_order_relaxed))
                return; /* the driver is to say what is wrong; if it does not, this was the last one */
        pushed = push(l);
        if (l->foreign && !pushed)
                l->handle = 0;
        enter(g, l, function, blocks, l->stream);
        pop(pushed);
}

/* Of the context itself: what it had on the card is no more, and no host function will come. */
static bool is_fatal(int result) {
        return (result >= 700 && result < 720 && result != 701 && result != 708) || result == 214 ||
               result == 999;
}

static void leave(Launch *l, int result) {
        Account *a = l->account;
        bool made = result == CU_SUCCESS;
        Launched done = {l->estimate, l->nsec, l->now, made, l->waited || l->fills};

        if (l->batch)
                account_add(a, l->batch, &done);
        else if (made)
                loose_launched(a, l->card, l->stream, l->estimate, l->nsec, l->now);
        else
                account_return(a, l->card, l->nsec, 1);
        if (is_fatal(result) && l->context)
                account_context_ends(a, l->handle, false);
        if (l->waited && atomic_load(&a->meters[l->card].closed) == 0)
                account_idle(a, l->card); /* it said that it wants, and has nothing on the card */
}

void turnstile_leave(Launch *l, int result) {
        bool pushed;

        if (l->account) {
                pushed = push(l);
                leave(l, result);
                pop(pushed);
        } else if (l->stray && result == CU_SUCCESS && gate_get()) {
                atomic_store(&account_get(gate_get())->strays, true);
        }
}

/* In the stream's context. */
static HostPlace *wrap(Gate *g, const Launch *l, const HostCall *call) {
        Account *a = account_get(g);
        int card;
        Context *c = account_context(a, l->handle, &card);

        if (!c || card < 0 || !turnstile_limits(g->cards[card].slice.limits) || real_is_captured(l->stream))
                return NULL; /* what is captured is called as often as the graph is launched */
        account_cut(a, c, key_of(l->stream), account_now());
        return hosts_take(a, (uint32_t) card, key_of(l->stream), call);
}

HostPlace *turnstile_host(Gate *g, const HostCall *call, CuHandle stream, bool twin) {
        Launch l = {.stream = twin && !stream ? STREAM_MINE : stream};
        HostPlace *p = NULL;
        bool pushed;

        l.handle = account_handle(account_get(g), l.stream, &l.foreign);
        if (l.handle == 0)
                return NULL; /* the driver is to say what is wrong */
        pushed = push(&l);
        if (pushed || !l.foreign)
                p = wrap(g, &l, call);
        pop(pushed);
        return p;
}

/* After an error that is the context's end the driver calls some of them all the same. */
void turnstile_host_given(Gate *g, HostPlace *p, int result) {
        if (result != CU_SUCCESS && !is_fatal(result))
                hosts_drop(account_get(g), p);
}

/* In the context, which need not be the current one. */
static void mark_ends(Account *a, CuHandle context, bool ends) {
        CuResult (*push_current)(CuHandle) = (CuResult(*)(CuHandle)) real_get(REAL_cuCtxPushCurrent_v2);
        CuHandle current = current_context();
        bool pushed = false;

        if (!account_context_known(a, (uintptr_t) context))
                return;
        if (current != context)
                pushed = push_current && push_current(context) == CU_SUCCESS;
        if (current == context || pushed)
                account_context_mark(a, (uintptr_t) context, ends);
        pop(pushed);
}

void turnstile_context_ends(CuHandle context) {
        Gate *g = gate_get();

        if (!g || !context)
                return;
        mark_ends(account_get(g), context, true);
        account_context_ending(account_get(g), (uintptr_t) context);
}

void turnstile_context_ended(CuHandle context, bool gone) {
        Gate *g = gate_get();

        if (g && context)
                account_context_ended(account_get(g), (uintptr_t) context, gone);
}

bool turnstile_is_current(CuHandle context) {
        return current_context() == context;
}

CuHandle turnstile_of_green(CuHandle green) {
        int (*get)(CuHandle *, CuHandle) = (int (*)(CuHandle *, CuHandle)) real_get(REAL_cuCtxFromGreenCtx);
        CuHandle context = NULL;

        return gate_get() && get && get(&context, green) == CU_SUCCESS ? context : NULL;
}

/* Not known to be active without the question. */
static bool is_active(int device) {
        int (*get)(int, unsigned *, int *) =
                (int (*)(int, unsigned *, int *)) real_get(REAL_cuDevicePrimaryCtxGetState);
        unsigned flags;
        int active = 0;

        return get && get(device, &flags, &active) == 0 && active;
}

CuHandle turnstile_primary(int device) {
        int (*retain)(CuHandle *, int) = (int (*)(CuHandle *, int)) real_get(REAL_cuDevicePrimaryCtxRetain);
        int (*release)(int) = (int (*)(int)) real_get(REAL_cuDevicePrimaryCtxRelease_v2);
        CuHandle context = NULL;

        if (!release)
                release = (int (*)(int)) real_get(REAL_cuDevicePrimaryCtxRelease);
        if (!gate_get() || !retain || !release || !is_active(device) || retain(&context, device) != 0)
                return NULL;
        mark_ends(account_get(gate_get()), context, false);
        (void) release(device); /* as it was before */
        return context;
}

void turnstile_primary_released(int device, CuHandle context) {
        Gate *g = gate_get();

        if (g && !is_active(device))
                account_context_ends(account_get(g), (uintptr_t) context, true);
}

void turnstile_stream_ends(CuHandle stream) {
        Gate *g = gate_get(); /* what was begun under a limit is still there without one */

        if (g)
                account_stream_ends(account_get(g), stream);
}
