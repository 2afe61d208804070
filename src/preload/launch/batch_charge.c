/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/batch-internal.h"

_Static_assert(_Alignof(Batch) >= CALL_NUMBERS, "numbers of host functions");
_Static_assert(CALLS_MOST < CALL_NUMBERS, "a number comes again when its host function has come");

enum {
        BLIND = 64
}; /* batches after one whose end was not seen, of which some have an event behind each launch */

/* Since its launch, or since what was before it was over, or no longer stood there. */
uint64_t batch_passed(const Batch *b, uint64_t now) {
        uint64_t over = atomic_load(&b->context->over),
                 resumed = atomic_load(&process_known()->usage[b->context->card].resumed_at);
        uint64_t before = over > resumed ? over : resumed, from = b->began > before ? b->began : before;

        return now > from ? now - from : 0;
}

/* What is charged until the events are looked at, which is at the application's next call, or
 * never: the estimate, but no more than there was time for, since its launch or since what was
 * before it was over; and all of that time where there was no estimate, or the end will not
 * be looked at. So all charges together never exceed the time that passed. */
static uint64_t provisional(const Batch *b, uint64_t now) {
        uint64_t nsec = atomic_load(&b->nsec), clock = batch_passed(b, now);

        if (clock < nsec || clock / WRONG > nsec || batch_has_ended(b->context, b->handle))
                nsec = clock;
        atomic_store(&b->context->over, now - clock + nsec);
        return nsec;
}

void batch_charge(ProcessState *a, Batch *b, uint64_t charged) {
        b->charged = charged;
        process_charge(a, b->context->card, atomic_load(&b->nsec), charged, b->n_launches);
}

/* in_flight becomes used. */
static void charge(ProcessState *a, Batch *b, uint64_t now) {
        batch_charge(a, b, provisional(b, now));
}

/* Its end was not seen, and it was to be over long ago: a pause of the application, or work
 * that was not marked because it seemed short. */
void batch_note_blind(ProcessUsage *m, uint64_t room, uint64_t nsec) {
        if (room >= MARK_QUIET_NS && room / WRONG > nsec)
                atomic_store_explicit(&m->blind, BLIND, memory_order_relaxed);
}

/* The same of a batch whose end was not seen: it is as long ago as it may be, so the clock says
 * nothing but how much it was at most. If the newest measurement says that the estimate was none,
 * that is what each took. */
void batch_charge_unseen(ProcessState *a, Batch *b, uint64_t now) {
        uint64_t nsec = atomic_load(&b->nsec), room = batch_passed(b, now), newest = 0;

        batch_note_blind(&a->usage[b->context->card], room, nsec);
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

/* Who takes it from BATCH_CLOSED, with this number, says that it is over. */
void batch_finish_closed(ProcessState *a, Batch *b, uint32_t state) {
        uint32_t card = b->context->card;

        if (!batch_is_closed(state) || !atomic_compare_exchange_strong(&b->state, &state, BATCH_HELD))
                return;
        charge(a, b, launch_now());
        atomic_store(&a->usage[card].restarted, 0);
        atomic_store_explicit(&b->state, BATCH_DONE, memory_order_release);
        if (atomic_fetch_sub(&a->usage[card].closed, 1) == 1)
                process_report_idle(a, card);
        process_wake(a, card);
}

static void *call_data(Batch *b, uint32_t number) {
        return (char *) b + number % CALL_NUMBERS;
}

/* On a thread of the driver's, which must not call the driver. It comes late where a function of
 * the program's was before it in that thread: then the batch may be over by another's word, and
 * closed anew. */
static void watched(void *data) {
        uint32_t number = (uint32_t) ((uintptr_t) data % CALL_NUMBERS), state;
        Batch *b = (Batch *) (void *) ((char *) data - number);

        state = atomic_load(&b->state);
        if ((state >> STATE_BITS) % CALL_NUMBERS == number)
                batch_finish_closed(process_known(), b, state);
        (void) atomic_fetch_sub(&b->calls, 1);
        (void) atomic_fetch_sub(&b->context->calls, 1);
}

/* A stream of the library's own, which neither waits for a default stream nor holds one up. */
static bool watch(Context *c, Batch *b, CuHandle end, uint32_t number) {
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
                        (void) destroy(stream); /* another thread was first */
                        stream = none;
                }
        }
        if (wait(stream, end, 0) != 0)
                return false;
        (void) atomic_fetch_add(&c->calls, 1);
        (void) atomic_fetch_add(&b->calls, 1);
        if (call(stream, watched, call_data(b, number)) == 0)
                return true;
        (void) atomic_fetch_sub(&b->calls, 1);
        (void) atomic_fetch_sub(&c->calls, 1);
        return false;
}

/* One after the other, as if all streams were one. */
static void expect(ProcessUsage *m, const Batch *b, uint64_t now) {
        uint64_t due = atomic_load(&m->due);

        atomic_store(&m->due, (atomic_load(&m->closed) > 0 && due > now ? due : now) + atomic_load(&b->nsec));
}

/* A context that has ended is not asked any more. */
static void forget(ProcessState *a, Batch *b, uintptr_t handle) {
        if (batch_has_ended(b->context, handle))
                batch_finish_closed(a, b, atomic_load(&b->state));
}

/* Marks the end of a batch that is held. Between the question whether the stream is captured and
 * the event, another thread may have begun a capture: then nothing of ours waits for that event. */
void batch_close(ProcessState *a, Batch *b, uint64_t now) {
        Context *c = b->context; /* the batch is another one's as soon as it is closed */
        ProcessUsage *m = &a->usage[c->card];
        int mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        uintptr_t handle = b->handle;
        uint32_t number;
        CuHandle end;

        if (!cuda_event_record(&b->end, b->stream) || real_is_captured(b->stream)) {
                batch_charge_unseen(a, b, now);
                batch_let_go(b);
        } else {
                expect(m, b, now);
                (void) atomic_fetch_add(&m->closed, 1);
                (void) atomic_fetch_add(&m->marks, 1);
                atomic_store(&m->marked, now);
                end = b->end;
                number = b->number = (b->number + 1) & (UINT32_MAX >> STATE_BITS);
                (void) atomic_fetch_add(&c->watching, 1);
                atomic_store(&b->state, batch_closed_as(number));
                if (batch_has_ended(c, handle) ||
                    !watch(c, b, end, number)) /* where it cannot be had, batch_poll() asks */
                        forget(a, b, handle);
                (void) atomic_fetch_sub(&c->watching, 1);
                if (atomic_load(&m->closed) > 0)
                        process_report_want(a, c->card, now);
                if (atomic_load(&m->closed) == 0)
                        process_report_idle(a, c->card); /* it was over before we said that it had begun */
        }
        (void) launch_relax_capture(mode);
}
