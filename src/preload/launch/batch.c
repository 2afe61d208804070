/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/batch-internal.h"

/* When a batch is closed though no launch waits (MARK_QUIET_NS, too). This bounds the unmeasured
 * work behind the last mark. A mark costs the launching thread some microseconds, the card
 * nothing. */

enum {
        MARKS_FIRST = 64,   /* of a process: functions may be tried with small inputs first */
        MARK_LAUNCHES = 32, /* in a batch; ESTIMATE_MOST may be in flight */
        MARKS_COLD = 4,     /* of unmeasured functions, on the card at once */
        SAMPLE_EACH = 4,    /* one batch in so many gets an event behind each launch */
};

/* Single launches that find the card idle are measured once per MARK_PAUSE_NS: an event for each
 * would cost more than the launch. */
static bool worth_measuring(ProcessState *a, const Batch *b, unsigned how, uint64_t now) {
        const ProcessUsage *m = &a->usage[b->context->card];

        return (how & BATCH_OPEN_COLD) || atomic_load(&m->closed) > 0 ||
               atomic_load(&m->n_host_running) > 0 || atomic_load(&m->n_marked) < MARKS_FIRST ||
               now - atomic_load(&m->marked) >= MARK_PAUSE_NS;
}

/* Chosen at random: an application that knew the choice could run the other batches uncharged. */
static bool is_sampled(ProcessUsage *m, uint64_t now) {
        uint32_t blind = atomic_load_explicit(&m->n_to_sample, memory_order_relaxed);

        if (blind == 0)
                return false;
        atomic_store_explicit(&m->n_to_sample, blind - 1, memory_order_relaxed);
        return (now * UINT64_C(0x9E3779B97F4A7C15) >> 32) % SAMPLE_EACH == 0;
}

static bool start_batch(ProcessState *a, Batch *b, CuHandle stream, unsigned how, uint64_t now) {
        bool ok, idle;
        int mode;

        b->stream = stream;
        __atomic_store_n(&b->key, batch_key(stream), __ATOMIC_RELAXED);
        atomic_store_explicit(&b->destroyed_stream, BATCH_NO_STREAM, memory_order_relaxed);
        b->n_shares = b->n_launches = b->n_others = b->n_kernels = 0;
        atomic_store(&b->nsec, 0);
        atomic_store(&b->over, now);
        b->began = now;
        b->begin_at = b->call_time = 0;
        b->learns = b->marked = false;
        b->exact = is_sampled(&a->usage[b->context->card], now);
        b->measured = b->exact || worth_measuring(a, b, how, now);
        if (!b->measured)
                return true;
        /* The stream may have work that is not counted in `kernels`, as copies. */
        idle = (how & BATCH_OPEN_KERNEL) && atomic_load(&a->usage[b->context->card].kernels) <= 1 &&
               batch_can_be_marked(b) && launch_stream_is_done(stream);
        mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        ok = cuda_event_record(&b->begin, stream);
        (void) launch_relax_capture(mode);
        if (idle)
                b->begin_at = launch_now();
        return ok;
}

/* The stream is idle, so its closed batches have ended, though their callbacks are still to come.
 * They are charged before the open one: each is charged from the end of the last. */
static void finish_closed_before(ProcessState *a, const Batch *b) {
        Context *c = b->context;

        if (atomic_load_explicit(&a->usage[c->card].closed, memory_order_relaxed) == 0)
                return;
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                uint32_t state = atomic_load(&c->batches[i].state);

                if (batch_is_closed(state) && __atomic_load_n(&c->batches[i].key, __ATOMIC_RELAXED) == b->key)
                        batch_finish_closed(a, &c->batches[i], state);
        }
}

/* If the stream is idle, the batch's work has ended and is charged. If it is still at work beyond
 * its expected end, the estimate was too small: the difference is added to the work in flight. A
 * captured stream is not queried, since that would invalidate the capture. */
bool batch_settle_idle(ProcessState *a, Batch *b, uint64_t now) {
        if (now <= atomic_load(&b->over) || !batch_can_be_marked(b))
                return false;
        if (!launch_stream_is_done(b->stream)) {
                uint64_t more = now - atomic_load(&b->over);

                (void) atomic_fetch_add(&a->usage[b->context->card].in_flight, more);
                (void) atomic_fetch_add(&b->nsec, more);
                atomic_store(&b->over, now);
                return false;
        }
        finish_closed_before(a, b);
        if (!measure_unclosed(a, b, now))
                batch_charge_unseen(a, b, now);
        return true;
}

void batch_reopen(ProcessState *a, Batch *b, uint64_t now) {
        uintptr_t handle = b->handle;

        atomic_store(&b->state, BATCH_OPEN);
        if (!batch_context_has_ended(b->context, handle) || !batch_take(b, BATCH_OPEN))
                return;
        batch_charge_unseen(a, b, now); /* the context has ended, so no other thread settles it */
        batch_release(b);
}

/* Whether the batch is settled: idle, or of a destroyed stream whose handle names a new stream
 * now. */
static bool is_settled(ProcessState *a, Batch *b, uint64_t now) {
        if (!batch_stream_is_destroyed(b))
                return batch_settle_idle(a, b, now);
        batch_charge_unseen(a, b, now);
        return true;
}

static Batch *take_open(ProcessState *a, Batch *b, uintptr_t handle, uintptr_t key, unsigned how,
                        uint64_t now) {
        if (__atomic_load_n(&b->key, __ATOMIC_RELAXED) != key || !batch_take(b, BATCH_OPEN))
                return NULL;
        if (b->key != key || b->handle != handle ||
            batch_context_has_ended(b->context, b->handle)) { /* another thread started it again in between */
                batch_reopen(a, b, now);
                return NULL;
        }
        if (!is_settled(a, b, now) || start_batch(a, b, b->stream, how, now))
                return b;
        batch_release(b);
        return NULL;
}

Batch *batch_open(ProcessState *a, Context *c, uintptr_t handle, CuHandle stream, unsigned how,
                  uint64_t now) {
        uintptr_t key = batch_key(stream);
        Batch *b;

        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                b = take_open(a, &c->batches[i], handle, key, how, now);
                if (b)
                        return b;
        }
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                b = &c->batches[i];
                if (atomic_load_explicit(&b->n_callbacks, memory_order_relaxed) >= CALLBACKS_MAX ||
                    !batch_take(b, BATCH_FREE))
                        continue;
                b->handle = handle;
                if (!batch_context_has_ended(b->context, b->handle) && start_batch(a, b, stream, how, now))
                        return b;
                batch_release(b);
                return NULL;
        }
        measure_all(a, c, now); /* frees batches for the next launch */
        return NULL;
}

void batch_finish(ProcessState *a, Batch *b, uint64_t now) {
        if (batch_settle_idle(a, b, now))
                batch_release(b);
        else if (batch_can_be_marked(b))
                batch_close(a, b, now);
        else
                batch_reopen(a, b, now);
}

void batch_close_of_stream(ProcessState *a, Context *c, uintptr_t key, uint64_t now) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                Batch *b = &c->batches[i];

                if (__atomic_load_n(&b->key, __ATOMIC_RELAXED) != key || !batch_take(b, BATCH_OPEN))
                        continue;
                if (b->key != key || batch_stream_is_destroyed(b))
                        batch_reopen(a, b, now);
                else
                        batch_finish(a, b, now);
        }
}

static void add_share(Batch *b, Estimate *e) {
        b->n_launches++;
        b->learns = b->learns || estimate_is_new(e);
        for (uint32_t i = 0; i < b->n_shares; i++)
                if (b->shares[i].of == e) {
                        b->shares[i].launches++;
                        return;
                }
        if (b->n_shares == BATCH_KINDS) {
                b->n_others++;
                return;
        }
        b->shares[b->n_shares].of = e;
        b->shares[b->n_shares++].launches = 1;
}

static uint64_t mark_after(const ProcessState *a, uint32_t card) {
        const SliceSchedule *schedule = &a->gate->cards[card].slice.limits->schedule;
        uint64_t part = atomic_load_explicit(&schedule->depth, memory_order_relaxed) / 8;

        return part > MARK_WORK_NS ? part : MARK_WORK_NS;
}

/* Whether the batch is closed now. Unmeasured functions are measured at once, up to MARKS_COLD.
 * While no batch is closed the slice page shows no work, so that state must be short. */
static bool is_due(const ProcessState *a, const Batch *b, const Estimate *e, uint64_t now) {
        const ProcessUsage *m = &a->usage[b->context->card];
        uint32_t closed = atomic_load_explicit(&m->closed, memory_order_relaxed);

        if ((estimate_is_uncertain(e) || estimate_varies(e)) && closed < MARKS_COLD)
                return true;
        if (b->learns && b->n_shares == BATCH_KINDS)
                return true; /* with one more kind the times cannot be told apart */
        if (closed == 0 && atomic_load_explicit(&m->n_marked, memory_order_relaxed) < MARKS_FIRST)
                return true;
        return b->n_launches >= MARK_LAUNCHES || atomic_load(&b->nsec) >= mark_after(a, b->context->card) ||
               now - atomic_load_explicit(&m->marked, memory_order_relaxed) >=
                       (closed == 0 ? MARK_QUIET_NS : MARK_PAUSE_NS);
}

/* Marks the newest launch, in case no later launch closes the batch. The event is recorded again
 * each time; the last one counts. */
static void mark_newest(Batch *b, const Estimate *e) {
        int mode;

        b->exact = b->exact || estimate_varies(e);
        b->marked = false;
        if (!b->exact || !b->measured)
                return;
        mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        b->marked = cuda_event_record(&b->end, b->stream) && !real_is_captured(b->stream);
        (void) launch_relax_capture(mode);
}

/* An idle card executes the event at the begin at once, but a kernel at the earliest when the
 * driver's launch call submits it. So the time of that call is not the kernel's. If the stream is
 * idle again, the call has waited for the kernel (CUDA_LAUNCH_BLOCKING). The kernel may begin
 * during the call if the thread loses its processor, or if the application delays the return, so
 * only MAX_CALL_NS is noted. Copies and the kernels of a graph may always begin during it. */
static void note_call_time(Batch *b) {
        uint64_t nsec;

        if (b->begin_at == 0 || b->n_launches > 0)
                return;
        nsec = launch_now() - b->begin_at;
        if (batch_can_be_marked(b) && !launch_stream_is_done(b->stream))
                b->call_time = nsec < MAX_CALL_NS ? nsec : MAX_CALL_NS;
}

void batch_add(ProcessState *a, Batch *b, const LaunchOutcome *l) {
        if (l->made) {
                if (!batch_context_has_ended(b->context, b->handle))
                        note_call_time(b);
                add_share(b, l->estimate);
                b->n_kernels += l->kernel;
                (void) atomic_fetch_add(&b->nsec, l->nsec);
                (void) atomic_fetch_add(&b->over, l->nsec);
        } else {
                process_return(a, b->context->card, l->nsec, 0);
        }
        if (b->n_launches == 0) {
                batch_release(b);
        } else if (!batch_context_has_ended(b->context, b->handle) &&
                   (l->mark || is_due(a, b, l->estimate, l->now))) {
                batch_close(a, b, l->now);
                batch_poll(a, b->context, 0, l->now);
        } else {
                if (l->made && !batch_context_has_ended(b->context, b->handle))
                        mark_newest(b, l->estimate);
                batch_reopen(a, b, l->now);
        }
}
