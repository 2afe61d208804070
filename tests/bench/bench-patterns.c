/* SPDX-License-Identifier: Apache-2.0 */

/* Real programs' patterns on the simulated card, with the launch hooks and the arbiter as they are,
 * on a virtual clock: the tables of docs/internals/patterns.md. Nothing is asserted.
 *
 *     bench-patterns [PATTERN]
 *
 * In each cell: percent of the card, and the work done as percent of what the program does alone
 * without Aliquot. Beside: another tenant with kernels of 500 us always wants the card, and has the
 * rest of the percent; the third number is its share. */

#include "../unit/card/patterns.h"

#include <stdio.h>
#include <string.h>

static PatternResult run(const Pattern *p, PatternRule rule, uint32_t cap, bool beside) {
        return pattern_run(&(PatternCase){.pattern = p, .rule = rule, .cap = cap, .beside = beside}, 1);
}

static double part(const PatternResult *r, const PatternResult *of) {
        return 100 * r->work / of->work;
}

static void print_alone(const Pattern *p) {
        PatternResult native = run(p, PATTERN_NATIVE, 0, false), whole = run(p, PATTERN_CAPPED, 100, false);
        double steps = whole.steps;

        printf("| %s | %.1f | %.1f %% |", p->name, native.share, 100 - part(&whole, &native));
        for (unsigned i = 0; i < PATTERN_CAPS; i++) {
                PatternResult r = run(p, PATTERN_CAPPED, pattern_caps[i], false);

                printf(" %.1f, %.0f |", r.share, part(&r, &native));
                steps = r.steps > steps ? r.steps : steps;
        }
        printf(" %.0f |\n", steps);
        (void) fflush(stdout);
}

static void print_beside(const Pattern *p) {
        PatternResult native = run(p, PATTERN_NATIVE, 0, false), slices = run(p, PATTERN_NATIVE, 50, true);
        double steps = 0;

        printf("| %s | %.1f, %.0f; %.0f |", p->name, slices.share, part(&slices, &native), slices.other);
        for (unsigned i = 0; i < PATTERN_CAPS; i++) {
                PatternResult r = run(p, PATTERN_CAPPED, pattern_caps[i], true);

                printf(" %.1f, %.0f; %.0f |", r.share, part(&r, &native), r.other);
                steps = r.steps > steps ? r.steps : steps;
        }
        printf(" %.0f |\n", steps);
        (void) fflush(stdout);
}

static void print_caps(const char *first) {
        printf("\n%s", first);
        for (unsigned i = 0; i < PATTERN_CAPS; i++)
                printf(" %u %% |", pattern_caps[i]);
        printf(" wake-ups/s |\n");
}

int main(int argc, char **argv) {
        print_caps("| alone | without Aliquot | slower at 100 % |");
        for (unsigned i = 0; i < patterns_n; i++)
                if (argc < 2 || strstr(patterns[i].name, argv[1]))
                        print_alone(&patterns[i]);
        print_caps("| beside another | time slices |");
        for (unsigned i = 0; i < patterns_n; i++)
                if (argc < 2 || strstr(patterns[i].name, argv[1]))
                        print_beside(&patterns[i]);
        return 0;
}
