/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A pull decoder over one complete JSON text (RFC 8259). It allocates nothing: strings are handed
 * out as they stand in the text, and only those that a caller decodes into an arena are unescaped.
 * The first fault is sticky: every later call finds nothing more, and json_finish() tells the fault
 * and its position.
 *
 *     JsonReader r;
 *     json_init(&r, text);
 *     json_object_begin(&r);
 *     while (json_object_next(&r, &key))
 *             if (json_key_is(key, "name")) json_string(&r, arena, &name);
 *             else json_skip(&r);
 *     return json_finish(&r, fault);
 *
 * As in Go's decoder, null stands for an absent value: begin functions treat it as empty, and
 * scalars leave *ret as it is. */

#include "base/arena.h"
#include "base/fault.h"
#include "base/str.h"

enum { JSON_MAX_DEPTH = 128 };

/* Result of json_finish() besides 0 and a negative errno. */
enum { JSON_E_MALFORMED = 1 };

typedef enum JsonType {
        JSON_INVALID, /* the text is broken here, or a fault was met before */
        JSON_NULL,
        JSON_BOOL,
        JSON_NUMBER,
        JSON_STRING,
        JSON_ARRAY,
        JSON_OBJECT,
} JsonType;

/* An object or array that the cursor is inside of. */
typedef struct JsonFrame {
        Str key;      /* in an object: the member read last */
        size_t begun; /* members begun so far */
        bool array;
} JsonFrame;

typedef struct JsonReader {
        const char *start, *at, *end;
        const char *fault;    /* what was wrong, static text; NULL without a fault */
        const char *fault_at; /* where in the text it was found */
        unsigned depth;
        JsonFrame frames[JSON_MAX_DEPTH]; /* outermost first; a fault names this path */
} JsonReader;

void json_init(JsonReader *r, Str text);
JsonType json_peek(JsonReader *r);

/* The begin functions enter the object or array that stands next. They return false when there is
 * nothing to iterate: the value is null, or has another type, which is a fault.
 *
 * The next functions return true when the cursor stands before the value of the next member, which
 * the caller must read or skip. They return false behind the last member: the cursor is then behind
 * the container. A key that occurs twice is handed out twice. */
bool json_object_begin(JsonReader *r);
/* *ret_key: the key as it stands in the text, between its quotes. */
bool json_object_next(JsonReader *r, Str *ret_key);
bool json_array_begin(JsonReader *r);
bool json_array_next(JsonReader *r);

/* A loop over the elements of the array, or the members of the object, that stands next. The body
 * reads or skips each. */
#define JSON_EACH_ELEMENT(r) for (bool json_each_ = json_array_begin(r); json_each_ && json_array_next(r);)
#define JSON_EACH_MEMBER(r, ret_key)                                                                         \
        for (bool json_each_ = json_object_begin(r); json_each_ && json_object_next(r, ret_key);)

/* Compares a raw key with plain text (ASCII, no quote or backslash); keys with escapes are
 * unescaped on the fly (they are rare and legal). */
bool json_key_eq(Str raw, Str text);
static inline bool json_key_is(Str raw, const char *text) {
        return json_key_eq(raw, str_from(text));
}

/* The text of a key, which is in the arena if it has escapes. */
Str json_plain_key(Str raw, Arena *arena);

/* jansson, which a program may link beside this, exports a json_string() of its own, and the linker
 * would give both callers the same one. The symbol therefore has another name. */
#define json_string json_reader_string

/* Scalars: the value goes into *ret, which stays as it is on null and on a fault (wrong type, out
 * of range, fraction). Strings point into the text, or into the arena when they had escapes. Bytes
 * that are not UTF-8 and lone surrogates become U+FFFD, as in Go; raw texts and keys are not
 * checked for them. */
void json_string(JsonReader *r, Arena *arena, Str *ret);
void json_bool(JsonReader *r, bool *ret);
void json_i64(JsonReader *r,
              int64_t *ret); /* whole numbers only; 1.0 and 1e3 count, as 64-bit exact values */
void json_u64(JsonReader *r, uint64_t *ret);

/* The string that stands next, quotes included, when it has nothing but letters, digits, '.' and
 * '-', and no blank stands before it: the names in long lists look so. Otherwise false, and the
 * cursor stays. */
bool json_plain_name(JsonReader *r, Str *ret_raw);

/* Skips one value of any type, with its whole grammar checked; *ret_raw is its text. */
void json_skip(JsonReader *r);
void json_raw(JsonReader *r, Str *ret_raw);

/* A fault that the caller found ("wrong type", "not one of ..."), at the cursor. text must be
 * static. */
void json_fault(JsonReader *r, const char *text);
/* Records that a decoder's allocation failed: json_finish() answers -ENOMEM. */
void json_no_memory(JsonReader *r);
bool json_failed(const JsonReader *r);

/* After the last value. Returns 0, -ENOMEM, or JSON_E_MALFORMED with a text that names path, reason
 * and offset: "spec.containers[1].name: not a string at byte 120". Anything but blanks behind the
 * value is a fault, too. */
int json_finish(JsonReader *r, Fault *fault);
