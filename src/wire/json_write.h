/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes JSON, appended to a Buf. The writer adds commas and colons. The caller nests objects and
 * arrays, which is checked by assertion. A NULL key writes an array element or the top value. */

#include "base/buf.h"

typedef struct JsonWriter {
        Buf *out;
        unsigned depth;
        uint64_t more; /* a bit per depth: the next member needs a comma before it */
        bool keyed;    /* json_write_key() was the last thing written: its value comes next */
} JsonWriter;

void json_write_init(JsonWriter *w, Buf *out);

void json_write_object(JsonWriter *w, const char *key);
void json_write_object_end(JsonWriter *w);
void json_write_array(JsonWriter *w, const char *key);
void json_write_array_end(JsonWriter *w);

void json_write_str(JsonWriter *w, const char *key, Str value);
void json_write_text(JsonWriter *w, const char *key, const char *value);
void json_write_i64(JsonWriter *w, const char *key, int64_t value);
void json_write_u64(JsonWriter *w, const char *key, uint64_t value);
void json_write_bool(JsonWriter *w, const char *key, bool value);
void json_write_null(JsonWriter *w, const char *key);
void json_write_raw(JsonWriter *w, const char *key, Str json); /* `json` is JSON already */
/* Writes a key that is not a constant. The call for its value must follow, with a NULL key. */
void json_write_key(JsonWriter *w, Str key);

/* Appends the quoted and escaped text alone. Bytes that are not UTF-8 become U+FFFD, so that the
 * output is always JSON. */
void json_write_quoted(Buf *out, Str s);
