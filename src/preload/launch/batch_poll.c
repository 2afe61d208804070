/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/batch-internal.h"

bool batch_is_overdue(ProcessState *a, uint32_t card, CuHandle stream, uint64_t now) {
        const ProcessUsage *m = &a->usage[card];
        uint64_t in_flight = atomic_load_explicit(&m->in_flight, memory_order_relaxed);
        bool late = atomic_load_explicit(&m->closed, memory_order_relaxed) > 0 &&
                    now > atomic_load_explicit(&m->closed_end, memory_order_relaxed) + LATE_NS +
                                    WRONG * in_flight;

        /* If the stream is idle, the callback is late, or the context has ended. */
        return late && !real_is_captured(stream) && !launch_stream_is_done(stream);
}

static void poll_open(ProcessState *a, Batch *b, bool close, uint64_t now) {
        uint64_t over = atomic_load(&b->over);

        if (!close && now <= over + POLL_SLACK_NS)
                return;
        if (!batch_take(b, BATCH_OPEN))
                return;
        if (batch_is_of_other_thread(b) || batch_stream_is_destroyed(b)) {
                if (now <= over + FOREIGN_LATE_NS || (b->marked && cuda_event_is_pending(b->end))) {
                        batch_reopen(a, b, now);
                } else {
                        if (!measure_unclosed(a, b, now))
                                batch_charge_unseen(a, b, now);
                        batch_release(b);
                }
        } else if (batch_settle_idle(a, b, now)) {
                batch_release(b);
        } else if (close && !batch_is_in_legacy_stream(b) && batch_can_be_marked(b)) {
                batch_close(a, b, now);
        } else {
                batch_reopen(a, b, now);
        }
}

/* For a batch without a callback, or with a late one. While n_users is not 0, closed batches are
 * not measured or reused, so the event is the one of this batch. A thread that ends the context
 * then leaves the events alone. */
static void query_closed(ProcessState *a, Batch *b, uint32_t state) {
        Context *c = b->context;

        (void) atomic_fetch_add(&c->n_users, 1);
        if (atomic_load(&b->state) == state && !batch_context_has_ended(c, b->handle) &&
            !cuda_event_is_pending(b->end))
                batch_finish_closed(a, b, state);
        (void) atomic_fetch_sub(&c->n_users, 1);
}

/* ---- work that has not begun ---- */

/* Whether none of the batch's work has begun; false if that is not known. */
static bool has_not_begun(const Batch *b) {
        return !batch_context_has_ended(b->context, b->handle) && b->measured &&
               cuda_event_is_pending(b->begin);
}

/* Called with n_users above 0, so that the events stay those of this batch. */
static bool closed_has_not_begun(const Batch *b, uint32_t state) {
        return atomic_load(&b->state) == state && has_not_begun(b) && atomic_load(&b->state) == state;
}

static bool open_has_not_begun(ProcessState *a, Batch *b, uint64_t now) {
        bool not_begun;

        if (!batch_take(b, BATCH_OPEN))
                return false;
        not_begun = has_not_begun(b);
        batch_reopen(a, b, now);
        return not_begun;
}

bool batch_is_blocked(ProcessState *a, Context *c, uint64_t now) {
        uint32_t closed = 0;
        bool blocked = true;

        (void) atomic_fetch_add(&c->n_users, 1);
        for (unsigned i = 0; i < CONTEXT_BATCHES && blocked; i++) {
                uint32_t state = atomic_load(&c->batches[i].state);

                if (batch_is_closed(state))
                        blocked = closed_has_not_begun(&c->batches[i], state);
                else if (state == BATCH_OPEN)
                        blocked = open_has_not_begun(a, &c->batches[i], now);
                closed += batch_is_closed(state);
        }
        (void) atomic_fetch_sub(&c->n_users, 1);
        return blocked && closed > 0 &&
               closed + atomic_load(&a->usage[c->card].calls) == atomic_load(&a->usage[c->card].closed);
}

/* ---- all of them ---- */

/* Whether to query a closed batch: it has no pending callback, or the callback is late. */
static bool needs_query(const Batch *b, unsigned how, uint64_t now) {
        const Context *c = b->context;

        return atomic_load(&c->n_users) == 0 &&
               (atomic_load(&c->n_callbacks) == 0 || ((how & BATCH_POLL_ASK) && now > atomic_load(&b->over)));
}

void batch_poll(ProcessState *a, Context *c, unsigned how, uint64_t now) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                uint32_t state = atomic_load_explicit(&c->batches[i].state, memory_order_acquire);

                if (state == BATCH_OPEN)
                        poll_open(a, &c->batches[i], how & BATCH_POLL_CLOSE, now);
                else if (batch_is_closed(state) && needs_query(&c->batches[i], how, now))
                        query_closed(a, &c->batches[i], state);
        }
        measure_all(a, c, now);
}
