/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* gRPC's frame around a message (grpc/doc/PROTOCOL-HTTP2.md): a byte that says "compressed", four
 * of length, the message. A reader takes the one message of a unary call, cut into pieces anyhow.
 * What is too long is refused from its length; and the length is only a promise: memory is taken
 * for bytes that came, not for bytes that were announced. */

#include "base/buf.h"

enum { FRAME_PREFIX = 5 };

enum {
        FRAME_E_COMPRESSED = 1, /* we offered no compression, so that nobody may use it */
        FRAME_E_TOO_LONG,
        FRAME_E_SURPLUS, /* bytes behind the one message */
        FRAME_E_CUT,     /* it ended before the message did, or there was none */
};

typedef struct FrameReader {
        uint8_t prefix[FRAME_PREFIX];
        uint8_t n_prefix;
        Buf message;
} FrameReader;

#define FRAME_READER_NULL ((FrameReader){.message = BUF_NULL})

/* 0, FRAME_E_COMPRESSED, FRAME_E_TOO_LONG, FRAME_E_SURPLUS, -ENOMEM. After a failure the reader is
 * good for nothing but frame_reader_done(). */
int frame_reader_feed(FrameReader *r, Str bytes, size_t max_message);
int frame_reader_finish(const FrameReader *r); /* 0: the message is whole; FRAME_E_CUT */
void frame_reader_done(FrameReader *r);

const char *frame_error_to_string(int e); /* "the message is compressed"; static */

void frame_append(Buf *b, Str message); /* at most 4 GiB - 1, as the prefix has it */
