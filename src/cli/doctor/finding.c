/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/finding.h"

#include <stdarg.h>
#include <string.h>

enum { NAMED = 3 }; /* most objects that one finding names */

static const char *const words[] = {
        [GRADE_SKIPPED] = "skipped", [GRADE_OK] = "ok", [GRADE_WARN] = "warn", [GRADE_FAIL] = "FAIL"};

const char *finding_word(Grade grade) {
        return words[grade];
}

void finding_set(Finding *f, Grade grade, const char *format, ...) {
        va_list args;

        *f = (Finding){.grade = grade};
        va_start(args, format);
        (void) vsnprintf(f->said.text, sizeof f->said.text, format, args);
        va_end(args);
}

bool finding_add(Finding *f, Grade grade, const char *format, ...) {
        size_t length;
        va_list args;

        if (grade < f->grade)
                return false;
        if (grade > f->grade || f->n == 0)
                *f = (Finding){.grade = grade};
        if (f->n++ >= NAMED)
                return false;
        if (f->n > 1)
                (void) strncat(f->said.text, "; ", sizeof f->said.text - 1 - strlen(f->said.text));
        length = strlen(f->said.text);
        va_start(args, format);
        (void) vsnprintf(f->said.text + length, sizeof f->said.text - length, format, args);
        va_end(args);
        return f->n == 1;
}

void finding_close(Finding *f) {
        size_t length = strlen(f->said.text);

        if (f->n > NAMED)
                (void) snprintf(f->said.text + length, sizeof f->said.text - length, "; and %u more",
                                f->n - NAMED);
}

void finding_pass(Finding *f, const char *format, ...) {
        va_list args;

        if (f->grade > GRADE_OK)
                return;
        *f = (Finding){.grade = GRADE_OK};
        va_start(args, format);
        (void) vsnprintf(f->said.text, sizeof f->said.text, format, args);
        va_end(args);
}

void finding_mend(Finding *f, const char *format, ...) {
        va_list args;

        va_start(args, format);
        (void) vsnprintf(f->mend.text, sizeof f->mend.text, format, args);
        va_end(args);
}
