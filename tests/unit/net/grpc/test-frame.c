/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "net/grpc/frame.h"
#include "test.h"

/* Feeds pieces of `step` bytes; returns the first failure, or the result of finish. */
static int feed(FrameReader *r, Str bytes, size_t step, size_t max) {
        for (size_t at = 0; at < bytes.len; at += step) {
                size_t n = bytes.len - at < step ? bytes.len - at : step;
                int e = frame_reader_feed(r, (Str){bytes.data + at, n}, max);

                if (e != 0)
                        return e;
        }
        return frame_reader_finish(r);
}

static void assert_frame(Str bytes, size_t max, int expected, Str message) {
        for (size_t step = 1; step <= bytes.len + 1; step++) {
                FrameReader r = FRAME_READER_NULL;

                ASSERT_INT(feed(&r, bytes, step, max), expected);
                if (expected == 0)
                        ASSERT_STR(buf_str(&r.message), message);
                frame_reader_done(&r);
        }
}

static void takes_one_message(void) {
        assert_frame(STR("\0\0\0\0\3abc"), 3, 0, STR("abc"));
        assert_frame(STR("\0\0\0\0\0"), 0, 0, STR(""));
}

static void refuses_what_is_wrong(void) {
        assert_frame(STR(""), 9, FRAME_E_CUT, STR(""));
        assert_frame(STR("\0\0\0\0"), 9, FRAME_E_CUT, STR(""));
        assert_frame(STR("\0\0\0\0\3ab"), 9, FRAME_E_CUT, STR(""));
        assert_frame(STR("\0\0\0\0\3abcd"), 9, FRAME_E_SURPLUS, STR(""));
        assert_frame(STR("\0\0\0\0\0\0\0\0\0\0"), 9, FRAME_E_SURPLUS, STR(""));
        assert_frame(STR("\1\0\0\0\3abc"), 9, FRAME_E_COMPRESSED, STR(""));
}

static void measures_before_it_holds(void) {
        FrameReader r = FRAME_READER_NULL;

        assert_frame(STR("\0\0\0\0\4abcd"), 4, 0, STR("abcd"));
        assert_frame(STR("\0\0\0\0\5abcde"), 4, FRAME_E_TOO_LONG, STR(""));
        ASSERT_INT(frame_reader_feed(&r, STR("\0\xff\xff\xff\xff"), 4), FRAME_E_TOO_LONG);
        ASSERT_INT(frame_reader_feed(&(FrameReader){0}, STR("\0\xff\xff\xff\xff"), UINT32_MAX), 0);
        ASSERT_INT(r.message.capacity, 0); /* no memory is taken for an announced length */
}

static void appends(void) {
        _cleanup_buf_ Buf b = BUF_NULL;

        frame_append(&b, STR("abc"));
        frame_append(&b, (Str){NULL, 0});
        ASSERT_STR(buf_str(&b), STR("\0\0\0\0\3abc\0\0\0\0\0"));
        buf_clear(&b);
        {
                _cleanup_free_ char *big = calloc(1, 0x012345);

                ASSERT_TRUE(big != NULL);
                frame_append(&b, (Str){big, 0x012345});
        }
        ASSERT_STR(((Str){b.data, 5}), STR("\0\0\x01\x23\x45"));
}

static void has_words(void) {
        ASSERT_CONTAINS(frame_error_to_string(FRAME_E_TOO_LONG), "longer");
        ASSERT_CONTAINS(frame_error_to_string(-ENOMEM), "memory");
}

int main(void) {
        return TEST_MAIN(TEST(takes_one_message), TEST(refuses_what_is_wrong), TEST(measures_before_it_holds),
                         TEST(appends), TEST(has_words));
}
