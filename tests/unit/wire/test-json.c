/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "exact.h"
#include "random.h"
#include "samples.h"
#include "wire/json.h"
#include "wire/json_field.h"
#include "wire/json_scan.h"

/* The result of reading the text as a whole. */
static int verdict(Str text, Fault *fault) {
        JsonReader r;

        json_init(&r, text);
        json_skip(&r);
        return json_finish(&r, fault);
}

static void takes_what_the_grammar_has(void) {
        static const char *const good[] = {
                "null",
                " true ",
                "\tfalse\n",
                "0",
                "-0",
                "10",
                "1.5",
                "-1.25e10",
                "1E+2",
                "1e-2",
                "\"\"",
                "\"a\"",
                "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
                "[]",
                "[ ]",
                "{}",
                "{ }",
                "[1,2]",
                "[ 1 , 2 ]",
                "[[],[[]]]",
                "{\"a\":1}",
                "{ \"a\" : { \"b\" : [ { } , null ] } }",
                "{\"\":\"\"}",
                "\"\x7f\"",
                "\"\xff\"",
                "\"\\ud800\"",
        };

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                ASSERT_OK(verdict(str_from(good[i]), NULL));
}

static void refuses_what_it_has_not(void) {
        static const struct {
                const char *text, *fault;
        } bad[] = {
                {"", "the text ends where a value is expected at byte 0"},
                {"  ", "the text ends where a value is expected at byte 2"},
                {"nul", "no value starts here at byte 0"},
                {"nulll", "something follows the value at byte 4"},
                {"True", "no value starts here"},
                {"'a'", "no value starts here"},
                {"+1", "no value starts here"},
                {".5", "no value starts here"},
                {"01", "a number with a leading zero"},
                {"-", "a digit is missing"},
                {"1.", "a digit is missing"},
                {"1.e1", "a digit is missing"},
                {"1e", "a digit is missing"},
                {"1e+", "a digit is missing"},
                {"0x10", "something follows the value"},
                {"NaN", "no value starts here"},
                {"1 2", "something follows the value at byte 2"},
                {"[1 2]", "[0]: a comma or ] is expected at byte 3"},
                {"[[1 22]]", "[0]: a comma or ] is expected at byte 4"},
                {"[{\"a\":1 2\"b\":3}]", "[0]: a comma or } is expected at byte 8"},
                {"[1,]", "[1]: no value starts here at byte 3"},
                {"[,1]", "[0]: no value starts here"},
                {"[1", "the text ends within an object or array"},
                {"[1}", "a comma or ] is expected"},
                {"{\"a\":1]", "a comma or } is expected"},
                {"{\"a\" 1}", "a colon is expected"},
                {"{\"a\"", "a colon is expected"},
                {"{a:1}", "a key is expected"},
                {"{\"a\":1,}", "a key is expected at byte 7"},
                {"{\"a\":}", "a: no value starts here"},
                {"{1:1}", "a key is expected"},
                {"\"a", "the text ends within a string"},
                {"\"a\\", "the text ends within a string"},
                {"\"\\x\"", "no such escape"},
                {"\"\\u12", "the text ends within a string"},
                {"\"\\u12g4\"", "\\u needs four hexadecimal digits"},
                {"\"a\nb\"", "control character in a string at byte 2"},
                {"[\"\x01\"]", "control character in a string"},
                {"]", "no value starts here"},
                {"/**/1", "no value starts here"},
                {"\xef\xbb\xbf{}", "no value starts here at byte 0"},
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                Fault fault = FAULT_NULL, walked = FAULT_NULL;
                Str text = str_from(bad[i].text), key;
                JsonReader r;

                ASSERT_INT(verdict(text, &fault), JSON_E_MALFORMED);
                /* Entered by hand, the outermost container is in the path. */
                json_init(&r, text);
                if (json_peek(&r) == JSON_ARRAY && json_array_begin(&r))
                        while (json_array_next(&r))
                                json_skip(&r);
                else if (json_peek(&r) == JSON_OBJECT && json_object_begin(&r))
                        while (json_object_next(&r, &key))
                                json_skip(&r);
                else
                        json_skip(&r);
                ASSERT_INT(json_finish(&r, &walked), JSON_E_MALFORMED);
                ASSERT_CONTAINS(walked.text, bad[i].fault);
        }
        ASSERT_INT(verdict((Str){"1\0", 2}, NULL), JSON_E_MALFORMED);
        ASSERT_INT(verdict((Str){"\"\\\0\"", 4}, NULL), JSON_E_MALFORMED);
        ASSERT_INT(verdict((Str){NULL, 0}, NULL), JSON_E_MALFORMED);
}

static void holds_the_depth_limit(void) {
        char text[2 * (JSON_MAX_DEPTH + 1)];
        Fault fault = FAULT_NULL;
        JsonReader r;
        unsigned entered = 0;

        memset(text, '[', JSON_MAX_DEPTH);
        memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
        ASSERT_OK(verdict((Str){text, 2 * JSON_MAX_DEPTH}, NULL));
        memset(text, '[', JSON_MAX_DEPTH + 1);
        memset(text + JSON_MAX_DEPTH + 1, ']', JSON_MAX_DEPTH + 1);
        ASSERT_INT(verdict((Str){text, sizeof text}, &fault), JSON_E_MALFORMED);
        ASSERT_TEXT(fault.text, "nested too deeply at byte 128");

        json_init(&r, (Str){text, sizeof text});
        while (json_array_begin(&r) && json_array_next(&r))
                entered++;
        ASSERT_INT(entered, JSON_MAX_DEPTH);
        ASSERT_INT(json_finish(&r, &fault), JSON_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "[0][0][0]");
}

static void skipping_knows_arrays_from_objects_at_any_depth(void) {
        char text[2 * JSON_MAX_DEPTH + 256];

        /* {"":[{"":[ ... ]}]}: one wrong bracket anywhere in the tail is seen. */
        size_t n = 0, tail;

        for (unsigned i = 0; i < 32; i++) {
                memcpy(text + n, "{\"\":[", 5);
                n += 5;
        }
        tail = n;
        for (unsigned i = 0; i < 32; i++) {
                text[n++] = ']';
                text[n++] = '}';
        }
        ASSERT_OK(verdict((Str){text, n}, NULL));
        for (size_t i = tail; i < n; i++) {
                text[i] ^= ']' ^ '}';
                ASSERT_INT(verdict((Str){text, n}, NULL), JSON_E_MALFORMED);
                text[i] ^= ']' ^ '}';
        }
}

static void assert_string(const char *text, Str expected) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str value = {NULL, 0};
        JsonReader r;

        json_init(&r, str_from(text));
        json_string(&r, &arena, &value);
        ASSERT_OK(json_finish(&r, NULL));
        ASSERT_STR(value, expected);
}

static void unescapes_strings(void) {
        assert_string("\"plain\"", STR("plain"));
        assert_string("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", STR("\"\\/\b\f\n\r\t"));
        assert_string("\"\\u0041\\u00e9\\u20AC\\u20ac\"", STR("A\xc3\xa9\xe2\x82\xac\xe2\x82\xac"));
        assert_string("\"a\\u0000b\"", STR("a\0b"));
        assert_string("\"\\ud83d\\ude00\"", STR("\xf0\x9f\x98\x80"));
        assert_string("\"\\udbff\\udfff\"", STR("\xf4\x8f\xbf\xbf"));
        assert_string("null", STR(""));
}

/* Go's encoding/json: each byte that is not UTF-8 and each half of a pair is U+FFFD. */
static void replaces_what_is_no_character(void) {
        assert_string("\"\\ud800\"", STR("\xef\xbf\xbd"));
        assert_string("\"\\udc00x\"", STR("\xef\xbf\xbdx"));
        assert_string("\"\\ud800\\u0041\"", STR("\xef\xbf\xbd"
                                                "A"));
        assert_string("\"\\ud800\\ud83d\\ude00\"", STR("\xef\xbf\xbd\xf0\x9f\x98\x80"));
        assert_string("\"\\udc00\\udc00\"", STR("\xef\xbf\xbd\xef\xbf\xbd"));
        assert_string("\"\\ud800\\uffff\"", STR("\xef\xbf\xbd\xef\xbf\xbf"));
        assert_string("\"\xe0\x9f\xbf\"", STR("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"));
        assert_string("\"\xf0\x8f\xbf\xbf\"", STR("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"));
        assert_string("\"\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80\"",
                      STR("\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80"));
        assert_string("\"\\ud800\\n\"", STR("\xef\xbf\xbd\n"));
        assert_string("\"a\xff"
                      "b\"",
                      STR("a\xef\xbf\xbd"
                          "b"));
        assert_string("\"\xc0\xaf\"", STR("\xef\xbf\xbd\xef\xbf\xbd"));
        assert_string("\"\xe2\x82\"", STR("\xef\xbf\xbd\xef\xbf\xbd"));
        assert_string("\"\xed\xa0\x80\"", STR("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"));
        assert_string("\"\xf4\x90\x80\x80\"", STR("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"));
        assert_string("\"\xf0\x9f\x98\x80\xc3\xa9\xe2\x82\xac\"",
                      STR("\xf0\x9f\x98\x80\xc3\xa9\xe2\x82\xac"));
}

static void keeps_plain_strings_where_they_are(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        const char *text = "\"abc\"";
        JsonReader r;
        Str value;

        json_init(&r, str_from(text));
        json_string(&r, &arena, &value);
        ASSERT_OK(json_finish(&r, NULL));
        ASSERT_TRUE(value.data == text + 1);
        ASSERT_TRUE(arena.blocks == NULL);
}

static void reads_whole_numbers_exactly(void) {
        static const struct {
                const char *text;
                int64_t value;
        } good[] = {
                {"0", 0},
                {"-0", 0},
                {"7", 7},
                {"-7", -7},
                {"9007199254740993", 9007199254740993},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN},
                {"1.0", 1},
                {"1e3", 1000},
                {"1E+3", 1000},
                {"10e-1", 1},
                {"0.1e1", 1},
                {"1.50e1", 15},
                {"-2.5e1", -25},
                {"0.0", 0},
                {"0e99999999999999999999", 0},
                {"0e-99999999999999999999", 0},
                {"100000000000000000000e-20", 1},
                {"0.00000000000000000000001e23", 1},
                {"1000.000", 1000},
                {"101.0010e3", 101001},
                {"null", 42},
        };
        static const struct {
                const char *text, *fault;
        } bad[] = {
                {"9223372036854775808", "out of range"},
                {"-9223372036854775809", "out of range"},
                {"99999999999999999999999", "out of range"},
                {"1e19", "out of range"},
                {"1e99999999999999999999", "out of range"},
                {"0.5", "not a whole number"},
                {"15e-1", "not a whole number"},
                {"1e-99999999999999999999", "not a whole number"},
                {"\"1\"", "not a number"},
                {"true", "not a number"},
                {"[]", "not a number"},
        };

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                int64_t value = 42;
                JsonReader r;

                json_init(&r, str_from(good[i].text));
                json_i64(&r, &value);
                ASSERT_OK(json_finish(&r, NULL));
                ASSERT_INT(value, good[i].value);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                Fault fault = FAULT_NULL;
                int64_t value = 42;
                JsonReader r;

                json_init(&r, str_from(bad[i].text));
                json_i64(&r, &value);
                ASSERT_INT(json_finish(&r, &fault), JSON_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, bad[i].fault);
                ASSERT_INT(value, 42);
        }
}

static void reads_unsigned_numbers_exactly(void) {
        uint64_t value = 42;
        JsonReader r;

        json_init(&r, STR("18446744073709551615"));
        json_u64(&r, &value);
        ASSERT_OK(json_finish(&r, NULL));
        ASSERT_TRUE(value == UINT64_MAX);
        json_init(&r, STR("-0"));
        json_u64(&r, &value);
        ASSERT_OK(json_finish(&r, NULL));
        ASSERT_TRUE(value == 0);
        json_init(&r, STR("18446744073709551616"));
        json_u64(&r, &value);
        ASSERT_INT(json_finish(&r, NULL), JSON_E_MALFORMED);
        json_init(&r, STR("-1"));
        json_u64(&r, &value);
        ASSERT_INT(json_finish(&r, NULL), JSON_E_MALFORMED);
        ASSERT_TRUE(value == 0);
}

static void compares_keys_with_escapes(void) {
        ASSERT_TRUE(json_key_is(STR("name"), "name"));
        ASSERT_TRUE(json_key_is(STR("n\\u0061me"), "name"));
        ASSERT_TRUE(json_key_is(STR("\\u006e\\u0061\\u006d\\u0065"), "name"));
        ASSERT_TRUE(json_key_is(STR("a\\/b"), "a/b"));
        ASSERT_FALSE(json_key_is(STR("names"), "name"));
        ASSERT_FALSE(json_key_is(STR("n\\u0062me"), "name"));
        ASSERT_FALSE(json_key_is(STR(""), "name"));
        ASSERT_TRUE(json_key_is(STR(""), ""));
        ASSERT_FALSE(json_key_is(STR("\\u0000"), ""));
}

static void names_the_path_of_a_fault(void) {
        static const char text[] = "{\"spec\":{\"containers\":[{},{\"a.b/c\":{\"n\":[1,\"x\"]}}]}}";
        Fault fault = FAULT_NULL;
        JsonReader r;
        int64_t n = 0;
        Str key;

        json_init(&r, str_from(text));
        ASSERT_TRUE(json_object_begin(&r) && json_object_next(&r, &key));
        ASSERT_TRUE(json_object_begin(&r) && json_object_next(&r, &key));
        ASSERT_TRUE(json_array_begin(&r) && json_array_next(&r));
        json_skip(&r);
        ASSERT_TRUE(json_array_next(&r) && json_object_begin(&r) && json_object_next(&r, &key));
        ASSERT_TRUE(json_object_begin(&r) && json_object_next(&r, &key));
        ASSERT_TRUE(json_array_begin(&r) && json_array_next(&r));
        json_i64(&r, &n);
        ASSERT_TRUE(json_array_next(&r));
        json_i64(&r, &n);
        ASSERT_INT(n, 1);
        ASSERT_FALSE(json_array_next(&r));
        ASSERT_FALSE(json_object_next(&r, &key));
        ASSERT_INT(json_peek(&r), JSON_INVALID);
        json_skip(&r);
        ASSERT_INT(json_finish(&r, &fault), JSON_E_MALFORMED);
        ASSERT_TEXT(fault.text, "spec.containers[1][a.b/c].n[1]: not a number at byte 43");
}

static void a_missing_key_is_none_of_the_members(void) {
        Fault fault = FAULT_NULL;
        JsonReader r;
        Str key;

        json_init(&r, STR("{\"a\":{\"b\":1,}}"));
        ASSERT_TRUE(json_object_begin(&r) && json_object_next(&r, &key));
        ASSERT_TRUE(json_object_begin(&r) && json_object_next(&r, &key));
        json_skip(&r);
        ASSERT_FALSE(json_object_next(&r, &key));
        ASSERT_INT(json_finish(&r, &fault), JSON_E_MALFORMED);
        ASSERT_TEXT(fault.text, "a: a key is expected at byte 12");
}

/* One byte may become three. The arena's block for so long a string has exactly the requested
 * size. */
static void replacements_find_room(void) {
        _cleanup_free_ char *text = malloc(20002);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str value = {NULL, 0};
        JsonReader r;

        ASSERT_TRUE(text != NULL);
        memset(text, 0xff, 20002);
        text[0] = text[20001] = '"';
        json_init(&r, (Str){text, 20002});
        json_string(&r, &arena, &value);
        ASSERT_OK(json_finish(&r, NULL));
        ASSERT_INT(value.len, 60000);
}

static void long_keys_do_not_fill_the_fault(void) {
        char text[4096];
        Fault fault = FAULT_NULL;
        JsonReader r;
        Str key;

        memset(text, 'k', sizeof text);
        memcpy(text, "{\"", 2);
        memcpy(text + sizeof text - 4, "\":?}", 4);
        json_init(&r, (Str){text, sizeof text});
        ASSERT_TRUE(json_object_begin(&r) && json_object_next(&r, &key));
        json_skip(&r);
        ASSERT_INT(json_finish(&r, &fault), JSON_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "kkk: no value starts here at byte 4094");
        ASSERT_TRUE(strlen(fault.text) < 128);
}

static void null_is_absent(void) {
        JsonReader r;
        bool b = true;
        Str key;

        json_init(&r, STR("[null,null,null]"));
        ASSERT_TRUE(json_array_begin(&r) && json_array_next(&r));
        ASSERT_FALSE(json_object_begin(&r));
        ASSERT_TRUE(json_array_next(&r));
        ASSERT_FALSE(json_array_begin(&r));
        ASSERT_TRUE(json_array_next(&r));
        json_bool(&r, &b);
        ASSERT_TRUE(b);
        ASSERT_FALSE(json_array_next(&r));
        ASSERT_OK(json_finish(&r, NULL));

        json_init(&r, STR("[]"));
        ASSERT_FALSE(json_object_begin(&r));
        ASSERT_FALSE(json_object_next(&r, &key));
        ASSERT_TRUE(json_failed(&r));
}

static void raw_is_the_text_of_the_value(void) {
        JsonReader r;
        Str raw = {NULL, 0};

        json_init(&r, STR(" [ {\"a\" : 1 } , 2 ] "));
        ASSERT_TRUE(json_array_begin(&r) && json_array_next(&r));
        json_raw(&r, &raw);
        ASSERT_STR(raw, STR("{\"a\" : 1 }"));
        ASSERT_TRUE(json_array_next(&r));
        json_raw(&r, &raw);
        ASSERT_STR(raw, STR("2"));
        ASSERT_FALSE(json_array_next(&r));
        ASSERT_OK(json_finish(&r, NULL));
}

/* Every proper prefix of the sample is malformed, and no prefix is read beyond its end. */
static void no_prefix_reads_outside(void) {
        Str pod = str_trim(str_from(sample_pod));

        for (size_t n = 0; n <= pod.len; n++) {
                _cleanup_free_ char *copy = exact_copy((Str){pod.data, n});

                ASSERT_INT(verdict((Str){copy, n}, NULL), n == pod.len ? 0 : JSON_E_MALFORMED);
        }
}

typedef struct Thing {
        Str name, raw;
        int64_t count;
        bool on, gone;
} Thing;

static void decodes_by_table(void) {
        static const JsonField fields[] = {
                JSON_FIELD(Thing, name, "name", json_field_str),
                JSON_FIELD(Thing, raw, "raw", json_field_raw),
                JSON_FIELD(Thing, count, "count", json_field_i64),
                JSON_FIELD(Thing, on, "on", json_field_bool),
                JSON_FIELD(Thing, gone, "gone", json_field_present),
        };
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        Thing thing = {0};
        JsonReader r;

        json_init(&r, STR("{\"x\":[{}],\"n\\u0061me\":\"a\",\"raw\":{\"b\": "
                          "1},\"count\":1,\"on\":true,\"gone\":0,\"count\":5}"));
        json_field_decode(&r, &arena, fields, ELEMENTSOF(fields), &thing);
        ASSERT_OK(json_finish(&r, NULL));
        ASSERT_STR(thing.name, STR("a"));
        ASSERT_STR(thing.raw, STR("{\"b\": 1}"));
        ASSERT_INT(thing.count, 5);
        ASSERT_TRUE(thing.on && thing.gone);

        json_init(&r, STR("{\"gone\":null,\"count\":\"5\"}"));
        json_field_decode(&r, &arena, fields, ELEMENTSOF(fields), &thing);
        ASSERT_INT(json_finish(&r, &fault), JSON_E_MALFORMED);
        ASSERT_TEXT(fault.text, "count: not a number at byte 21");
        ASSERT_FALSE(thing.gone);
}

/* The fast loops and a plain one agree on every byte at every position of a block, and on random
 * blocks. */
static void assert_scans_agree(const char *block, size_t n) {
        const char *blanks = block, *plain = block, *end = block + n;

        while (blanks < end && strchr(" \t\r\n", *blanks) && *blanks != '\0')
                blanks++;
        while (plain < end && *plain != '"' && *plain != '\\' && (unsigned char) *plain >= 0x20)
                plain++;
        ASSERT_TRUE(scan_blanks_words(block, end) == blanks && scan_blanks(block, end) == blanks);
        ASSERT_TRUE(scan_plain_words(block, end) == plain && scan_plain(block, end) == plain);
        if (n == 64) {
                ScanMasks m = {0}, words = scan_masks_words(block), fast = scan_masks(block);

                for (unsigned i = 0; i < 64; i++) {
                        m.quote |= (uint64_t) (block[i] == '"') << i;
                        m.backslash |= (uint64_t) (block[i] == '\\') << i;
                        m.open |= (uint64_t) (block[i] == '{' || block[i] == '[') << i;
                        m.close |= (uint64_t) (block[i] == '}' || block[i] == ']') << i;
                }
                ASSERT_TRUE(memcmp(&m, &words, sizeof m) == 0);
                ASSERT_TRUE(memcmp(&m, &fast, sizeof m) == 0);
        }
}

static void scans_agree(void) {
        static const char common[] = " \n\t\r\"\\{}[]a:,\x1f\x20\x7f\x80\xff";
        _cleanup_free_ char *block = malloc(64);
        Random random = {1};

        ASSERT_TRUE(block != NULL);
        for (unsigned place = 0; place < 64; place++)
                for (unsigned byte = 0; byte < 256; byte++) {
                        memset(block, ' ', 64);
                        block[place] = (char) byte;
                        assert_scans_agree(block, 64);
                        memset(block, 'a', 64);
                        block[place] = (char) byte;
                        assert_scans_agree(block, 64);
                }
        for (unsigned round = 0; round < 20000; round++) {
                size_t n = round % 3 == 0 ? 64 : random_below(&random, 65);
                _cleanup_free_ char *exact = NULL;

                for (size_t i = 0; i < n; i++)
                        block[i] = common[random_below(&random, sizeof common - 1)];
                exact = exact_copy((Str){block, n});
                assert_scans_agree(exact, n);
        }
}

static void plain_names_are_taken_whole_or_not_at_all(void) {
        static const char *const others[] = {"\"a b\"", "\"a\\u0062\"", " \"a\"",  "\"a", "\"", "",
                                             "7",       "\"\xc3\xa4\"", "\"a\nb\""};
        Str raw = {NULL, 0};
        JsonReader r;

        json_init(&r, STR("[\"node-1.example\",\"\",\"N2\"]"));
        ASSERT_TRUE(json_array_begin(&r));
        ASSERT_TRUE(json_array_next(&r) && json_plain_name(&r, &raw));
        ASSERT_STR(raw, STR("\"node-1.example\""));
        ASSERT_TRUE(json_array_next(&r) && json_plain_name(&r, &raw));
        ASSERT_STR(raw, STR("\"\""));
        ASSERT_TRUE(json_array_next(&r) && json_plain_name(&r, &raw));
        ASSERT_FALSE(json_array_next(&r));
        ASSERT_OK(json_finish(&r, NULL));
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                json_init(&r, str_from(others[i]));
                ASSERT_FALSE(json_plain_name(&r, &raw));
                ASSERT_TRUE(r.at == r.start);
        }
}

int main(void) {
        return TEST_MAIN(TEST(plain_names_are_taken_whole_or_not_at_all), TEST(takes_what_the_grammar_has),
                         TEST(refuses_what_it_has_not), TEST(holds_the_depth_limit),
                         TEST(skipping_knows_arrays_from_objects_at_any_depth), TEST(unescapes_strings),
                         TEST(replaces_what_is_no_character), TEST(keeps_plain_strings_where_they_are),
                         TEST(reads_whole_numbers_exactly), TEST(reads_unsigned_numbers_exactly),
                         TEST(compares_keys_with_escapes), TEST(names_the_path_of_a_fault),
                         TEST(a_missing_key_is_none_of_the_members), TEST(replacements_find_room),
                         TEST(long_keys_do_not_fill_the_fault), TEST(null_is_absent),
                         TEST(raw_is_the_text_of_the_value), TEST(no_prefix_reads_outside),
                         TEST(decodes_by_table), TEST(scans_agree));
}
