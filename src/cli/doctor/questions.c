/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/questions.h"

#include <stdio.h>
#include <string.h>

static const struct {
        const char *path, *right;
} questions[] = {
#define QUESTIONS_ROW(name, path, right) [API_##name] = {path, right},
        QUESTIONS(QUESTIONS_ROW)
#undef QUESTIONS_ROW
};

/* Appends the text with the namespace in place of QUESTIONS_NAMESPACE. */
static void append_localized(const char *text, const char *namespace_, Buf *out) {
        for (const char *at; (at = strstr(text, QUESTIONS_NAMESPACE)) != NULL;
             text = at + strlen(QUESTIONS_NAMESPACE)) {
                buf_append(out, text, (size_t) (at - text));
                buf_append_str(out, str_from(namespace_));
        }
        buf_append_str(out, str_from(text));
}

bool questions_is_namespace(const char *text) {
        size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

        return n > 0 && n < QUESTIONS_NAMESPACE_SIZE && text[n] == '\0';
}

void questions_path(ApiQuestion question, const char *namespace_, Buf *out) {
        append_localized(questions[question].path, namespace_, out);
}

void questions_localize(const char *namespace_, Fault *text) {
        _cleanup_buf_ Buf out = BUF_NULL;

        append_localized(text->text, namespace_, &out);
        if (buf_result(&out) == 0)
                (void) snprintf(text->text, sizeof text->text, STR_FMT, STR_ARG(buf_str(&out)));
}

const char *questions_right(ApiQuestion question) {
        return questions[question].right;
}
