/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "preload/launch/overlap.h"
#include "test.h"

#define USEC UINT64_C(1000)
#define MSEC UINT64_C(1000000)

enum { STREAMS = 4, FUNCTIONS = 4 };

static Estimates table;
static Overlap together;

/* Nothing is known but this: so long, and by enough measurements. */
static Estimate *known(uintptr_t function, uint64_t nsec) {
        Estimate *e = estimate_find(&table, function, 1);

        memset(e, 0, sizeof *e);
        memset(&together, 0, sizeof together);
        e = estimate_find(&table, function, 1);
        for (unsigned i = 0; nsec > 0 && i <= ESTIMATE_STEADY; i++)
                estimate_learn(&(EstimateShare){e, 1}, 1, nsec);
        return e;
}

static void add(Estimate *e, uint32_t launches, uintptr_t stream, uint64_t from, uint64_t to) {
        overlap_add(&together, &(OverlapBatch){{e, launches}, stream, from, to});
}

static void nothing_is_left(void) {
        overlap_learn(&together, &(OverlapPending){0});
}

static void left_in(uintptr_t stream, uint64_t nsec) {
        OverlapPending rest = {0};

        overlap_pending(&rest, stream, nsec);
        overlap_learn(&together, &rest);
}

static void near(const Estimate *e, uint64_t nsec) {
        ASSERT_TRUE(estimate_nsec(e) >= nsec - 2 && estimate_nsec(e) <= nsec + 2);
}

/* As if there were no others: each by itself, at once. */
static void one_stream(void) {
        Estimate *e = known(0x1000, 1000), *f = known(0x2000, 1000);

        for (uint64_t i = 0; i < 100; i++) {
                add(e, 2, 16, i * 5000, i * 5000 + 4000);
                left_in(16, 2000);
                estimate_learn(&(EstimateShare){f, 2}, 1, 4000);
                ASSERT_INT(estimate_nsec(e), estimate_nsec(f));
        }
        for (uint64_t i = 0; i < 100; i++) /* two that are found at once */
                add(e, 1, 16, i * 3000 + 1000000, i * 3000 + 1003000);
        nothing_is_left();
        near(e, 3000);
}

/* Their events see each other's kernels, and what they had on the card together is known. */
static void four_streams(void) {
        Estimate *e = known(0x1000, 340 * USEC);
        uint64_t card = 0;

        for (unsigned i = 0; i < 60; i++, card += 800 * USEC) {
                for (uintptr_t s = 0; s < STREAMS; s++)
                        add(e, 2, 16 + s, card + s * 100 * USEC, card + (s + 5) * 100 * USEC);
                left_in(16, 200 * USEC);
        }
        ASSERT_TRUE(estimate_nsec(e) >= 100 * USEC && estimate_nsec(e) < 130 * USEC);
}

/* The same, one after the other, as they are found to be over. */
static void one_at_a_time(void) {
        Estimate *e = known(0x1000, 340 * USEC);

        for (uint64_t i = 0; i < 400; i++) {
                add(e, 2, 16 + i % STREAMS, i * 200 * USEC, (i + 4) * 200 * USEC);
                left_in(16 + (i + 1) % STREAMS, 600 * USEC);
        }
        ASSERT_TRUE(estimate_nsec(e) >= 100 * USEC && estimate_nsec(e) < 130 * USEC);
}

/* Who is new, or doubtful, is learnt from at once, whatever is beside it. */
static void what_is_new(void) {
        Estimate *e = known(0x1000, 0);

        for (unsigned i = 1; i <= ESTIMATE_STEADY; i++) {
                add(e, 1, 16, i * MSEC, i * MSEC + i * 50 * USEC);
                left_in(32, MSEC);
                ASSERT_TRUE(estimate_nsec(e) >= 50 * USEC * i / 2);
        }
        ASSERT_FALSE(estimate_is_new(e));
        e = known(0x1000, 5 * USEC);
        add(e, 1, 16, 0, 5 * MSEC);
        left_in(32, MSEC); /* a surprise, whatever is said to be beside it */
        ASSERT_TRUE(estimate_is_doubtful(e));
        add(e, 1, 16, 5 * MSEC, 10 * MSEC);
        left_in(32, MSEC);
        near(e, 5 * MSEC);
        ASSERT_TRUE(estimate_varies(e));
}

/* A long one among many that are short, all of them together: their mean is none, and the long one
 * tells. */
static void hidden_among_short_ones(void) {
        Estimate *e = known(0x1000, 5 * USEC);

        for (unsigned round = 0; round < 2; round++) {
                uint64_t at = round * 100 * MSEC;

                add(e, 20, 16, at, at + 5 * MSEC);
                add(e, 20, 17, at, at + 5 * MSEC);
                add(e, 1, 18, at, at + 5 * MSEC);
                nothing_is_left();
                ASSERT_TRUE(estimate_newest(e) >= 5 * MSEC - 2);
        }
        ASSERT_TRUE(estimate_varies(e));
}

/* What another kind had on the card is not taken off: which of both it was nobody knows. */
static void beside_another_kind(void) {
        Estimate *e = known(0x1000, 5 * USEC), *f = known(0x2000, 5 * MSEC);

        for (uint64_t i = 0; i < 40; i++) {
                add(f, 1, 16, i * 6 * MSEC, i * 6 * MSEC + 5 * MSEC);
                add(e, 1, 17, i * 6 * MSEC, i * 6 * MSEC + 5 * MSEC);
                left_in(18, MSEC);
        }
        ASSERT_TRUE(estimate_newest(e) >= 5 * MSEC - 2);
        ASSERT_TRUE(estimate_nsec(f) >= 5 * MSEC - 2);
}

/* Somebody is beside them for ever: they are not waited for by as many as come. */
static void not_put_off_for_ever(void) {
        Estimate *e = known(0x1000, 100 * USEC);

        for (uint64_t i = 0; i < OVERLAP_MAX; i++) {
                ASSERT_INT(estimate_nsec(e), 100 * USEC);
                add(e, 1, 16 + i % 2, i * 200 * USEC, (i + 2) * 200 * USEC);
                left_in(99, 3 * MSEC);
        }
        ASSERT_TRUE(estimate_nsec(e) > 120 * USEC);
        for (uint64_t i = 0; i < 10 * OVERLAP_MAX; i++) /* found to be over at once */
                add(e, 1, 16 + i % 2, i * 200 * USEC, (i + 2) * 200 * USEC);
        ASSERT_TRUE(together.n <= OVERLAP_MAX);
}

/* Whatever is launched where, and seen in whatever order: nothing is thought to be shorter than the
 * shortest of it was. A card that does one after the other; batches of one to four launches, in
 * four streams by chance, some of several kinds' streams waiting for each other. */
static void never_too_short(void) {
        static const uint64_t least[FUNCTIONS] = {5 * USEC, 20 * USEC, 100 * USEC, MSEC};
        uint64_t card = 0, begun[STREAMS] = {0}, waits[STREAMS] = {0};
        Estimate *of[FUNCTIONS];
        uint32_t state = 1;

        for (unsigned f = 0; f < FUNCTIONS; f++)
                of[f] = known(0x1000 * (f + 1), 10 * least[f]);
        for (unsigned i = 0; i < 200000; i++) {
                unsigned s, f, n, rest;
                OverlapPending r = {0};

                state = state * 1664525 + 1013904223;
                s = state >> 30;
                f = state >> 28 & 3;
                n = 1 + (state >> 26 & 3);
                rest = state >> 20 & 7;
                card += n * least[f] * (1 + (state >> 18 & 3));
                add(of[f], n, 16 + s, begun[s], card);
                begun[s] = card; /* the next one of the stream has begun to wait */
                waits[s] = 200 * USEC;
                for (unsigned k = 0; k < STREAMS; k++)
                        if (k != s && rest > 2)
                                overlap_pending(&r, 16 + k, waits[k]);
                if (rest != 1)
                        overlap_learn(&together, &r);
                for (unsigned k = 0; k < FUNCTIONS; k++)
                        ASSERT_TRUE(estimate_nsec(of[k]) >= least[k] - 2);
        }
}

int main(void) {
        return TEST_MAIN(TEST(one_stream), TEST(four_streams), TEST(one_at_a_time), TEST(what_is_new),
                         TEST(hidden_among_short_ones), TEST(beside_another_kind), TEST(not_put_off_for_ever),
                         TEST(never_too_short));
}
