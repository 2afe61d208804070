/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/overlap.h"

#include <stddef.h>

static uint64_t supposed(const Overlap *t) {
        return estimate_nsec(t->of) * t->all.launches;
}

/* The mean would hide one that is long among many that are short. */
static void learn(Overlap *t) {
        bool surprise = !estimate_is_cold(t->of) && estimate_is_surprise(supposed(t), t->to - t->from);

        estimate_learn(surprise ? &t->longest : &t->all, 1, surprise ? t->longest_nsec : t->to - t->from);
        t->of = NULL;
}

static void begin(Overlap *t, const OverlapBatch *b) {
        *t = (Overlap){.of = b->share.of,
                       .stream = b->stream,
                       .from = b->from,
                       .to = b->to,
                       .all = {b->share.of, 0},
                       .longest = b->share,
                       .longest_nsec = b->to - b->from};
}

static bool belongs(const Overlap *t, const OverlapBatch *b) {
        return t->of == b->share.of && t->n < OVERLAP_MAX && b->from < t->to && b->to > t->from;
}

void overlap_add(Overlap *t, const OverlapBatch *b) {
        uint64_t nsec = b->to - b->from;

        if (t->of && !belongs(t, b))
                learn(t);
        if (!t->of)
                begin(t, b);
        t->n++;
        t->streams = t->streams || b->stream != t->stream;
        t->from = b->from < t->from ? b->from : t->from;
        t->to = b->to > t->to ? b->to : t->to;
        t->all.launches += b->share.launches;
        if (nsec / b->share.launches > t->longest_nsec / t->longest.launches) {
                t->longest = b->share;
                t->longest_nsec = nsec;
        }
}

void overlap_pending(OverlapPending *r, uintptr_t stream, uint64_t nsec) {
        r->stream = r->any ? r->stream : stream;
        r->streams = r->streams || stream != r->stream;
        r->any = true;
        r->nsec += nsec;
}

/* What comes behind a batch in its own stream is not beside it. */
static bool comes_beside(const Overlap *t, const OverlapPending *rest) {
        return rest->any && (t->streams || rest->streams || rest->stream != t->stream);
}

static bool is_well_known(const Estimate *e) {
        return !estimate_is_new(e) && !estimate_is_doubtful(e) && !estimate_varies(e);
}

void overlap_learn(Overlap *t, const OverlapPending *rest) {
        if (t->of && (!comes_beside(t, rest) || t->n == OVERLAP_MAX || !is_well_known(t->of) ||
                      estimate_is_surprise(supposed(t) + rest->nsec, t->to - t->from)))
                learn(t);
}
