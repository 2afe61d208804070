/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/batch-internal.h"

bool batch_is_overdue(ProcessState *a, uint32_t card, CuHandle stream, uint64_t now) {
        const ProcessUsage *m = &a->usage[card];
        uint64_t in_flight = atomic_load_explicit(&m->in_flight, memory_order_relaxed);
        bool late = atomic_load_explicit(&m->closed, memory_order_relaxed) > 0 &&
                    now > atomic_load_explicit(&m->closed_end, memory_order_relaxed) + LATE_NS +
                                    WRONG * in_flight;
        int mode;

        if (!late)
                return false;
        mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        late = !real_is_captured(stream) &&
               !launch_stream_is_done(stream); /* otherwise the callback is late, or the context has ended */
        (void) launch_relax_capture(mode);
        return late;
}

/* An event may be queried by any thread. */
static bool is_running(const Batch *b) {
        EventCall *query = (EventCall *) real_get(REAL_cuEventQuery);
        int mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        bool runs = b->marked && query && query(b->end) == CU_ERROR_NOT_READY;

        (void) launch_relax_capture(mode);
        return runs;
}

static void poll_open(ProcessState *a, Batch *b, bool close, uint64_t now) {
        uint64_t over = atomic_load(&b->over);

        if (!close && now <= over + POLL_SLACK_NS)
                return;
        if (!batch_take(b, BATCH_OPEN))
                return;
        if (batch_is_of_other_thread(b) || batch_stream_is_destroyed(b)) {
                if (now <= over + FOREIGN_LATE_NS || is_running(b)) {
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
        EventCall *query = (EventCall *) real_get(REAL_cuEventQuery);
        int mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        Context *c = b->context;

        (void) atomic_fetch_add(&c->n_users, 1);
        if (atomic_load(&b->state) == state && !batch_context_has_ended(c, b->handle) &&
            (!query || query(b->end) != CU_ERROR_NOT_READY))
                batch_finish_closed(a, b, state);
        (void) atomic_fetch_sub(&c->n_users, 1);
        (void) launch_relax_capture(mode);
}

/* ---- work that has not begun ---- */

typedef enum Begun { NOT_BEGUN, BEGUN, NOT_KNOWN } Begun;

static Begun has_begun(const Batch *b) {
        EventCall *query = (EventCall *) real_get(REAL_cuEventQuery);
        int r = b->measured && query ? query(b->begin) : 0;

        return !b->measured || !query ? NOT_KNOWN : r == CU_ERROR_NOT_READY ? NOT_BEGUN : BEGUN;
}

/* Called with n_users above 0, so that the events stay those of this batch. */
static Begun closed_has_begun(const Batch *b, uint32_t state) {
        Begun begun;

        if (atomic_load(&b->state) != state || batch_context_has_ended(b->context, b->handle))
                return NOT_KNOWN;
        begun = has_begun(b);
        return atomic_load(&b->state) == state ? begun : NOT_KNOWN;
}

static Begun open_has_begun(ProcessState *a, Batch *b, uint64_t now) {
        Begun begun = NOT_KNOWN;

        if (!batch_take(b, BATCH_OPEN))
                return NOT_KNOWN;
        if (!batch_context_has_ended(b->context, b->handle))
                begun = has_begun(b);
        batch_reopen(a, b, now);
        return begun;
}

bool batch_is_blocked(ProcessState *a, Context *c, uint64_t now) {
        int mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        uint32_t closed = 0;
        bool blocked = true;

        (void) atomic_fetch_add(&c->n_users, 1);
        for (unsigned i = 0; i < CONTEXT_BATCHES && blocked; i++) {
                uint32_t state = atomic_load(&c->batches[i].state);

                if (batch_is_closed(state))
                        blocked = closed_has_begun(&c->batches[i], state) == NOT_BEGUN;
                else if (state == BATCH_OPEN)
                        blocked = open_has_begun(a, &c->batches[i], now) == NOT_BEGUN;
                closed += batch_is_closed(state);
        }
        (void) atomic_fetch_sub(&c->n_users, 1);
        (void) launch_relax_capture(mode);
        return blocked && closed > 0 && closed == atomic_load(&a->usage[c->card].closed);
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
