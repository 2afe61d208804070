/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/measure.h"

#include "preload/launch/batch.h"
#include "preload/launch/cuda_events.h"
#include "preload/launch/tunables.h"

typedef int ElapsedCall(float *ret, CuHandle from, CuHandle to);

static uint64_t nsec_of(float msec, uint64_t origin) {
        return origin + (uint64_t) (int64_t) ((double) msec * 1e6);
}

/* Reads when the batch began and ended on the context's clock, whose origin is the first measured
 * batch. */
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
        return *ret_to >= *ret_from;
}

/* Whether the time slices of other processes are a small part of a span of nsec. */
static bool is_long(const ProcessState *a, uint32_t card, uint64_t nsec) {
        return nsec / TIME_SLICE_NS >= 2 * process_sharers(a, card);
}

static void measure(ProcessState *a, Context *c, Batch *b) {
        uint64_t from, to;

        if (!b->measured || !times(c, b, &from, &to))
                return;
        process_correct(a, c->card, (int64_t) intervals_add(&c->intervals, from, to) - (int64_t) b->charged);
        estimate_learn(b->shares, b->n_shares, to - from, is_long(a, c->card, to - from));
}

/* Measures no batch of a context that has ended: its events may be gone. */
void measure_all(ProcessState *a, Context *c) {
        uint32_t none = 0;

        if (!atomic_compare_exchange_strong(&c->measuring, &none, 1))
                return;
        for (unsigned i = 0; i < CONTEXT_BATCHES; i++) {
                Batch *b = &c->batches[i];

                if (!batch_take(b, BATCH_DONE))
                        continue;
                if (atomic_load(&c->handle) == b->handle)
                        measure(a, c, b);
                batch_release(b);
        }
        atomic_store_explicit(&c->measuring, 0, memory_order_release);
}
