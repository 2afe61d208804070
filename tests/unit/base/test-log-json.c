/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_json.h"
#include "test.h"

static const char *fields(const char *text) {
        static char line[4096];
        const char *before = "{\"time\":\"T\",\"level\":\"info\",\"message\":";
        size_t n = log_json_format(line, sizeof line, "T", "info", text);

        ASSERT_TRUE(n > strlen(before) + 2 && n < sizeof line);
        ASSERT_STR(((Str){line, strlen(before)}), str_from(before));
        ASSERT_STR(((Str){line + n - 2, 2}), STR("}\n"));
        line[n - 2] = '\0';
        return line + strlen(before);
}

static void has_the_fields_of_the_text(void) {
        ASSERT_TEXT(fields(""), "\"\"");
        ASSERT_TEXT(fields("driver loaded"), "\"driver loaded\"");
        ASSERT_TEXT(fields("bound pod=default/a node=n1"),
                    "\"bound pod=default/a node=n1\",\"pod\":\"default/a\",\"node\":\"n1\"");
        ASSERT_TEXT(fields("passed over file=/x: no such file"),
                    "\"passed over file=/x: no such file\",\"file\":\"/x\"");
        ASSERT_TEXT(fields("empty="), "\"empty=\",\"empty\":\"\"");
        ASSERT_TEXT(fields("=a Pod=b a.b=c ==="), "\"=a Pod=b a.b=c ===\"");
}

static void repeats_no_key(void) {
        ASSERT_TEXT(fields("time=1 level=2 message=3 a=4 a=5"),
                    "\"time=1 level=2 message=3 a=4 a=5\",\"a\":\"4\"");
}

static void escapes(void) {
        ASSERT_TEXT(fields("a \"b\" \\ \n\t\x7f\x1b"), "\"a \\\"b\\\" \\\\ \\u000a\\u0009\\u007f\\u001b\"");
        ASSERT_TEXT(fields("k=\"\\\x01"), "\"k=\\\"\\\\\\u0001\",\"k\":\"\\\"\\\\\\u0001\"");
        ASSERT_TEXT(fields("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"),
                    "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

/* Bytes alone, overlong forms, surrogates, over U+10FFFF, and sequences that are cut. */
static void replaces_what_is_not_utf8(void) {
        ASSERT_TEXT(fields("\xff"), "\"\\ufffd\"");
        ASSERT_TEXT(fields("\x80"
                           "a"),
                    "\"\\ufffda\"");
        ASSERT_TEXT(fields("\xc0\xaf"), "\"\\ufffd\\ufffd\"");
        ASSERT_TEXT(fields("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");
        ASSERT_TEXT(fields("\xf4\x90\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
        ASSERT_TEXT(fields("\xe2\x82"), "\"\\ufffd\\ufffd\"");
        ASSERT_TEXT(fields("\xe2\x28\xa1"), "\"\\ufffd(\\ufffd\"");
}

static void fits(void) {
        char text[300], line[LOG_JSON_SIZE(sizeof text) + 5];

        memset(text, '\x01', sizeof text - 1);
        memcpy(text, "a=", 2);
        text[sizeof text - 1] = '\0';
        ASSERT_TRUE(log_json_format(line, sizeof line, "T", "info", text) < sizeof line);
        ASSERT_INT(log_json_format(line, 256, "T", "info", text), 0);
}

int main(void) {
        return TEST_MAIN(TEST(has_the_fields_of_the_text), TEST(repeats_no_key), TEST(escapes),
                         TEST(replaces_what_is_not_utf8), TEST(fits));
}
