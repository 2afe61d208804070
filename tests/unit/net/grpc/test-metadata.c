/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/metadata.h"
#include "net/grpc/rpc_status.h"
#include "test.h"

static void assert_text(Str text, Str encoded) {
        _cleanup_buf_ Buf b = BUF_NULL;
        char line[256];

        metadata_encode_text(&b, text);
        ASSERT_STR(buf_str(&b), encoded);
        metadata_decode_text(encoded, line, sizeof line);
        ASSERT_STR(str_from(line), text);
}

static void encodes_text(void) {
        assert_text(STR("plain ~!"), STR("plain ~!"));
        assert_text(STR("100 %"), STR("100 %25"));
        assert_text(STR("Gr\xc3\xb6\xc3\x9f"
                        "e"),
                    STR("Gr%C3%B6%C3%9Fe"));
        assert_text(STR(""), STR(""));
}

static void cuts_between_characters(void) {
        char text[METADATA_MAX_TEXT + 8];
        _cleanup_buf_ Buf b = BUF_NULL;

        memset(text, 'a', sizeof text);
        metadata_encode_text(&b, (Str){text, METADATA_MAX_TEXT});
        ASSERT_INT(b.len, METADATA_MAX_TEXT);
        buf_clear(&b);
        metadata_encode_text(&b, (Str){text, METADATA_MAX_TEXT + 1});
        ASSERT_INT(b.len, METADATA_MAX_TEXT);
        /* a euro sign, half over the limit */
        memcpy(text + METADATA_MAX_TEXT - 2, "\xe2\x82\xac", 3);
        buf_clear(&b);
        metadata_encode_text(&b, (Str){text, sizeof text});
        ASSERT_INT(b.len, METADATA_MAX_TEXT - 2);
        memset(text, 0x80, sizeof text); /* never was UTF-8 */
        buf_clear(&b);
        metadata_encode_text(&b, (Str){text, sizeof text});
        ASSERT_INT(b.len, 0);
}

static void decodes_for_people(void) {
        char line[8];

        metadata_decode_text(STR("a%0Ab%7Fc"), line, sizeof line);
        ASSERT_TEXT(line, "a b c");
        metadata_decode_text(STR("%%2%zz"), line, sizeof line);
        ASSERT_TEXT(line, "%%2%zz");
        metadata_decode_text(STR("123456789"), line, sizeof line);
        ASSERT_TEXT(line, "1234567");
        metadata_decode_text(STR(""), line, sizeof line);
        ASSERT_TEXT(line, "");
}

static void assert_timeout(Str value, usec_t expected) {
        usec_t usec = 0;

        ASSERT_TRUE(metadata_parse_timeout(value, &usec));
        ASSERT_INT(usec, expected);
}

static void parses_timeouts(void) {
        static const char *const bad[] = {"",           "1",  "m",  "-1m",  "1 m",
                                          "123456789m", "1x", "m1", "1.5S", "1M "};
        usec_t untouched = 7;

        assert_timeout(STR("1n"), 1);
        assert_timeout(STR("1000n"), 1);
        assert_timeout(STR("0m"), 0);
        assert_timeout(STR("30S"), 30 * USEC_PER_SEC);
        assert_timeout(STR("250m"), 250 * USEC_PER_MSEC);
        assert_timeout(STR("2M"), 120 * USEC_PER_SEC);
        assert_timeout(STR("99999999H"), UINT64_C(99999999) * 3600 * USEC_PER_SEC);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ASSERT_FALSE(metadata_parse_timeout(str_from(bad[i]), &untouched));
        ASSERT_INT(untouched, 7);
}

static void formats_timeouts(void) {
        const struct {
                usec_t usec;
                const char *text;
        } cases[] = {{0, "0u"},
                     {99999999, "99999999u"},
                     {100000000, "100000m"},
                     {100000001, "100001m"}, /* up, never down */
                     {UINT64_C(99999999) * 1000 + 1, "100000S"},
                     {UINT64_MAX, "99999999H"}};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char text[METADATA_TIMEOUT_SIZE];

                metadata_format_timeout(cases[i].usec, text);
                ASSERT_TEXT(text, cases[i].text);
        }
}

static void knows_grpc(void) {
        ASSERT_TRUE(metadata_is_grpc(STR("application/grpc")));
        ASSERT_TRUE(metadata_is_grpc(STR("application/grpc+proto")));
        ASSERT_TRUE(metadata_is_grpc(STR("application/grpc;charset=x")));
        ASSERT_FALSE(metadata_is_grpc(STR("application/grpc-web")));
        ASSERT_FALSE(metadata_is_grpc(STR("application/json")));
        ASSERT_FALSE(metadata_is_grpc(STR("")));
}

static void names_statuses(void) {
        ASSERT_TEXT(rpc_status_to_string(RPC_OK), "OK");
        ASSERT_TEXT(rpc_status_to_string(RPC_RESOURCE_EXHAUSTED), "RESOURCE_EXHAUSTED");
        ASSERT_TEXT(rpc_status_to_string(RPC_UNAUTHENTICATED), "UNAUTHENTICATED");
        ASSERT_INT(rpc_status_from_wire(16), RPC_UNAUTHENTICATED);
        ASSERT_INT(rpc_status_from_wire(17), RPC_UNKNOWN);
        ASSERT_INT(rpc_status_from_wire(UINT64_MAX), RPC_UNKNOWN);
        ASSERT_INT(rpc_status_from_http(404), RPC_UNIMPLEMENTED);
        ASSERT_INT(rpc_status_from_http(503), RPC_UNAVAILABLE);
        ASSERT_INT(rpc_status_from_http(301), RPC_UNKNOWN);
}

int main(void) {
        return TEST_MAIN(TEST(encodes_text), TEST(cuts_between_characters), TEST(decodes_for_people),
                         TEST(parses_timeouts), TEST(formats_timeouts), TEST(knows_grpc),
                         TEST(names_statuses));
}
