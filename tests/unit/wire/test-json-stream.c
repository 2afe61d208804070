/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "base/buf.h"
#include "exact.h"
#include "random.h"
#include "samples.h"
#include "wire/json_stream.h"

/* The result, one line per value: `MEMBER|VALUE`. */
typedef struct Log {
        Buf text;
        unsigned n, stop_after;
} Log;

static int log_value(void *userdata, Str member, Str value, Fault *fault) {
        Log *log = userdata;

        buf_append_str(&log->text, member);
        buf_append_char(&log->text, '|');
        buf_append_str(&log->text, value);
        buf_append_char(&log->text, '\n');
        log->n++;
        return log->n == log->stop_after ? fault_set(fault, -EPIPE, "enough") : 0;
}

/* How the text is cut into pieces: all at once (0), n bytes at a time, or (over RANDOM) by that
 * seed. */
enum { CUT_WHOLE = 0, CUT_RANDOM = 1000000 };

static size_t next_piece(unsigned cut, Random *random, size_t left) {
        size_t n = cut == CUT_WHOLE ? left : cut >= CUT_RANDOM ? random_below(random, 150) : cut;

        return n < left ? n : left;
}

/* Each piece is in a block of its own, which is freed before the next one. */
static int stream(JsonStreamKind kind, size_t max_value, Str text, unsigned cut, Log *log, Fault *fault) {
        _cleanup_(json_stream_freep) JsonStream *s = NULL;
        Random random = {cut};

        ASSERT_OK(json_stream_new(kind, max_value, log_value, log, &s));
        while (text.len > 0) {
                size_t n = next_piece(cut, &random, text.len);
                _cleanup_free_ char *piece = exact_copy((Str){text.data, n});
                int r = json_stream_feed(s, (Str){piece, n}, fault);

                if (r != 0) {
                        ASSERT_INT(json_stream_feed(s, STR(" "), NULL), r);
                        ASSERT_INT(json_stream_finish(s, NULL), r);
                        return r;
                }
                text.data += n;
                text.len -= n;
        }
        return json_stream_finish(s, fault);
}

/* The result and the values are the same, however the text is cut. */
static void assert_stream(JsonStreamKind kind, size_t max_value, Str text, int expected, const char *values) {
        static const unsigned cuts[] = {CUT_WHOLE,     1, 2, 3, 7, 63, 64, 65, CUT_RANDOM + 1, CUT_RANDOM + 2,
                                        CUT_RANDOM + 3};

        for (size_t i = 0; i < ELEMENTSOF(cuts); i++) {
                Fault fault = FAULT_NULL;
                Log log = {0};

                ASSERT_INT(stream(kind, max_value, text, cuts[i], &log, &fault), expected);
                if (values)
                        ASSERT_STR(buf_str(&log.text), str_from(values));
                ASSERT_TRUE(expected == 0 || fault.text[0] != '\0');
                buf_done(&log.text);
        }
}

static void assert_values(const char *text, int expected, const char *values) {
        assert_stream(JSON_STREAM_VALUES, 1 << 20, str_from(text), expected, values);
}

static void assert_list(const char *text, int expected, const char *values) {
        assert_stream(JSON_STREAM_LIST, 1 << 20, str_from(text), expected, values);
}

static void cuts_a_watch_into_values(void) {
        assert_values("", 0, "");
        assert_values(" \r\n\t", 0, "");
        assert_values("{\"a\":1}\n{\"b\":[2,{}]}\n", 0, "|{\"a\":1}\n|{\"b\":[2,{}]}\n");
        assert_values("{}{}[]", 0, "|{}\n|{}\n|[]\n");
        assert_values("{\"a\":\"}]\\\"}\\\\\"}", 0, "|{\"a\":\"}]\\\"}\\\\\"}\n");
        assert_values("1 -2.5e3 true null \"x\\\"y\" 7", 0, "|1\n|-2.5e3\n|true\n|null\n|\"x\\\"y\"\n|7\n");
}

static void refuses_what_is_no_stream(void) {
        assert_values("{\"a\":1", JSON_STREAM_E_MALFORMED, "");
        assert_values("{}\n{\"a\":\"", JSON_STREAM_E_MALFORMED, "|{}\n");
        assert_values("{},{}", JSON_STREAM_E_MALFORMED, "|{}\n");
        assert_values("}", JSON_STREAM_E_MALFORMED, "");
        assert_values("<html>", JSON_STREAM_E_MALFORMED, "");
        assert_values("\"abc", JSON_STREAM_E_MALFORMED, "");
}

static void cuts_a_list_into_members_and_elements(void) {
        assert_list("{}", 0, "");
        assert_list(
                "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"a\":1},{\"b\":"
                "2}]}",
                0,
                "kind|\"PodList\"\nmetadata|{\"resourceVersion\":\"7\"}\nitems|{\"a\":1}\nitems|{\"b\":2}\n");
        assert_list(" { \"items\" : [ ] , \"n\" : 12 , \"t\":true,\"z\" : null } \n", 0,
                    "n|12\nt|true\nz|null\n");
        assert_list("{\"items\":null,\"m\":[1,[2]]}", 0, "m|[1,[2]]\n");
        assert_list("{\"items\":[1,\"a]\",null,[]],\"items\":[2]}", 0,
                    "items|1\nitems|\"a]\"\nitems|null\nitems|[]\nitems|2\n");
        assert_list("{\"\\u0069tems\":[{}]}", 0, "\\u0069tems|{}\n");
        assert_list("{\"m\":{\"items\":[1,2]}}", 0, "m|{\"items\":[1,2]}\n");
        assert_list("{\"a\\\"b\":1}", 0, "a\\\"b|1\n");
}

static void refuses_what_is_no_list(void) {
        assert_list("", JSON_STREAM_E_MALFORMED, "");
        assert_list("[]", JSON_STREAM_E_MALFORMED, "");
        assert_list("{", JSON_STREAM_E_MALFORMED, "");
        assert_list("{}{}", JSON_STREAM_E_MALFORMED, "");
        assert_list("{,}", JSON_STREAM_E_MALFORMED, "");
        assert_list("{\"a\"}", JSON_STREAM_E_MALFORMED, "");
        assert_list("{\"a\":}", JSON_STREAM_E_MALFORMED, "");
        assert_list("{\"a\":1,}", JSON_STREAM_E_MALFORMED, "a|1\n");
        assert_list("{\"a\":1 2}", JSON_STREAM_E_MALFORMED, "a|1\n");
        assert_list("{a:1}", JSON_STREAM_E_MALFORMED, "");
        assert_list("{\"items\":{}}", JSON_STREAM_E_MALFORMED, "");
        assert_list("{\"items\":1}", JSON_STREAM_E_MALFORMED, "");
        assert_list("{\"items\":nil}", JSON_STREAM_E_MALFORMED, "");
        assert_list("{\"items\":[1,]}", JSON_STREAM_E_MALFORMED, "items|1\n");
        assert_list("{\"items\":[1 2]}", JSON_STREAM_E_MALFORMED, "items|1\n");
        assert_list("{\"items\":[{}", JSON_STREAM_E_MALFORMED, "items|{}\n");
        assert_list("{\"items\":[{}]", JSON_STREAM_E_MALFORMED, "items|{}\n");
        assert_list("{\"items\":[{}}}", JSON_STREAM_E_MALFORMED, "items|{}\n");
}

static void says_where_it_went_wrong(void) {
        Fault fault = FAULT_NULL;
        Log log = {0};

        ASSERT_INT(stream(JSON_STREAM_LIST, 100, STR("{\"items\":[{} {}]}"), 1, &log, &fault),
                   JSON_STREAM_E_MALFORMED);
        ASSERT_TEXT(fault.text, "a comma or ] is expected at byte 13");
        ASSERT_INT(stream(JSON_STREAM_LIST, 100, STR("{\"items\":{"), 1, &log, &fault),
                   JSON_STREAM_E_MALFORMED);
        ASSERT_TEXT(fault.text, "a list of items is expected at byte 9");
        ASSERT_INT(stream(JSON_STREAM_LIST, 100, STR("{\"items\": nil}"), 0, &log, &fault),
                   JSON_STREAM_E_MALFORMED);
        ASSERT_TEXT(fault.text, "a list of items is expected at byte 10");
        ASSERT_INT(stream(JSON_STREAM_VALUES, 100, STR("{} {\"a"), 1, &log, &fault), JSON_STREAM_E_MALFORMED);
        ASSERT_TEXT(fault.text, "the text ends too early, at byte 6");
        buf_done(&log.text);
}

static void holds_the_length_limit(void) {
        Str ten = STR("{\"a\":\"bc\"}"), two = STR("[] {\"a\":\"bc\"} []");
        Fault fault = FAULT_NULL;
        Log log = {0};

        assert_stream(JSON_STREAM_VALUES, 10, ten, 0, "|{\"a\":\"bc\"}\n");
        assert_stream(JSON_STREAM_VALUES, 9, ten, JSON_STREAM_E_TOO_LONG, "");
        assert_stream(JSON_STREAM_VALUES, 9, two, JSON_STREAM_E_TOO_LONG, "|[]\n");
        assert_stream(JSON_STREAM_VALUES, 4, STR("12345"), JSON_STREAM_E_TOO_LONG, "");
        assert_stream(JSON_STREAM_VALUES, 5, STR("12345"), 0, "|12345\n");
        assert_stream(JSON_STREAM_LIST, 4, STR("{\"aaa\":1}"), JSON_STREAM_E_TOO_LONG, "");
        assert_stream(JSON_STREAM_LIST, 5, STR("{\"aaa\":1}"), 0, "aaa|1\n");
        ASSERT_INT(stream(JSON_STREAM_VALUES, 9, two, 1, &log, &fault), JSON_STREAM_E_TOO_LONG);
        ASSERT_TEXT(fault.text, "a value of more than 9 bytes is refused, at byte 3");
        buf_done(&log.text);
}

/* A value without an end costs memory up to its limit, and blanks cost none. */
static void endless_values_are_refused_early(void) {
        _cleanup_(json_stream_freep) JsonStream *s = NULL;
        Log log = {0};
        unsigned fed = 0;

        ASSERT_OK(json_stream_new(JSON_STREAM_VALUES, 1000, log_value, &log, &s));
        for (unsigned i = 0; i < 1000; i++)
                ASSERT_OK(json_stream_feed(s, STR("          "), NULL));
        while (json_stream_feed(s, STR("[[[[[[[[[["), NULL) == 0)
                fed += 10;
        ASSERT_INT(fed, 1000);
        ASSERT_INT(log.n, 0);
}

/* Both kinds, cut everywhere: a value that is too long leaves a gap, and none of it stays in
 * memory. */
static void passes_over_long_values(void) {
        static const struct {
                JsonStreamKind kind;
                const char *text, *values;
                int expected;
        } cases[] = {
                {JSON_STREAM_VALUES, "{\"a\":1}\n{\"a\":\"long }{ \\\" \"}\n[2]\n12345678901234567890 7",
                 "|{\"a\":1}\n|\n|[2]\n|\n|7\n", 0},
                {JSON_STREAM_VALUES, "1234567890123456789", "|\n", 0},
                {JSON_STREAM_LIST, "{\"items\":[{},{\"name\":\"0123456789\"},[]],\"m\":[0,1,2,3,4,5,6,7]}",
                 "items|{}\nitems|\nitems|[]\nm|\n", 0},
                {JSON_STREAM_LIST, "{\"items\":[[0,1,2,3,4,5,6,7", "", JSON_STREAM_E_MALFORMED},
                {JSON_STREAM_LIST, "{\"a-key-of-many-bytes\":1}", "", JSON_STREAM_E_TOO_LONG},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (size_t cut = 1; cut <= strlen(cases[i].text); cut++) {
                        _cleanup_(json_stream_freep) JsonStream *s = NULL;
                        Str text = str_from(cases[i].text);
                        Log log = {0};
                        int r = 0;

                        ASSERT_OK(json_stream_new(cases[i].kind, 10, log_value, &log, &s));
                        json_stream_skip_long(s);
                        for (size_t at = 0; at < text.len && r == 0; at += cut) {
                                size_t n = text.len - at < cut ? text.len - at : cut;
                                r = json_stream_feed(s, (Str){text.data + at, n}, NULL);
                        }
                        ASSERT_INT(r == 0 ? json_stream_finish(s, NULL) : r, cases[i].expected);
                        ASSERT_STR(buf_str(&log.text), str_from(cases[i].values));
                        buf_done(&log.text);
                }
}

static void the_callback_stops_the_stream(void) {
        for (unsigned cut = 0; cut < 5; cut++) {
                Log log = {.stop_after = 2};
                Fault fault = FAULT_NULL;

                ASSERT_INT(stream(JSON_STREAM_VALUES, 100, STR("[1] [2] [3]"), cut, &log, &fault), -EPIPE);
                ASSERT_TEXT(fault.text, "enough");
                ASSERT_STR(buf_str(&log.text), STR("|[1]\n|[2]\n"));
                buf_done(&log.text);
        }
}

static int is_within(void *userdata, Str member, Str value, Fault *fault) {
        const Str *text = userdata;

        ASSERT_TRUE(value.data >= text->data && value.data + value.len <= text->data + text->len);
        return 0;
}

static void values_within_a_piece_are_not_copied(void) {
        _cleanup_(json_stream_freep) JsonStream *s = NULL;
        Str text = STR("{\"items\":[{\"a\":1},{\"a\":2}],\"metadata\":{}}");

        ASSERT_OK(json_stream_new(JSON_STREAM_LIST, 100, is_within, &text, &s));
        ASSERT_OK(json_stream_feed(s, text, NULL));
        ASSERT_OK(json_stream_finish(s, NULL));
}

/* Quotes, backslashes and brackets at every position of the 64-byte blocks: shifted by blanks
 * within the value. */
static void long_values_at_every_alignment(void) {
        Str pod = str_trim(str_from(sample_pod));

        for (unsigned shift = 0; shift < 64; shift++) {
                _cleanup_buf_ Buf text = BUF_NULL, values = BUF_NULL;

                buf_appendf(&text, "[%*s", (int) shift, "");
                buf_append_str(&text, pod);
                buf_appendf(&text, "]");
                buf_append_char(&values, '|');
                buf_append_str(&values, buf_str(&text));
                buf_append_char(&values, '\n');
                assert_stream(JSON_STREAM_VALUES, text.len, buf_str(&text), 0, values.data);
        }
}

/* Random text of the significant characters: the result is the same for every cut. */
static void random_text_is_cut_alike(void) {
        static const char alphabet[] = "{}[]\"\"\\\\:,1 naeitms";
        Random random = {3};

        for (unsigned round = 0; round < 3000; round++) {
                JsonStreamKind kind = round % 2 ? JSON_STREAM_LIST : JSON_STREAM_VALUES;
                char text[200];
                size_t n = random_below(&random, sizeof text);
                Log whole = {0};
                int expected;

                for (size_t i = 0; i < n; i++)
                        text[i] = alphabet[random_below(&random, sizeof alphabet - 1)];
                if (n > 0)
                        text[0] = kind == JSON_STREAM_LIST ? '{' : '[';
                if (n > 9 && kind == JSON_STREAM_LIST)
                        memcpy(text, "{\"items\":[", 10);
                expected = stream(kind, 150, (Str){text, n}, CUT_WHOLE, &whole, NULL);
                buf_append_char(&whole.text, '\0');
                assert_stream(kind, 150, (Str){text, n}, expected, whole.text.data);
                buf_done(&whole.text);
        }
}

int main(void) {
        return TEST_MAIN(TEST(cuts_a_watch_into_values), TEST(refuses_what_is_no_stream),
                         TEST(cuts_a_list_into_members_and_elements), TEST(refuses_what_is_no_list),
                         TEST(says_where_it_went_wrong), TEST(holds_the_length_limit),
                         TEST(endless_values_are_refused_early), TEST(passes_over_long_values),
                         TEST(the_callback_stops_the_stream), TEST(values_within_a_piece_are_not_copied),
                         TEST(long_values_at_every_alignment), TEST(random_text_is_cut_alike));
}
