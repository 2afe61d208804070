/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/batch.h"

#include "preload/launch/cuda_events.h"
#include "preload/launch/measure.h"
#include "preload/launch/tunables.h"

enum {
        MARK_LAUNCHES = 32, /* launches after which a batch is closed */
        MARKS_COLD = 4,     /* closed batches while unmeasured functions are measured at once */
        GROWTH = 4,         /* factor of the kernels in flight, after a batch that ended in time */
        WRONG = 4,          /* a time of this many times the estimate refutes it */
        LEGACY = 1,         /* 0 and 1 name the legacy default stream */
};

/* The thread that ends a context or a stream first writes the handle or the key, and then looks for
 * batches. A thread with a batch first writes the batch's state and then reads the two. So one of
 * them sees the other. */
static bool context_has_ended(const Batch *b) {
        return atomic_load(&b->context->handle) != b->handle;
}

static bool stream_has_ended(const Batch *b) {
        return context_has_ended(b) || atomic_load(&b->key) == KEY_GONE;
}

/* An event in the legacy default stream is a barrier for all blocking streams of the context. Right
 * behind a launch in that stream it adds nothing; later it would add an order that the application
 * did not ask for. */
static bool is_in_legacy_stream(const Batch *b) {
        return (uintptr_t) b->stream <= LEGACY;
}

static bool is_of_other_thread(const Batch *b) {
        return b->stream == STREAM_PER_THREAD && atomic_load(&b->key) != spin_self();
}

/* ---- kernels in flight ---- */

static uint64_t late_after(const ProcessState *a, uint32_t card) {
        return LATE_NS * process_sharers(a, card);
}

/* Whether nothing has ended for long after closed batches should have. */
static bool is_overdue(const ProcessState *a, uint32_t card, uint64_t now) {
        const ProcessUsage *m = &a->usage[card];
        uint64_t due = atomic_load(&m->closed_end), progress = atomic_load(&m->progress);

        return atomic_load(&m->closed) > 0 && now > (due > progress ? due : progress) + late_after(a, card);
}

uint32_t batch_max_kernels(const ProcessState *a, uint32_t card, uint64_t now) {
        uint32_t n = atomic_load_explicit(&a->usage[card].max_kernels, memory_order_relaxed);

        return n < MIN_KERNELS || is_overdue(a, card, now) ? MIN_KERNELS : n;
}

/* Adjusts max_kernels when a batch has ended, `passed` ns after its begin. */
static void note_end(ProcessState *a, const Batch *b, uint64_t passed, uint64_t now) {
        uint32_t card = b->context->card, n = batch_max_kernels(a, card, now);

        if (passed / WRONG > b->nsec && passed > late_after(a, card))
                n = MIN_KERNELS;
        else if (n < MAX_KERNELS)
                n *= GROWTH;
        atomic_store(&a->usage[card].max_kernels, n);
}

/* ---- the end of a batch ---- */

/* The ns since the batch's first launch, or since the end of earlier work when that is later. */
static uint64_t time_passed(const Batch *b, uint64_t now) {
        uint64_t over = atomic_load(&b->context->over), from = b->began > over ? b->began : over;

        return now > from ? now - from : 0;
}

static void charge_nsec(ProcessState *a, Batch *b, uint64_t passed, uint64_t nsec, uint64_t now) {
        b->charged = nsec;
        atomic_store(&b->context->over, now - passed + nsec);
        process_charge(a, b->context->card, b->nsec, nsec, b->n_kernels);
}

/* Ends a batch without seeing the end of its work, which may be on the card. */
static void end_as_estimated(ProcessState *a, Batch *b, uint64_t now) {
        charge_nsec(a, b, time_passed(b, now), b->nsec, now);
        batch_release(b);
}

/* Charges a closed batch that has ended. Until its events are read, at the application's next call
 * or never, it is charged as estimated, and for the time that passed at most. If the estimate was
 * far too low, or the events will not be read, that time is charged. */
static void charge_ended(ProcessState *a, Batch *b) {
        uint64_t now = launch_now(), passed = time_passed(b, now), nsec = b->nsec;
        uint32_t card = b->context->card;

        note_end(a, b, passed, now);
        if (passed < nsec || passed / WRONG > nsec || context_has_ended(b))
                nsec = passed;
        charge_nsec(a, b, passed, nsec, now);
        atomic_store_explicit(&b->state, BATCH_DONE, memory_order_release);
        if (atomic_fetch_sub(&a->usage[card].closed, 1) == 1)
                process_report_idle(a, card);
        process_wake(a, card);
}

static bool callback_has_come(const Batch *b) {
        return !atomic_load(&b->polled) && atomic_load(&b->callbacks) == 0;
}

/* Ends a closed batch if its callback has come, or its context or (ask) its work has ended. A
 * callback that comes while this thread has the batch leaves it to this thread. */
static void check_closed(ProcessState *a, Batch *b, bool ask) {
        while (batch_take(b, BATCH_CLOSED)) {
                uintptr_t handle = b->handle;

                if (callback_has_come(b) || context_has_ended(b) || (ask && !cuda_event_is_pending(b->end))) {
                        charge_ended(a, b);
                        return;
                }
                atomic_store(&b->state, BATCH_CLOSED);
                if (!callback_has_come(b) && atomic_load(&b->context->handle) == handle)
                        return;
                ask = false;
        }
}

/* A callback in a thread of the driver, which must not call the driver. It may belong to an earlier
 * use of the batch, whose work was found to have ended before. */
static void on_batch_end(void *data) {
        Batch *b = data;

        (void) atomic_fetch_sub(&b->callbacks, 1);
        check_closed(process_known(), b, false);
}

/* Whether a further callback may fill the driver's queue, which blocks the program, while the
 * driver's thread is in a host function that may wait for the program. */
static bool may_block(const ProcessState *a, const Context *c) {
        unsigned n = 0;

        if (atomic_load(&a->usage[c->card].n_host_running) == 0)
                return false; /* no host function blocks the queue */
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++)
                n += atomic_load_explicit(&c->batches[i].callbacks, memory_order_relaxed);
        return n >= MAX_CALLBACKS;
}

/* Queues the callback in a stream of the library, which does not synchronize with a default stream.
 * Without a callback batch_poll() asks for the event. */
static void add_callback(const ProcessState *a, Context *c, Batch *b) {
        int (*create)(CuHandle *, unsigned) = (int (*)(CuHandle *, unsigned)) real_get(REAL_cuStreamCreate);
        int (*wait)(CuHandle, CuHandle, unsigned) =
                (int (*)(CuHandle, CuHandle, unsigned)) real_get(REAL_cuStreamWaitEvent);
        int (*call)(CuHandle, CuHostFn, void *) =
                (int (*)(CuHandle, CuHostFn, void *)) real_get(REAL_cuLaunchHostFunc);
        StreamCall *destroy = (StreamCall *) real_get(REAL_cuStreamDestroy_v2);
        CuHandle stream = __atomic_load_n(&c->watch, __ATOMIC_ACQUIRE), none = NULL;

        atomic_store(&b->polled, true);
        if (!create || !wait || !call || !destroy || may_block(a, c))
                return;
        if (!stream) {
                if (create(&stream, CU_STREAM_NON_BLOCKING_) != 0)
                        return;
                if (!__atomic_compare_exchange_n(&c->watch, &none, stream, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE)) {
                        (void) destroy(stream); /* another thread has set it */
                        stream = none;
                }
        }
        if (wait(stream, b->end, 0) != 0)
                return;
        (void) atomic_fetch_add(&b->callbacks, 1);
        if (call(stream, on_batch_end, b) == 0) {
                atomic_store(&b->polled, false);
                return;
        }
        (void) atomic_fetch_sub(&b->callbacks, 1);
}

/* Counts the batch as closed, and updates when the closed ones are expected to end, as if all
 * streams ran one after another. That is not later than all work in flight from now on. */
static void count_closed(ProcessState *a, const Batch *b, uint64_t now) {
        ProcessUsage *m = &a->usage[b->context->card];
        uint64_t due = atomic_load(&m->closed_end), last = now + atomic_load(&m->in_flight);

        if (atomic_load(&m->closed) == 0 || (due < now && !is_overdue(a, b->context->card, now)))
                due = now;
        due += b->nsec;
        atomic_store(&m->closed_end, due < last ? due : last);
        (void) atomic_fetch_add(&m->closed, 1);
        atomic_store(&m->marked, now);
}

/* Marks the end of a batch that the caller owns. Another thread may begin a capture between the
 * check and the event; then the event belongs to the capture and is not used. */
static void close_batch(ProcessState *a, Batch *b, uint64_t now) {
        Context *c = b->context; /* batch and slot belong to other threads once it is closed */
        uint32_t card = c->card;
        int mode = launch_relax_capture(CU_CAPTURE_RELAXED);

        if (!cuda_event_record(&b->end, b->stream) || real_is_captured(b->stream)) {
                end_as_estimated(a, b, now);
        } else {
                count_closed(a, b, now);
                add_callback(a, c, b);
                atomic_store(&b->state, BATCH_CLOSED);
                check_closed(a, b, false);
                if (atomic_load(&a->usage[card].closed) > 0)
                        process_report_want(a, card, now);
                if (atomic_load(&a->usage[card].closed) == 0)
                        process_report_idle(a, card); /* it ended before it was reported */
        }
        (void) launch_relax_capture(mode);
}

/* Charges a batch whose stream is idle: its work has ended, and so has that of the stream's closed
 * batches, which is charged first. If the stream is still at work beyond the expected end, the
 * estimate was too small: the difference is added to the work in flight. A captured stream is not
 * queried, since that would invalidate the capture. */
static bool settle_idle(ProcessState *a, Batch *b, uint64_t now) {
        uint64_t over = atomic_load(&b->over), passed;
        Context *c = b->context;

        if (now <= over || real_is_captured(b->stream))
                return false;
        if (!launch_stream_is_done(b->stream)) {
                (void) atomic_fetch_add(&a->usage[c->card].in_flight, now - over);
                b->nsec += now - over;
                atomic_store(&b->over, now);
                return false;
        }
        for (unsigned i = 0; atomic_load(&a->usage[c->card].closed) > 0 && i < CONTEXT_BATCHES; i++)
                if (atomic_load(&c->batches[i].key) == atomic_load(&b->key))
                        check_closed(a, &c->batches[i], true);
        passed = time_passed(b, now);
        charge_nsec(a, b, passed, b->nsec < passed ? b->nsec : passed, now);
        return true;
}

static void put_open(ProcessState *a, Batch *b, uint64_t now) {
        Context *c = b->context;
        uintptr_t handle = b->handle;

        atomic_store(&b->state, BATCH_OPEN);
        if ((atomic_load(&c->handle) != handle || atomic_load(&b->key) == KEY_GONE) &&
            batch_take(b, BATCH_OPEN))
                end_as_estimated(a, b, now); /* no other thread can end it any more */
}

/* Ends a batch that the caller owns: it is charged if its stream is idle, else its end is
 * marked. If that is not possible it stays open. */
static void end_open(ProcessState *a, Batch *b, bool marks, uint64_t now) {
        if (settle_idle(a, b, now))
                batch_release(b);
        else if (marks && !stream_has_ended(b) && !real_is_captured(b->stream))
                close_batch(a, b, now);
        else
                put_open(a, b, now);
}

/* ---- launches ---- */

/* Whether an event before the batch is worth its cost: for each launch that finds the card idle it
 * would cost more than the launch. */
static bool worth_measuring(const ProcessUsage *m, bool cold, uint64_t now) {
        return cold || atomic_load(&m->closed) > 0 || atomic_load(&m->n_host_running) > 0 ||
               atomic_load(&m->max_kernels) < MAX_KERNELS || now - atomic_load(&m->measured) >= MARK_PAUSE_NS;
}

static bool begin_work(ProcessState *a, Batch *b, CuHandle stream, bool cold, uint64_t now) {
        bool ok;
        int mode;

        b->stream = stream;
        atomic_store(&b->key, batch_key(stream));
        b->n_shares = b->n_launches = b->n_kernels = 0;
        b->nsec = 0;
        b->began = now;
        atomic_store(&b->over, now);
        b->measured = worth_measuring(&a->usage[b->context->card], cold, now);
        if (!b->measured)
                return true;
        atomic_store(&a->usage[b->context->card].measured, now);
        mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        ok = cuda_event_record(&b->begin, stream);
        (void) launch_relax_capture(mode);
        return ok;
}

static Batch *find_free(Context *c) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++)
                if (batch_take(&c->batches[i], BATCH_FREE))
                        return &c->batches[i];
        return NULL;
}

Batch *batch_open(ProcessState *a, Context *c, uintptr_t handle, CuHandle stream, bool cold, uint64_t now) {
        uintptr_t key = batch_key(stream);
        bool found = false;
        Batch *b = NULL;

        for (unsigned i = 0; !found && i < CONTEXT_BATCHES; i++) {
                b = &c->batches[i];
                if (atomic_load_explicit(&b->key, memory_order_relaxed) != key || !batch_take(b, BATCH_OPEN))
                        continue;
                found = atomic_load(&b->key) == key && b->handle == handle && !stream_has_ended(b);
                if (!found)
                        /* the batch is now of another stream, or its stream or context has ended */
                        put_open(a, b, now);
                else if (!settle_idle(a, b, now))
                        return b;
        }
        if (!found)
                b = find_free(c);
        if (!b) {
                batch_poll(a, c, false, now); /* ends the batches of idle streams */
                b = find_free(c);
        }
        if (!b)
                return NULL;
        b->handle = handle;
        if (!stream_has_ended(b) && begin_work(a, b, stream, cold, now))
                return b;
        batch_release(b);
        return NULL;
}

static void add_share(Batch *b, Estimate *e) {
        uint32_t i = 0;

        while (i < b->n_shares && b->shares[i].of != e)
                i++;
        if (i == b->n_shares)
                b->shares[b->n_shares++] = (EstimateShare){.of = e};
        b->shares[i].launches++;
        b->n_launches++;
}

static uint64_t mark_after(const ProcessState *a, uint32_t card) {
        const SliceSchedule *schedule = &a->gate->cards[card].slice.limits->schedule;
        uint64_t part = atomic_load_explicit(&schedule->depth, memory_order_relaxed) / 8;

        return part > MARK_WORK_NS ? part : MARK_WORK_NS;
}

/* Whether the batch is closed now. Unmeasured functions are measured at once, up to MARKS_COLD.
 * While no batch is closed the slice page shows no work, so that state must be short. A mark costs
 * the launching thread some microseconds. */
static bool is_due(const ProcessState *a, const Batch *b, const Estimate *e, uint64_t now) {
        const ProcessUsage *m = &a->usage[b->context->card];
        uint32_t closed = atomic_load_explicit(&m->closed, memory_order_relaxed);

        if ((estimate_is_cold(e) && closed < MARKS_COLD) || b->n_shares == BATCH_KINDS ||
            (closed == 0 && atomic_load_explicit(&m->max_kernels, memory_order_relaxed) < MAX_KERNELS))
                return true;
        return b->n_launches >= MARK_LAUNCHES || b->nsec >= mark_after(a, b->context->card) ||
               now - atomic_load_explicit(&m->marked, memory_order_relaxed) >=
                       (closed == 0 ? MARK_QUIET_NS : MARK_PAUSE_NS);
}

void batch_add(ProcessState *a, Batch *b, const LaunchOutcome *l) {
        Context *c = b->context;

        if (l->made) {
                add_share(b, l->estimate);
                b->n_kernels += l->kernel;
                b->nsec += l->nsec;
                (void) atomic_fetch_add(&b->over, l->nsec);
        } else {
                process_return(a, c->card, l->nsec, l->kernel);
        }
        if (b->n_launches == 0) {
                batch_release(b);
        } else if (!stream_has_ended(b) && (l->mark || is_due(a, b, l->estimate, l->now))) {
                close_batch(a, b, l->now);
                batch_poll(a, c, false, l->now);
        } else {
                put_open(a, b, l->now);
        }
}

/* ---- batches without new launches ---- */

/* Ends an open batch if its end is due. Only its own thread can query a per-thread stream. */
static void poll_open(ProcessState *a, Batch *b, bool waits, uint64_t now) {
        uint64_t over = atomic_load(&b->over);

        if ((!waits && now <= over + POLL_SLACK_NS) || !batch_take(b, BATCH_OPEN))
                return;
        if (!is_of_other_thread(b) && !stream_has_ended(b))
                end_open(a, b, waits && !is_in_legacy_stream(b), now);
        else if (now <= over + FOREIGN_LATE_NS)
                put_open(a, b, now);
        else
                end_as_estimated(a, b, now);
}

void batch_poll(ProcessState *a, Context *c, bool waits, uint64_t now) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                Batch *b = &c->batches[i];
                uint32_t state = atomic_load_explicit(&b->state, memory_order_acquire);

                if (state == BATCH_OPEN)
                        poll_open(a, b, waits, now);
                else if (state == BATCH_CLOSED &&
                         (atomic_load(&b->polled) || (waits && now > atomic_load(&b->over))))
                        check_closed(a, b, true);
        }
        measure_all(a, c);
}

void batch_expire(ProcessState *a, Context *c, uint64_t now) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                Batch *b = &c->batches[i];

                if (now > atomic_load(&b->over) + FOREIGN_LATE_NS && batch_take(b, BATCH_OPEN))
                        end_as_estimated(a, b, now);
        }
}

static void end_taken(ProcessState *a, Batch *b, uintptr_t key, uint64_t now) {
        if (atomic_load(&b->key) != key)
                put_open(a, b, now);
        else if (!stream_has_ended(b) && !real_is_captured(b->stream))
                end_open(a, b, true, now);
        else
                end_as_estimated(a, b, now);
}

/* Gives up a batch that is in use for long: by a thread that has ended, or by this one below a
 * signal handler. From now on its stream is not queried. */
static void give_up(ProcessState *a, Batch *b, uintptr_t key) {
        if (atomic_compare_exchange_strong(&b->key, &key, KEY_GONE) && batch_take(b, BATCH_OPEN))
                end_as_estimated(a, b, launch_now());
}

/* Waits for a thread that has the batch: it may be querying the stream, so the driver may not
 * destroy it yet. */
void batch_end_of_stream(ProcessState *a, Context *c, uintptr_t key, bool ends) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                Batch *b = &c->batches[i];
                unsigned waits = 0;

                while (atomic_load(&b->key) == key && waits < MAX_HOLDER_WAITS) {
                        uint32_t state = atomic_load(&b->state);

                        if (batch_take(b, BATCH_OPEN)) {
                                end_taken(a, b, key, launch_now());
                        } else if (state == BATCH_HELD) {
                                launch_sleep(HOLDERS_POLL_NS);
                                waits++;
                        } else if (state != BATCH_OPEN) {
                                break;
                        }
                }
                if (ends && waits == MAX_HOLDER_WAITS)
                        give_up(a, b, key);
        }
}

bool batch_is_of_stream(const Context *c, uintptr_t key) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                uint32_t state = atomic_load(&c->batches[i].state);

                if (atomic_load(&c->batches[i].key) == key && (state == BATCH_OPEN || state == BATCH_HELD))
                        return true;
        }
        return false;
}

/* ---- contexts that end ---- */

void batch_end_all(ProcessState *a, Context *c) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                Batch *b = &c->batches[i];

                check_closed(a, b, false);
                if (batch_take(b, BATCH_OPEN))
                        end_as_estimated(a, b, launch_now());
        }
}

bool batch_take_all(Context *c) {
        bool all = atomic_load(&c->measuring) == 0;
        unsigned n = 0;

        while (all && n < CONTEXT_BATCHES) {
                Batch *b = &c->batches[n];

                /* The callbacks are read after the take, since an owner may queue one. */
                all = batch_take(b, BATCH_DONE) || batch_take(b, BATCH_FREE);
                n += all;
                all = all && atomic_load(&b->callbacks) == 0;
        }
        while (!all && n > 0)
                batch_release(&c->batches[--n]);
        return all;
}
