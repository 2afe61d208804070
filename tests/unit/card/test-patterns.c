/* SPDX-License-Identifier: Apache-2.0 */

/* Patterns of real programs on the virtual clock: what they do under a limit, alone on the card.
 * The aims are the same for all. Where an aim is not met, the bound is what is reached now, so that
 * it cannot get worse unnoticed. docs/internals/patterns.md says why. */

#include "patterns.h"
#include "test.h"
#include "thorough.h"

/* At a cap of p percent, the work is at least p - 2 percent of what the program does alone without
 * Aliquot. Its share is at most p and one point. */
#define WORK_LESS   2
#define SHARE_MORE  1
#define MOST_SLOWER 2    /* percent, without a limit that binds */
#define MOST_STEPS  1000 /* of the arbiter, a second */

/* Eager inference does not meet two of the aims. */
static bool is_eager(const Pattern *p) {
        return strcmp(p->name, "eager inference") == 0;
}

static double most_slower(const Pattern *p) {
        return is_eager(p) ? 5 : MOST_SLOWER;
}

static double most_steps(const Pattern *p) {
        return is_eager(p) ? 1500 : MOST_STEPS;
}

static PatternResult run(const Pattern *p, PatternRule rule, uint32_t cap) {
        return pattern_run(&(PatternCase){.pattern = p, .rule = rule, .cap = cap, .most = few_or_all(300, 0)},
                           1);
}

static const Pattern *find(const char *name) {
        for (unsigned i = 0; i < patterns_n; i++)
                if (strcmp(patterns[i].name, name) == 0)
                        return &patterns[i];
        TEST_FAIL_("there is no pattern \"%s\"", name);
}

/* 100 % is no cap: the policy is the same as where a card is shared by weight. */
static void check_slower(const Pattern *p, const PatternResult *native) {
        PatternResult r = run(p, PATTERN_CAPPED, 100);
        double slower = 100 - 100 * r.work / native->work;

        if (slower > most_slower(p))
                TEST_FAIL_("%s without a limit that binds: %.2f %% slower", p->name, slower);
        ASSERT_TRUE(slower > -1); /* the same program */
        if (r.steps > most_steps(p))
                TEST_FAIL_("%s: %.0f steps a second", p->name, r.steps);
}

static void check_cap(const Pattern *p, const PatternResult *native, unsigned cap) {
        PatternResult r = run(p, PATTERN_CAPPED, pattern_caps[cap]);
        double work = 100 * r.work / native->work;

        printf("# %s, %u %%: had %.2f, work %.1f %%, %.0f steps/s\n", p->name, pattern_caps[cap], r.share,
               work, r.steps);
        if (work < pattern_caps[cap] - WORK_LESS)
                TEST_FAIL_("%s at %u %%: does %.2f %% of its work", p->name, pattern_caps[cap], work);
        if (r.share > pattern_caps[cap] + SHARE_MORE)
                TEST_FAIL_("%s at %u %%: had %.2f %% of the card", p->name, pattern_caps[cap], r.share);
        if (r.steps > most_steps(p))
                TEST_FAIL_("%s at %u %%: %.0f steps a second", p->name, pattern_caps[cap], r.steps);
}

/* Without THOROUGH each pattern has one of the caps. */
static void check(const char *name) {
        const Pattern *p = find(name);
        unsigned first = thorough() ? 0 : (unsigned) (p - patterns) % PATTERN_CAPS;
        PatternResult native = run(p, PATTERN_NATIVE, 0);

        ASSERT_TRUE(native.share > 1);
        check_slower(p, &native);
        for (unsigned cap = first; cap < PATTERN_CAPS; cap += few_or_all(PATTERN_CAPS, 1))
                check_cap(p, &native, cap);
}

static void eager_inference(void) {
        check("eager inference");
}

static void decode_with_graphs(void) {
        check("decode with graphs");
}

static void training_step(void) {
        check("training step");
}

static void copy_and_compute(void) {
        check("copy and compute");
}

static void video(void) {
        check("video, three streams");
}

static void notebook(void) {
        check("notebook");
}

static void persistent_kernel(void) {
        check("persistent kernel");
}

static void host_functions(void) {
        check("host functions, a lock");
}

static void all_are_tested(void) {
        ASSERT_INT(patterns_n, 8);
}

int main(void) {
        return TEST_MAIN(TEST(all_are_tested), TEST(eager_inference), TEST(decode_with_graphs),
                         TEST(training_step), TEST(copy_and_compute), TEST(video), TEST(notebook),
                         TEST(persistent_kernel), TEST(host_functions));
}
