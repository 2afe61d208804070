/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json_write.h"

#include <assert.h>

#include "wire/json_scan.h"
#include "wire/utf8.h"

enum { WRITE_MAX_DEPTH = 63 }; /* a bit of `more` for each, and one for the top */

void json_write_init(JsonWriter *w, Buf *out) {
        *w = (JsonWriter){.out = out};
}

/* Writes what stands before a value, unless json_write_key() has: a comma if the value is not the
 * first of its container, and the key. */
static void begin(JsonWriter *w, const char *key) {
        uint64_t bit = UINT64_C(1) << w->depth;

        if (w->keyed) {
                assert(!key);
                w->keyed = false;
                return;
        }
        if (w->more & bit)
                buf_append_char(w->out, ',');
        w->more |= bit;
        if (key) {
                json_write_quoted(w->out, str_from(key));
                buf_append_char(w->out, ':');
        }
}

static void enter(JsonWriter *w, const char *key, char bracket) {
        begin(w, key);
        buf_append_char(w->out, bracket);
        assert(w->depth < WRITE_MAX_DEPTH);
        w->depth++;
        w->more &= ~(UINT64_C(1) << w->depth);
}

static void leave(JsonWriter *w, char bracket) {
        assert(w->depth > 0 && !w->keyed);
        w->depth--;
        buf_append_char(w->out, bracket);
}

void json_write_object(JsonWriter *w, const char *key) {
        enter(w, key, '{');
}

void json_write_object_end(JsonWriter *w) {
        leave(w, '}');
}

void json_write_array(JsonWriter *w, const char *key) {
        enter(w, key, '[');
}

void json_write_array_end(JsonWriter *w) {
        leave(w, ']');
}

void json_write_str(JsonWriter *w, const char *key, Str value) {
        begin(w, key);
        json_write_quoted(w->out, value);
}

void json_write_text(JsonWriter *w, const char *key, const char *value) {
        json_write_str(w, key, str_from(value));
}

void json_write_i64(JsonWriter *w, const char *key, int64_t value) {
        begin(w, key);
        if (value < 0)
                buf_append_char(w->out, '-');
        buf_append_u64(w->out, value < 0 ? 0 - (uint64_t) value : (uint64_t) value);
}

void json_write_u64(JsonWriter *w, const char *key, uint64_t value) {
        begin(w, key);
        buf_append_u64(w->out, value);
}

void json_write_bool(JsonWriter *w, const char *key, bool value) {
        json_write_raw(w, key, value ? STR("true") : STR("false"));
}

void json_write_null(JsonWriter *w, const char *key) {
        json_write_raw(w, key, STR("null"));
}

void json_write_raw(JsonWriter *w, const char *key, Str json) {
        begin(w, key);
        buf_append_str(w->out, json);
}

void json_write_key(JsonWriter *w, Str key) {
        begin(w, NULL);
        json_write_quoted(w->out, key);
        buf_append_char(w->out, ':');
        w->keyed = true;
}

static void quote_special(Buf *out, unsigned char c) {
        static const char letters[] = "\b\f\n\r\t\"\\", escapes[] = "bfnrt\"\\";
        const char *at = c != '\0' ? strchr(letters, c) : NULL;

        buf_append_char(out, '\\');
        if (at)
                buf_append_char(out, escapes[at - letters]);
        else
                buf_appendf(out, "u%04x", c);
}

/* Bytes without an escape are appended in runs, so that a name costs one copy. */
void json_write_quoted(Buf *out, Str s) {
        const char *p = s.data, *end = s.len > 0 ? p + s.len : p;
        bool valid = s.len == 0 || utf8_is_valid(s);

        buf_append_char(out, '"');
        while (p < end) {
                const char *stop = scan_plain(p, end), *run = p;

                while (!valid && p < stop) {
                        size_t n = utf8_length(p, stop);

                        if (n == 0) {
                                buf_append(out, run, (size_t) (p - run));
                                buf_append_str(out, STR(UTF8_REPLACEMENT));
                                run = p + 1;
                        }
                        p += n > 0 ? n : 1;
                }
                buf_append(out, run, (size_t) (stop - run));
                p = stop;
                if (p < end)
                        quote_special(out, (unsigned char) *p++);
        }
        buf_append_char(out, '"');
}
