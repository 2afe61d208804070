/* SPDX-License-Identifier: Apache-2.0 */

/* gRPC's framing and its header values: a message is the same however it is cut, no buffer is
 * longer than allowed, and an encoded value decodes to itself. The first two bytes: the limit, and
 * the cuts. */

#include <assert.h>

#include "net/grpc/frame.h"
#include "net/grpc/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int feed(FrameReader *r, Str bytes, size_t step, size_t max) {
        for (size_t at = 0; at < bytes.len; at += step) {
                size_t n = bytes.len - at < step ? bytes.len - at : step;
                _cleanup_free_ char *piece = malloc(n);
                int e;

                assert(piece);
                memcpy(piece, bytes.data + at, n);
                e = frame_reader_feed(r, (Str){piece, n}, max);
                assert(r->message.len <= max);
                if (e != 0)
                        return e;
        }
        return frame_reader_finish(r);
}

static void check_frames(Str bytes, size_t max, size_t step) {
        FrameReader whole = FRAME_READER_NULL, pieces = FRAME_READER_NULL;
        int e = feed(&whole, bytes, bytes.len > 0 ? bytes.len : 1, max);

        assert(feed(&pieces, bytes, step, max) == e);
        assert(e >= 0 && frame_error_to_string(e));
        if (e == 0) {
                _cleanup_buf_ Buf again = BUF_NULL;

                assert(str_eq(buf_str(&whole.message), buf_str(&pieces.message)));
                frame_append(&again, buf_str(&whole.message));
                assert(str_eq(buf_str(&again), bytes));
        }
        frame_reader_done(&whole);
        frame_reader_done(&pieces);
}

static void check_values(Str value) {
        char line[METADATA_MAX_TEXT + 1], timeout[METADATA_TIMEOUT_SIZE];
        _cleanup_buf_ Buf encoded = BUF_NULL;
        usec_t usec, again = 0;

        metadata_encode_text(&encoded, value);
        assert(encoded.len <= METADATA_MAX_TEXT * 3);
        metadata_decode_text(buf_str(&encoded), line, sizeof line);
        for (size_t i = 0; i < strlen(line); i++)
                assert(line[i] == value.data[i] || line[i] == ' ');
        metadata_decode_text(value, line, sizeof line);
        (void) metadata_is_grpc(value); /* checks only that it reads no byte behind the end */
        if (!metadata_parse_timeout(value, &usec))
                return;
        metadata_format_timeout(usec, timeout);
        assert(metadata_parse_timeout(str_from(timeout), &again) && again >= usec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Str rest;

        if (size < 2)
                return 0;
        rest = (Str){(const char *) data + 2, size - 2};
        check_frames(rest, data[0] * 16U, data[1] % 32U + 1);
        check_values(rest);
        return 0;
}
