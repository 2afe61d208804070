/* SPDX-License-Identifier: Apache-2.0 */
#include "turnstile/batch.h"

#include "guest/spin.h"
#include "turnstile/ends.h"

/* How much work, or how long, until a batch is closed though nothing asks for it: what may be behind the last mark. A mark costs
 * some microseconds of the launching thread, none of the card. */
#define MARK_NSEC  UINT64_C(200000)
#define MARK_QUIET UINT64_C(150000)
#define MARK_PAUSE UINT64_C(1000000)

#define SLACK_NSEC    UINT64_C(200000)      /* by which estimates may be late before anybody asks */
#define LATE_NSEC     UINT64_C(500000)      /* what was to be over so long ago was estimated wrongly */
#define FOREIGN_NSEC  UINT64_C(10000000)    /* the same for a stream that only its own thread can ask about */
#define ORIGIN_MSEC   500.0F                /* a float of ms has 24 bits: 60 ns of a second */
#define MEASURE_STALE UINT64_C(10000000000) /* a thread that was measuring has ended */

enum {
        MARKS_FIRST = 64,   /* of a process: functions may be tried with little work before they get much */
        MARK_LAUNCHES = 32, /* in a batch: ACCOUNT_LAUNCHES of them may be in flight */
        BLIND = 64,         /* batches behind one whose end nobody saw, of which */
        BLIND_EACH = 4,     /* one in so many, at random, has an event behind each launch */
        MARKS_COLD = 4,     /* on the card at once, of what was never measured */
        WRONG = 4, /* times the estimate: it was none. Less may be because the driver's thread came late */
};

enum { LEGACY = 1 }; /* and 0: the default stream's names */

enum {
        STATE_BITS = 8,
        CALL_NUMBERS =
                64, /* a host function is given its batch's address, and in the lowest bits the number */
        CALLS_MOST =
                60, /* of a batch under way: the program's own, before them in the driver's thread, may take long */
};

_Static_assert(_Alignof(Batch) >= CALL_NUMBERS, "numbers of host functions");
_Static_assert(CALLS_MOST < CALL_NUMBERS, "a number comes again when its host function has come");

#define STREAM_MINE ((CuHandle) 2)

typedef int EventCall(CuHandle event);
typedef int ElapsedCall(float *ret, CuHandle from, CuHandle to);
typedef int RecordCall(CuHandle event, CuHandle stream);
typedef int StreamCall(CuHandle stream);

/* ---- the driver, relaxed ---- */

/* So that nothing of ours is refused, or breaks anything, because somebody captures another stream just now. What is asked of the captured one
 * itself ends its capture whatever the mode: is_capturing() comes before. */
int batches_relax(int mode) {
        int (*exchange)(int *) = (int (*)(int *)) real_get(REAL_cuThreadExchangeStreamCaptureMode);

        if (exchange)
                (void) exchange(&mode); /* no context, no capture */
        return mode;
}

static bool is_capturing(CuHandle stream) {
        return real_is_captured(stream);
}

static bool record(CuHandle *event, CuHandle stream) {
        int (*create)(CuHandle *, unsigned) = (int (*)(CuHandle *, unsigned)) real_get(REAL_cuEventCreate);
        RecordCall *rec = (RecordCall *) real_get(REAL_cuEventRecord);

        if (!create || !rec || (!*event && create(event, 0) != 0))
                return false;
        return rec(*event, stream) == 0;
}

static void drop_event(CuHandle *event) {
        EventCall *destroy = (EventCall *) real_get(REAL_cuEventDestroy_v2);

        if (*event && destroy)
                (void) destroy(*event); /* what the driver still needs of it, it keeps */
        *event = NULL;
}

static bool is_done(CuHandle stream) {
        StreamCall *query = (StreamCall *) real_get(REAL_cuStreamQuery);

        return !query || query(stream) != CU_ERROR_NOT_READY;
}

/* ---- the end of a batch ---- */

/* Whoever ends a context says so first and looks for what it has then; whoever has a batch gives it a state first and looks at the context
 * then. So one of both sees it. */
static bool has_ended(const Context *c, uintptr_t handle) {
        return atomic_load(&c->handle) != handle;
}

/* Since its launch, or since what was before it was over. */
static uint64_t passed(const Batch *b, uint64_t now) {
        uint64_t before = atomic_load(&b->context->over), from = b->began > before ? b->began : before;

        return now > from ? now - from : 0;
}

static void measure_all(Account *a, Context *c, uint64_t now);

/* What is charged until the events are looked at, which is at the application's next call, or never: the estimate, but no more than there
 * was time for, since its launch or since what was before it was over; and all of that where the estimate was none, or nobody will look. So
 * all of them together are never more than the time that passed. */
static uint64_t provisional(const Batch *b, uint64_t now) {
        uint64_t nsec = atomic_load(&b->nsec), clock = passed(b, now);

        if (clock < nsec || clock / WRONG > nsec || has_ended(b->context, b->handle))
                nsec = clock;
        atomic_store(&b->context->over, now - clock + nsec);
        return nsec;
}

static void charge_as(Account *a, Batch *b, uint64_t charged) {
        b->charged = charged;
        account_charge(a, b->context->card, atomic_load(&b->nsec), charged, b->n_launches);
}

/* in_flight becomes used. */
static void charge(Account *a, Batch *b, uint64_t now) {
        charge_as(a, b, provisional(b, now));
}

/* Nobody saw when it ended, and it was to be over long ago: a pause of the application, or work that was not marked because it seemed short. */
static void note_blind(Meter *m, uint64_t room, uint64_t nsec) {
        if (room >= MARK_QUIET && room / WRONG > nsec)
                atomic_store_explicit(&m->blind, BLIND, memory_order_relaxed);
}

/* The same of a batch whose end nobody has seen: it is as long ago as it may be, so the clock says nothing but how much it was at most. If the
 * newest measurement says that the estimate was none, that is what each took. */
static void charge_unseen(Account *a, Batch *b, uint64_t now) {
        uint64_t nsec = atomic_load(&b->nsec), room = passed(b, now), newest = 0;

        note_blind(&a->meters[b->context->card], room, nsec);
        if (room / WRONG > nsec) {
                measure_all(a, b->context, now);
                for (uint32_t i = 0; i < b->n_shares; i++)
                        newest += estimate_newest(b->shares[i].of) * b->shares[i].launches;
        }
        nsec = newest > nsec ? newest : nsec;
        nsec = nsec < room ? nsec : room;
        atomic_store(&b->context->over, now - room + nsec);
        charge_as(a, b, nsec);
}

static uint32_t closed_as(uint32_t number) {
        return BATCH_CLOSED | number << STATE_BITS;
}

static bool is_closed(uint32_t state) {
        return (state & ((1U << STATE_BITS) - 1)) == BATCH_CLOSED;
}

/* Who takes it from BATCH_CLOSED, with this number, says that it is over. */
static void say_over(Account *a, Batch *b, uint32_t state) {
        uint32_t card = b->context->card;

        if (!is_closed(state) || !atomic_compare_exchange_strong(&b->state, &state, BATCH_HELD))
                return;
        charge(a, b, account_now());
        atomic_store_explicit(&b->state, BATCH_DONE, memory_order_release);
        if (atomic_fetch_sub(&a->meters[card].closed, 1) == 1)
                account_idle(a, card);
        account_wake(a, card);
}

static void *call_data(Batch *b, uint32_t number) {
        return (char *) b + number % CALL_NUMBERS;
}

/* On a thread of the driver's, which must not call the driver. It comes late where a function of the program's was before it in that thread:
 * then the batch may be over by another's word, and closed anew. */
static void watched(void *data) {
        uint32_t number = (uint32_t) ((uintptr_t) data % CALL_NUMBERS), state;
        Batch *b = (Batch *) (void *) ((char *) data - number);

        state = atomic_load(&b->state);
        if ((state >> STATE_BITS) % CALL_NUMBERS == number)
                say_over(account_known(), b, state);
        (void) atomic_fetch_sub(&b->calls, 1);
        (void) atomic_fetch_sub(&b->context->calls, 1);
}

/* A stream of our own, which waits for nobody's default stream, and nobody's for it. */
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

static void let_go(Batch *b) {
        atomic_store_explicit(&b->state, BATCH_FREE, memory_order_release);
}

static bool take(Batch *b, BatchState state) {
        uint32_t expected = state;

        return atomic_load_explicit(&b->state, memory_order_relaxed) == (uint32_t) state &&
               atomic_compare_exchange_strong(&b->state, &expected, BATCH_HELD);
}

/* One after the other, as if all streams were one. */
static void expect(Meter *m, const Batch *b, uint64_t now) {
        uint64_t due = atomic_load(&m->due);

        atomic_store(&m->due, (atomic_load(&m->closed) > 0 && due > now ? due : now) + atomic_load(&b->nsec));
}

bool account_is_late(Account *a, uint32_t card, CuHandle stream, uint64_t now) {
        const Meter *m = &a->meters[card];
        uint64_t in_flight = atomic_load_explicit(&m->in_flight, memory_order_relaxed);
        bool late = atomic_load_explicit(&m->closed, memory_order_relaxed) > 0 &&
                    now > atomic_load_explicit(&m->due, memory_order_relaxed) + LATE_NSEC + WRONG * in_flight;
        int mode;

        if (!late)
                return false;
        mode = batches_relax(CU_CAPTURE_RELAXED);
        late = !is_capturing(stream) &&
               !is_done(stream); /* or it is the driver's thread that comes late; or the context is no more */
        (void) batches_relax(mode);
        return late;
}

/* Of a context that has ended nobody asks any more. */
static void forget(Account *a, Batch *b, uintptr_t handle) {
        if (has_ended(b->context, handle))
                say_over(a, b, atomic_load(&b->state));
}

/* Marks the end of a batch that is held. Between the question whether the stream is captured and the event, another thread may have begun
 * a capture: then nothing of ours waits for that event. */
static void close_batch(Account *a, Batch *b, uint64_t now) {
        Context *c = b->context; /* the batch is another one's as soon as it is closed */
        Meter *m = &a->meters[c->card];
        int mode = batches_relax(CU_CAPTURE_RELAXED);
        uintptr_t handle = b->handle;
        uint32_t number;
        CuHandle end;

        if (!record(&b->end, b->stream) || is_capturing(b->stream)) {
                charge_unseen(a, b, now);
                let_go(b);
        } else {
                expect(m, b, now);
                (void) atomic_fetch_add(&m->closed, 1);
                (void) atomic_fetch_add(&m->marks, 1);
                atomic_store(&m->marked, now);
                end = b->end;
                number = b->number = (b->number + 1) & (UINT32_MAX >> STATE_BITS);
                (void) atomic_fetch_add(&c->watching, 1);
                atomic_store(&b->state, closed_as(number));
                if (has_ended(c, handle) ||
                    !watch(c, b, end, number)) /* where it cannot be had, account_tend() asks */
                        forget(a, b, handle);
                (void) atomic_fetch_sub(&c->watching, 1);
                if (atomic_load(&m->closed) > 0)
                        account_want(a, c->card, now);
                if (atomic_load(&m->closed) == 0)
                        account_idle(a, c->card); /* it was over before we said that it had begun */
        }
        (void) batches_relax(mode);
}

/* ---- measuring ---- */

static uint64_t nsec_of(float msec, uint64_t origin) {
        return origin + (uint64_t) (int64_t) ((double) msec * 1e6);
}

/* From its begin to its end, on the clock of the context; the first one begins that clock. */
static bool times(Context *c, Batch *b, uint64_t *ret_from, uint64_t *ret_to) {
        ElapsedCall *elapsed = (ElapsedCall *) real_get(REAL_cuEventElapsedTime);
        float from = 0, to;
        CuHandle spare;

        if (!elapsed)
                return false;
        if (!c->origin) {
                c->origin = b->begin;
                b->begin = NULL;
        } else if (elapsed(&from, c->origin, b->begin) != 0) {
                return false;
        }
        if (elapsed(&to, c->origin, b->end) != 0)
                return false;
        *ret_from = nsec_of(from, c->origin_nsec);
        *ret_to = nsec_of(to, c->origin_nsec);
        if (from > ORIGIN_MSEC && b->begin) {
                spare = c->origin;
                c->origin = b->begin;
                c->origin_nsec = *ret_from;
                b->begin = spare;
        }
        return true;
}

static void measure(Account *a, Context *c, Batch *b) {
        uint64_t from, to;

        if (b->measured && times(c, b, &from, &to) && to >= from) {
                account_correct(a, c->card, (int64_t) spans_add(&c->spans, from, to) - (int64_t) b->charged);
                if (b->n_others == 0)
                        estimate_learn(b->shares, b->n_shares, to - from);
        }
        let_go(b);
}

static bool take_measuring(Context *c, uint64_t now);

/* Of a batch that is over and was not closed, with an event behind its last launch; false: there is none. */
static bool charge_exactly(Account *a, Batch *b, uint64_t now) {
        Context *c = b->context;
        uint64_t from, to, room = passed(b, now), nsec;
        bool known;
        int mode;

        if (!b->measured || !b->marked || !take_measuring(c, now))
                return false;
        mode = batches_relax(CU_CAPTURE_RELAXED);
        known = !has_ended(c, b->handle) && times(c, b, &from, &to) && to >= from;
        (void) batches_relax(mode);
        if (known) {
                nsec = spans_add(&c->spans, from, to);
                atomic_store(&c->over, now - room + (nsec < room ? nsec : room));
                note_blind(&a->meters[c->card], room, atomic_load(&b->nsec));
                charge_as(a, b, nsec);
                if (b->n_others == 0)
                        estimate_learn(b->shares, b->n_shares, to - from);
        }
        atomic_store_explicit(&c->measuring, 0, memory_order_release);
        return known;
}

/* One thread at a time; the others have better things to do. */
static bool take_measuring(Context *c, uint64_t now) {
        uint64_t since = atomic_load(&c->measuring);

        return (since == 0 || (now > since && now - since >= MEASURE_STALE)) &&
               atomic_compare_exchange_strong(&c->measuring, &since, now);
}

/* What somebody asks an event of is left as it is until later. */
static void measure_done(Account *a, Context *c) {
        for (unsigned i = 0; i < ACCOUNT_BATCHES; i++) {
                if (!take(&c->batches[i], BATCH_DONE))
                        continue;
                if (atomic_load(&c->watching) == 0)
                        measure(a, c, &c->batches[i]);
                else
                        atomic_store_explicit(&c->batches[i].state, BATCH_DONE, memory_order_release);
        }
}

/* Not of a context that has ended: its events may be gone. */
static void measure_all(Account *a, Context *c, uint64_t now) {
        if (!take_measuring(c, now))
                return;
        if (atomic_load(&c->handle) > 1)
                measure_done(a, c);
        atomic_store_explicit(&c->measuring, 0, memory_order_release);
}

/* ---- open batches ---- */

/* Single launches, each of which finds the card idle, are measured once in a while: an event for each would cost more than they do. */
static bool worth_measuring(Account *a, const Batch *b, bool cold, uint64_t now) {
        const Meter *m = &a->meters[b->context->card];

        return cold || atomic_load(&m->closed) > 0 || atomic_load(&m->marks) < MARKS_FIRST ||
               now - atomic_load(&m->marked) >= MARK_PAUSE;
}

/* At random, because who knows which are not looked at has these for nothing. */
static bool is_drawn(Meter *m, uint64_t now) {
        uint32_t blind = atomic_load_explicit(&m->blind, memory_order_relaxed);

        if (blind == 0)
                return false;
        atomic_store_explicit(&m->blind, blind - 1, memory_order_relaxed);
        return (now * UINT64_C(0x9E3779B97F4A7C15) >> 32) % BLIND_EACH == 0;
}

static bool begin(Account *a, Batch *b, CuHandle stream, uintptr_t key, bool cold, uint64_t now) {
        int mode;
        bool ok;

        b->stream = stream;
        __atomic_store_n(&b->key, key, __ATOMIC_RELAXED);
        b->n_shares = b->n_launches = b->n_others = 0;
        atomic_store(&b->nsec, 0);
        atomic_store(&b->over, now);
        b->began = now;
        b->learns = b->marked = false;
        b->exact = is_drawn(&a->meters[b->context->card], now);
        b->measured = b->exact || worth_measuring(a, b, cold, now);
        if (!b->measured)
                return true;
        mode = batches_relax(CU_CAPTURE_RELAXED);
        ok = record(&b->begin, stream);
        (void) batches_relax(mode);
        return ok;
}

/* The stream ran dry since: what the batch has is over, and what comes begins another one. Where the estimates were too small and it is
 * still at work, it goes on, and has taken so much more. A stream that is captured is not asked, in no mode: that would end the capture. */
static bool went_dry(Account *a, Batch *b, uint64_t now) {
        int mode;
        bool done;

        if (now <= atomic_load(&b->over) || is_capturing(b->stream))
                return false;
        mode = batches_relax(CU_CAPTURE_RELAXED);
        done = is_done(b->stream);
        (void) batches_relax(mode);
        if (!done) {
                uint64_t more = now - atomic_load(&b->over);

                (void) atomic_fetch_add(&a->meters[b->context->card].in_flight, more);
                (void) atomic_fetch_add(&b->nsec, more);
                atomic_store(&b->over, now);
                return false;
        }
        if (!charge_exactly(a, b, now))
                charge_unseen(a, b, now);
        return true;
}

static void put_back(Account *a, Batch *b, uint64_t now) {
        uintptr_t handle = b->handle;

        atomic_store(&b->state, BATCH_OPEN);
        if (!has_ended(b->context, handle) || !take(b, BATCH_OPEN))
                return;
        charge_unseen(a, b, now); /* nobody looks after it */
        let_go(b);
}

static Batch *take_open(Account *a, Batch *b, uintptr_t handle, uintptr_t key, bool cold, uint64_t now) {
        if (__atomic_load_n(&b->key, __ATOMIC_RELAXED) != key || !take(b, BATCH_OPEN))
                return NULL;
        if (b->key != key || b->handle != handle ||
            has_ended(b->context, b->handle)) { /* it became another one in between */
                put_back(a, b, now);
                return NULL;
        }
        if (!went_dry(a, b, now) || begin(a, b, b->stream, key, cold, now))
                return b;
        let_go(b);
        return NULL;
}

Batch *account_open(Account *a, Context *c, uintptr_t handle, CuHandle stream, uintptr_t key, bool cold,
                    uint64_t now) {
        Batch *b;

        for (unsigned i = 0; i < ACCOUNT_BATCHES; i++) {
                b = take_open(a, &c->batches[i], handle, key, cold, now);
                if (b)
                        return b;
        }
        for (unsigned i = 0; i < ACCOUNT_BATCHES; i++) {
                b = &c->batches[i];
                if (atomic_load_explicit(&b->calls, memory_order_relaxed) >= CALLS_MOST ||
                    !take(b, BATCH_FREE))
                        continue;
                b->handle = handle;
                if (!has_ended(b->context, b->handle) && begin(a, b, stream, key, cold, now))
                        return b;
                let_go(b);
                return NULL;
        }
        measure_all(a, c, now); /* so that there is one next time */
        return NULL;
}

static void share(Batch *b, Estimate *e) {
        b->n_launches++;
        b->learns = b->learns || estimate_is_new(e);
        for (uint32_t i = 0; i < b->n_shares; i++)
                if (b->shares[i].of == e) {
                        b->shares[i].launches++;
                        return;
                }
        if (b->n_shares == ACCOUNT_KINDS) {
                b->n_others++;
                return;
        }
        b->shares[b->n_shares].of = e;
        b->shares[b->n_shares++].launches = 1;
}

static uint64_t mark_after(const Account *a, uint32_t card) {
        const SliceTurn *turn = &a->gate->cards[card].slice.limits->turn;
        uint64_t part = atomic_load_explicit(&turn->depth, memory_order_relaxed) / 8;

        return part > MARK_NSEC ? part : MARK_NSEC;
}

/* What is not known yet is measured at once, but not one by one if there are many of it. While nothing of ours is marked on the card the
 * page says that there is nothing, so that must not last. */
static bool is_due(const Account *a, const Batch *b, const Estimate *e, uint64_t now) {
        const Meter *m = &a->meters[b->context->card];
        uint32_t closed = atomic_load_explicit(&m->closed, memory_order_relaxed);

        if ((estimate_is_doubtful(e) || estimate_varies(e)) && closed < MARKS_COLD)
                return true;
        if (b->learns && b->n_shares == ACCOUNT_KINDS)
                return true; /* with one kind more it could not be told what each of them takes */
        if (closed == 0 && atomic_load_explicit(&m->marks, memory_order_relaxed) < MARKS_FIRST)
                return true;
        return b->n_launches >= MARK_LAUNCHES || atomic_load(&b->nsec) >= mark_after(a, b->context->card) ||
               now - atomic_load_explicit(&m->marked, memory_order_relaxed) >=
                       (closed == 0 ? MARK_QUIET : MARK_PAUSE);
}

/* So that it is measured if nothing follows that would close it. The same event again: what counts is the last. */
static void mark_last(Batch *b, const Estimate *e) {
        int mode;

        b->exact = b->exact || estimate_varies(e);
        b->marked = false;
        if (!b->exact || !b->measured)
                return;
        mode = batches_relax(CU_CAPTURE_RELAXED);
        b->marked = record(&b->end, b->stream) && !is_capturing(b->stream);
        (void) batches_relax(mode);
}

void account_add(Account *a, Batch *b, const Launched *l) {
        if (l->made) {
                share(b, l->estimate);
                (void) atomic_fetch_add(&b->nsec, l->nsec);
                (void) atomic_fetch_add(&b->over, l->nsec);
        } else {
                account_return(a, b->context->card, l->nsec, 1);
        }
        if (b->n_launches == 0) {
                let_go(b);
        } else if (!has_ended(b->context, b->handle) && (l->mark || is_due(a, b, l->estimate, l->now))) {
                close_batch(a, b, l->now);
                account_tend(a, b->context, 0, l->now);
        } else {
                if (l->made && !has_ended(b->context, b->handle))
                        mark_last(b, l->estimate);
                put_back(a, b, l->now);
        }
}

/* ---- looking after them ---- */

/* An event in the legacy default stream is a barrier for all blocking streams of the context. Right behind a launch in that stream there is one
 * anyway; later it would order what the application did not. */
static bool is_barrier(const Batch *b) {
        return (uintptr_t) b->stream <= LEGACY;
}

static bool of_another_thread(const Batch *b) {
        return b->stream == STREAM_MINE && b->key != spin_self();
}

/* Whatever thread's stream it is in: an event may be asked about. */
static bool is_running(const Batch *b) {
        EventCall *query = (EventCall *) real_get(REAL_cuEventQuery);
        int mode = batches_relax(CU_CAPTURE_RELAXED);
        bool runs = b->marked && query && query(b->end) == CU_ERROR_NOT_READY;

        (void) batches_relax(mode);
        return runs;
}

static void tend_open(Account *a, Batch *b, bool close, uint64_t now) {
        uint64_t over = atomic_load(&b->over);

        if (!close && now <= over + SLACK_NSEC)
                return;
        if (!take(b, BATCH_OPEN))
                return;
        if (of_another_thread(b)) {
                if (now <= over + FOREIGN_NSEC || is_running(b)) {
                        put_back(a, b, now);
                } else {
                        if (!charge_exactly(a, b, now))
                                charge_unseen(a, b, now);
                        let_go(b);
                }
        } else if (went_dry(a, b, now)) {
                let_go(b);
        } else if (close && !is_barrier(b) && !is_capturing(b->stream)) {
                close_batch(a, b, now);
        } else {
                put_back(a, b, now);
        }
}

/* Where no host function can be had, or it comes late. With `watching` what is closed is not measured, and so not used anew. What was asked for is over, and not what its place is used for by then; who ends the
 * context sees that somebody asks, and leaves the events to it. */
static void ask(Account *a, Batch *b, uint32_t state) {
        EventCall *query = (EventCall *) real_get(REAL_cuEventQuery);
        int mode = batches_relax(CU_CAPTURE_RELAXED);
        Context *c = b->context;

        (void) atomic_fetch_add(&c->watching, 1);
        if (atomic_load(&b->state) == state && !has_ended(c, b->handle) &&
            (!query || query(b->end) != CU_ERROR_NOT_READY))
                say_over(a, b, state);
        (void) atomic_fetch_sub(&c->watching, 1);
        (void) batches_relax(mode);
}

/* ---- work that has not begun ---- */

typedef enum Begun { NOT_BEGUN, BEGUN, NOT_KNOWN } Begun;

static Begun has_begun(const Batch *b) {
        EventCall *query = (EventCall *) real_get(REAL_cuEventQuery);
        int r = b->measured && query ? query(b->begin) : 0;

        return !b->measured || !query ? NOT_KNOWN : r == CU_ERROR_NOT_READY ? NOT_BEGUN : BEGUN;
}

/* With `watching`, so that events stay what they are. */
static Begun closed_has_begun(const Batch *b, uint32_t state) {
        Begun begun;

        if (atomic_load(&b->state) != state || has_ended(b->context, b->handle))
                return NOT_KNOWN;
        begun = has_begun(b);
        return atomic_load(&b->state) == state ? begun : NOT_KNOWN;
}

static Begun open_has_begun(Account *a, Batch *b, uint64_t now) {
        Begun begun = NOT_KNOWN;

        if (!take(b, BATCH_OPEN))
                return NOT_KNOWN;
        if (!has_ended(b->context, b->handle))
                begun = has_begun(b);
        put_back(a, b, now);
        return begun;
}

bool account_is_tied(Account *a, Context *c, uint64_t now) {
        int mode = batches_relax(CU_CAPTURE_RELAXED);
        uint32_t closed = 0;
        bool tied = true;

        (void) atomic_fetch_add(&c->watching, 1);
        for (unsigned i = 0; i < ACCOUNT_BATCHES && tied; i++) {
                uint32_t state = atomic_load(&c->batches[i].state);

                if (is_closed(state))
                        tied = closed_has_begun(&c->batches[i], state) == NOT_BEGUN;
                else if (state == BATCH_OPEN)
                        tied = open_has_begun(a, &c->batches[i], now) == NOT_BEGUN;
                closed += is_closed(state);
        }
        (void) atomic_fetch_sub(&c->watching, 1);
        (void) batches_relax(mode);
        return tied && closed > 0 && closed == atomic_load(&a->meters[c->card].closed);
}

/* ---- looking after all of them ---- */

/* A host function that is under way is given the time of the estimate. */
static bool is_to_be_asked(const Batch *b, unsigned how, uint64_t now) {
        const Context *c = b->context;

        return atomic_load(&c->watching) == 0 &&
               (atomic_load(&c->calls) == 0 || ((how & ACCOUNT_ASK) && now > atomic_load(&b->over)));
}

void account_tend(Account *a, Context *c, unsigned how, uint64_t now) {
        for (unsigned i = 0; i < ACCOUNT_BATCHES; i++) {
                uint32_t state = atomic_load_explicit(&c->batches[i].state, memory_order_acquire);

                if (state == BATCH_OPEN)
                        tend_open(a, &c->batches[i], how & ACCOUNT_CLOSE, now);
                else if (is_closed(state) && is_to_be_asked(&c->batches[i], how, now))
                        ask(a, &c->batches[i], state);
        }
        measure_all(a, c, now);
}

/* ---- the end ---- */

/* Nobody can say whether it is over: its end could not be marked. It is charged as estimated, and for as long as the call takes that ends the
 * context. */
static void leave_open(Account *a, Batch *b, uint64_t now) {
        charge_unseen(a, b, now);
        b->began = atomic_load(&b->context->asked);
        b->n_launches = 0;
        b->measured = false;
        atomic_store(&b->nsec, 0);
        (void) atomic_fetch_add(&a->meters[b->context->card].closed, 1);
        b->number = (b->number + 1) & (UINT32_MAX >> STATE_BITS);
        atomic_store(&b->state, closed_as(b->number));
}

void batches_mark(Account *a, Context *c, bool ends) {
        uint64_t now = account_now();

        atomic_store(&c->asked, now);
        for (unsigned i = 0; i < ACCOUNT_BATCHES; i++) {
                Batch *b = &c->batches[i];

                if (!take(b, BATCH_OPEN))
                        continue;
                if (of_another_thread(b) || (is_barrier(b) && !ends) || is_capturing(b->stream))
                        put_back(a, b, now);
                else if (went_dry(a, b, now))
                        let_go(b);
                else
                        close_batch(a, b, now);
        }
        account_tend(a, c, ACCOUNT_ASK, now);
}

/* Nobody measures any more, so nobody else has these in hands. */
static void drop_events(Batch *b, bool gone) {
        if (gone || atomic_load(&b->context->watching) != 0)
                return; /* they end with the context */
        drop_event(&b->begin);
        drop_event(&b->end);
}

/* What is closed has a host function that comes when it is over. false: another thread has it, or asks an event of it: then it is not used before
 * the place is another context's. */
static bool end_batch(Account *a, Batch *b, bool gone, bool mine) {
        if (take(b, BATCH_OPEN))
                leave_open(a, b, account_now());
        if (is_closed(atomic_load(&b->state))) {
                if (mine) /* or who measures may have it next */
                        drop_events(b, gone);
                return mine;
        }
        if (take(b, BATCH_FREE)) {
                drop_events(b, gone);
                let_go(b);
                return true;
        }
        if (atomic_load(&b->context->watching) != 0 || !take(b, BATCH_DONE))
                return false;
        drop_events(b, gone);
        let_go(b);
        return true;
}

/* Their end is marked while the stream is there; later only the mark is asked about. */
void batches_end_stream(Account *a, Context *c, CuHandle stream) {
        for (unsigned i = 0; i < ACCOUNT_BATCHES; i++) {
                Batch *b = &c->batches[i];

                if (!take(b, BATCH_OPEN))
                        continue;
                if (b->stream == stream)
                        close_batch(a, b, account_now());
                else
                        put_back(a, b, account_now());
        }
}

void batches_end(Account *a, Context *c, bool gone) {
        StreamCall *destroy = (StreamCall *) real_get(REAL_cuStreamDestroy_v2);
        int mode = batches_relax(CU_CAPTURE_RELAXED);
        bool mine = take_measuring(c, account_now()), alone = mine;

        if (mine && !gone)
                measure_done(a, c);
        for (unsigned i = 0; i < ACCOUNT_BATCHES; i++)
                alone &= end_batch(a, &c->batches[i], gone, mine);
        if (alone && !gone && atomic_load(&c->watching) == 0) {
                drop_event(&c->origin);
                if (c->watch && destroy)
                        (void) destroy(
                                c->watch); /* what it waits for comes to its end, and the host functions, too */
        }
        if (mine)
                atomic_store(&c->measuring, 0);
        (void) batches_relax(mode);
}

void batches_ended(Account *a, Context *c, bool gone) {
        bool all = gone || atomic_load(&c->calls) == 0;

        for (unsigned i = 0; i < ACCOUNT_BATCHES; i++)
                if (is_closed(atomic_load(&c->batches[i].state)) && (all || c->batches[i].n_launches == 0))
                        say_over(a, &c->batches[i], atomic_load(&c->batches[i].state));
}

void batches_make(Context *fresh) {
        for (unsigned i = 0; i < ACCOUNT_BATCHES; i++) {
                fresh->batches[i].context = fresh;
                atomic_store(&fresh->batches[i].state, BATCH_HELD);
        }
}

void batches_begin(Context *c) {
        for (unsigned i = 0; i < ACCOUNT_BATCHES; i++) {
                c->batches[i].begin = c->batches[i].end = NULL;
                let_go(&c->batches[i]);
        }
}

bool batches_rest(Context *c) {
        bool all = atomic_load(&c->calls) == 0 && atomic_load(&c->measuring) == 0 &&
                   atomic_load(&c->watching) == 0;
        unsigned n = 0;

        while (all && n < ACCOUNT_BATCHES) {
                all = take(&c->batches[n], BATCH_DONE) || take(&c->batches[n], BATCH_FREE);
                n += all;
        }
        while (!all && n > 0)
                let_go(&c->batches[--n]);
        return all;
}
