/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the same text in three ways: it is skipped, walked member by member, and cut as a stream.
 * The first two agree about every text. When they accept one, the stream hands out the same
 * value. */

#include <assert.h>

#include "wire/json.h"
#include "wire/json_stream.h"
#include "wire/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A whole number is read as one; any number is skipped. */
static void walk_number(JsonReader *r) {
        JsonReader probe;
        uint64_t u = 0;
        int64_t i = 0;
        Str raw;

        json_raw(r, &raw);
        if (json_failed(r))
                return;
        json_init(&probe, raw);
        json_i64(&probe, &i);
        if (json_finish(&probe, NULL) != 0 || i < 0)
                return;
        json_init(&probe, raw);
        json_u64(&probe, &u);
        assert(json_finish(&probe, NULL) == 0 && u == (uint64_t) i);
}

/* A string that was read is written and read again as the same. */
static void walk_string(JsonReader *r, Arena *arena) {
        _cleanup_buf_ Buf out = BUF_NULL;
        Str value = {NULL, 0}, again = {NULL, 0};
        JsonReader probe;

        json_string(r, arena, &value);
        json_write_quoted(&out, value);
        json_init(&probe, buf_str(&out));
        json_string(&probe, arena, &again);
        assert(json_finish(&probe, NULL) == 0 && str_eq(value, again));
}

static void walk(JsonReader *r, Arena *arena) {
        bool b;
        Str key;

        switch (json_peek(r)) {
        case JSON_OBJECT:
                if (json_object_begin(r))
                        while (json_object_next(r, &key))
                                walk(r, arena);
                break;
        case JSON_ARRAY:
                if (json_array_begin(r))
                        while (json_array_next(r))
                                walk(r, arena);
                break;
        case JSON_STRING:
                walk_string(r, arena);
                break;
        case JSON_NUMBER:
                walk_number(r);
                break;
        case JSON_BOOL:
                json_bool(r, &b);
                break;
        case JSON_NULL:
        case JSON_INVALID:
                json_skip(r);
        }
}

typedef struct Cut {
        Str expected;
        unsigned n;
} Cut;

static int on_value(void *userdata, Str member, Str value, Fault *fault) {
        Cut *cut = userdata;

        assert(str_eq(value, cut->expected));
        cut->n++;
        return 0;
}

static void assert_stream_agrees(Str text, Str value) {
        _cleanup_(json_stream_freep) JsonStream *s = NULL;
        Cut cut = {.expected = value};

        assert(json_stream_new(JSON_STREAM_VALUES, text.len, on_value, &cut, &s) == 0);
        assert(json_stream_feed(s, text, NULL) == 0);
        assert(json_stream_finish(s, NULL) == 0);
        assert(cut.n == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str text = {(const char *) data, size}, value = {NULL, 0};
        Fault fault = FAULT_NULL;
        JsonReader r;
        int passed, walked;

        json_init(&r, text);
        json_raw(&r, &value);
        passed = json_finish(&r, &fault);
        json_init(&r, text);
        walk(&r, &arena);
        walked = json_finish(&r, NULL);
        assert(passed == walked);
        assert(passed == 0 || (passed == JSON_E_MALFORMED && fault.text[0] != '\0'));
        if (passed == 0)
                assert_stream_agrees(text, value);
        return 0;
}
