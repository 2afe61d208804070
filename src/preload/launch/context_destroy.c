/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/batch-internal.h"

/* Closes a batch whose end could not be marked. It is charged as estimated, and for the time that
 * the call which destroys the context takes. */
static void close_unmarked(ProcessState *a, Batch *b, uint64_t now) {
        batch_charge_unseen(a, b, now);
        b->began = atomic_load(&b->context->end_asked_at);
        b->n_launches = b->n_kernels = 0;
        b->measured = false;
        atomic_store(&b->nsec, 0);
        (void) atomic_fetch_add(&a->usage[b->context->card].closed, 1);
        b->number = (b->number + 1) & (UINT32_MAX >> STATE_BITS);
        atomic_store(&b->state, batch_closed_as(b->number));
}

void batch_mark_all(ProcessState *a, Context *c, bool ends) {
        uint64_t now = launch_now();

        atomic_store(&c->end_asked_at, now);
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                Batch *b = &c->batches[i];

                if (!batch_take(b, BATCH_OPEN))
                        continue;
                if (batch_is_of_other_thread(b) || (batch_is_in_legacy_stream(b) && !ends))
                        batch_reopen(a, b, now);
                else
                        batch_finish(a, b, now);
        }
        batch_poll(a, c, BATCH_POLL_ASK, now);
}

/* Destroys a batch's events, unless the driver has done so or another thread may use them: then
 * they end with the context. */
static void drop_events(Batch *b, bool gone) {
        if (gone || atomic_load(&b->context->n_users) != 0)
                return; /* they end with the context */
        cuda_event_drop(&b->begin);
        cuda_event_drop(&b->end);
}

/* Ends one batch. A closed one is settled by its callback. False: another thread owns it or may
 * query its event, so it is not used again before the slot is. */
static bool end_batch(ProcessState *a, Batch *b, bool gone, bool mine) {
        if (batch_take(b, BATCH_OPEN))
                close_unmarked(a, b, launch_now());
        if (batch_is_closed(atomic_load(&b->state))) {
                if (mine) /* otherwise a measuring thread may take it */
                        drop_events(b, gone);
                return mine;
        }
        if (batch_take(b, BATCH_FREE)) {
                drop_events(b, gone);
                batch_release(b);
                return true;
        }
        if (atomic_load(&b->context->n_users) != 0 || !batch_take(b, BATCH_DONE))
                return false;
        drop_events(b, gone);
        batch_release(b);
        return true;
}

static bool is_of_stream(const Batch *b, CuHandle stream) {
        return __atomic_load_n(&b->key, __ATOMIC_RELAXED) == (uintptr_t) stream;
}

/* Takes the batch of a stream that is about to be destroyed. Another thread that owns it may be
 * querying the stream, so the driver has to wait until that thread releases the batch. After
 * MAX_HOLDERS_NS it does not: the owner may have ended, or be this thread below a signal handler.
 * `seen`: an earlier call gave up on this stream. */
static bool take_of_stream(Batch *b, CuHandle stream, uint64_t since) {
        bool seen = atomic_exchange(&b->destroyed_stream, (uintptr_t) stream) == (uintptr_t) stream;

        while (!batch_take(b, BATCH_OPEN)) {
                uint32_t state = atomic_load(&b->state);

                if (!is_of_stream(b, stream) || (state != BATCH_HELD && state != BATCH_OPEN))
                        return false;
                if (state == BATCH_OPEN)
                        continue;
                if (seen || launch_now() - since >= MAX_HOLDERS_NS)
                        return false;
                launch_sleep(HOLDERS_POLL_NS);
        }
        return true;
}

/* Marks the end of the stream's batches while it exists; later only the events are queried. */
void batch_end_stream(ProcessState *a, Context *c, CuHandle stream) {
        uint64_t since;

        if ((uintptr_t) stream <= LEGACY)
                return; /* default streams are not destroyed */
        since = launch_now();
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                Batch *b = &c->batches[i];
                uint32_t state = atomic_load(&b->state);

                if (!is_of_stream(b, stream) || (state != BATCH_OPEN && state != BATCH_HELD) ||
                    !take_of_stream(b, stream, since))
                        continue;
                if (b->stream == stream && !real_is_captured(stream))
                        batch_close(a, b, launch_now());
                else
                        batch_reopen(a, b, launch_now());
        }
}

void batch_drop_all(ProcessState *a, Context *c, bool gone) {
        StreamCall *destroy = (StreamCall *) real_get(REAL_cuStreamDestroy_v2);
        int mode = launch_relax_capture(CU_CAPTURE_RELAXED);
        bool mine = measure_take(c, launch_now()), alone = mine;

        if (mine && !gone)
                measure_done(a, c);
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++)
                alone &= end_batch(a, &c->batches[i], gone, mine);
        if (alone && !gone && atomic_load(&c->n_users) == 0) {
                cuda_event_drop(&c->origin);
                if (c->watch && destroy)
                        (void) destroy(c->watch); /* its pending waits and callbacks still complete */
        }
        if (mine)
                atomic_store(&c->measuring, 0);
        (void) launch_relax_capture(mode);
}

void batch_charge_all(ProcessState *a, Context *c, bool gone) {
        bool all = gone || atomic_load(&c->n_callbacks) == 0;

        for (unsigned i = 0; i < CONTEXT_BATCHES; i++)
                if (batch_is_closed(atomic_load(&c->batches[i].state)) &&
                    (all || c->batches[i].n_launches == 0))
                        batch_finish_closed(a, &c->batches[i], atomic_load(&c->batches[i].state));
}

void batch_init_all(Context *fresh) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                fresh->batches[i].context = fresh;
                atomic_store(&fresh->batches[i].state, BATCH_HELD);
        }
}

void batch_release_all(Context *c) {
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                c->batches[i].begin = c->batches[i].end = NULL;
                batch_release(&c->batches[i]);
        }
}

bool batch_reclaim_all(Context *c) {
        bool all = atomic_load(&c->n_callbacks) == 0 && atomic_load(&c->measuring) == 0 &&
                   atomic_load(&c->n_users) == 0;
        unsigned n = 0;

        while (all && n < CONTEXT_BATCHES) {
                all = batch_take(&c->batches[n], BATCH_DONE) || batch_take(&c->batches[n], BATCH_FREE);
                n += all;
        }
        while (!all && n > 0)
                batch_release(&c->batches[--n]);
        return all;
}
