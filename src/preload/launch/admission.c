/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/admission.h"

#include "preload/inject/spin.h"
#include "preload/launch/batch.h"
#include "preload/launch/context.h"
#include "preload/launch/duty.h"
#include "preload/launch/tunables.h"
#include "preload/launch/unbatched.h"
#include "preload/memory/gate_state.h"

enum {
        PERCENT = 100,
        EXCUSED = 8, /* launches */
};

#define STREAM_MINE ((CuHandle) 2)

typedef enum Admission { PASS, WAIT_WINDOW, WAIT_LATE, WAIT_DEPTH, WAIT_BALANCE } Admission;

typedef struct LaunchRequest { /* one launch that wants to pass */
        ProcessState *process;
        Context *context;
        const SliceLimits *limits;
        ProcessUsage *usage;
        uint32_t card;
        uint64_t nsec, now, held_since; /* since: it waits; 0: not yet */
        uint64_t known;                 /* of nsec, if anything is */
        CuHandle stream;
        uint32_t window, wake;       /* as they were when it was judged */
        uint64_t crowded_since;      /* since when there are too many; 0: there are not */
        uint64_t backlog;            /* ns in flight that are not counted in this window */
        uint32_t max_launches, room; /* launches in flight; beside those that are not counted */
        bool cold;                   /* nsec is not known */
        bool fills;                  /* there is no room for another one */
} LaunchRequest;

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

        if (policy == COMPUTE_NATIVE)
                return 0;
        if (policy == COMPUTE_FAIR && word(&l->max_inst) > 0)
                percent = PERCENT / word(&l->max_inst);
        return percent < PERCENT ? percent : 0;
}

/* Whether a slice's compute is limited at all, now. */
static bool is_limited(const SliceLimits *l) {
        if (atomic_load_explicit(&l->schedule.flags, memory_order_relaxed) & SCHED_F_GATED)
                return true;
        return !(word(&l->flags) & SLICE_FLAG_OPEN) && percent_of(l) > 0;
}

Gate *admission_gate(void) {
        Gate *g = gate_get();

        for (uint32_t i = 0; g && i < g->n_cards && i < GATE_CARDS; i++)
                if (g->cards[i].usable && is_limited(g->cards[i].slice.limits))
                        return g;
        return NULL;
}

/* ---- the judgement ---- */

/* What is not known yet counts as half of what may be in flight: few of it pass until one is
 * over. */
static void assume_length(LaunchRequest *k, uint64_t depth) {
        uint64_t nsec = depth / 2 > MAX_COLD_NS        ? MAX_COLD_NS
                        : depth / 2 > ESTIMATE_COLD_NS ? depth / 2
                                                       : ESTIMATE_COLD_NS;

        if (k->cold)
                k->nsec = k->known > nsec ? k->known : nsec;
}

/* Not for ever: what is in front may wait for something that this thread does after its launch. */
static bool is_held(LaunchRequest *k) {
        if (!batch_is_late(k->process, k->card, k->stream, k->now))
                return false;
        if (k->held_since == 0 || k->now - k->held_since < MAX_HELD_NS)
                return true;
        atomic_store(&k->usage->due, k->now + HELD_PAUSE_NS);
        return false;
}

static uint32_t backlog_launches(const LaunchRequest *k) {
        return k->backlog > 0 ? atomic_load(&k->usage->backlog_launches) : 0;
}

/* Estimates may be wrong. A function that was short and becomes long has at most so many launches in
 * flight, and so many only after measurements. Behind blocked work some more pass. */
static bool is_crowded(LaunchRequest *k) {
        uint32_t n = atomic_load_explicit(&k->usage->launches, memory_order_relaxed);

        if (n < backlog_launches(k) + k->room) {
                k->crowded_since = 0;
                return false;
        }
        if (k->crowded_since == 0)
                k->crowded_since = k->now;
        if (k->now - k->crowded_since < MAX_HELD_NS || k->backlog > 0)
                return true;
        process_return(k->process, k->card, 0, EXCUSED);
        k->crowded_since = 0;
        return false;
}

static Admission admit(LaunchRequest *k) {
        uint32_t n = atomic_fetch_add_explicit(&k->usage->launches, 1, memory_order_relaxed);

        k->fills = k->fills || n + 1 >= backlog_launches(k) + k->room;
        host_func_admitted(k->usage, k->now);
        return PASS;
}

static Admission admit_at_once(LaunchRequest *k) {
        (void) atomic_fetch_add(&k->usage->in_flight, k->nsec);
        return admit(k);
}

/* Of the container's other processes. One that was killed may have left something there; then that
 * is missing. */
static uint64_t others_in_flight(const LaunchRequest *k) {
        const SliceUser *s = &k->process->gate->cards[k->card].slice;
        uint64_t sum = 0, one;

        for (uint32_t row = 0; row < SLICE_ROWS; row++) {
                if (row == s->row)
                        continue;
                one = atomic_load_explicit(&s->counters->rows[row].work.in_flight, memory_order_relaxed);
                sum += one < MAX_ROOM_NS ? one : MAX_ROOM_NS;
        }
        return sum;
}

/* What is in flight is over when the window is, or a little later. Several processes divide that,
 * and what some of them leave the others have. */
static uint64_t room_in(const LaunchRequest *k, uint64_t depth, uint64_t in_flight) {
        const SliceSchedule *t = &k->limits->schedule;
        uint64_t sharers = atomic_load_explicit(&t->sharers, memory_order_relaxed);
        uint64_t closes = atomic_load_explicit(&t->closes, memory_order_relaxed);
        uint64_t now = heartbeat_time(&k->usage->heartbeat, k->now), room = closes > now ? closes - now : 0,
                 part, others;

        room += atomic_load_explicit(&t->rest, memory_order_relaxed);
        if (sharers <= 1)
                return room < depth ? room : depth;
        part = room / sharers < depth ? room / sharers : depth;
        if (in_flight < part || depth > MAX_ROOM_NS || k->backlog > 0)
                return part;
        others = others_in_flight(k);
        room = room < depth * sharers ? room : depth * sharers;
        return others < room && room - others > part ? room - others : part;
}

/* What stands may come to another one's window when the function returns, so not more than this is
 * said to. */
static bool may_block(uint64_t in_flight) {
        return in_flight <= MAX_BLOCKED_NS;
}

/* With this launch as well, or after it has waited for long: windows behind blocked work
 * (SCHED_F_IGNORE_BACKLOG) are only for work that is reported as blocked, so a launch that is always
 * refused would never pass. */
static bool may_block_with(const LaunchRequest *k, uint64_t in_flight) {
        return may_block(in_flight) && (may_block(in_flight + k->nsec) ||
                                        (k->held_since != 0 && k->now - k->held_since >= MAX_HELD_NS));
}

/* The window is behind work that may wait for what comes, or that work stands: what was in flight
 * when this process saw it first is not counted, as long as it is. */
static void note_backlog(LaunchRequest *k, uint64_t in_flight) {
        ProcessUsage *m = k->usage;
        uint32_t known = atomic_load(&m->backlog_window);
        uint64_t before;

        bool behind = atomic_load_explicit(&k->limits->schedule.flags, memory_order_relaxed) &
                      SCHED_F_IGNORE_BACKLOG;

        if (!behind && (!host_func_excuses(m) || !may_block_with(k, in_flight)))
                return;
        if (host_func_excuses(m) && atomic_load(&m->allowed) < k->room)
                k->room = atomic_load(&m->allowed);
        if (behind && known != k->window) {
                atomic_store(&m->backlog, in_flight);
                atomic_store(&m->backlog_launches, atomic_load(&m->launches));
                (void) atomic_compare_exchange_strong(&m->backlog_window, &known, k->window);
        }
        before = atomic_load(&m->backlog);
        if (in_flight < before && atomic_compare_exchange_strong(&m->backlog, &before, in_flight))
                before = in_flight;
        k->backlog = before;
}

static uint64_t counted(const LaunchRequest *k, uint64_t in_flight) {
        return in_flight > k->backlog ? in_flight - k->backlog : 0;
}

/* A function may have other work after a pause than it had before. So few launches pass until the
 * first of them has ended. A launch that was held found nothing in flight when it came. */
static void note_restart(LaunchRequest *k, uint64_t in_flight) {
        if (in_flight == 0 && k->held_since == 0 &&
            k->now - atomic_load_explicit(&k->usage->marked, memory_order_relaxed) >= RESTART_PAUSE_NS)
                atomic_store(&k->usage->restarted, 1);
        if (k->room > ESTIMATE_FEW && atomic_load_explicit(&k->usage->restarted, memory_order_relaxed))
                k->room = ESTIMATE_FEW;
}

static Admission admit_by_window(LaunchRequest *k) {
        const SliceSchedule *t = &k->limits->schedule;
        uint64_t in_flight = atomic_load_explicit(&k->usage->in_flight, memory_order_relaxed);
        uint64_t depth = atomic_load_explicit(&t->depth, memory_order_relaxed), hosts, room;

        assume_length(k, depth);
        if (!(atomic_load_explicit(&t->flags, memory_order_relaxed) & SCHED_F_GATED))
                return admit_at_once(k);
        k->window = atomic_load_explicit(&t->window, memory_order_acquire);
        if (!(k->window & SCHED_WINDOW_OPEN))
                return WAIT_WINDOW;
        if (heartbeat_time(&k->usage->heartbeat, k->now) >=
            atomic_load_explicit(&t->closes, memory_order_relaxed))
                return WAIT_LATE;
        note_backlog(k, in_flight);
        note_restart(k, in_flight);
        if (counted(k, in_flight) != 0 && (is_crowded(k) || (k->backlog == 0 && is_held(k))))
                return WAIT_DEPTH;
        hosts = k->backlog == 0 ? host_func_time(k->usage, key_of(k->stream), k->now) : 0;
        room = room_in(k, depth, counted(k, in_flight));
        do
                if (counted(k, in_flight) + hosts >= room && counted(k, in_flight) != 0)
                        return WAIT_DEPTH;
        while (!atomic_compare_exchange_weak(&k->usage->in_flight, &in_flight, in_flight + k->nsec));
        k->fills = counted(k, in_flight) + hosts + k->nsec >= room;
        if (atomic_load_explicit(&k->usage->window, memory_order_relaxed) != k->window)
                process_report_first_launch(k->process, k->card, k->window, k->now);
        return admit(k);
}

/* What is in flight may wait for this launch: one a second is let in behind it. */
static bool is_excused(const LaunchRequest *k) {
        return k->held_since != 0 && k->now - k->held_since >= HELD_PAUSE_NS;
}

static Admission admit_by_balance(LaunchRequest *k, uint32_t percent) {
        uint64_t in_flight = atomic_load(&k->usage->in_flight);

        assume_length(k, LOCAL_DEPTH_NS);
        if (percent == 0) /* nothing is known to keep to */
                return admit_at_once(k);
        duty_fill(k->usage, &k->process->gate->cards[k->card].slice, percent, k->now);
        if ((in_flight >= LOCAL_DEPTH_NS && !is_excused(k) && !host_func_excuses(k->usage)) ||
            (in_flight != 0 && is_crowded(k)))
                return WAIT_DEPTH;
        if (!duty_take(k->usage, k->nsec))
                return WAIT_BALANCE;
        return admit_at_once(k);
}

static Admission check_admission(LaunchRequest *k) {
        uint64_t seen = atomic_load_explicit(&k->limits->schedule.seen, memory_order_acquire);

        k->room = k->max_launches;
        k->backlog = 0;
        k->now = launch_now(); /* read after `seen`, so that is never in the future */
        k->wake = atomic_load(&k->usage->wake);
        unbatched_poll(k->process, k->card, k->now);
        if (!heartbeat_is_alive(&k->usage->heartbeat, seen, k->now))
                return admit_by_balance(k, percent_of(k->limits));
        if (atomic_load_explicit(&k->usage->filled, memory_order_relaxed) != 0)
                atomic_store(&k->usage->filled, 0); /* the arbiter is back: debts are his to know */
        return admit_by_window(k);
}

/* ---- waiting ---- */

static uint64_t until_balance(LaunchRequest *k) {
        uint64_t nsec = duty_until(k->usage, percent_of(k->limits));

        return nsec < MIN_BALANCE_POLL_NS ? MIN_BALANCE_POLL_NS
               : nsec < WINDOW_POLL_NS    ? nsec
                                          : WINDOW_POLL_NS;
}

static uint64_t until_depth(const LaunchRequest *k) {
        uint64_t due = atomic_load(&k->usage->due),
                 nsec = due > k->now + DEPTH_LEAD_NS ? due - k->now - DEPTH_LEAD_NS : 0;

        return nsec < MIN_DEPTH_POLL_NS   ? MIN_DEPTH_POLL_NS
               : nsec < MAX_DEPTH_POLL_NS ? nsec
                                          : MAX_DEPTH_POLL_NS;
}

/* Until what is in flight may be found to stand. */
static uint64_t until_blocked(const LaunchRequest *k) {
        uint64_t from = host_func_blocked_from(k->usage, k->held_since);

        if (from == UINT64_MAX || host_func_is_blocked(k->usage))
                return WINDOW_POLL_NS;
        if (from <= k->now)
                return BLOCKED_POLL_NS;
        return from - k->now < WINDOW_POLL_NS ? from - k->now : WINDOW_POLL_NS;
}

/* A signal, a change or the time ends it; all are looked at again. */
static void sleep_for(LaunchRequest *k, Admission v) {
        uint64_t nsec = v == WAIT_WINDOW  ? WINDOW_POLL_NS
                        : v == WAIT_LATE  ? LATE_POLL_NS
                        : v == WAIT_DEPTH ? until_depth(k)
                                          : until_balance(k);

        nsec = until_blocked(k) < nsec ? until_blocked(k) : nsec;
        if (v == WAIT_WINDOW || v == WAIT_LATE)
                launch_sleep_on(&k->limits->schedule.window, k->window, false, nsec);
        else
                launch_sleep_on(&k->usage->wake, k->wake, true, nsec);
}

/* A thread that was ended between its turn and its launch leaves an amount in flight, which no other
 * thread takes out. */
static void forget_lost(LaunchRequest *k) {
        if (k->now - k->held_since < LOST_AFTER_NS || atomic_load(&k->usage->closed) != 0)
                return;
        atomic_store(&k->usage->in_flight, 0);
        atomic_store(&k->usage->launches, 0);
        k->held_since = k->now;
}

/* Whether it may be waited for by what it waits behind. */
static void report_flags(LaunchRequest *k) {
        bool blocked = k->context && atomic_load(&k->usage->closed) > 0 &&
                       batch_is_blocked(k->process, k->context, k->now);

        atomic_store(&k->usage->flags, (uint32_t) WORK_F_WAITER | (blocked ? WORK_F_BLOCKED : 0U));
}

/* Nothing in flight goes on, maybe because of this launch. True: it is to be judged anew. Where
 * there is more by now than may stand, no launch may pass because of it, and the report is taken back. */
static bool look_whether_blocked(LaunchRequest *k, Admission v) {
        if (!may_block(atomic_load(&k->usage->in_flight))) {
                if (v == WAIT_DEPTH)
                        host_func_unblock(k->usage);
                return false;
        }
        if (!k->context || k->now < host_func_blocked_from(k->usage, k->held_since) ||
            !batch_is_blocked(k->process, k->context, k->now))
                return false;
        return host_func_mark_blocked(k->usage, v == WAIT_WINDOW || v == WAIT_LATE) && v == WAIT_DEPTH;
}

static void wait_once(LaunchRequest *k, Admission v) {
        bool first = k->held_since == 0, again;

        atomic_store(&k->usage->waited, k->now);
        if (first) {
                k->held_since = k->now;
                (void) atomic_fetch_add(&k->usage->waiters, 1);
        }
        if (k->context)
                batch_poll(k->process, k->context, BATCH_POLL_ASK | (first ? BATCH_POLL_CLOSE : 0), k->now);
        if (first && atomic_load(&k->usage->in_flight) == 0)
                atomic_store(&k->usage->restarted, 1);
        again = look_whether_blocked(k, v);
        if (k->now - k->held_since >= LONG_WAIT_NS)
                report_flags(k);
        process_report_want(k->process, k->card, k->now);
        process_report_drained(k->process, k->card);
        if (v == WAIT_DEPTH)
                forget_lost(k);
        if (again)
                return;
        sleep_for(k, v);
}

static void wait_for_admission(AdmittedLaunch *l, CuHandle stream) {
        LaunchRequest k = {.process = l->process,
                           .context = l->context,
                           .limits = l->process->gate->cards[l->card].slice.limits,
                           .usage = &l->process->usage[l->card],
                           .card = l->card,
                           .stream = stream,
                           .max_launches = estimate_trust(l->estimate),
                           .cold = estimate_is_doubtful(l->estimate),
                           .nsec = estimate_nsec(l->estimate),
                           .known = estimate_is_cold(l->estimate) ? 0 : estimate_nsec(l->estimate)};
        uint32_t waiters;
        Admission v;

        while ((v = check_admission(&k)) != PASS)
                wait_once(&k, v);
        l->now = k.now;
        l->nsec = k.nsec;
        l->waited = k.held_since != 0;
        l->fills = k.fills;
        if (!l->waited)
                return;
        atomic_store(&k.usage->flags, 0); /* a thread that still waits sets them again */
        waiters = atomic_load(&k.usage->waiters);
        while (waiters > 0 && !atomic_compare_exchange_weak(&k.usage->waiters, &waiters, waiters - 1))
                ;
}

/* ---- launches ---- */

/* For a launch whose card is not known. */
static int first_limited(const Gate *g) {
        for (uint32_t i = 0; i < g->n_cards && i < GATE_CARDS; i++)
                if (g->cards[i].usable && is_limited(g->cards[i].slice.limits))
                        return (int) i;
        return -1;
}

/* The stream's context is made the current one for what the gate asks and makes. */
static bool push(const AdmittedLaunch *l) {
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
static void enter(Gate *g, AdmittedLaunch *l, CuHandle function, uint64_t blocks, CuHandle named) {
        ProcessState *a = process_get(g);
        int card;

        l->context = context_get(a, l->handle, &card);
        if (card < 0)
                card = first_limited(g);
        if (card < 0 || !is_limited(g->cards[card].slice.limits) || real_is_captured(named))
                return;
        l->process = a;
        l->card = (uint32_t) card;
        l->estimate = estimate_find(&a->estimates, (uintptr_t) function, blocks);
        wait_for_admission(l, named);
        process_count_launch(a, l->card);
        if (l->context)
                l->batch =
                        batch_open(a, l->context, l->handle, named, key_of(named),
                                   estimate_is_doubtful(l->estimate) || estimate_varies(l->estimate), l->now);
}

void admission_enter(Gate *g, AdmittedLaunch *l, CuHandle function, uint64_t blocks, CuHandle stream,
                     bool twin) {
        ProcessState *a = process_get(g);
        bool pushed;

        l->stream = twin && !stream ? STREAM_MINE : stream;
        l->process = NULL;
        l->batch = NULL;
        l->handle = context_handle(a, l->stream, &l->foreign);
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

static void leave(AdmittedLaunch *l, int result) {
        ProcessState *a = l->process;
        bool made = result == CU_SUCCESS;
        LaunchOutcome done = {l->estimate, l->nsec, l->now, made, l->waited || l->fills};

        if (l->batch)
                batch_add(a, l->batch, &done);
        else if (made)
                unbatched_launched(a, l->card, l->stream, l->estimate, l->nsec, l->now);
        else
                process_return(a, l->card, l->nsec, 1);
        if (is_fatal(result) && l->context)
                context_destroy_now(a, l->handle, false);
        if (l->waited && atomic_load(&a->usage[l->card].closed) == 0)
                process_report_idle(a, l->card); /* it said that it wants, and has nothing on the card */
}

void admission_leave(AdmittedLaunch *l, int result) {
        bool pushed;

        if (l->process) {
                pushed = push(l);
                leave(l, result);
                pop(pushed);
        } else if (l->stray && result == CU_SUCCESS && gate_get()) {
                atomic_store(&process_get(gate_get())->strays, true);
        }
}

/* In the stream's context. */
static HostFuncSlot *wrap(Gate *g, const AdmittedLaunch *l, const HostFunc *call) {
        ProcessState *a = process_get(g);
        int card;
        Context *c = context_get(a, l->handle, &card);

        if (!c || card < 0 || !is_limited(g->cards[card].slice.limits) || real_is_captured(l->stream))
                return NULL; /* what is captured is called as often as the graph is launched */
        batch_cut(a, c, key_of(l->stream), launch_now());
        return host_func_take(a, (uint32_t) card, key_of(l->stream), call);
}

HostFuncSlot *admission_host_func(Gate *g, const HostFunc *call, CuHandle stream, bool twin) {
        AdmittedLaunch l = {.stream = twin && !stream ? STREAM_MINE : stream};
        HostFuncSlot *p = NULL;
        bool pushed;

        l.handle = context_handle(process_get(g), l.stream, &l.foreign);
        if (l.handle == 0)
                return NULL; /* the driver is to say what is wrong */
        pushed = push(&l);
        if (pushed || !l.foreign)
                p = wrap(g, &l, call);
        pop(pushed);
        return p;
}

/* After an error that is the context's end the driver calls some of them all the same. */
void admission_host_func_given(Gate *g, HostFuncSlot *p, int result) {
        if (result != CU_SUCCESS && !is_fatal(result))
                host_func_drop(process_get(g), p);
}

/* In the context, which need not be the current one. */
static void mark_ends(ProcessState *a, CuHandle context, bool ends) {
        CuResult (*push_current)(CuHandle) = (CuResult(*)(CuHandle)) real_get(REAL_cuCtxPushCurrent_v2);
        CuHandle current = current_context();
        bool pushed = false;

        if (!context_destroy_is_known(a, (uintptr_t) context))
                return;
        if (current != context)
                pushed = push_current && push_current(context) == CU_SUCCESS;
        if (current == context || pushed)
                context_destroy_mark(a, (uintptr_t) context, ends);
        pop(pushed);
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

/* Not known to be active without the question. */
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
        (void) release(device); /* as it was before */
        return context;
}

void admission_primary_released(int device, CuHandle context) {
        Gate *g = gate_get();

        if (g && !is_active(device))
                context_destroy_now(process_get(g), (uintptr_t) context, true);
}

void admission_stream_destroy(CuHandle stream) {
        Gate *g = gate_get(); /* what was begun under a limit is still there without one */

        if (g)
                context_destroy_stream(process_get(g), stream);
}
