/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/token.h"

#include "base/file.h"

enum { TOKEN_MAX = 64 * 1024 };

void kube_token_init(KubeToken *t, const char *fixed, const char *file) {
        *t = (KubeToken){.fixed = fixed, .file = file};
}

void kube_token_done(KubeToken *t) {
        free(t->text);
        *t = (KubeToken){0};
}

void kube_token_forget(KubeToken *t) {
        t->read_at = 0;
}

const char *kube_token_get(KubeToken *t, usec_t now) {
        _cleanup_buf_ Buf text = BUF_NULL;
        char *trimmed;

        if (!t->file)
                return t->fixed;
        if (t->read_at > 0 && now - t->read_at < 60 * USEC_PER_SEC)
                return t->text;
        /* A file that cannot be read now leaves the last token in use: it may still be good. */
        if (file_read(t->file, TOKEN_MAX, &text) == 0) {
                trimmed = str_dup(str_trim(buf_str(&text)));
                if (trimmed) {
                        free(t->text);
                        t->text = trimmed;
                        t->read_at = now;
                }
        }
        return t->text ? t->text : t->fixed;
}
