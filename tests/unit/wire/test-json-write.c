/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "exact.h"
#include "random.h"
#include "wire/json.h"
#include "wire/json_write.h"

static void places_commas_and_colons(void) {
        _cleanup_buf_ Buf out = BUF_NULL;
        JsonWriter w;

        json_write_init(&w, &out);
        json_write_object(&w, NULL);
        json_write_text(&w, "a", "b");
        json_write_array(&w, "list");
        json_write_i64(&w, NULL, INT64_MIN);
        json_write_i64(&w, NULL, -1);
        json_write_u64(&w, NULL, UINT64_MAX);
        json_write_array(&w, NULL);
        json_write_array_end(&w);
        json_write_object(&w, NULL);
        json_write_object_end(&w);
        json_write_bool(&w, NULL, true);
        json_write_null(&w, NULL);
        json_write_array_end(&w);
        json_write_key(&w, STR("data\"key"));
        json_write_object(&w, NULL);
        json_write_raw(&w, "raw", STR("[1]"));
        json_write_object_end(&w);
        json_write_key(&w, STR("next"));
        json_write_str(&w, NULL, STR("x"));
        json_write_bool(&w, "last", false);
        json_write_object_end(&w);
        ASSERT_OK(buf_result(&out));
        ASSERT_STR(buf_str(&out),
                   STR("{\"a\":\"b\",\"list\":[-9223372036854775808,-1,18446744073709551615,[],{},true,null],"
                       "\"data\\\"key\":{\"raw\":[1]},\"next\":\"x\",\"last\":false}"));
}

static void assert_quoted(Str s, const char *expected) {
        _cleanup_buf_ Buf out = BUF_NULL;

        json_write_quoted(&out, s);
        ASSERT_STR(buf_str(&out), str_from(expected));
}

static void quotes(void) {
        assert_quoted(STR(""), "\"\"");
        assert_quoted((Str){NULL, 0}, "\"\"");
        assert_quoted(STR("plain /"), "\"plain /\"");
        assert_quoted(STR("a\"b\\c\n\r\t\b\f"), "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\"");
        assert_quoted(STR("\0\x01\x1f\x7f"), "\"\\u0000\\u0001\\u001f\x7f\"");
        assert_quoted(STR("caf\xc3\xa9 \xf0\x9f\x98\x80"), "\"caf\xc3\xa9 \xf0\x9f\x98\x80\"");
        assert_quoted(STR("\xff"
                          "a\xc3\n\xe2\x82"),
                      "\"\xef\xbf\xbd"
                      "a\xef\xbf\xbd\\n\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* A quoted text is read back as it was, whatever characters it has. Bytes that are not UTF-8 are
 * replaced. */
static void round_trip_of_random_text(void) {
        Random random = {7};

        for (unsigned round = 0; round < 20000; round++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                _cleanup_buf_ Buf out = BUF_NULL, again = BUF_NULL;
                Str value = {NULL, 0};
                char bytes[40];
                size_t n = random_below(&random, sizeof bytes);
                JsonReader r;

                for (size_t i = 0; i < n; i++)
                        bytes[i] = (char) (random_below(&random, round % 2 ? 0x80 : 0x100));
                json_write_quoted(&out, (Str){bytes, n});
                json_init(&r, buf_str(&out));
                json_string(&r, &arena, &value);
                ASSERT_OK(json_finish(&r, NULL));
                if (round % 2)
                        ASSERT_STR(value, ((Str){bytes, n}));
                json_write_quoted(&again, value);
                ASSERT_STR(buf_str(&again), buf_str(&out));
        }
}

int main(void) {
        return TEST_MAIN(TEST(places_commas_and_colons), TEST(quotes), TEST(round_trip_of_random_text));
}
