/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/frame.h"

#include <assert.h>
#include <errno.h>

static uint32_t announced(const FrameReader *r) {
        return (uint32_t) r->prefix[1] << 24 | (uint32_t) r->prefix[2] << 16 | (uint32_t) r->prefix[3] << 8 |
               (uint32_t) r->prefix[4];
}

/* Moves bytes into the prefix and checks it as soon as it is complete. */
static int feed_prefix(FrameReader *r, Str *bytes, size_t max_message) {
        size_t n = FRAME_PREFIX - r->n_prefix;

        n = n < bytes->len ? n : bytes->len;
        memcpy(r->prefix + r->n_prefix, bytes->data, n);
        r->n_prefix = (uint8_t) (r->n_prefix + n);
        *bytes = (Str){bytes->data + n, bytes->len - n};
        if (r->n_prefix < FRAME_PREFIX)
                return 0;
        if (r->prefix[0] != 0)
                return FRAME_E_COMPRESSED;
        return announced(r) > max_message ? FRAME_E_TOO_LONG : 0;
}

int frame_reader_feed(FrameReader *r, Str bytes, size_t max_message) {
        int e;

        if (bytes.len == 0)
                return 0;
        if (r->n_prefix < FRAME_PREFIX) {
                e = feed_prefix(r, &bytes, max_message);
                if (e != 0)
                        return e;
        }
        if (bytes.len == 0)
                return 0;
        if (bytes.len > announced(r) - r->message.len)
                return FRAME_E_SURPLUS;
        buf_append_str(&r->message, bytes);
        return buf_result(&r->message);
}

int frame_reader_finish(const FrameReader *r) {
        return r->n_prefix == FRAME_PREFIX && r->message.len == announced(r) ? 0 : FRAME_E_CUT;
}

void frame_reader_done(FrameReader *r) {
        buf_done(&r->message);
        *r = FRAME_READER_NULL;
}

const char *frame_error_to_string(int e) {
        switch (e) {
        case FRAME_E_COMPRESSED:
                return "the message is compressed, which nobody agreed to";
        case FRAME_E_TOO_LONG:
                return "the message is longer than allowed";
        case FRAME_E_SURPLUS:
                return "more follows the one message of the call";
        case FRAME_E_CUT:
                return "the message is cut short or missing";
        default:
                return e == 0 ? "no error" : "out of memory";
        }
}

void frame_append(Buf *b, Str message) {
        uint32_t n = (uint32_t) message.len;
        const uint8_t prefix[FRAME_PREFIX] = {0, (uint8_t) (n >> 24), (uint8_t) (n >> 16), (uint8_t) (n >> 8),
                                              (uint8_t) n};

        assert(message.len <= UINT32_MAX);
        if (!buf_reserve(b, FRAME_PREFIX + message.len))
                return;
        buf_append(b, prefix, sizeof prefix);
        buf_append_str(b, message);
}
