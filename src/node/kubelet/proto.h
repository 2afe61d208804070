/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads and writes protocol buffers (proto3). The reader returns views of the message: the
 * kubelet's messages contain tens of thousands of device IDs, and an object tree would allocate
 * each several times. Strings keep their length, so a zero byte in an ID cannot make it equal
 * another one.
 *
 *     ProtoReader r = proto_reader(message);
 *     while (proto_next(&r, &field))
 *             if (field.number == 1) proto_bytes(&r, &field, &name);
 *     return r.fault ? ... : 0;
 *
 * A fault is sticky, as in JsonReader. Unknown fields are ignored. Groups, which proto3 does not
 * have, are a fault. */

#include "base/buf.h"
#include "base/str.h"

typedef enum ProtoType { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 } ProtoType;

typedef struct ProtoField {
        uint32_t number;
        ProtoType type;
        uint64_t value; /* value of a varint field; those of fixed-size fields are not kept */
        Str bytes;      /* string, message */
} ProtoField;

typedef struct ProtoReader {
        const uint8_t *at, *end;
        const char *fault; /* static text; NULL while all is well */
} ProtoReader;

ProtoReader proto_reader(Str message);
bool proto_next(ProtoReader *r, ProtoField *ret);  /* false at the end, and after a fault */
bool proto_end(ProtoReader *r, const char *fault); /* sets the fault (static text); false */

/* Reads the value of a field, which must have this type: else returns false and sets a fault. */
bool proto_bytes(ProtoReader *r, const ProtoField *field, Str *ret);
bool proto_i32(ProtoReader *r, const ProtoField *field, int32_t *ret);

/* Each appends one field. A nested message is written as its bytes, or as its length followed by
 * its fields. */
void proto_put_bytes(Buf *b, uint32_t number, Str bytes);
void proto_put_u64(Buf *b, uint32_t number, uint64_t value);
void proto_put_length(Buf *b, uint32_t number, size_t length);
size_t proto_varint_size(uint64_t value);
