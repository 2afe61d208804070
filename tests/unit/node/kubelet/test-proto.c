/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/proto.h"
#include "test.h"

static const char *fault_of(Str message) {
        ProtoReader r = proto_reader(message);
        ProtoField field;

        while (proto_next(&r, &field))
                ;
        ASSERT_FALSE(proto_next(&r, &field)); /* a fault is sticky */
        return r.fault ? r.fault : "";
}

static void reads_fields(void) {
        ProtoReader r = proto_reader(STR("\x08\x96\x01\x12\x03"
                                         "a\0b\x1d\1\2\3\4\x21\1\2\3\4\5\6\7\10\xf8\xff\xff\xff\x0f\x07"));
        ProtoField field;
        Str text;

        ASSERT_TRUE(proto_next(&r, &field));
        ASSERT_INT(field.number, 1);
        ASSERT_INT(field.value, 150);
        ASSERT_TRUE(proto_next(&r, &field));
        ASSERT_INT(field.number, 2);
        ASSERT_TRUE(proto_bytes(&r, &field, &text));
        ASSERT_STR(text, STR("a\0b"));
        ASSERT_TRUE(proto_next(&r, &field)); /* fixed ones are ignored */
        ASSERT_INT(field.number, 3);
        ASSERT_TRUE(proto_next(&r, &field));
        ASSERT_INT(field.number, 4);
        ASSERT_TRUE(proto_next(&r, &field)); /* the largest field number */
        ASSERT_INT(field.number, (1 << 29) - 1);
        ASSERT_INT(field.value, 7);
        ASSERT_FALSE(proto_next(&r, &field));
        ASSERT_TRUE(r.fault == NULL);
}

static void names_faults(void) {
        ASSERT_TEXT(fault_of((Str){0}), "");
        ASSERT_TEXT(fault_of(STR("\x08")), "it is cut off");
        ASSERT_TEXT(fault_of(STR("\x88")), "it is cut off");
        ASSERT_TEXT(fault_of(STR("\x12\x02x")), "it is cut off");
        ASSERT_TEXT(fault_of(STR("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x")), "it is cut off");
        ASSERT_TEXT(fault_of(STR("\x1d\1\2\3")), "it is cut off");
        ASSERT_TEXT(fault_of(STR("\x21\1\2\3\4\5\6\7")), "it is cut off");
        ASSERT_TEXT(fault_of(STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), ""); /* 2^64 - 1 */
        ASSERT_TEXT(fault_of(STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")),
                    "a number does not fit into 64 bits");
        ASSERT_TEXT(fault_of(STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")),
                    "a number does not fit into 64 bits");
        ASSERT_TEXT(fault_of(STR("\x00\x00")), "a field has an impossible number");
        ASSERT_TEXT(fault_of(STR("\x80\x80\x80\x80\x10\x00")), "a field has an impossible number"); /* 2^29 */
        ASSERT_TEXT(fault_of(STR("\x0b\x0c")), "a field has an impossible type"); /* a group */
        ASSERT_TEXT(fault_of(STR("\x0f")), "a field has an impossible type");
}

static int32_t i32_of(Str message, const char **ret_fault) {
        ProtoReader r = proto_reader(message);
        ProtoField field;
        int32_t value = 42;

        ASSERT_TRUE(proto_next(&r, &field));
        ASSERT_INT(proto_i32(&r, &field, &value), r.fault == NULL);
        *ret_fault = r.fault ? r.fault : "";
        return value;
}

static void checks_types(void) {
        ProtoReader r = proto_reader(STR("\x08\x01"));
        const char *fault;
        ProtoField field;
        Str text;

        ASSERT_INT(i32_of(STR("\x08\xff\xff\xff\xff\x07"), &fault), INT32_MAX);
        ASSERT_TEXT(fault, "");
        ASSERT_INT(i32_of(STR("\x08\x80\x80\x80\x80\xf8\xff\xff\xff\xff\x01"), &fault), INT32_MIN);
        ASSERT_TEXT(fault, "");
        ASSERT_INT(i32_of(STR("\x08\x80\x80\x80\x80\x08"), &fault), 42); /* unchanged */
        ASSERT_TEXT(fault, "a number does not fit into 32 bits");
        ASSERT_INT(i32_of(STR("\x0a\x01x"), &fault), 42);
        ASSERT_TEXT(fault, "a field has the wrong type");
        ASSERT_TRUE(proto_next(&r, &field));
        ASSERT_FALSE(proto_bytes(&r, &field, &text));
        ASSERT_TEXT(r.fault, "a field has the wrong type");
}

static void writes_what_it_reads(void) {
        static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};

        for (size_t i = 0; i < ELEMENTSOF(values); i++) {
                _cleanup_buf_ Buf b = BUF_NULL;
                ProtoField field;
                ProtoReader r;

                proto_put_u64(&b, 5, values[i]);
                proto_put_bytes(&b, 16, STR("id"));
                ASSERT_INT(b.len, 1 + proto_varint_size(values[i]) + 2 + 1 + 2);
                r = proto_reader(buf_str(&b));
                ASSERT_TRUE(proto_next(&r, &field));
                ASSERT_INT(field.number, 5);
                ASSERT_TRUE(field.value == values[i]);
                ASSERT_TRUE(proto_next(&r, &field));
                ASSERT_INT(field.number, 16);
                ASSERT_STR(field.bytes, STR("id"));
        }
}

int main(void) {
        return TEST_MAIN(TEST(reads_fields), TEST(names_faults), TEST(checks_types),
                         TEST(writes_what_it_reads));
}
