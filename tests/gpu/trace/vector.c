/* SPDX-License-Identifier: Apache-2.0 */
#include "vector.h"

#include <string.h>

#include "bytes.h"
#include "gpu/rm/export.h"
#include "gpu/rm/query.h"
#include "preload/memory/admit.h"

#define ADDRESS_LOW  UINT64_C(0x500000000000) /* where Linux maps programs, libraries, heaps and stacks */
#define ADDRESS_HIGH UINT64_C(0x7FFFFFFFFFFF)
#define MASKED       UINT64_C(0x1000)

static uint32_t control_of(const TraceEvent *e) {
        return e->nr == RM_ESC_CONTROL ? event32(e->outer.before, e->outer.n, offsetof(RmControl, cmd)) : 0;
}

static bool is_of_rm(const TraceEvent *e) {
        switch (e->nr) {
        case RM_ESC_ALLOC_MEMORY:
        case RM_ESC_ALLOC_OBJECT:
        case RM_ESC_FREE:
        case RM_ESC_CONTROL:
        case RM_ESC_ALLOC:
        case RM_ESC_DUP_OBJECT:
        case RM_ESC_VID_HEAP_CONTROL:
                return strncmp(e->file, "nvidia-uvm", 10) != 0;
        default:
                return false;
        }
}

/* ---- masks ---- */

static void mask_words(uint8_t *p, size_t at, size_t n) {
        for (; at + 8 <= n; at += 8) {
                uint64_t value = event64(p, n, at);

                if (value < ADDRESS_LOW || value > ADDRESS_HIGH)
                        continue;
                value = MASKED;
                memcpy(p + at, &value, sizeof value);
        }
}

static void mask_bytes(TraceBytes *b, size_t from) {
        mask_words(b->before, from, b->n);
        mask_words(b->after, from, b->n);
}

/* Structures of the resource manager begin with two handles, and a class, command or function. Two
 * handles may look like an address, and they say what the call is. */
static size_t bytes_of_handles(const TraceEvent *e) {
        return is_of_rm(e) ? 4 * sizeof(uint32_t) : 0;
}

/* Pointers at known offsets, wherever they point to. */
static void mask_pointer(TraceBytes *b, size_t at) {
        uint64_t value = MASKED;

        if (at + sizeof value > b->n || event64(b->before, b->n, at) == 0)
                return;
        memcpy(b->before + at, &value, sizeof value);
        memcpy(b->after + at, &value, sizeof value);
}

void vector_mask(TraceEvent *e) {
        uint32_t cmd = control_of(e);

        mask_bytes(&e->outer, bytes_of_handles(e));
        mask_bytes(&e->inner, 0);
        if (e->nr == RM_ESC_ALLOC || e->nr == RM_ESC_CONTROL)
                mask_pointer(&e->outer, offsetof(RmAlloc, params));
        if (e->nr == RM_ESC_ALLOC && e->size == sizeof(RmAllocRights))
                mask_pointer(&e->outer, offsetof(RmAllocRights, rights));
        if (cmd == RM_CTRL_FB_INFO || cmd == RM_CTRL_SURFACE_INFO)
                mask_pointer(&e->inner, offsetof(RmFbInfo, list));
        if (cmd == RM_CTRL_GID_INFO && e->inner.n > offsetof(RmGidInfo, data))
                memset(e->inner.after + offsetof(RmGidInfo, data), 0, e->inner.n - offsetof(RmGidInfo, data));
}

/* ---- kinds ---- */

bool vector_is_unknown(const TraceEvent *e) {
        return is_of_rm(e) && !rm_metered(e->nr, e->size);
}

const char *vector_what(const TraceEvent *e) {
        static const char *const words[] = {
                [RM_OTHER] = "other",
                [RM_ALLOC_CLIENT] = "client",
                [RM_ALLOC_DEVICE] = "device",
                [RM_ALLOC_SUBDEVICE] = "subdev",
                [RM_ALLOC_VIDMEM] = "memory",
                [RM_ALLOC_CHANNEL_GROUP] = "group",
                [RM_FREE_OBJECT] = "free",
                [RM_DUPLICATE] = "duplicate",
                [RM_EXPORT] = "export",
                [RM_EXPORT_MANY] = "exports",
                [RM_IMPORT] = "import",
                [RM_IMPORT_MANY] = "imports",
                [RM_QUERY_FB] = "fb",
                [RM_QUERY_FB_LIST] = "fb-list",
                [RM_QUERY_REGIONS] = "regions",
                [RM_QUERY_HEAP] = "heap",
                [RM_QUERY_HEAP_LIMIT] = "limit",
                [RM_SET_TIMESLICE] = "schedule",
                [RM_SET_PREEMPTION] = "schedule",
                [RM_SET_CHANNELS] = "schedule",
                [RM_ALLOC_CHANNEL] = "channel",
        };
        _Static_assert(sizeof words / sizeof *words == RM_SET_CHANNELS + 1, "a word for each");
        RmRequest request;

        if (vector_is_unknown(e))
                return "unknown";
        if (!rm_metered(e->nr, e->size) || e->outer.n < e->size)
                return "";
        rm_decode(e->nr, e->size, e->outer.before, &request);
        return words[request.kind];
}

static uint64_t mix(uint64_t seed, uint64_t value) {
        return (seed ^ value) * UINT64_C(0x9E3779B97F4A7C15) + (seed >> 29);
}

static uint64_t kind_of(const TraceEvent *e) {
        RmRequest request = {.nr = e->nr, .size = e->size};
        uint64_t kind = mix(mix(1, e->nr), e->size);
        uint32_t status;

        if (e->nr == RM_ESC_ALLOC || e->nr == RM_ESC_ALLOC_MEMORY)
                kind = mix(kind, event32(e->outer.before, e->outer.n, offsetof(RmAlloc, class_)));
        if (e->nr == RM_ESC_VID_HEAP_CONTROL || e->nr == RM_ESC_CONTROL)
                kind = mix(kind, event32(e->outer.before, e->outer.n, offsetof(RmControl, cmd)));
        if (strcmp(vector_what(e), "memory") == 0)
                kind = mix(kind, mix(event64(e->inner.before, e->inner.n, offsetof(RmMemoryParams, size)),
                                     event32(e->inner.before, e->inner.n, offsetof(RmMemoryParams, attr))));
        status = rm_status(&request, e->outer.after);
        return mix(mix(kind, status == RM_OK ? e->inner_size : 0),
                   status); /* refused ones may be of many sizes */
}

static bool is_new(Vectors *v, uint64_t kind) {
        for (size_t i = 0; i < v->n; i++)
                if (v->seen[i] == kind)
                        return false;
        if (v->n == sizeof v->seen / sizeof *v->seen)
                return false;
        v->seen[v->n++] = kind;
        return true;
}

/* ---- lines ---- */

static void print_hex(FILE *out, const uint8_t *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                (void) fprintf(out, "%02x", p[i]);
}

static void print_bytes(FILE *out, const char *name, const TraceBytes *b) {
        if (b->n == 0)
                return;
        (void) fprintf(out, " %s=", name);
        print_hex(out, b->before, b->n);
        (void) fputc('/', out);
        print_hex(out, b->after, b->n);
}

int vector_add(Vectors *v, const TraceEvent *e) {
        uint32_t cmd = control_of(e);
        TraceEvent masked;

        if (e->verb != TRACE_IOCTL || e->r < 0 || e->transfer || vector_what(e)[0] == '\0' ||
            strncmp(e->file, "nvidia-uvm", 10) == 0 || cmd == RM_CTRL_PIDS || cmd == RM_CTRL_PID_INFO)
                return 0;
        if (!is_new(v, kind_of(e)))
                return 0;
        masked = *e;
        vector_mask(&masked);
        (void) fprintf(v->out, "vector what=%s nr=0x%x size=%u inner-size=%u r=%lld", vector_what(e), e->nr,
                       e->size, e->inner_size, (long long) e->r);
        print_bytes(v->out, "outer", &masked.outer);
        print_bytes(v->out, "inner", &masked.inner);
        print_bytes(v->out, "list", &masked.list);
        return fputc('\n', v->out) == '\n' ? 0 : -1;
}
