/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The result of a check: a grade, the reason, and the command that repairs it. */

#include <stdbool.h>

#include "base/fault.h"

typedef enum Grade {
        GRADE_SKIPPED, /* the check could not be made; the reason says why */
        GRADE_OK,
        GRADE_WARN,
        GRADE_FAIL,
        GRADES_,
} Grade;

typedef struct Finding {
        Grade grade;
        unsigned n; /* objects that finding_add() added with this grade */
        Fault said;
        Fault mend; /* how to repair it: a command, or what to do; "": nothing */
} Finding;

const char *finding_word(Grade grade); /* "ok", "warn", "FAIL", "skipped" */

/* Replaces grade and reason, and empties the remedy. */
void finding_set(Finding *f, Grade grade, const char *format, ...) _printf_(3, 4);

/* Adds what is wrong with one of many objects. The worst grade stays; of the same grade the first
 * few are named, and finding_close() counts the others. Returns true for the first one of this
 * grade: the caller then sets the remedy. */
bool finding_add(Finding *f, Grade grade, const char *format, ...) _printf_(3, 4);
void finding_close(Finding *f);

/* Sets GRADE_OK, unless a warning or failure was added. */
void finding_pass(Finding *f, const char *format, ...) _printf_(2, 3);

void finding_mend(Finding *f, const char *format, ...) _printf_(2, 3);
