/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/checked.h"
#include "base/fault.h"
#include "base/quantity.h"
#include "base/told.h"
#include "test.h"

static void quantities(void) {
        static const struct {
                const char *text;
                int result;
                uint64_t value;
        } cases[] = {
                {"0", 0, 0},
                {"8", 0, 8},
                {"+8", 0, 8},
                {"2k", 0, 2000},
                {"100k", 0, 100000},
                {"1e3", 0, 1000},
                {"1E3", 0, 1000},
                {"1E", 0, 1000000000000000000},
                {"1Ki", 0, 1024},
                {"0.5Gi", 0, 536870912},
                {"1.5k", 0, 1500},
                {"1.50", QUANTITY_E_FRACTION, 0},
                {"2.000", 0, 2},
                {"10.0500k", 0, 10050},
                {"1000m", 0, 1},
                {"500m", QUANTITY_E_FRACTION, 0},
                {"-0", 0, 0},
                {"-1", QUANTITY_E_RANGE, 0},
                {"0.1Ki", QUANTITY_E_FRACTION, 0},
                {"9223372036854775807", 0, INT64_MAX},
                {"9223372036854775808", QUANTITY_E_RANGE, 0},
                {"99999999999999999999", QUANTITY_E_RANGE, 0},
                {"1e99999", QUANTITY_E_RANGE, 0},
                {"16Ei", QUANTITY_E_RANGE, 0},
                {"", QUANTITY_E_MALFORMED, 0},
                {".", QUANTITY_E_MALFORMED, 0},
                {"+", QUANTITY_E_MALFORMED, 0},
                {"1..2", QUANTITY_E_MALFORMED, 0},
                {"1 ", QUANTITY_E_MALFORMED, 0},
                {"abc", QUANTITY_E_MALFORMED, 0},
                {"1e", QUANTITY_E_MALFORMED, 0},
                {"1kk", QUANTITY_E_MALFORMED, 0},
                {"0x10", QUANTITY_E_MALFORMED, 0},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                uint64_t value = 0;
                int r = quantity_parse(str_from(cases[i].text), &value);

                if (r != cases[i].result || value != cases[i].value)
                        TEST_FAIL_("\"%s\": %d %" PRIu64 ", expected %d %" PRIu64, cases[i].text, r, value,
                                   cases[i].result, cases[i].value);
        }
}

static void thousandths(void) {
        static const struct {
                const char *text;
                bool good;
                int64_t milli;
        } cases[] = {
                {"8", true, 8000},
                {"1500m", true, 1500},
                {"1.5", true, 1500},
                {"0.5", true, 500},
                {".25", true, 250},
                {"0.5Ki", true, 512000},
                {"1.5k", true, 1500000},
                {"0.0001", true, 1},
                {"1.0001", true, 1001},
                {"100n", true, 1},
                {"1e-9", true, 1},
                {"0", true, 0},
                {"0.0", true, 0},
                {"9223372036854775807m", true, INT64_MAX},
                {"9223372036854775808m", false, 0},
                {"9223372036854775.808", false, 0},
                {"9223372036854775807", false, 0},
                {"-0.5", false, 0},
                {"1.5.0", false, 0},
                {"m", false, 0},
                {"", false, 0},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                int64_t milli = 0;
                bool good = quantity_parse_milli(str_from(cases[i].text), &milli);

                if (good != cases[i].good || milli != cases[i].milli)
                        TEST_FAIL_("\"%s\": %d %" PRId64 ", expected %" PRId64, cases[i].text, good, milli,
                                   cases[i].milli);
        }
}

static void strings(void) {
        Str rest = STR("a,b,,c");
        uint64_t u = 7;

        ASSERT_STR(str_split(&rest, ','), STR("a"));
        ASSERT_STR(str_split(&rest, ','), STR("b"));
        ASSERT_STR(str_split(&rest, ','), STR(""));
        ASSERT_STR(str_split(&rest, ','), STR("c"));
        ASSERT_TRUE(str_is_empty(rest));
        ASSERT_STR(str_trim(STR(" \t x y\n")), STR("x y"));
        ASSERT_TRUE(str_compare(STR("a"), STR("ab")) < 0);
        ASSERT_TRUE(str_compare(STR("b"), STR("ab")) > 0);
        ASSERT_INT(str_compare((Str){NULL, 0}, STR("")), 0);
        ASSERT_TRUE(str_to_u64(STR("18446744073709551615"), &u) && u == UINT64_MAX);
        ASSERT_FALSE(str_to_u64(STR("18446744073709551616"), &u));
        ASSERT_FALSE(str_to_u64(STR("-1"), &u));
        ASSERT_FALSE(str_to_u64(STR(""), &u));
        ASSERT_TRUE(u == UINT64_MAX);
}

static void buffers(void) {
        _cleanup_buf_ Buf b = BUF_NULL;
        _cleanup_free_ char *text = NULL;

        buf_append_u64(&b, 0);
        buf_append_u64(&b, UINT64_MAX);
        buf_appendf(&b, " %s-%d", "x", 3);
        ASSERT_STR(buf_str(&b), STR("018446744073709551615 x-3"));
        ASSERT_OK(buf_result(&b));
        ASSERT_FALSE(buf_reserve(&b, SIZE_MAX - 4));
        buf_append_char(&b, 'y'); /* broken is sticky */
        ASSERT_INT(buf_result(&b), -ENOMEM);
        buf_clear(&b);
        text = buf_take(&b);
        ASSERT_TEXT(text, "");
}

static void arenas(void) {
        _cleanup_arena_ Arena a = ARENA_NULL;

        for (size_t round = 0; round < 3; round++) {
                for (size_t i = 1; i < 5000; i += 7) {
                        char *p = arena_alloc(&a, i, 1);
                        ASSERT_TRUE(p && ((uintptr_t) p % _Alignof(max_align_t)) == 0 && p[i - 1] == 0);
                        memset(p, 0xff, i);
                }
                arena_reset(&a);
        }
        ASSERT_TRUE(!arena_alloc(&a, SIZE_MAX / 2, 3));
        ASSERT_STR(arena_str(&a, STR("copy")), STR("copy"));
}

static void faults(void) {
        Fault f = FAULT_NULL;

        ASSERT_INT(fault_set(&f, -EINVAL, "value is %d", 3), -EINVAL);
        ASSERT_INT(fault_wrap(&f, 1, "pod %s", "a"), 1);
        ASSERT_TEXT(f.text, "pod a: value is 3");
        for (int i = 0; i < 200; i++)
                (void) fault_wrap(&f, 0, "again and again"); /* cut, never overrun */
        ASSERT_TRUE(strlen(f.text) < sizeof f.text);
}

/* What is left of a text is text, whatever its characters take. */
static void cuts(void) {
        static const struct {
                const char *text, *cut; /* to 4 bytes */
        } cases[] = {
                {"abcd", "abcd"},
                {"abcde", "abcd"},
                {"abc\u00e9", "abc"},
                {"ab\u00e9e", "ab\u00e9"},
                {"ab\u20ac", "ab"},
                {"a\u20ace", "a\u20ac"},
                {"a\U0001f600", "a"},
                {"\U0001f600a", "\U0001f600"},
                {"\x80\x80\x80\x80\x80", "\x80\x80\x80\x80"}, /* no character at all */
        };
        char text[1400] = "";
        Fault f;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Str s = str_from(cases[i].text);

                ASSERT_STR(((Str){s.data, str_cut(s, 4)}), str_from(cases[i].cut));
        }
        for (size_t i = 0; i < sizeof text - 2; i += 2)
                memcpy(text + i, "\u00e9", 2);
        (void) fault_set(&f, 0, "%s", text);
        ASSERT_INT(strlen(f.text), sizeof f.text - 2);
        (void) fault_wrap(&f, 0, "ab");
        ASSERT_INT(strlen(f.text), sizeof f.text - 2);
        (void) fault_wrap(&f, 0, "a");
        ASSERT_INT(strlen(f.text), sizeof f.text - 1);
}

static void base64(void) {
        static const struct {
                const char *text, *bytes; /* NULL: malformed */
        } cases[] = {
                {"", ""},
                {"Zg==", "f"},
                {"Zm8=", "fo"},
                {"Zm9v", "foo"},
                {"Zm9vYg==", "foob"},
                {"Zm9vYmE=", "fooba"},
                {"Zm9v\nYmFy\n", "foobar"},
                {"Zg", "f"},
                {"Zm8", "fo"},
                {"Z", NULL},
                {"Zm9v!", NULL},
                {"=", NULL},
                {"Zg==Zg==", NULL},
                {"Zg===", NULL},
                {"Zg=", NULL},
                {"Zm8==", NULL},
                {"Z===", NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_buf_ Buf out = BUF_NULL;
                bool ok = base64_decode(str_from(cases[i].text), &out);

                if (ok != (cases[i].bytes != NULL))
                        TEST_FAIL_("\"%s\" is %s", cases[i].text, ok ? "accepted" : "refused");
                ASSERT_STR(buf_str(&out), str_from(cases[i].bytes));
        }
        for (size_t n = 0; n <= 256; n++) { /* encode and decode */
                _cleanup_buf_ Buf text = BUF_NULL, back = BUF_NULL;
                char bytes[256];

                for (size_t i = 0; i < sizeof bytes; i++)
                        bytes[i] = (char) (i * 37 + n);
                base64_encode(&text, (Str){bytes, n});
                ASSERT_INT(text.len, (n + 2) / 3 * 4);
                ASSERT_TRUE(base64_decode(buf_str(&text), &back));
                ASSERT_STR(buf_str(&back), ((Str){bytes, n}));
        }
}

static void checked_arithmetic(void) {
        uint32_t u = 1;

        ASSERT_TRUE(u32_add(&u, UINT32_MAX - 1, 1) && u == UINT32_MAX);
        ASSERT_FALSE(u32_add(&u, UINT32_MAX, 1));
        ASSERT_FALSE(u32_mul(&u, 65536, 65536));
        ASSERT_TRUE(u == UINT32_MAX);
}

static void what_was_told_is_no_news(void) {
        Told told = {0};

        ASSERT_TRUE(told_is_news(&told, STR("a"), 0, 10));
        ASSERT_FALSE(told_is_news(&told, STR("a"), 9, 10));
        ASSERT_TRUE(told_is_news(&told, STR("a"), 10, 10));
        ASSERT_FALSE(told_is_news(&told, STR("a"), UINT64_MAX, 0));
        ASSERT_TRUE(told_is_news(&told, STR("b"), 10, 10));
        ASSERT_TRUE(told_is_news(&told, STR("a"), 10, 10));
}

int main(void) {
        return TEST_MAIN(TEST(quantities), TEST(thousandths), TEST(strings), TEST(buffers), TEST(arenas),
                         TEST(faults), TEST(cuts), TEST(checked_arithmetic), TEST(base64),
                         TEST(what_was_told_is_no_news));
}
