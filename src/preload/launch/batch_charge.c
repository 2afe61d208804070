/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/batch-internal.h"

_Static_assert(_Alignof(Batch) >= CALLBACK_NUMBERS, "numbers of host functions");
_Static_assert(CALLBACKS_MAX < CALLBACK_NUMBERS, "a number comes again when its host function has come");

enum {
        SAMPLED = 64
}; /* after a batch whose end was not seen, so many are candidates for an event behind each launch */

uint64_t batch_passed(const Batch *b, uint64_t now) {
        uint64_t over = atomic_load(&b->context->over), from = b->began > over ? b->began : over;

        return now > from ? now - from : 0;
}

/* The charge until the events are read, at the application's next call or never. It is the
 * estimate, but at most the time that passed; all of that time if the estimate was wrong or the
 * events will not be read. So the sum of charges never exceeds the time that passed. */
static uint64_t provisional_cost(const Batch *b, uint64_t now) {
        uint64_t nsec = atomic_load(&b->nsec), clock = batch_passed(b, now);

        if (clock < nsec || clock / WRONG > nsec || batch_context_has_ended(b->context, b->handle))
                nsec = clock;
        atomic_store(&b->context->over, now - clock + nsec);
        return nsec;
}

void batch_charge(ProcessState *a, Batch *b, uint64_t charged) {
        b->charged = charged;
        process_charge(a, b->context->card, atomic_load(&b->nsec), charged, b->n_kernels);
}

static void charge_provisional(ProcessState *a, Batch *b, uint64_t now) {
        batch_charge(a, b, provisional_cost(b, now));
}

/* The end was due long before it was found: an idle application, or work that was not marked
 * because it seemed short. */
void batch_note_unseen(ProcessUsage *m, uint64_t room, uint64_t nsec) {
        if (room >= MARK_QUIET_NS && room / WRONG > nsec)
                atomic_store_explicit(&m->n_to_sample, SAMPLED, memory_order_relaxed);
}

/* Charges a batch whose end was not seen, so the clock only gives an upper bound. If the newest
 * measurement of its functions is above the estimate, that measurement counts. */
void batch_charge_unseen(ProcessState *a, Batch *b, uint64_t now) {
        uint64_t nsec = atomic_load(&b->nsec), room = batch_passed(b, now), newest = 0;

        batch_note_unseen(&a->usage[b->context->card], room, nsec);
        if (room / WRONG > nsec) {
                measure_all(a, b->context, now);
                for (uint32_t i = 0; i < b->n_shares; i++)
                        newest += estimate_newest(b->shares[i].of) * b->shares[i].launches;
        }
        nsec = newest > nsec ? newest : nsec;
        nsec = nsec < room ? nsec : room;
        atomic_store(&b->context->over, now - room + nsec);
        batch_charge(a, b, nsec);
}

/* The thread that takes the batch from BATCH_CLOSED with this number reports its end. */
void batch_finish_closed(ProcessState *a, Batch *b, uint32_t state) {
        uint32_t card = b->context->card;
        uint64_t now;

        if (!batch_is_closed(state) || !atomic_compare_exchange_strong(&b->state, &state, BATCH_HELD))
                return;
        now = launch_now();
        batch_note_end(a, b, now);
        charge_provisional(a, b, now);
        atomic_store_explicit(&b->state, BATCH_DONE, memory_order_release);
        if (atomic_fetch_sub(&a->usage[card].closed, 1) == 1)
                process_report_idle(a, card);
        process_wake(a, card);
}

static void *callback_data(Batch *b, uint32_t number) {
        return (char *) b + number % CALLBACK_NUMBERS;
}

/* Callback in a thread of the driver, which must not call the driver. If a host function of the
 * application delayed it, the batch may already be settled and closed again under another
 * number. */
static void on_batch_end(void *data) {
        uint32_t number = (uint32_t) ((uintptr_t) data % CALLBACK_NUMBERS), state;
        Batch *b = (Batch *) (void *) ((char *) data - number);

        state = atomic_load(&b->state);
        if ((state >> STATE_BITS) % CALLBACK_NUMBERS == number)
                batch_finish_closed(process_known(), b, state);
        (void) atomic_fetch_sub(&b->n_callbacks, 1);
        (void) atomic_fetch_sub(&b->context->n_callbacks, 1);
}

/* Queues the callback in a stream of the library, which does not synchronize with a default
 * stream. */
static bool add_callback(Context *c, Batch *b, CuHandle end, uint32_t number) {
        int (*create)(CuHandle *, unsigned) = (int (*)(CuHandle *, unsigned)) real_get(REAL_cuStreamCreate);
        int (*wait)(CuHandle, CuHandle, unsigned) =
                (int (*)(CuHandle, CuHandle, unsigned)) real_get(REAL_cuStreamWaitEvent);
        int (*call)(CuHandle, CuHostFn, void *) =
                (int (*)(CuHandle, CuHostFn, void *)) real_get(REAL_cuLaunchHostFunc);
        CuHandle stream = __atomic_load_n(&c->watch, __ATOMIC_ACQUIRE), none = NULL;
        int (*destroy)(CuHandle) = (int (*)(CuHandle)) real_get(REAL_cuStreamDestroy_v2);

        if (!create || !wait || !call || !destroy)
                return false;
        if (!stream) {
                if (create(&stream, CU_STREAM_NON_BLOCKING_) != 0)
                        return false;
                if (!__atomic_compare_exchange_n(&c->watch, &none, stream, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE)) {
                        (void) destroy(stream); /* another thread has set it */
                        stream = none;
                }
        }
        if (wait(stream, end, 0) != 0)
                return false;
        (void) atomic_fetch_add(&c->n_callbacks, 1);
        (void) atomic_fetch_add(&b->n_callbacks, 1);
        if (call(stream, on_batch_end, callback_data(b, number)) == 0)
                return true;
        (void) atomic_fetch_sub(&b->n_callbacks, 1);
        (void) atomic_fetch_sub(&c->n_callbacks, 1);
        return false;
}

/* Updates when the closed batches are expected to end, as if all streams ran one after another. */
static void update_closed_end(ProcessState *a, const Batch *b, uint64_t now) {
        ProcessUsage *m = &a->usage[b->context->card];
        uint64_t due = atomic_load(&m->closed_end);

        if (atomic_load(&m->closed) == 0 || (due < now && !batch_is_overdue(a, b->context->card, now)))
                due = now;
        atomic_store(&m->closed_end, due + atomic_load(&b->nsec));
}

/* If the context has ended, its events must not be queried: settles the batch now. */
static void finish_if_context_ended(ProcessState *a, Batch *b, uintptr_t handle) {
        if (batch_context_has_ended(b->context, handle))
                batch_finish_closed(a, b, atomic_load(&b->state));
}

/* Marks the end of a batch that the caller owns. Another thread may begin a capture between the
 * check and the event; then the event belongs to the capture and is not used. */
void batch_close(ProcessState *a, Batch *b, uint64_t now) {
        Context *c = b->context; /* the batch belongs to other threads once it is closed */
        ProcessUsage *m = &a->usage[c->card];
        int mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        uintptr_t handle = b->handle;
        uint32_t number;
        CuHandle end;

        if (!cuda_event_record(&b->end, b->stream) || real_is_captured(b->stream)) {
                batch_charge_unseen(a, b, now);
                batch_release(b);
        } else {
                update_closed_end(a, b, now);
                (void) atomic_fetch_add(&m->closed, 1);
                (void) atomic_fetch_add(&m->n_marked, 1);
                atomic_store(&m->marked, now);
                end = b->end;
                number = b->number = (b->number + 1) & (UINT32_MAX >> STATE_BITS);
                (void) atomic_fetch_add(&c->n_users, 1);
                atomic_store(&b->state, batch_closed_as(number));
                if (batch_context_has_ended(c, handle) ||
                    !add_callback(c, b, end, number)) /* without a callback, batch_poll() queries the event */
                        finish_if_context_ended(a, b, handle);
                (void) atomic_fetch_sub(&c->n_users, 1);
                if (atomic_load(&m->closed) > 0)
                        process_report_want(a, c->card, now);
                if (atomic_load(&m->closed) == 0)
                        process_report_idle(a,
                                            c->card); /* it ended before the report said that it had begun */
        }
        (void) launch_relax_capture(mode);
}
