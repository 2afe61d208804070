/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>

void buf_done(Buf *b) {
        free(b->data);
        *b = BUF_NULL;
}

void buf_clear(Buf *b) {
        b->len = 0;
        b->broken = false;
}

/* Room for `more` bytes and the NUL; doubling keeps appends linear. */
bool buf_reserve(Buf *b, size_t more) {
        size_t need, capacity;
        char *data;

        if (b->broken || __builtin_add_overflow(b->len, more, &need) || need >= SIZE_MAX / 2) {
                b->broken = true;
                return false;
        }
        if (need < b->capacity)
                return true;
        capacity = b->capacity > 0 ? b->capacity : 64;
        while (capacity <= need)
                capacity *= 2;
        data = realloc(b->data, capacity);
        if (!data) {
                b->broken = true;
                return false;
        }
        b->data = data;
        b->capacity = capacity;
        return true;
}

void buf_append(Buf *b, const void *bytes, size_t n) {
        if (n == 0 || !buf_reserve(b, n))
                return;
        memcpy(b->data + b->len, bytes, n);
        b->len += n;
        b->data[b->len] = '\0';
}

void buf_append_str(Buf *b, Str s) {
        buf_append(b, s.data, s.len);
}

void buf_append_char(Buf *b, char c) {
        buf_append(b, &c, 1);
}

void buf_append_u64(Buf *b, uint64_t value) {
        char digits[20];
        size_t at = sizeof digits;

        do {
                digits[--at] = (char) ('0' + value % 10);
                value /= 10;
        } while (value > 0);
        buf_append(b, digits + at, sizeof digits - at);
}

void buf_vappendf(Buf *b, const char *format, va_list args) {
        va_list again;
        int n;

        va_copy(again, args);
        n = vsnprintf(NULL, 0, format, again);
        va_end(again);
        if (n < 0) {
                b->broken = true;
                return;
        }
        if (!buf_reserve(b, (size_t) n))
                return;
        (void) vsnprintf(b->data + b->len, (size_t) n + 1, format, args); /* measured just above */
        b->len += (size_t) n;
}

void buf_appendf(Buf *b, const char *format, ...) {
        va_list args;

        va_start(args, format);
        buf_vappendf(b, format, args);
        va_end(args);
}

int buf_result(const Buf *b) {
        return b->broken ? -ENOMEM : 0;
}

char *buf_take(Buf *b) {
        char *text;

        if (!buf_reserve(b, 0)) {
                buf_done(b);
                return NULL;
        }
        b->data[b->len] = '\0';
        text = b->data;
        *b = BUF_NULL;
        return text;
}
