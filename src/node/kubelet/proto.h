/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Protocol buffers (proto3) as views, without a copy: the kubelet's messages are little else than
 * device IDs, tens of thousands of them, and each would be several allocations in an object tree.
 * Strings keep their length, so that a zero byte within an ID cannot make it look like another one.
 *
 *     ProtoReader r = proto_reader(message);
 *     while (proto_next(&r, &field))
 *             if (field.number == 1) proto_bytes(&r, &field, &name);
 *     return r.fault ? ... : 0;
 *
 * A fault is sticky, as in JsonReader. Unknown fields are passed over; groups, which proto3 has
 * not, are a fault. */

#include "base/buf.h"
#include "base/str.h"

typedef enum ProtoType { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 } ProtoType;

typedef struct ProtoField {
        uint32_t number;
        ProtoType type;
        uint64_t value; /* of a varint; of fixed ones nothing is kept */
        Str bytes;      /* string, message */
} ProtoField;

typedef struct ProtoReader {
        const uint8_t *at, *end;
        const char *fault; /* static text; NULL while all is well */
} ProtoReader;

ProtoReader proto_reader(Str message);
bool proto_next(ProtoReader *r, ProtoField *ret);  /* false at the end, and after a fault */
bool proto_end(ProtoReader *r, const char *fault); /* the caller's own verdict (static text); false */

/* The field's value, of the one type that it may have; false and a fault otherwise. proto_message()
 * goes on inside. */
bool proto_bytes(ProtoReader *r, const ProtoField *field, Str *ret);
bool proto_i32(ProtoReader *r, const ProtoField *field, int32_t *ret);
bool proto_message(ProtoReader *r, const ProtoField *field, ProtoReader *ret);

/* Writing: each appends one field. A message within is its bytes, or its size beforehand and then
 * its fields. */
void proto_put_bytes(Buf *b, uint32_t number, Str bytes);
void proto_put_u64(Buf *b, uint32_t number, uint64_t value);
void proto_put_length(Buf *b, uint32_t number, size_t length);
size_t proto_varint_size(uint64_t value);
