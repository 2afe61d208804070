/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/questions.h"

#include <stddef.h>

static const struct {
        const char *path, *right;
} questions[] = {
#define QUESTIONS_ROW(name, path, right) [API_##name] = {path, right},
        QUESTIONS(QUESTIONS_ROW)
#undef QUESTIONS_ROW
};

const char *questions_path(ApiQuestion question) {
        return questions[question].path;
}

const char *questions_right(ApiQuestion question) {
        return questions[question].right;
}
