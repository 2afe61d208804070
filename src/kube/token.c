/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/token.h"

#include "base/file.h"

enum { TOKEN_MAX = 64 * 1024, TOKEN_AGE_SEC = 60 };

void kube_token_init(KubeToken *t, const char *fixed, const char *file) {
        *t = (KubeToken){.fixed = fixed, .file = file};
}

static void forget(KubeToken *t) {
        if (t->text)
                explicit_bzero(t->text, strlen(t->text));
        free(t->text);
        t->text = NULL;
}

void kube_token_done(KubeToken *t) {
        forget(t);
        *t = (KubeToken){0};
}

/* Whether the token can stand in a header: a blank or a control character would end the line, or
 * the token. */
static bool fits_header(Str token) {
        for (size_t i = 0; i < token.len; i++)
                if ((unsigned char) token.data[i] <= ' ' || token.data[i] == 0x7f)
                        return false;
        return token.len > 0;
}

static void read_file(KubeToken *t, usec_t now) {
        _cleanup_buf_ Buf text = BUF_NULL;
        char *copy = NULL;
        Str token;

        t->read_at = now;
        if (file_read(t->file, TOKEN_MAX, &text) < 0)
                return;
        token = str_trim(buf_str(&text));
        if (fits_header(token))
                copy = str_dup(token);
        if (text.data)
                explicit_bzero(text.data, text.len);
        if (!copy)
                return;
        forget(t);
        t->text = copy;
}

const char *kube_token_get(KubeToken *t, usec_t now) {
        if (t->file && (!t->text || now - t->read_at >= TOKEN_AGE_SEC * USEC_PER_SEC))
                read_file(t, now);
        return t->text ? t->text : t->fixed;
}

bool kube_token_renew(KubeToken *t, usec_t now) {
        _cleanup_free_ char *before = t->text ? str_dup(str_from(t->text)) : NULL;
        bool renewed;

        if (!t->file)
                return false;
        read_file(t, now);
        renewed = t->text && !(before && strcmp(before, t->text) == 0);
        if (before)
                explicit_bzero(before, strlen(before));
        return renewed;
}
