/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/measure.h"

#include "preload/launch/batch-internal.h"

typedef int ElapsedCall(float *ret, CuHandle from, CuHandle to);

static uint64_t nsec_of(float msec, uint64_t origin) {
        return origin + (uint64_t) (int64_t) ((double) msec * 1e6);
}

/* The times of begin and end on the context's clock, without Batch.call_time, or without half of
 * the span if that is less. The first measured batch defines that clock. */
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
        if (from > MAX_ORIGIN_AGE_MS && b->begin) {
                spare = c->origin;
                c->origin = b->begin;
                c->origin_nsec = *ret_from;
                b->begin = spare;
        }
        if (*ret_to > *ret_from)
                *ret_from +=
                        (*ret_to - *ret_from) / 2 < b->call_time ? (*ret_to - *ret_from) / 2 : b->call_time;
        return true;
}

/* Whether a span of nsec is the batch's own time, except for a known part. Either no other process
 * of the container had work, or the card served each of them at least twice. */
static bool is_own_time(const SliceSchedule *t, uint64_t nsec) {
        uint64_t sharers = atomic_load_explicit(&t->sharers, memory_order_relaxed);

        return sharers <= 1 || nsec / TIME_SLICE_NS >= 2 * sharers;
}

static void learn(ProcessState *a, const Batch *b, uint64_t nsec) {
        const SliceSchedule *t = &a->gate->cards[b->context->card].slice.limits->schedule;

        if (b->n_others == 0) /* otherwise some launches have no entry */
                estimate_learn(b->shares, b->n_shares, nsec, is_own_time(t, nsec));
}

static void measure(ProcessState *a, Context *c, Batch *b) {
        uint64_t from, to;

        if (b->measured && times(c, b, &from, &to) && to >= from) {
                process_correct(a, c->card,
                                (int64_t) intervals_add(&c->intervals, from, to) - (int64_t) b->charged);
                learn(a, b, to - from);
        }
        batch_release(b);
}

/* A thread that has measured for MEASURE_STALE_NS has ended. */
bool measure_take(Context *c, uint64_t now) {
        uint64_t since = atomic_load(&c->measuring);

        return (since == 0 || (now > since && now - since >= MEASURE_STALE_NS)) &&
               atomic_compare_exchange_strong(&c->measuring, &since, now);
}

bool measure_unclosed(ProcessState *a, Batch *b, uint64_t now) {
        Context *c = b->context;
        uint64_t from, to, room = batch_passed(b, now), nsec;
        bool known;
        int mode;

        if (!b->measured || !b->marked || !measure_take(c, now))
                return false;
        mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        known = !batch_context_has_ended(c, b->handle) && times(c, b, &from, &to) && to >= from;
        (void) launch_relax_capture(mode);
        if (known) {
                nsec = intervals_add(&c->intervals, from, to);
                atomic_store(&c->over, now - room + (nsec < room ? nsec : room));
                batch_note_unseen(&a->usage[c->card], room, atomic_load(&b->nsec));
                batch_charge(a, b, nsec);
                learn(a, b, to - from);
        }
        atomic_store_explicit(&c->measuring, 0, memory_order_release);
        return known;
}

/* While another thread queries an event, the batch stays for a later call. */
void measure_done(ProcessState *a, Context *c) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                Batch *b = &c->batches[i];

                if (!batch_take(b, BATCH_DONE))
                        continue;
                if (atomic_load(&c->n_users) == 0)
                        measure(a, c, b);
                else
                        atomic_store_explicit(&b->state, BATCH_DONE, memory_order_release);
        }
}

/* The events of a context that has ended may be gone. */
void measure_all(ProcessState *a, Context *c, uint64_t now) {
        if (!measure_take(c, now))
                return;
        if (atomic_load(&c->handle) > 1)
                measure_done(a, c);
        atomic_store_explicit(&c->measuring, 0, memory_order_release);
}
