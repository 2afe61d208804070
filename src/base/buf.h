/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A growing byte buffer for JSON output, tables and request bodies. An allocation failure is
 * sticky: appends to a broken buffer do nothing, so a caller checks once, where it uses
 * the text. */

#include <stdarg.h>

#include "base/cleanup.h"
#include "base/str.h"

typedef struct Buf {
        char *data; /* NUL-terminated whenever len > 0 */
        size_t len;
        size_t capacity;
        bool broken; /* an append failed for want of memory */
} Buf;

#define BUF_NULL ((Buf){0})

void buf_done(Buf *b);  /* frees the bytes; b is empty and usable again */
void buf_clear(Buf *b); /* keeps the memory, drops the content */
bool buf_reserve(Buf *b, size_t more);

void buf_append(Buf *b, const void *bytes, size_t n);
void buf_append_str(Buf *b, Str s);
void buf_append_char(Buf *b, char c);
void buf_append_u64(Buf *b, uint64_t value);
void buf_appendf(Buf *b, const char *format, ...) _printf_(2, 3);
void buf_vappendf(Buf *b, const char *format, va_list args) _printf_(2, 0);

/* Returns 0, or -ENOMEM when any append since the last clear failed. */
int buf_result(const Buf *b);

/* Returns the text, which the caller then owns, and empties b. NULL when an append failed; an empty
 * buffer gives an empty text. */
char *buf_take(Buf *b) __attribute__((warn_unused_result));

static inline Str buf_str(const Buf *b) {
        return (Str){b->data, b->len};
}

#define _cleanup_buf_ _cleanup_(buf_done)
