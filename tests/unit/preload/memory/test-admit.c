/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/fifo.h"
#include "preload/memory/admit.h"
#include "test.h"

enum { MIB = 1 << 20, KIB = 1 << 10 };

static RmRequest decode(uint32_t nr, uint32_t size, const void *outer) {
        RmRequest request;

        memset(&request, 0xAA, sizeof request);
        rm_decode(nr, size, outer, &request);
        return request;
}

static RmRequest alloc_of(uint32_t class_, uint64_t bytes) {
        RmAlloc a = {.root = 1, .parent = 2, .new = 3, .class_ = class_, .params = 4096, .params_size = 128};
        RmMemoryParams p = {.size = bytes};
        RmRequest request = decode(RM_ESC_ALLOC, sizeof a, &a);

        rm_decode_inner(&request, &p, sizeof p);
        return request;
}

/* Golden bytes: a call as it is in memory, little endian. */
static void decodes_bytes(void) {
        static const uint8_t alloc[32] = {0x01, 0,    0xD0, 0xC1, 0x02, 0,    0,    0x5C, 0x03, 0, 0,
                                          0x5C, 0x40, 0,    0,    0,    0x00, 0x10, 0,    0,    0, 0,
                                          0,    0,    0x80, 0,    0,    0,    0,    0,    0,    0};
        uint8_t inner[128] = {[64] = 0x00, 0x00, 0x30};
        RmRequest request = decode(0x2B, 32, alloc);

        ASSERT_INT(request.kind, RM_ALLOC_VIDMEM);
        ASSERT_INT(request.client, 0xC1D00001);
        ASSERT_INT(request.parent, 0x5C000002);
        ASSERT_INT(request.object, 0x5C000003);
        ASSERT_INT(request.params, 0x1000);
        ASSERT_INT(request.params_size, 128);
        rm_decode_inner(&request, inner, sizeof inner);
        ASSERT_INT(request.bytes, 3 * MIB);
        rm_decode_inner(&request, inner, 71);
        ASSERT_INT(request.bytes, 0);
}

static void knows_sizes(void) {
        static const struct {
                uint32_t nr, size;
                bool metered;
        } cases[] = {{0x2B, 32, true},  {0x2B, 48, true}, {0x2B, 40, false}, {0x29, 16, true},
                     {0x29, 32, false}, {0x2A, 32, true}, {0x27, 56, true},  {0x27, 48, false},
                     {0x4A, 184, true}, {0x34, 28, true}, {0x28, 20, true},  {0x13, 0, false},
                     {0, 0, false},     {0xFF, 32, false}};

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                ASSERT_INT(rm_metered(cases[i].nr, cases[i].size), cases[i].metered);
}

/* A function of drivers before 535 is neither decoded nor forwarded. */
static void refuses_unknown_calls(void) {
        static const uint32_t numbers[] = {0x27, 0x28, 0x29, 0x2A, 0x2B, 0x34, 0x4A};
        static const uint32_t known[] = {2, 3, 5, 6, 11, 14, 15, 16, 18, 19, 20, 27};
        uint8_t outer[RM_OUTER_MAX] = {0};
        RmHeap h = {.root = 1, .parent = 2};
        RmVerdict v;
        RmRequest request;

        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
                ASSERT_TRUE(rm_is_odd(numbers[i], 40) && !rm_is_odd(numbers[i], 0));
                request = decode(numbers[i], 40, outer);
                ASSERT_INT(request.kind, RM_UNKNOWN);
                v = rm_admit(&request, NULL);
                ASSERT_TRUE(v.action == RM_REFUSE && v.status == RM_ERR_INVALID_ARGUMENT);
        }
        ASSERT_TRUE(rm_is_dma_buf(217, 2600) && rm_is_dma_buf(217, 2608) && rm_is_odd(217, 2604));
        ASSERT_FALSE(rm_is_odd(217, 2600) || rm_is_odd(217, 2608) || rm_is_dma_buf(211, 2608));
        ASSERT_FALSE(rm_is_odd(0x2B, 32) || rm_is_odd(0x2B, 48) || rm_is_odd(0x54, 40));
        for (uint32_t function = 0; function < 64; function++) {
                bool is_known = false;

                for (size_t i = 0; i < sizeof known / sizeof *known; i++)
                        is_known |= known[i] == function;
                h.function = function;
                request = decode(RM_ESC_VID_HEAP_CONTROL, sizeof h, &h);
                ASSERT_INT(request.kind == RM_UNKNOWN, !is_known);
        }
}

static void knows_classes(void) {
        static const struct {
                uint32_t class_;
                RmKind kind;
        } cases[] = {{0, RM_ALLOC_CLIENT},
                     {1, RM_ALLOC_CLIENT},
                     {0x41, RM_ALLOC_CLIENT},
                     {0x80, RM_ALLOC_DEVICE},
                     {0x2080, RM_ALLOC_SUBDEVICE},
                     {0x40, RM_ALLOC_VIDMEM},
                     {0xA06C, RM_ALLOC_CHANNEL_GROUP},
                     {0xF3, RM_ALLOC_FLA},
                     {0x3E, RM_OTHER},
                     {0x50A0, RM_OTHER},
                     {0x70, RM_OTHER},
                     {0xFFFFFFFF, RM_OTHER},
                     {0xA06F, RM_ALLOC_CHANNEL},
                     {0xC86F, RM_ALLOC_CHANNEL}};

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                ASSERT_INT(alloc_of(cases[i].class_, MIB).kind, cases[i].kind);
}

/* 1,000 classes that no release has: not charged, and not changed. */
static void forwards_unknown_classes(void) {
        for (uint32_t i = 0; i < 1000; i++) {
                RmRequest request = alloc_of(0x10000 + i * 40503, MIB);

                ASSERT_INT(request.kind, RM_OTHER);
                ASSERT_INT(rm_admit(&request, NULL).action, RM_FORWARD);
        }
}

static void no_parent_means_the_client(void) {
        RmAlloc a = {.root = 7, .class_ = RM_CLASS_DEVICE};

        ASSERT_INT(decode(RM_ESC_ALLOC, sizeof a, &a).parent, 7);
}

/* ALLOC_OBJECT has no parameters: it cannot allocate memory, and other objects are remembered. */
static void alloc_object_makes_no_memory(void) {
        uint32_t memory[5] = {1, 2, 3, 0x40}, device[5] = {1, 1, 3, 0x80};

        ASSERT_INT(decode(RM_ESC_ALLOC_OBJECT, 20, memory).kind, RM_OTHER);
        ASSERT_INT(decode(RM_ESC_ALLOC_OBJECT, 20, device).kind, RM_ALLOC_DEVICE);
        ASSERT_INT(decode(RM_ESC_ALLOC_OBJECT, 20, (uint32_t[5]){1, 2, 3, 0xE0}).kind, RM_ALLOC_EXPORT);
        ASSERT_INT(decode(RM_ESC_ALLOC_OBJECT, 20, (uint32_t[5]){1, 2, 3, 0xF8}).kind, RM_ALLOC_FABRIC);
        ASSERT_INT(decode(RM_ESC_ALLOC_OBJECT, 20, (uint32_t[5]){1, 2, 3, 0xF3}).kind, RM_ALLOC_FLA);
}

static void decodes_the_heap(void) {
        RmHeap h = {.root = 1, .parent = 2, .function = RM_HEAP_ALLOC_SIZE, .memory = 9, .size = 5 * MIB};
        uint32_t by_pitch[46] = {1, 2, RM_HEAP_ALLOC_PITCH_HEIGHT};
        RmRequest request = decode(RM_ESC_VID_HEAP_CONTROL, sizeof h, &h);

        ASSERT_INT(request.kind, RM_ALLOC_VIDMEM);
        ASSERT_INT(request.bytes, 5 * MIB);
        ASSERT_INT(request.object, 9);
        h.attr = RM_ATTR_LOCATION_PCI << RM_ATTR_LOCATION_SHIFT;
        ASSERT_INT(decode(RM_ESC_VID_HEAP_CONTROL, sizeof h, &h).kind, RM_OTHER);
        h.attr = 0;
        h.flags = RM_FLAG_VIRTUAL;
        ASSERT_INT(decode(RM_ESC_VID_HEAP_CONTROL, sizeof h, &h).kind, RM_OTHER);
        h.function = RM_HEAP_FREE;
        ASSERT_INT(decode(RM_ESC_VID_HEAP_CONTROL, sizeof h, &h).kind, RM_FREE_OBJECT);
        h.function = RM_HEAP_INFO;
        ASSERT_INT(decode(RM_ESC_VID_HEAP_CONTROL, sizeof h, &h).kind, RM_QUERY_HEAP);
        h.function = 27;
        ASSERT_INT(decode(RM_ESC_VID_HEAP_CONTROL, sizeof h, &h).kind, RM_OTHER);
        by_pitch[14] = 1024; /* height */
        by_pitch[15] = 4096; /* pitch */
        ASSERT_INT(decode(RM_ESC_VID_HEAP_CONTROL, 184, by_pitch).bytes, 4 * MIB);
        by_pitch[15] = 0xFFFFFFFF; /* below zero */
        ASSERT_TRUE(decode(RM_ESC_VID_HEAP_CONTROL, 184, by_pitch).overflow);
        by_pitch[14] = 0xFFFFFFFF;
        by_pitch[15] = 0x7FFFFFFF;
        ASSERT_TRUE(decode(RM_ESC_VID_HEAP_CONTROL, 184, by_pitch).overflow);
}

/* 184 bytes with another number at each place where some function has its size. */
static void heap_bytes(uint8_t h[static 184], uint32_t function) {
        static const struct {
                unsigned at;
                uint64_t value;
        } fields[] = {{0, 1}, {4, 2}, {44, 9}, {72, 3 * MIB}, {80, 5 * MIB}, {88, 7 * MIB}, {96, 11 * MIB}};

        memset(h, 0, 184);
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
                memcpy(h + fields[i].at, &fields[i].value, 8);
        memset(h + 52, 0, 20); /* flags, attr and what is behind it */
        memcpy(h + 8, &function, 4);
        if (function == 6) {
                memcpy(h + 56, &(uint32_t){1024}, 4); /* height */
                memcpy(h + 60, &(uint32_t){2048}, 4); /* pitch */
        }
}

/* Each function code, with the offsets of nvos.h (NVOS32_PARAMETERS) as numbers. */
static void decodes_each_heap_function(void) {
        static const struct {
                uint32_t function;
                RmKind kind;
                uint64_t bytes;
                unsigned attr_at, taken_at;
        } cases[] = {{2, RM_ALLOC_VIDMEM, 7 * MIB, 56, 88},
                     {3, RM_FREE_OBJECT, 0, 0, 0},
                     {5, RM_QUERY_HEAP, 0, 0, 0},
                     {6, RM_ALLOC_VIDMEM, 2 * MIB, 64, 88},
                     {14, RM_ALLOC_VIDMEM, 5 * MIB, 56, 80},
                     {11, RM_OTHER, 0, 0, 0},
                     {15, RM_OTHER, 0, 0, 0},
                     {16, RM_OTHER, 0, 0, 0},
                     {18, RM_OTHER, 0, 0, 0},
                     {19, RM_OTHER, 0, 0, 0},
                     {20, RM_OTHER, 0, 0, 0},
                     {27, RM_OTHER, 0, 0, 0}};
        uint64_t taken = 64 * MIB;
        uint8_t h[184];

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                RmRequest request;

                heap_bytes(h, cases[i].function);
                request = decode(RM_ESC_VID_HEAP_CONTROL, sizeof h, h);
                ASSERT_INT(request.kind, cases[i].kind);
                ASSERT_INT(request.bytes, cases[i].bytes);
                if (cases[i].kind == RM_OTHER)
                        continue;
                ASSERT_INT(request.client, 1);
                ASSERT_INT(request.object, 9);
                if (cases[i].kind != RM_ALLOC_VIDMEM)
                        continue;
                memcpy(h + cases[i].taken_at, &taken, 8);
                ASSERT_INT(rm_taken(&request, h, NULL, 0), taken);
                memcpy(h + cases[i].attr_at, &(uint32_t){1u << 25}, 4); /* memory of the machine */
                ASSERT_INT(decode(RM_ESC_VID_HEAP_CONTROL, sizeof h, h).kind, RM_OTHER);
        }
}

/* Also with their sizes off by one. */
static void knows_parameters_by_size(void) {
        static const struct {
                uint32_t cmd;
                uint32_t size;
                RmKind kind;
                RmAction action;
        } cases[] = {{0x3D05, 24, RM_EXPORT, RM_TRACK_EXPORT},
                     {0x3D0B, 2128, RM_EXPORT_MANY, RM_TRACK_EXPORT},
                     {0x3D06, 20, RM_IMPORT, RM_MEASURE},
                     {0x3D0C, 652, RM_IMPORT_MANY, RM_MEASURE},
                     {0x3D08, 80, RM_OTHER, RM_FORWARD},
                     {0x3D0A, 76, RM_OTHER, RM_FORWARD},
                     {0x80003D05, 24, RM_OTHER, RM_FORWARD},
                     {0x3D05, 28, RM_EXPORT, RM_REFUSE},
                     {0x3D0B, 4176, RM_EXPORT_MANY, RM_REFUSE},
                     {0x3D06, 0, RM_IMPORT, RM_REFUSE},
                     {0x3D0C, 651, RM_IMPORT_MANY, RM_REFUSE},
                     {0x3D08, 84, RM_OTHER, RM_FORWARD},
                     {0xA06C0103, 8, RM_SET_TIMESLICE, RM_SCHEDULE},
                     {0x20801210, 32, RM_SET_PREEMPTION, RM_SCHEDULE},
                     {0x2080110B, 536, RM_SET_CHANNELS, RM_SCHEDULE}};

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                RmControl c = {.client = 1,
                               .object = 1,
                               .cmd = cases[i].cmd,
                               .params = 4096,
                               .params_size = cases[i].size};
                RmRequest request = decode(RM_ESC_CONTROL, sizeof c, &c);
                RmVerdict verdict = rm_admit(&request, NULL);

                ASSERT_INT(request.kind, cases[i].kind);
                ASSERT_INT(verdict.action, cases[i].action);
                ASSERT_INT(verdict.status, cases[i].action == RM_REFUSE ? RM_ERR_INVALID_ARGUMENT : RM_OK);
                for (int off = -1; cases[i].action != RM_REFUSE && off <= 1; off += 2) {
                        request.params_size = cases[i].size + (uint32_t) off;
                        ASSERT_INT(rm_admit(&request, NULL).action,
                                   cases[i].kind == RM_OTHER ? RM_FORWARD : RM_REFUSE);
                }
        }
}

static void rounds_like_the_driver(void) {
        static const struct {
                uint64_t bytes, rounded;
        } cases[] = {{0, 64 * KIB},
                     {1, 64 * KIB},
                     {64 * KIB, 64 * KIB},
                     {64 * KIB + 1, 128 * KIB},
                     {2 * MIB - 1, 2 * MIB},
                     {2 * MIB, 2 * MIB},
                     {2 * MIB + 1, 4 * MIB},
                     {UINT64_C(1) << 50, UINT64_C(1) << 50},
                     {(UINT64_C(1) << 50) + 1, UINT64_MAX},
                     {UINT64_MAX, UINT64_MAX}};

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                ASSERT_INT(rm_round(cases[i].bytes), cases[i].rounded);
}

static void admits_up_to_the_limit(void) {
        RmSliceInfo known = {.sliced = true, .limit = 10 * MIB, .group_bytes = MIB}, none = {.sliced = false};
        RmRequest fits = alloc_of(0x40, 10 * MIB), over = alloc_of(0x40, 10 * MIB + 1),
                  wild = alloc_of(0x40, UINT64_MAX);
        RmRequest group = alloc_of(0xA06C, 0);
        RmVerdict v = rm_admit(&fits, &known);

        ASSERT_INT(v.action, RM_CHARGE);
        ASSERT_INT(v.bytes, 10 * MIB);
        v = rm_admit(&over, &known);
        ASSERT_INT(v.action, RM_REFUSE);
        ASSERT_INT(v.status, RM_ERR_NO_MEMORY);
        ASSERT_INT(rm_admit(&wild, &known).action, RM_REFUSE);
        ASSERT_INT(rm_admit(&fits, &none).action, RM_REFUSE);
        ASSERT_INT(rm_admit(&fits, NULL).action, RM_REFUSE);
        ASSERT_INT(rm_admit(&group, &known).bytes, MIB);
        known.limit = 0;
        ASSERT_INT(rm_admit(&group, &known).action, RM_REFUSE);
}

static RmRequest scheduling(uint32_t cmd, uint32_t size) {
        RmControl c = {.client = 1, .object = 2, .cmd = cmd, .params = 4096, .params_size = size};

        return decode(RM_ESC_CONTROL, sizeof c, &c);
}

/* Offsets as in ctrla06c.h, ctrl2080gr.h and ctrl2080fifo.h. */
static void limits_scheduling(void) {
        static const struct {
                uint64_t asked, forwarded;
        } slices[] = {{0, 0}, {1, 1}, {1024, 1024}, {2048, 2048}, {2049, 2048}, {UINT64_MAX, 2048}};
        static const struct {
                uint32_t flags, compute, status;
        } modes[] = {{1, 2, RM_OK},
                     {1, 1, RM_ERR_NOT_SUPPORTED},
                     {1, 0, RM_ERR_NOT_SUPPORTED},
                     {2, 0, RM_OK},
                     {3, 2, RM_OK},
                     {3, 0, RM_ERR_NOT_SUPPORTED},
                     {0, 0, RM_OK},
                     {1, 3, RM_OK}};
        RmRequest timeslice = scheduling(0xA06C0103, 8), mode = scheduling(0x20801210, 32),
                  channels = scheduling(0x2080110B, 536);
        uint32_t params[134] = {0};

        for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
                uint64_t usec = slices[i].asked;

                ASSERT_INT(rm_admit_scheduling(&timeslice, &usec), RM_OK);
                ASSERT_INT(usec, slices[i].forwarded);
        }
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
                uint32_t sent[8] = {modes[i].flags, 7, 1, modes[i].compute}, kept[8];

                memcpy(kept, sent, sizeof kept);
                ASSERT_INT(rm_admit_scheduling(&mode, sent), modes[i].status);
                ASSERT_TRUE(memcmp(kept, sent, sizeof kept) == 0);
        }
        params[1] = 64;
        ASSERT_INT(rm_admit_scheduling(&channels, params), RM_OK);
        params[1] = 65;
        ASSERT_INT(rm_admit_scheduling(&channels, params), RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(offsetof(RmDisableChannels, clients), 24);
        ASSERT_INT(offsetof(RmDisableChannels, channels), 280);
        mode = scheduling(0xA06C0105, 8); /* PREEMPT */
        ASSERT_INT(mode.kind, RM_OTHER);
}

/* Unknown controls, also those with bit 0x8000. */
static void forwards_the_rest(void) {
        static const uint32_t commands[] = {0, 0x20808301, 0x2080014A, 0x2080018D, 0x80028B, 0xFFFFFFFF};

        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
                RmControl c = {.client = 1, .object = 2, .cmd = commands[i]};
                RmRequest request = decode(RM_ESC_CONTROL, sizeof c, &c);

                ASSERT_INT(request.kind, RM_OTHER);
                ASSERT_INT(rm_admit(&request, NULL).action, RM_FORWARD);
        }
}

static void charges_channels_without_a_group(void) {
        RmSliceInfo known = {.sliced = true, .limit = 10 * MIB, .group_bytes = MIB};
        RmAlloc a = {.root = 1, .parent = 2, .class_ = 0xC86F};
        uint32_t object[5] = {1, 2, 3, 0xC86F};
        RmRequest request = decode(RM_ESC_ALLOC, sizeof a, &a);

        ASSERT_TRUE(rm_needs_card(&request));
        ASSERT_INT(rm_admit(&request, &known).action, RM_CHARGE);
        ASSERT_INT(rm_admit(&request, &known).bytes, MIB);
        known.grouped = true;
        ASSERT_INT(rm_admit(&request, &known).action, RM_FORWARD);
        known = (RmSliceInfo){.sliced = true};
        ASSERT_INT(rm_admit(&request, &known).action, RM_REFUSE);
        request.kind = RM_ALLOC_CHANNEL_GROUP; /* without a slice not even a group of 0 bytes */
        ASSERT_INT(rm_admit(&request, &known).action, RM_REFUSE);
        ASSERT_INT(decode(RM_ESC_ALLOC_OBJECT, 20, object).kind, RM_OTHER);
}

static void charges_by_the_answer(void) {
        RmRequest request = alloc_of(0x40, MIB + 1);
        RmMemoryParams p = {.size = 2 * MIB};
        RmHeap h = {.function = RM_HEAP_ALLOC_SIZE, .size = 100};

        ASSERT_INT(rm_taken(&request, &h, &p, sizeof p), 2 * MIB);
        p.size = UINT64_C(512) * MIB;
        ASSERT_INT(rm_taken(&request, &h, &p, sizeof p), UINT64_C(512) * MIB);
        p.size = 5; /* less than was asked for: impossible */
        ASSERT_INT(rm_taken(&request, &h, &p, sizeof p), rm_round(MIB + 1));
        p.size = UINT64_MAX;
        ASSERT_INT(rm_taken(&request, &h, &p, sizeof p), rm_round(MIB + 1));
        ASSERT_INT(rm_taken(&request, &h, &p, 8), rm_round(MIB + 1));
        request = decode(RM_ESC_VID_HEAP_CONTROL, sizeof h, &h);
        h.size = 4096;
        ASSERT_INT(rm_taken(&request, &h, NULL, 0), 4096);
}

static void finds_status_and_handle(void) {
        uint8_t outer[RM_OUTER_MAX];
        static const struct {
                uint32_t nr, size, status, handle;
        } cases[] = {{0x2B, 32, 28, 8}, {0x2B, 48, 40, 8}, {0x27, 56, 40, 8}, {0x28, 20, 16, 8},
                     {0x29, 16, 12, 8}, {0x2A, 32, 28, 8}, {0x34, 28, 24, 8}, {0x4A, 184, 20, 44}};

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                RmRequest request = {.nr = cases[i].nr, .size = cases[i].size};
                uint32_t value = 0xC0FFEE;

                memset(outer, 0, sizeof outer);
                rm_set_status(&request, outer, 0x51);
                ASSERT_INT(outer[cases[i].status], 0x51);
                ASSERT_INT(rm_status(&request, outer), 0x51);
                memcpy(outer + cases[i].handle, &value, 4);
                ASSERT_INT(rm_new_handle(&request, outer), value);
        }
}

int main(void) {
        return TEST_MAIN(TEST(decodes_bytes), TEST(knows_sizes), TEST(refuses_unknown_calls),
                         TEST(knows_classes), TEST(no_parent_means_the_client),
                         TEST(alloc_object_makes_no_memory), TEST(decodes_the_heap),
                         TEST(decodes_each_heap_function), TEST(knows_parameters_by_size),
                         TEST(rounds_like_the_driver), TEST(admits_up_to_the_limit), TEST(limits_scheduling),
                         TEST(forwards_unknown_classes), TEST(forwards_the_rest),
                         TEST(charges_channels_without_a_group), TEST(charges_by_the_answer),
                         TEST(finds_status_and_handle));
}
