/* SPDX-License-Identifier: Apache-2.0 */

/* Decodes recorded calls of real programs again, and compares with the driver's answers:
 * test-golden FILE... The files are made by rm-trace (tests/gpu): simulator.txt on the simulated
 * driver, the others on cards. */

#include "gpu/rm/export.h"
#include "preload/memory/admit.h"
#include "preload/memory/rewrite.h"
#include "test.h"
#include "trace/bytes.h"
#include "trace/line.h"
#include "trace/vector.h"

#define MIB (UINT64_C(1) << 20)

typedef struct Vector {
        TraceEvent e;
        RmRequest request;
        uint32_t status;
} Vector;

static void check_memory(Vector *v) {
        RmSliceInfo room = {.sliced = true, .limit = UINT64_C(1) << 50, .group_bytes = 2 * MIB},
                    none = {.sliced = true};
        const TraceBytes *inner = &v->e.inner;
        RmVerdict verdict;
        uint64_t taken;

        rm_decode_inner(&v->request, inner->before, (uint32_t) inner->n);
        verdict = rm_admit(&v->request, &room);
        ASSERT_INT(verdict.action, RM_CHARGE);
        ASSERT_INT(rm_admit(&v->request, &none).action, RM_REFUSE);
        if (v->status != RM_OK)
                return;
        taken = rm_taken(&v->request, v->e.outer.after, inner->after, (uint32_t) inner->n);
        if (v->e.nr == RM_ESC_ALLOC) /* the driver's figure, not the gate's rounding */
                ASSERT_INT(taken, event64(inner->after, inner->n, offsetof(RmMemoryParams, size)));
        ASSERT_TRUE(taken >= v->request.bytes);
        /* Without a requested page size, the reservation is what the driver takes; with one, the
         * rest is charged afterwards. */
        if (v->e.nr == RM_ESC_ALLOC &&
            (event32(inner->before, inner->n, offsetof(RmMemoryParams, attr)) >> RM_ATTR_PAGE_SHIFT &
             RM_ATTR_PAGE_MASK) == RM_ATTR_PAGE_DEFAULT)
                ASSERT_INT(verdict.bytes, taken);
}

/* The gate can reduce every answer, and finds the figures at the known offsets. */
static void check_fb(const Vector *v) {
        RewriteView view = {.limit = 512 * MIB, .used = 100 * MIB};
        bool inline_ = v->request.kind == RM_QUERY_FB;
        const TraceBytes *bytes = inline_ ? &v->e.inner : &v->e.list;
        size_t at = inline_ ? offsetof(RmFbInfoV2, list) : 0;
        uint32_t n = event32(v->e.inner.before, v->e.inner.n, 0);

        ASSERT_TRUE(v->e.inner_size >= (inline_ ? offsetof(RmFbInfoV2, list) : sizeof(RmFbInfo)));
        for (uint32_t i = 0; i < n; i++, at += sizeof(RmFbEntry)) {
                uint32_t index = event32(bytes->before, bytes->n, at),
                         data = event32(bytes->after, bytes->n, at + offsetof(RmFbEntry, data));

                ASSERT_TRUE(at + sizeof(RmFbEntry) <= bytes->n);
                ASSERT_INT(event32(bytes->after, bytes->n, at), index);
                ASSERT_TRUE(rewrite_fb(&view, index, data) <= data);
        }
}

static RmAction wanted(RmKind what) {
        static const RmAction actions[] = {
                [RM_OTHER] = RM_FORWARD,
                [RM_ALLOC_CLIENT] = RM_REMEMBER,
                [RM_ALLOC_DEVICE] = RM_REMEMBER,
                [RM_ALLOC_SUBDEVICE] = RM_REMEMBER,
                [RM_ALLOC_VIDMEM] = RM_CHARGE,
                [RM_ALLOC_CHANNEL_GROUP] = RM_CHARGE,
                [RM_FREE_OBJECT] = RM_FORGET,
                [RM_DUPLICATE] = RM_MEASURE,
                [RM_EXPORT] = RM_TRACK_EXPORT,
                [RM_EXPORT_MANY] = RM_TRACK_EXPORT,
                [RM_IMPORT] = RM_MEASURE,
                [RM_IMPORT_MANY] = RM_MEASURE,
                [RM_QUERY_FB] = RM_REWRITE,
                [RM_QUERY_FB_LIST] = RM_REWRITE,
                [RM_QUERY_REGIONS] = RM_REWRITE,
                [RM_QUERY_HEAP] = RM_REWRITE,
                [RM_QUERY_HEAP_LIMIT] = RM_REWRITE,
                [RM_SET_TIMESLICE] = RM_SCHEDULE,
                [RM_SET_PREEMPTION] = RM_SCHEDULE,
                [RM_SET_CHANNELS] = RM_SCHEDULE,
                [RM_ALLOC_CHANNEL] = RM_CHARGE,
        };

        return actions[what];
}

static void check(Vector *v) {
        RmSliceInfo room = {.sliced = true, .limit = UINT64_C(1) << 50, .group_bytes = 2 * MIB};

        ASSERT_INT(v->e.verb, TRACE_VECTOR);
        ASSERT_TRUE(rm_metered(v->e.nr, v->e.size)); /* an unknown size passes the gate by */
        ASSERT_INT(v->e.outer.n, v->e.size);
        rm_decode(v->e.nr, v->e.size, v->e.outer.before, &v->request);
        ASSERT_TEXT(vector_what(&v->e), v->e.what);
        v->status = rm_status(&(RmRequest){.nr = v->e.nr, .size = v->e.size}, v->e.outer.after);
        if (v->request.kind == RM_ALLOC_VIDMEM)
                check_memory(v);
        else
                ASSERT_INT(rm_admit(&v->request, &room).action, wanted(v->request.kind));
        if ((v->request.kind == RM_QUERY_FB || v->request.kind == RM_QUERY_FB_LIST) && v->status == RM_OK)
                check_fb(v);
        if (v->request.kind >= RM_ALLOC_CLIENT && v->request.kind <= RM_ALLOC_CHANNEL && v->status == RM_OK)
                ASSERT_TRUE(rm_new_handle(&v->request, v->e.outer.after) != 0);
}

static void check_file(const char *path) {
        FILE *f = fopen(path, "re");
        unsigned vectors = 0, lines = 0;
        static Vector v;
        char *line = NULL;
        size_t size = 0;
        int parsed;

        ASSERT_TRUE(f != NULL);
        while (getline(&line, &size, f) > 0) {
                line[strcspn(line, "\n")] = '\0';
                lines++;
                parsed = trace_parse(line, &v.e);
                if (parsed < 0)
                        TEST_FAIL_("%s:%u: no vector", path, lines);
                if (parsed == 0) {
                        check(&v);
                        vectors++;
                }
        }
        free(line);
        (void) fclose(f);
        ASSERT_TRUE(vectors > 0);
        printf("ok %u vectors of %s\n", vectors, path);
}

/* ---- invalid lines ---- */

static void parses(void) {
        TraceEvent e;

        ASSERT_INT(
                trace_parse(
                        "ioctl pid=1 tid=0x2 at=3 ns=4 file=nvidiactl nr=0x2b size=32 r=-22 outer=00ff/01fe",
                        &e),
                0);
        ASSERT_INT(e.verb, TRACE_IOCTL);
        ASSERT_INT(e.tid, 2);
        ASSERT_INT(e.r, -22);
        ASSERT_INT(e.outer.n, 2);
        ASSERT_INT(e.outer.before[1], 0xFF);
        ASSERT_INT(e.outer.after[1], 0xFE);
        ASSERT_INT(trace_parse("", &e), 1);
        ASSERT_INT(trace_parse("# words", &e), 1);
        ASSERT_INT(trace_parse("vector outer=/", &e), 0);
}

static void refuses(void) {
        static const char *const lines[] = {"open pid=1",
                                            "ioctl pid",
                                            "ioctl pid=",
                                            "ioctl pid=-1",
                                            "ioctl pid=1x",
                                            "ioctl nr=0x100000000",
                                            "ioctl unknown=1",
                                            "ioctl outer=0",
                                            "ioctl outer=00",
                                            "ioctl outer=00/0",
                                            "ioctl outer=00/0011",
                                            "ioctl outer=zz/00",
                                            "ioctl outer=0/0",
                                            "ioctl where=shx",
                                            "ioctl xfer=2",
                                            "ioctl r=--1",
                                            "ioctl r=9223372036854775808",
                                            "ioctl file=a-name-that-is-longer-than-any-file-of-the-driver"};
        char long_[TRACE_LINE + 64];
        TraceEvent e;

        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
                if (trace_parse(lines[i], &e) != -1)
                        TEST_FAIL_("taken: %s", lines[i]);
        memset(long_, '0', sizeof long_);
        memcpy(long_, "ioctl outer=", 12);
        long_[12 + 2 * (TRACE_OUTER + 1)] = '/'; /* one byte too many */
        long_[12 + 4 * (TRACE_OUTER + 1) + 1] = '\0';
        ASSERT_INT(trace_parse(long_, &e), -1);
        memset(long_, ' ', sizeof long_);
        memcpy(long_, "ioctl", 5);
        long_[sizeof long_ - 1] = '\0';
        ASSERT_INT(trace_parse(long_, &e), -1);
}

int main(int argc, char **argv) {
        for (int i = 1; i < argc; i++)
                check_file(argv[i]);
        return TEST_MAIN(TEST(parses), TEST(refuses));
}
