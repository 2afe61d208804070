/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/batch-internal.h"

/* How much work, or how long, until a batch is closed though nothing asks for it (MARK_QUIET_NS, too):
 * what may be behind the last mark. A mark costs some microseconds of the launching thread, none of
 * the card. */

enum {
        MARKS_FIRST = 64,   /* of a process: functions may be tried with little work before they get much */
        MARK_LAUNCHES = 32, /* in a batch: LAUNCHES_IN_FLIGHT of them may be in flight */
        MARKS_COLD = 4,     /* on the card at once, of what was never measured */
        BLIND_EACH = 4,     /* one in so many, at random, has an event behind each launch */
};

/* Single launches, each of which finds the card idle, are measured once in a while: an event for
 * each would cost more than they do. */
static bool worth_measuring(ProcessState *a, const Batch *b, bool cold, uint64_t now) {
        const ProcessUsage *m = &a->usage[b->context->card];

        return cold || atomic_load(&m->closed) > 0 || atomic_load(&m->n_host_funcs) > 0 ||
               atomic_load(&m->marks) < MARKS_FIRST || now - atomic_load(&m->marked) >= MARK_PAUSE_NS;
}

/* At random, because who knows which are not looked at has these for nothing. */
static bool is_drawn(ProcessUsage *m, uint64_t now) {
        uint32_t blind = atomic_load_explicit(&m->blind, memory_order_relaxed);

        if (blind == 0)
                return false;
        atomic_store_explicit(&m->blind, blind - 1, memory_order_relaxed);
        return (now * UINT64_C(0x9E3779B97F4A7C15) >> 32) % BLIND_EACH == 0;
}

static bool begin(ProcessState *a, Batch *b, CuHandle stream, uintptr_t key, bool cold, uint64_t now) {
        int mode;
        bool ok;

        b->stream = stream;
        __atomic_store_n(&b->key, key, __ATOMIC_RELAXED);
        atomic_store_explicit(&b->destroyed_stream, BATCH_STAYS, memory_order_relaxed);
        b->n_shares = b->n_launches = b->n_others = 0;
        atomic_store(&b->nsec, 0);
        atomic_store(&b->over, now);
        b->began = now;
        b->learns = b->marked = false;
        b->exact = is_drawn(&a->usage[b->context->card], now);
        b->measured = b->exact || worth_measuring(a, b, cold, now);
        if (!b->measured)
                return true;
        mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        ok = cuda_event_record(&b->begin, stream);
        (void) launch_relax_capture(mode);
        return ok;
}

/* The stream ran dry since: what the batch has is over, and what comes begins another one. Where
 * the estimates were too small and it is still at work, it goes on, and has taken so much more. A
 * stream that is captured is not asked, in no mode: that would end the capture. */
bool batch_went_dry(ProcessState *a, Batch *b, uint64_t now) {
        int mode;
        bool done;

        if (now <= atomic_load(&b->over) || batch_is_orphan(b) || real_is_captured(b->stream))
                return false;
        mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        done = launch_stream_is_done(b->stream);
        (void) launch_relax_capture(mode);
        if (!done) {
                uint64_t more = now - atomic_load(&b->over);

                (void) atomic_fetch_add(&a->usage[b->context->card].in_flight, more);
                (void) atomic_fetch_add(&b->nsec, more);
                atomic_store(&b->over, now);
                return false;
        }
        if (!measure_unclosed(a, b, now))
                batch_charge_unseen(a, b, now);
        return true;
}

void batch_put_back(ProcessState *a, Batch *b, uint64_t now) {
        uintptr_t handle = b->handle;

        atomic_store(&b->state, BATCH_OPEN);
        if (!batch_has_ended(b->context, handle) || !batch_take(b, BATCH_OPEN))
                return;
        batch_charge_unseen(a, b, now); /* nobody looks after it */
        batch_let_go(b);
}

/* What comes into another stream under the same name begins another one, too. */
static bool is_over(ProcessState *a, Batch *b, uint64_t now) {
        if (!batch_is_orphan(b))
                return batch_went_dry(a, b, now);
        batch_charge_unseen(a, b, now);
        return true;
}

static Batch *take_open(ProcessState *a, Batch *b, uintptr_t handle, uintptr_t key, bool cold, uint64_t now) {
        if (__atomic_load_n(&b->key, __ATOMIC_RELAXED) != key || !batch_take(b, BATCH_OPEN))
                return NULL;
        if (b->key != key || b->handle != handle ||
            batch_has_ended(b->context, b->handle)) { /* it became another one in between */
                batch_put_back(a, b, now);
                return NULL;
        }
        if (!is_over(a, b, now) || begin(a, b, b->stream, key, cold, now))
                return b;
        batch_let_go(b);
        return NULL;
}

Batch *batch_open(ProcessState *a, Context *c, uintptr_t handle, CuHandle stream, uintptr_t key, bool cold,
                  uint64_t now) {
        Batch *b;

        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                b = take_open(a, &c->batches[i], handle, key, cold, now);
                if (b)
                        return b;
        }
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                b = &c->batches[i];
                if (atomic_load_explicit(&b->calls, memory_order_relaxed) >= CALLS_MOST ||
                    !batch_take(b, BATCH_FREE))
                        continue;
                b->handle = handle;
                if (!batch_has_ended(b->context, b->handle) && begin(a, b, stream, key, cold, now))
                        return b;
                batch_let_go(b);
                return NULL;
        }
        measure_all(a, c, now); /* so that there is one next time */
        return NULL;
}

void batch_finish(ProcessState *a, Batch *b, uint64_t now) {
        if (batch_went_dry(a, b, now))
                batch_let_go(b);
        else if (batch_can_be_marked(b))
                batch_close(a, b, now);
        else
                batch_put_back(a, b, now);
}

void batch_cut(ProcessState *a, Context *c, uintptr_t key, uint64_t now) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                Batch *b = &c->batches[i];

                if (__atomic_load_n(&b->key, __ATOMIC_RELAXED) != key || !batch_take(b, BATCH_OPEN))
                        continue;
                if (b->key != key || batch_is_orphan(b))
                        batch_put_back(a, b, now);
                else
                        batch_finish(a, b, now);
        }
}

static void share(Batch *b, Estimate *e) {
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

/* What is not known yet is measured at once, but not one by one if there are many of it. While
 * nothing of ours is marked on the card the page says that there is nothing, so that must not
 * last. */
static bool is_due(const ProcessState *a, const Batch *b, const Estimate *e, uint64_t now) {
        const ProcessUsage *m = &a->usage[b->context->card];
        uint32_t closed = atomic_load_explicit(&m->closed, memory_order_relaxed);

        if ((estimate_is_doubtful(e) || estimate_varies(e)) && closed < MARKS_COLD)
                return true;
        if (b->learns && b->n_shares == BATCH_KINDS)
                return true; /* with one kind more it could not be told what each of them takes */
        if (closed == 0 && atomic_load_explicit(&m->marks, memory_order_relaxed) < MARKS_FIRST)
                return true;
        return b->n_launches >= MARK_LAUNCHES || atomic_load(&b->nsec) >= mark_after(a, b->context->card) ||
               now - atomic_load_explicit(&m->marked, memory_order_relaxed) >=
                       (closed == 0 ? MARK_QUIET_NS : MARK_PAUSE_NS);
}

/* So that it is measured if nothing follows that would close it. The same event again: what counts
 * is the last. */
static void mark_last(Batch *b, const Estimate *e) {
        int mode;

        b->exact = b->exact || estimate_varies(e);
        b->marked = false;
        if (!b->exact || !b->measured)
                return;
        mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        b->marked = cuda_event_record(&b->end, b->stream) && !real_is_captured(b->stream);
        (void) launch_relax_capture(mode);
}

void batch_add(ProcessState *a, Batch *b, const LaunchOutcome *l) {
        if (l->made) {
                share(b, l->estimate);
                (void) atomic_fetch_add(&b->nsec, l->nsec);
                (void) atomic_fetch_add(&b->over, l->nsec);
        } else {
                process_return(a, b->context->card, l->nsec, 1);
        }
        if (b->n_launches == 0) {
                batch_let_go(b);
        } else if (!batch_has_ended(b->context, b->handle) &&
                   (l->mark || is_due(a, b, l->estimate, l->now))) {
                batch_close(a, b, l->now);
                batch_poll(a, b->context, 0, l->now);
        } else {
                if (l->made && !batch_has_ended(b->context, b->handle))
                        mark_last(b, l->estimate);
                batch_put_back(a, b, l->now);
        }
}
