/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/proto.h"

/* https://protobuf.dev/programming-guides/encoding: a field is a varint (number << 3 | type)
 * followed by its value. */

enum { VARINT_MAX = 10, FIELD_NUMBER_MAX = (1 << 29) - 1 };

ProtoReader proto_reader(Str message) {
        const uint8_t *at = (const uint8_t *) (message.data ? message.data : "");

        return (ProtoReader){.at = at, .end = at + message.len};
}

bool proto_end(ProtoReader *r, const char *fault) {
        if (!r->fault)
                r->fault = fault;
        r->at = r->end;
        return false;
}

static bool read_varint(ProtoReader *r, uint64_t *ret) {
        uint64_t value = 0;

        for (unsigned i = 0; i < VARINT_MAX; i++) {
                uint8_t byte;

                if (r->at == r->end)
                        return proto_end(r, "it is cut off");
                byte = *r->at++;
                if (i == VARINT_MAX - 1 && byte > 1)
                        break; /* bits beyond 64 */
                value |= (uint64_t) (byte & 0x7f) << (7 * i);
                if (byte < 0x80) {
                        *ret = value;
                        return true;
                }
        }
        return proto_end(r, "a number does not fit into 64 bits");
}

static bool read_span(ProtoReader *r, uint64_t len, Str *ret) {
        if (len > (size_t) (r->end - r->at))
                return proto_end(r, "it is cut off");
        *ret = (Str){(const char *) r->at, (size_t) len};
        r->at += len;
        return true;
}

bool proto_next(ProtoReader *r, ProtoField *ret) {
        uint64_t tag, len;
        Str skipped;

        if (r->at == r->end || !read_varint(r, &tag))
                return false;
        if (tag >> 3 == 0 || tag >> 3 > FIELD_NUMBER_MAX)
                return proto_end(r, "a field has an impossible number");
        *ret = (ProtoField){.number = (uint32_t) (tag >> 3), .type = (ProtoType) (tag & 7)};
        switch (ret->type) {
        case PROTO_VARINT:
                return read_varint(r, &ret->value);
        case PROTO_BYTES:
                return read_varint(r, &len) && read_span(r, len, &ret->bytes);
        case PROTO_FIXED64:
                return read_span(r, 8, &skipped);
        case PROTO_FIXED32:
                return read_span(r, 4, &skipped);
        default:
                return proto_end(r, "a field has an impossible type");
        }
}

bool proto_bytes(ProtoReader *r, const ProtoField *field, Str *ret) {
        if (field->type != PROTO_BYTES)
                return proto_end(r, "a field has the wrong type");
        *ret = field->bytes;
        return true;
}

/* An int32 is encoded as the varint of its 64-bit two's complement. */
bool proto_i32(ProtoReader *r, const ProtoField *field, int32_t *ret) {
        int64_t value = (int64_t) field->value;

        if (field->type != PROTO_VARINT)
                return proto_end(r, "a field has the wrong type");
        if (value < INT32_MIN || value > INT32_MAX)
                return proto_end(r, "a number does not fit into 32 bits");
        *ret = (int32_t) value;
        return true;
}

/* ---- writing ---- */

static void put_varint(Buf *b, uint64_t value) {
        char bytes[VARINT_MAX];
        size_t n = 0;

        for (; value >= 0x80; value >>= 7)
                bytes[n++] = (char) (value | 0x80);
        bytes[n++] = (char) value;
        buf_append(b, bytes, n);
}

size_t proto_varint_size(uint64_t value) {
        size_t n = 1;

        for (; value >= 0x80; value >>= 7)
                n++;
        return n;
}

void proto_put_length(Buf *b, uint32_t number, size_t length) {
        put_varint(b, (uint64_t) number << 3 | PROTO_BYTES);
        put_varint(b, length);
}

void proto_put_bytes(Buf *b, uint32_t number, Str bytes) {
        proto_put_length(b, number, bytes.len);
        buf_append_str(b, bytes);
}

void proto_put_u64(Buf *b, uint32_t number, uint64_t value) {
        put_varint(b, (uint64_t) number << 3 | PROTO_VARINT);
        put_varint(b, value);
}
