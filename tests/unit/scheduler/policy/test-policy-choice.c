/* SPDX-License-Identifier: Apache-2.0 */

/* Which unit opens, for each of the four policies of whenTryNextUnits: full or not, with room or
 * not, with terminating pods or not, before and after the timeout. */

#include "scheduler/policy/policy_choice.h"
#include "test.h"

enum { TIMEOUT = 900 };

/* Unit 1 and unit 2 of the question: letters. F full, R room, T a terminating pod, U no max at all,
 * W the label that makes pods wait (without max), A maxResources reached. */
typedef struct Case {
        PolicyNext next;
        const char *units[2];
        uint64_t waited;
        PolicyVerdict verdict;
        size_t unit; /* from 0 */
        uint64_t wait;
} Case;

#define LACK    POLICY_NEXT_LACK_OR_MAX
#define MAX     POLICY_NEXT_MAX
#define NO_TERM POLICY_NEXT_LACK_AND_NO_TERMINATING
#define TIME    POLICY_NEXT_TIMEOUT_OR_MAX

static const Case cases[] = {
        /* Room in the first unit: it opens, whatever the policy. */
        {LACK, {"R", "R"}, 0, POLICY_OPEN, 0, 0},
        {MAX, {"R", "R"}, 0, POLICY_OPEN, 0, 0},
        {NO_TERM, {"R", "R"}, 0, POLICY_OPEN, 0, 0},
        {TIME, {"R", "R"}, 0, POLICY_OPEN, 0, 0},
        {NO_TERM, {"RT", "R"}, 0, POLICY_OPEN, 0, 0},
        {TIME, {"R", "R"}, 5 * TIMEOUT, POLICY_OPEN, 0, 0},
        /* Full: nodes with room do not help. */
        {LACK, {"FR", "R"}, 0, POLICY_OPEN, 1, 0},
        {MAX, {"FR", "R"}, 0, POLICY_OPEN, 1, 0},
        {NO_TERM, {"FR", "R"}, 0, POLICY_OPEN, 1, 0},
        {TIME, {"FR", "R"}, 0, POLICY_OPEN, 1, 0},
        {LACK, {"AR", "R"}, 0, POLICY_OPEN, 1, 0},
        {MAX, {"AR", "R"}, 0, POLICY_OPEN, 1, 0},
        {TIME, {"AR", "R"}, 0, POLICY_OPEN, 1, 0},
        /* Not full, and no room. */
        {LACK, {"", "R"}, 0, POLICY_OPEN, 1, 0},
        {MAX, {"", "R"}, 0, POLICY_WAITS, 0, 0},
        {MAX, {"", "R"}, 100 * TIMEOUT, POLICY_WAITS, 0, 0},
        {NO_TERM, {"", "R"}, 0, POLICY_OPEN, 1, 0},
        {TIME, {"", "R"}, 0, POLICY_WAITS, 0, TIMEOUT},
        {TIME, {"", "R"}, TIMEOUT - 1, POLICY_WAITS, 0, 1},
        {TIME, {"", "R"}, TIMEOUT, POLICY_OPEN, 1, 0},
        /* Without max: ExceedMax goes on, and TimeoutOrExceedMax waits only with the label. */
        {LACK, {"U", "R"}, 0, POLICY_OPEN, 1, 0},
        {MAX, {"U", "R"}, 0, POLICY_OPEN, 1, 0},
        {NO_TERM, {"U", "R"}, 0, POLICY_OPEN, 1, 0},
        {TIME, {"U", "R"}, 0, POLICY_OPEN, 1, 0},
        {TIME, {"UW", "R"}, 0, POLICY_WAITS, 0, TIMEOUT},
        {TIME, {"UW", "R"}, TIMEOUT, POLICY_OPEN, 1, 0},
        {MAX, {"UW", "R"}, 0, POLICY_OPEN, 1, 0},
        /* A pod of the unit is terminating. */
        {LACK, {"T", "R"}, 0, POLICY_OPEN, 1, 0},
        {MAX, {"FT", "R"}, 0, POLICY_OPEN, 1, 0},
        {NO_TERM, {"T", "R"}, 0, POLICY_WAITS, 0, 0},
        {NO_TERM, {"FT", "R"}, 0, POLICY_WAITS, 0, 0},
        {NO_TERM, {"UT", "R"}, 0, POLICY_WAITS, 0, 0},
        {TIME, {"FT", "R"}, 0, POLICY_OPEN, 1, 0},
        /* The second unit: its own rules, and the timeout once more. */
        {LACK, {"", ""}, 0, POLICY_NONE, 2, 0},
        {LACK, {"F", "FR"}, 0, POLICY_NONE, 2, 0},
        {MAX, {"F", ""}, 0, POLICY_WAITS, 1, 0},
        {MAX, {"F", "F"}, 0, POLICY_NONE, 2, 0},
        {MAX, {"U", "U"}, 0, POLICY_NONE, 2, 0},
        {NO_TERM, {"F", "T"}, 0, POLICY_WAITS, 1, 0},
        {NO_TERM, {"F", ""}, 0, POLICY_NONE, 2, 0},
        {TIME, {"", ""}, TIMEOUT, POLICY_WAITS, 1, TIMEOUT},
        {TIME, {"", ""}, 2 * TIMEOUT, POLICY_NONE, 2, 0},
        {TIME, {"F", ""}, 0, POLICY_WAITS, 1, TIMEOUT},
        {TIME, {"F", ""}, TIMEOUT, POLICY_NONE, 2, 0},
};

static bool has(const char *letters, char c) {
        return strchr(letters, c) != NULL;
}

static PolicyChoice choose(const Case *c, const PolicyAsker *asker, bool before_next) {
        static PolicyAmount amount = {.name = STR("cpu"), .milli = 1000};
        PolicyUnit units[2] = {0};
        PolicyUnitState states[2] = {0};
        PolicySpec spec = {.units = units,
                           .n_units = 2,
                           .next = c->next,
                           .timeout = TIMEOUT,
                           .preempts_before_next = before_next};

        for (size_t k = 0; k < 2; k++) {
                const char *letters = c->units[k];
                bool amounts = has(letters, 'A');

                units[k] = (PolicyUnit){.has_max = !amounts && !has(letters, 'U'),
                                        .max = 3,
                                        .max_amounts = amounts ? &amount : NULL,
                                        .n_max_amounts = amounts,
                                        .waits = has(letters, 'W')};
                states[k] = (PolicyUnitState){.pods = has(letters, 'F') ? 3 : 2,
                                              .over_amount = amounts,
                                              .has_room = has(letters, 'R'),
                                              .has_nodes = !has(letters, 'N'),
                                              .terminating = has(letters, 'T')};
        }
        return policy_choice_make(&spec, states, asker);
}

static void each_policy_opens_its_unit(void) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const Case *c = &cases[i];
                PolicyChoice got = choose(c, &(PolicyAsker){.waited = c->waited}, false);

                if (got.verdict != c->verdict || got.unit != c->unit || got.wait != c->wait)
                        TEST_FAIL_("case %zu: verdict %d unit %zu wait %llu", i, got.verdict, got.unit,
                                   (unsigned long long) got.wait);
        }
}

static void a_unit_of_max_0_never_opens(void) {
        PolicyUnit units[2] = {[0].has_max = true};
        PolicyUnitState states[2] = {{.has_room = true}, {.has_room = true}};
        PolicySpec spec = {.units = units, .n_units = 2};

        for (PolicyNext next = LACK; next <= TIME; next++) {
                spec.next = next;
                ASSERT_INT(policy_choice_make(&spec, states, &(PolicyAsker){0}).unit, 1);
        }
}

/* BeforeNextUnit: victims are looked for once in each unit that is not full, in order. */
static void before_the_next_unit_victims_are_looked_for_once(void) {
        static const Case c = {.units = {"", "R"}}, full = {.units = {"F", "R"}},
                          bare = {.units = {"N", "R"}};
        PolicyAsker asker = {.may_preempt = true};

        ASSERT_INT(choose(&c, &asker, false).verdict, POLICY_OPEN);
        ASSERT_INT(choose(&c, &asker, true).verdict, POLICY_PREEMPTS);
        ASSERT_INT(choose(&c, &asker, true).unit, 0);
        ASSERT_INT(choose(&full, &asker, true).verdict, POLICY_OPEN);
        ASSERT_INT(choose(&bare, &asker, true).verdict, POLICY_OPEN);
        asker.preempted = 1;
        ASSERT_INT(choose(&c, &asker, true).verdict, POLICY_OPEN);
        asker = (PolicyAsker){.may_preempt = false};
        ASSERT_INT(choose(&c, &asker, true).verdict, POLICY_OPEN);
}

int main(void) {
        return TEST_MAIN(TEST(each_policy_opens_its_unit), TEST(a_unit_of_max_0_never_opens),
                         TEST(before_the_next_unit_victims_are_looked_for_once));
}
