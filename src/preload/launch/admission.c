/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/admission.h"

#include "preload/launch/batch.h"
#include "preload/launch/context.h"
#include "preload/launch/cuda_events.h"
#include "preload/launch/duty.h"
#include "preload/launch/tunables.h"
#include "preload/memory/gate_state.h"

/* ---- limits of a slice ---- */

static uint32_t read_word(const uint32_t *p) {
        return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* The percentage that the container keeps to without an arbiter; 0: no limit. */
static uint32_t own_percent(const SliceLimits *l) {
        uint32_t policy = read_word(&l->policy), percent = read_word(&l->core_percent);

        if (policy == COMPUTE_NATIVE)
                return 0;
        if (policy == COMPUTE_FAIR && read_word(&l->max_inst) > 0)
                percent = 100 / read_word(&l->max_inst);
        return percent < 100 ? percent : 0;
}

/* Whether the compute of the slice is limited now. */
static bool is_limited(const SliceLimits *l) {
        if (atomic_load_explicit(&l->schedule.flags, memory_order_relaxed) & SCHED_F_GATED)
                return true;
        return !(read_word(&l->flags) & SLICE_FLAG_OPEN) && own_percent(l) > 0;
}

/* The index of the first limited card; -1: none. */
static int first_limited(const Gate *g) {
        for (uint32_t i = 0; i < g->n_cards && i < GATE_CARDS; i++)
                if (g->cards[i].usable && is_limited(g->cards[i].slice.limits))
                        return (int) i;
        return -1;
}

Gate *admission_gate(void) {
        Gate *g = gate_get();

        return g && first_limited(g) >= 0 ? g : NULL;
}

/* ---- the check of one launch ---- */

/* PASS: it is counted as in flight. Otherwise: what it has to wait for. LATE: the window has run
 * out, and the arbiter has not written so yet. */
typedef enum Admission { PASS, WAIT_WINDOW, WAIT_LATE, WAIT_DEPTH, WAIT_BALANCE } Admission;

typedef struct LaunchRequest { /* one launch that is to be admitted */
        ProcessState *process;
        Context *context;
        const SliceLimits *limits;
        ProcessUsage *usage;
        uint32_t card;
        uint64_t nsec, now, held_since; /* held_since: it waits since then; 0: not yet */
        /* values of the two futex words when admission was checked */
        uint32_t window, wake;
        uint32_t others; /* the most other processes with work while it waited */
        bool copy;       /* a copy or fill */
        bool cold;       /* its length is not known */
        bool fills;      /* no further launch fits */
        bool counted;    /* it is counted in usage->waiters */
} LaunchRequest;

/* A launch of unknown length counts as half of the depth, so few are admitted until one has
 * ended. */
static void assume_length(LaunchRequest *k, uint64_t depth) {
        if (k->cold)
                k->nsec = depth / 2 > MAX_COLD_NS        ? MAX_COLD_NS
                          : depth / 2 > ESTIMATE_COLD_NS ? depth / 2
                                                         : ESTIMATE_COLD_NS;
}

static uint64_t later_of(uint64_t a, uint64_t b) {
        return a > b ? a : b;
}

/* When a launch may pass although its turn has not come. Work in flight, or a host function of the
 * program, may wait for this launch: for a lock that its thread holds, or for its kernel. So it
 * passes if nothing of the process has ended since that was due, for BLOCKED_NS while a host
 * function runs. Otherwise the card may be taking turns: for as long again as the work should take,
 * and STUCK_NS, for each process of the container with work. The launch that passed before it is
 * paid first. With nothing in flight a launch waits for its tokens. Returns the ns until then; 0:
 * it may pass now; UINT64_MAX: it waits. */
static uint64_t until_stuck(const LaunchRequest *k) {
        const ProcessUsage *m = k->usage;
        uint64_t work = atomic_load(&m->in_flight), end = atomic_load(&m->closed_end), at;

        if (k->held_since == 0 || work == 0)
                return UINT64_MAX;
        work = work < MAX_ROOM_NS ? work : MAX_ROOM_NS;
        at = end < k->held_since + work ? end : k->held_since + work; /* `end` may be wrong */
        at = later_of(later_of(k->held_since, at), atomic_load(&m->progress));
        if (atomic_load(&m->n_host_running) > 0)
                at = later_of(at, atomic_load(&m->host_since)) + BLOCKED_NS;
        else
                at += (work + STUCK_NS) * (1 + k->others);
        at = later_of(at, atomic_load(&m->paid_at));
        return at > k->now ? at - k->now : 0;
}

/* ns in which the container's share pays for nsec of work, at most MAX_ROOM_NS. Without a cap its
 * share is not known here. */
static uint64_t time_to_pay(const SliceLimits *l, uint64_t nsec) {
        uint64_t percent = own_percent(l);

        nsec = nsec < MAX_ROOM_NS ? nsec * 100 / (percent > 0 ? percent : UNKNOWN_SHARE_PERCENT) : nsec;
        return nsec < MAX_ROOM_NS ? nsec : MAX_ROOM_NS;
}

/* Whether the launch may pass by until_stuck(). Of several waiting threads one passes, and the next
 * one after as long again. */
static bool is_stuck(const LaunchRequest *k) {
        ProcessUsage *m = k->usage;
        uint64_t progress = atomic_load(&m->progress);

        if (until_stuck(k) != 0 || !atomic_compare_exchange_strong(&m->progress, &progress, k->now))
                return false;
        atomic_store(&m->paid_at, k->now + time_to_pay(k->limits, k->nsec));
        atomic_store(&m->max_kernels, 0);
        return true;
}

/* Estimates may be wrong: a function that was short becomes long. So the kernels in flight are
 * limited by number, too: few after a pause or a surprise, many while batches end in time. */
static bool has_too_many(LaunchRequest *k, uint64_t in_flight) {
        ProcessUsage *m = k->usage;

        if (in_flight == 0 && k->now - atomic_load(&m->marked) >= RESTART_PAUSE_NS)
                atomic_store(&m->max_kernels, 0);
        return atomic_load(&m->kernels) >= batch_max_kernels(k->process, k->card, k->now);
}

static Admission admit_launch(LaunchRequest *k) {
        if (!k->copy)
                (void) atomic_fetch_add(&k->usage->kernels, 1);
        return PASS;
}

static Admission admit_at_once(LaunchRequest *k) {
        (void) atomic_fetch_add(&k->usage->in_flight, k->nsec);
        return admit_launch(k);
}

/* Returns the ns of work that may be in flight: what ends by the window's close or `rest` later.
 * Several processes divide it; what some do not use, the others may. */
static uint64_t room_in(const LaunchRequest *k, uint64_t depth, uint64_t in_flight) {
        const SliceSchedule *t = &k->limits->schedule;
        uint64_t sharers = process_sharers(k->process, k->card);
        uint64_t closes = atomic_load_explicit(&t->closes, memory_order_relaxed);
        uint64_t room = closes > k->now ? closes - k->now : 0, part, others;
        uint32_t n;

        room += atomic_load_explicit(&t->rest, memory_order_relaxed);
        if (sharers <= 1)
                return room < depth ? room : depth;
        part = room / sharers < depth ? room / sharers : depth;
        if (in_flight < part || depth > MAX_ROOM_NS)
                return part;
        others = process_others(k->process, k->card, &n);
        room = room < depth * sharers ? room : depth * sharers;
        return others < room && room - others > part ? room - others : part;
}

/* Whether it is a copy that kernels in flight may wait for. */
static bool is_copy_behind_kernels(const LaunchRequest *k) {
        return k->copy && atomic_load(&k->usage->kernels) > 0;
}

static Admission admit_by_window(LaunchRequest *k) {
        const SliceSchedule *t = &k->limits->schedule;
        uint64_t in_flight = atomic_load_explicit(&k->usage->in_flight, memory_order_relaxed);
        uint64_t depth = atomic_load_explicit(&t->depth, memory_order_relaxed), room;

        assume_length(k, depth);
        if (!(atomic_load_explicit(&t->flags, memory_order_relaxed) & SCHED_F_GATED) ||
            is_copy_behind_kernels(k))
                return admit_at_once(k);
        k->window = atomic_load_explicit(&t->window, memory_order_acquire);
        if (!(k->window & SCHED_WINDOW_OPEN))
                return WAIT_WINDOW;
        if (k->now >= atomic_load_explicit(&t->closes, memory_order_relaxed))
                return WAIT_LATE;
        if (has_too_many(k, in_flight))
                return WAIT_DEPTH;
        room = room_in(k, depth, in_flight);
        do
                if (in_flight >= room && in_flight != 0)
                        return WAIT_DEPTH;
        while (!atomic_compare_exchange_weak(&k->usage->in_flight, &in_flight, in_flight + k->nsec));
        k->fills = in_flight + k->nsec >= room;
        if (atomic_load_explicit(&k->usage->window, memory_order_relaxed) != k->window)
                process_report_first_launch(k->process, k->card, k->window, k->now);
        return admit_launch(k);
}

/* Admits a launch before its turn. The debt in the balance delays later launches without an
 * arbiter. */
static Admission admit_in_debt(LaunchRequest *k) {
        (void) atomic_fetch_sub(&k->usage->balance, (int64_t) k->nsec);
        return admit_at_once(k);
}

static Admission admit_by_balance(LaunchRequest *k, uint32_t percent) {
        uint64_t in_flight = atomic_load(&k->usage->in_flight);

        assume_length(k, LOCAL_DEPTH_NS);
        if (percent == 0) /* there is no limit to keep */
                return admit_at_once(k);
        duty_fill(k->usage, &k->process->gate->cards[k->card].slice, percent, k->now);
        if (is_copy_behind_kernels(k))
                return admit_in_debt(k);
        if (in_flight >= LOCAL_DEPTH_NS || has_too_many(k, in_flight))
                return WAIT_DEPTH;
        return duty_take(k->usage, k->nsec) ? admit_at_once(k) : WAIT_BALANCE;
}

/* Whether the arbiter has not written for long, or writes by another clock. */
static bool is_away(uint64_t seen, uint64_t now) {
        return seen == 0 || (now > seen ? now - seen > SCHED_STALE_NSEC : seen - now > HEARTBEAT_AHEAD_NS);
}

static Admission check_launch(LaunchRequest *k) {
        uint64_t seen = atomic_load_explicit(&k->limits->schedule.seen, memory_order_acquire);
        Admission v;

        k->now = launch_now(); /* read after `seen`, which therefore is not in the future */
        k->wake = atomic_load(&k->usage->wake);
        if (is_away(seen, k->now)) {
                v = admit_by_balance(k, own_percent(k->limits));
        } else {
                if (atomic_load_explicit(&k->usage->filled, memory_order_relaxed) != 0)
                        atomic_store(&k->usage->filled, 0); /* the arbiter is back and has the debts */
                v = admit_by_window(k);
        }
        return v != PASS && is_stuck(k) ? admit_in_debt(k) : v;
}

/* ---- the wait of a launch ---- */

static uint64_t clamp_nsec(uint64_t nsec, uint64_t least, uint64_t most) {
        return nsec < least ? least : nsec < most ? nsec : most;
}

/* The sleep until work in flight is expected to end, ns. */
static uint64_t depth_wait(const LaunchRequest *k) {
        uint64_t due = atomic_load(&k->usage->closed_end),
                 nsec = due > k->now + DEPTH_LEAD_NS ? due - k->now - DEPTH_LEAD_NS : 0;

        return clamp_nsec(nsec, MIN_DEPTH_POLL_NS, MAX_DEPTH_POLL_NS);
}

/* Sleeps until a change, a signal or the time ends it; then admission is checked again. */
static void sleep_for(LaunchRequest *k, Admission v) {
        uint64_t nsec = v == WAIT_WINDOW  ? WINDOW_POLL_NS
                        : v == WAIT_LATE  ? LATE_POLL_NS
                        : v == WAIT_DEPTH ? depth_wait(k)
                                          : clamp_nsec(duty_until(k->usage, own_percent(k->limits)),
                                                       MIN_BALANCE_POLL_NS, WINDOW_POLL_NS),
                 stuck = until_stuck(k);

        nsec = stuck < nsec ? stuck : nsec;
        if (v == WAIT_WINDOW || v == WAIT_LATE)
                launch_sleep_on(&k->limits->schedule.window, k->window, false, nsec);
        else
                launch_sleep_on(&k->usage->wake, k->wake, true, nsec);
}

/* A thread that ended between admission and launch leaves an amount in flight that no other thread
 * takes out: drops it after LOST_AFTER_NS. */
static void drop_lost_work(LaunchRequest *k) {
        if (k->now - k->held_since < LOST_AFTER_NS || atomic_load(&k->usage->closed) != 0)
                return;
        atomic_store(&k->usage->in_flight, 0);
        atomic_store(&k->usage->kernels, 0);
        k->held_since = k->now;
}

static void wait_once(LaunchRequest *k, Admission v) {
        uint64_t sharers = process_sharers(k->process, k->card); /* without killed processes */
        uint32_t others;

        if (k->held_since == 0)
                k->held_since = k->now;
        if (k->context)
                batch_poll(k->process, k->context, true, k->now);
        context_expire_others(k->process, k->context, k->card, k->now);
        if (v == WAIT_DEPTH && atomic_load(&k->usage->wake) != k->wake)
                return; /* work has ended meanwhile */
        atomic_store(&k->usage->waited, k->now);
        if (!k->counted)
                (void) atomic_fetch_add(&k->usage->waiters, 1);
        k->counted = true;
        (void) process_others(k->process, k->card, &others);
        others = others < sharers ? others : (uint32_t) sharers;
        k->others = others > k->others ? others : k->others;
        process_report_want(k->process, k->card, k->now);
        process_report_drained(k->process, k->card);
        if (v == WAIT_DEPTH)
                drop_lost_work(k);
        sleep_for(k, v);
}

static void wait_until_admitted(AdmittedLaunch *l) {
        LaunchRequest k = {.process = l->process,
                           .context = l->context,
                           .limits = l->process->gate->cards[l->card].slice.limits,
                           .usage = &l->process->usage[l->card],
                           .card = l->card,
                           .copy = l->copy,
                           .cold = estimate_is_cold(l->estimate),
                           .nsec = estimate_nsec(l->estimate)};
        uint32_t waiters;
        Admission v;

        while ((v = check_launch(&k)) != PASS)
                wait_once(&k, v);
        l->now = k.now;
        l->nsec = k.nsec;
        l->waited = k.counted;
        l->fills = k.fills;
        if (!l->waited)
                return;
        waiters = atomic_load(&k.usage->waiters);
        while (waiters > 0 && !atomic_compare_exchange_weak(&k.usage->waiters, &waiters, waiters - 1))
                ;
}

/* ---- launches and copies ---- */

/* Makes the stream's context current for our own calls, if it is not. */
static bool push_context(const AdmittedLaunch *l) {
        return l->foreign && context_push((CuHandle) l->handle);
}

/* Admits the launch, with its context current. */
static void enter_launch(Gate *g, AdmittedLaunch *l, CuHandle function, uint64_t blocks) {
        ProcessState *a = process_get(g);
        int card;

        l->context = context_get(a, l->handle, &card);
        if (card < 0)
                card = first_limited(g);
        if (card < 0 || !is_limited(g->cards[card].slice.limits) || real_is_captured(l->stream))
                return;
        l->process = a;
        l->card = (uint32_t) card;
        l->estimate = estimate_find(&a->estimates, (uintptr_t) function, blocks);
        wait_until_admitted(l);
        process_count_launch(a, l->card);
        if (l->context)
                l->batch = batch_open(a, l->context, l->handle, l->stream, estimate_is_cold(l->estimate),
                                      l->now);
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
        pushed = push_context(l);
        if (l->foreign && !pushed)
                l->handle = 0;
        enter_launch(g, l, function, blocks);
        context_pop(pushed);
}

void admission_enter(Gate *g, AdmittedLaunch *l, CuHandle function, uint64_t blocks, CuHandle stream,
                     bool twin) {
        l->copy = l->blocks = false;
        enter_any(g, l, function, blocks, stream, twin);
}

/* Copies of one kind and a similar size share an estimate, as the launches of a function do. */
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

/* The part of the time from `from` to `now` that no other thread has charged for such a launch. */
static uint64_t not_followed(ProcessUsage *m, uint64_t from, uint64_t now) {
        uint64_t end = atomic_load(&m->followed);

        do
                if (end >= now)
                        return 0;
        while (!atomic_compare_exchange_weak(&m->followed, &end, now));
        return now - (end > from ? end : from);
}

/* Follows a launch without a batch: no memory for a context's slot, all batches in use, or a stream
 * in which no event can be recorded. Its own thread waits for it, MAX_FOLLOW_NS at most. The time
 * that passed is charged, once for all threads that wait; after MAX_FOLLOW_NS the estimate, which
 * is that time from then on. */
static void follow_launch(AdmittedLaunch *l) {
        ProcessState *a = l->process;
        EstimateShare one = {l->estimate, 1};
        uint64_t passed, nsec;
        bool done = false;

        process_begin_call(a, l->card, l->nsec, l->now);
        while (launch_now() - l->now < MAX_FOLLOW_NS && !real_is_captured(l->stream) &&
               !(done = launch_stream_is_done(l->stream)))
                launch_sleep(FOLLOW_POLL_NS);
        passed = launch_now() - l->now;
        nsec = done               ? not_followed(&a->usage[l->card], l->now, l->now + passed)
               : passed < l->nsec ? passed
                                  : l->nsec;
        process_charge(a, l->card, l->nsec, nsec, !l->copy);
        if (done || passed >= MAX_FOLLOW_NS)
                estimate_learn(&one, 1, passed, false);
        process_end_call(a, l->card);
}

static void leave_launch(AdmittedLaunch *l, int result) {
        ProcessState *a = l->process;
        bool made = result == CU_SUCCESS;
        LaunchOutcome done = {l->estimate, l->nsec, l->now, made, l->waited || l->fills, !l->copy};

        if (l->batch)
                batch_add(a, l->batch, &done);
        else if (made)
                follow_launch(l);
        else
                process_return(a, l->card, l->nsec, !l->copy);
        if (is_fatal(result) && l->context)
                context_forget(a, (CuHandle) l->handle);
        if (l->blocks)
                process_end_call(a, l->card);
        if (l->waited && atomic_load(&a->usage[l->card].closed) == 0)
                process_report_idle(a, l->card); /* it reported work, and has none on the card */
}

void admission_leave(AdmittedLaunch *l, int result) {
        bool pushed;

        if (l->process) {
                pushed = push_context(l);
                leave_launch(l, result);
                context_pop(pushed);
        } else if (l->no_context && result == CU_SUCCESS && gate_get()) {
                atomic_store(&process_get(gate_get())->without_context, true);
        }
}

/* ---- host functions ---- */

/* Replaces the host function, with the stream's context current. */
static HostFuncSlot *wrap_function(Gate *g, const AdmittedLaunch *l, const HostFunc *call) {
        ProcessState *a = process_get(g);
        int card;
        Context *c = context_get(a, l->handle, &card);

        if (!c || card < 0 || !is_limited(g->cards[card].slice.limits) || real_is_captured(l->stream))
                return NULL; /* a captured function runs with each launch of the graph */
        batch_end_of_stream(a, c, batch_key(l->stream), false);
        return host_func_take((uint32_t) card, call);
}

HostFuncSlot *admission_host_func(Gate *g, const HostFunc *call, CuHandle stream, bool twin) {
        AdmittedLaunch l = {.stream = twin && !stream ? STREAM_PER_THREAD : stream};
        HostFuncSlot *p = NULL;
        bool pushed;

        l.handle = context_handle(process_get(g), l.stream, &l.foreign);
        if (l.handle == 0)
                return NULL; /* the driver returns the error */
        pushed = push_context(&l);
        if (pushed || !l.foreign)
                p = wrap_function(g, &l, call);
        context_pop(pushed);
        return p;
}

/* After an error that ends the context the slot stays, because the driver still calls some host
 * functions. */
void admission_host_func_given(HostFuncSlot *p, int result) {
        if (result != CU_SUCCESS && !is_fatal(result))
                host_func_drop(p);
}
