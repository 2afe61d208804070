/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* gRPC's frame around a message (grpc/doc/PROTOCOL-HTTP2.md): one byte "compressed", four bytes of
 * length, the message. A reader collects the one message of a unary call from pieces of any size. A
 * message that is too long is refused as soon as its length is known. Memory is allocated only for
 * bytes that have arrived. */

#include "base/buf.h"

enum { FRAME_PREFIX = 5 };

enum {
        FRAME_E_COMPRESSED = 1, /* no compression was offered */
        FRAME_E_TOO_LONG,
        FRAME_E_SURPLUS, /* bytes follow the one message */
        FRAME_E_CUT,     /* the message is incomplete or missing */
};

typedef struct FrameReader {
        uint8_t prefix[FRAME_PREFIX];
        uint8_t n_prefix;
        Buf message;
} FrameReader;

#define FRAME_READER_NULL ((FrameReader){.message = BUF_NULL})

/* Returns 0, FRAME_E_COMPRESSED, FRAME_E_TOO_LONG, FRAME_E_SURPLUS or -ENOMEM. After a failure only
 * frame_reader_done() may be called. */
int frame_reader_feed(FrameReader *r, Str bytes, size_t max_message);
int frame_reader_finish(const FrameReader *r); /* 0: the message is whole; FRAME_E_CUT */
void frame_reader_done(FrameReader *r);

const char *frame_error_to_string(int e); /* "the message is compressed"; static */

void frame_append(Buf *b, Str message); /* at most 4 GiB - 1, as the prefix has it */
