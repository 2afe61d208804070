/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/batch-internal.h"

static uint64_t late_after(const ProcessState *a, uint32_t card) {
        return LATE_NS * process_sharers(a, card);
}

bool batch_is_overdue(const ProcessState *a, uint32_t card, uint64_t now) {
        const ProcessUsage *m = &a->usage[card];
        uint64_t due = atomic_load(&m->closed_end), progress = atomic_load(&m->progress);

        return atomic_load(&m->closed) > 0 && now > (due > progress ? due : progress) + late_after(a, card);
}

uint32_t batch_max_kernels(const ProcessState *a, uint32_t card, uint64_t now) {
        uint32_t n = atomic_load_explicit(&a->usage[card].max_kernels, memory_order_relaxed);

        return n < MIN_KERNELS || batch_is_overdue(a, card, now) ? MIN_KERNELS : n;
}

void batch_note_end(ProcessState *a, const Batch *b, uint64_t now) {
        ProcessUsage *m = &a->usage[b->context->card];
        uint64_t passed = batch_passed(b, now);
        uint32_t n = batch_max_kernels(a, b->context->card, now);

        if (passed / WRONG > atomic_load(&b->nsec) && passed > late_after(a, b->context->card))
                n = MIN_KERNELS;
        else if (n < MAX_KERNELS)
                n *= 4;
        atomic_store(&m->max_kernels, n);
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
