/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <stdbool.h>
#include <stdlib.h>

#include "bytes.h"
#include "gpu/rm/export.h"
#include "names.h"
#include "preload/memory/admit.h"
#include "vector.h"

enum { STATUSES = 6, SIZES = 1024, INDICES = 512, MAPPINGS = 256 };

typedef enum Kind { KIND_RM, KIND_UVM } Kind;

typedef struct Row { /* calls that differ in their data only */
        Kind kind;
        uint32_t nr,
                sub; /* sub: the class of an allocation, the number of a control, the function of the heap's */
        uint64_t n, first, last, ns, ns_max;
        uint32_t size_min, size_max, inner_min, inner_max;
        uint64_t driver_chose, outer_on_heap, inner_on_heap, transfers;
        uint32_t statuses[STATUSES];
        unsigned n_statuses;
} Row;

typedef struct Pair { /* a count of equal pairs */
        uint64_t a, b, c, n;
} Pair;

typedef struct Block { /* live memory of the card */
        uint64_t pid;
        uint32_t client, parent, handle;
        uint64_t bytes;
} Block;

struct Table {
        Row *rows;
        size_t n_rows;
        Pair sizes[SIZES];     /* asked, got, attr */
        Pair indices[INDICES]; /* control, index */
        size_t n_sizes, n_indices;
        TraceEvent *mappings; /* without bytes */
        size_t n_mappings, more_mappings;
        Block *blocks; /* live objects, with their parents; bytes 0: they hold none */
        size_t n_blocks;
        uint64_t live, peak, events, unknown;
};

Table *table_new(void) {
        return calloc(1, sizeof(Table));
}

void table_free(Table *t) {
        if (!t)
                return;
        free(t->rows);
        free(t->mappings);
        free(t->blocks);
        free(t);
}

/* ---- rows ---- */

static uint32_t sub_of(const TraceEvent *e) {
        switch (e->nr) {
        case RM_ESC_ALLOC:
        case RM_ESC_ALLOC_MEMORY:
        case RM_ESC_ALLOC_OBJECT:
                return event32(e->outer.before, e->outer.n, offsetof(RmAlloc, class_));
        case RM_ESC_CONTROL:
        case RM_ESC_VID_HEAP_CONTROL:
                return event32(e->outer.before, e->outer.n, offsetof(RmControl, cmd));
        default:
                return 0;
        }
}

static Row *row_of(Table *t, Kind kind, uint32_t nr, uint32_t sub) {
        Row *grown;

        for (size_t i = 0; i < t->n_rows; i++)
                if (t->rows[i].kind == kind && t->rows[i].nr == nr && t->rows[i].sub == sub)
                        return &t->rows[i];
        grown = reallocarray(t->rows, t->n_rows + 1, sizeof *grown);
        if (!grown)
                return NULL;
        t->rows = grown;
        t->rows[t->n_rows] =
                (Row){.kind = kind, .nr = nr, .sub = sub, .size_min = UINT32_MAX, .inner_min = UINT32_MAX};
        return &t->rows[t->n_rows++];
}

static void add_status(Row *row, uint32_t status) {
        for (unsigned i = 0; i < row->n_statuses; i++)
                if (row->statuses[i] == status)
                        return;
        if (row->n_statuses < STATUSES)
                row->statuses[row->n_statuses++] = status;
}

/* The driver's status, if its offset is known; ~0 if the call itself failed. */
static uint32_t status_of(const TraceEvent *e) {
        RmRequest request = {.nr = e->nr, .size = e->size};

        if (e->r < 0)
                return UINT32_MAX;
        return rm_metered(e->nr, e->size) && e->outer.n >= e->size ? rm_status(&request, e->outer.after)
                                                                   : RM_OK;
}

static uint32_t least(uint32_t a, uint32_t b) {
        return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b) {
        return a > b ? a : b;
}

static bool makes_object(const TraceEvent *e) {
        return (e->nr == RM_ESC_ALLOC || e->nr == RM_ESC_DUP_OBJECT || e->nr == RM_ESC_VID_HEAP_CONTROL) &&
               rm_metered(e->nr, e->size) && e->outer.n >= e->size;
}

static void count(Row *row, const TraceEvent *e) {
        RmRequest request = {.nr = e->nr, .size = e->size};

        if (row->n++ == 0)
                row->first = e->at;
        row->last = e->at;
        row->ns += e->ns;
        row->ns_max = e->ns > row->ns_max ? e->ns : row->ns_max;
        row->size_min = least(row->size_min, e->size);
        row->size_max = most(row->size_max, e->size);
        row->inner_min = least(row->inner_min, e->inner_size);
        row->inner_max = most(row->inner_max, e->inner_size);
        row->transfers += (uint64_t) e->transfer;
        row->outer_on_heap += e->where[0] == 'h';
        row->inner_on_heap += e->where[0] != '\0' && e->where[1] == 'h';
        if (row->kind == KIND_RM)
                add_status(row, status_of(e));
        if (row->kind == KIND_RM && makes_object(e) && status_of(e) == RM_OK)
                row->driver_chose += rm_new_handle(&request, e->outer.before) == 0 &&
                                     rm_new_handle(&request, e->outer.after) != 0;
}

/* ---- pairs ---- */

static void add_pair(Pair *pairs, size_t *n, size_t max, uint64_t a, uint64_t b, uint64_t c) {
        for (size_t i = 0; i < *n; i++)
                if (pairs[i].a == a && pairs[i].b == b && pairs[i].c == c) {
                        pairs[i].n++;
                        return;
                }
        if (*n < max)
                pairs[(*n)++] = (Pair){.a = a, .b = b, .c = c, .n = 1};
}

static void add_indices(Table *t, const TraceEvent *e) {
        uint32_t cmd = sub_of(e), n = event32(e->inner.before, e->inner.n, 0);
        const TraceBytes *bytes = cmd == RM_CTRL_FB_INFO_V2 ? &e->inner : &e->list;
        size_t at = cmd == RM_CTRL_FB_INFO_V2 ? offsetof(RmFbInfoV2, list) : 0;

        if (e->nr != RM_ESC_CONTROL || (cmd != RM_CTRL_FB_INFO_V2 && cmd != RM_CTRL_FB_INFO))
                return;
        for (uint32_t i = 0; i < n && at + sizeof(RmFbEntry) <= bytes->n; i++, at += sizeof(RmFbEntry))
                add_pair(t->indices, &t->n_indices, INDICES, cmd, event32(bytes->before, bytes->n, at), 0);
}

/* ---- what lives ---- */

static int add_block(Table *t, const TraceEvent *e, const RmRequest *request, uint64_t bytes) {
        Block *grown = reallocarray(t->blocks, t->n_blocks + 1, sizeof *grown);
        uint32_t handle = rm_new_handle(request, e->outer.after);

        if (!grown)
                return -1;
        t->blocks = grown;
        t->blocks[t->n_blocks++] =
                (Block){.pid = e->pid,
                        .client = request->kind == RM_ALLOC_CLIENT ? handle : request->client,
                        .parent = request->parent,
                        .handle = handle,
                        .bytes = bytes};
        t->live += bytes;
        t->peak = t->live > t->peak ? t->live : t->peak;
        return 0;
}

static void drop_block(Table *t, size_t i) {
        t->live -= t->blocks[i].bytes;
        t->blocks[i] = t->blocks[--t->n_blocks];
}

/* Removes the object and all below it. Parents are older than children, but may come later in the
 * list: the loop runs until nothing changes. */
static void drop_tree(Table *t, uint64_t pid, uint32_t client, uint32_t handle) {
        bool again = true;

        while (again) {
                again = false;
                for (size_t i = 0; i < t->n_blocks && !again; i++) {
                        Block b = t->blocks[i];

                        if (b.pid != pid || b.client != client ||
                            (b.handle != handle && b.parent != handle && handle != client))
                                continue;
                        drop_block(t, i);
                        again = true;
                        if (b.handle != handle && b.handle != 0)
                                drop_tree(t, pid, client, b.handle);
                }
        }
}

static int follow(Table *t, const TraceEvent *e) {
        uint64_t bytes;
        RmRequest request;

        if (!rm_metered(e->nr, e->size) || e->outer.n < e->size || status_of(e) != RM_OK)
                return 0;
        rm_decode(e->nr, e->size, e->outer.before, &request);
        if (request.kind == RM_FREE_OBJECT)
                drop_tree(t, e->pid, request.client, request.object);
        else if (request.kind == RM_ALLOC_CLIENT || request.kind == RM_ALLOC_DEVICE ||
                 request.kind == RM_ALLOC_SUBDEVICE)
                return add_block(t, e, &request, 0);
        else if (request.kind == RM_ALLOC_VIDMEM) {
                rm_decode_inner(&request, e->inner.before, (uint32_t) e->inner.n);
                bytes = rm_taken(&request, e->outer.after, e->inner.after, (uint32_t) e->inner.n);
                add_pair(t->sizes, &t->n_sizes, SIZES, request.bytes, bytes,
                         event32(e->inner.before, e->inner.n, offsetof(RmMemoryParams, attr)));
                return add_block(t, e, &request, bytes);
        }
        return 0;
}

/* ---- events ---- */

static int add_mapping(Table *t, const TraceEvent *e) {
        TraceEvent *grown;

        if (t->n_mappings == MAPPINGS) {
                t->more_mappings++;
                return 0;
        }
        grown = reallocarray(t->mappings, t->n_mappings + 1, sizeof *grown);
        if (!grown)
                return -1;
        t->mappings = grown;
        t->mappings[t->n_mappings++] = *e;
        return 0;
}

int table_add(Table *t, const TraceEvent *e) {
        bool uvm = strncmp(e->file, "nvidia-uvm", 10) == 0;
        Row *row;

        t->events++;
        if (e->verb == TRACE_VECTOR)
                return 0;
        if (e->verb != TRACE_IOCTL)
                return add_mapping(t, e);
        row = row_of(t, uvm ? KIND_UVM : KIND_RM, e->nr, uvm ? 0 : sub_of(e));
        if (!row)
                return -1;
        count(row, e);
        if (uvm)
                return 0;
        t->unknown += vector_is_unknown(e);
        add_indices(t, e);
        return follow(t, e);
}

/* ---- in words ---- */

static const char *sub_words(const Row *row) {
        return row->nr == RM_ESC_CONTROL                                   ? name_of_control(row->sub)
               : row->nr == RM_ESC_ALLOC || row->nr == RM_ESC_ALLOC_MEMORY ? name_of_class(row->sub)
                                                                           : "";
}

static void print_row(const Row *row, FILE *out) {
        bool uvm = row->kind == KIND_UVM;

        (void) fprintf(
                out, "%-4s 0x%02x %-24s 0x%08x %-36s %7llu %9.3f %9.3f %4u..%-4u %5u..%-5u %8llu %9llu",
                uvm ? "uvm" : "rm", row->nr, uvm ? name_of_uvm(row->nr) : name_of_escape(row->nr), row->sub,
                uvm ? "" : sub_words(row), (unsigned long long) row->n, (double) row->first / 1e6,
                (double) row->last / 1e6, row->size_min, row->size_max, row->inner_min, row->inner_max,
                (unsigned long long) (row->ns / row->n), (unsigned long long) row->ns_max);
        for (unsigned i = 0; i < row->n_statuses; i++) {
                const char *words = name_of_status(row->statuses[i]);

                if (words[0])
                        (void) fprintf(out, " %s", words);
                else if (row->statuses[i] == UINT32_MAX)
                        (void) fputs(" (failed)", out);
                else
                        (void) fprintf(out, " 0x%x", row->statuses[i]);
        }
        (void) fputc('\n', out);
}

static int compare(const void *a, const void *b) {
        const Row *x = a, *y = b;

        return x->first < y->first ? -1 : x->first > y->first;
}

static void print_rows(const Table *t, FILE *out) {
        Row *sorted = calloc(t->n_rows > 0 ? t->n_rows : 1, sizeof *sorted);

        (void) fprintf(out, "%-4s %-4s %-24s %-10s %-36s %7s %9s %9s %10s %12s %8s %9s statuses\n", "", "nr",
                       "call", "of", "", "count", "first ms", "last ms", "bytes", "inner", "ns", "max ns");
        for (size_t i = 0; sorted && i < t->n_rows; i++)
                sorted[i] = t->rows[i];
        if (sorted)
                qsort(sorted, t->n_rows, sizeof *sorted, compare);
        for (size_t i = 0; sorted && i < t->n_rows; i++)
                print_row(&sorted[i], out);
        free(sorted);
}

static uint64_t times(const Table *t, uint32_t nr, uint32_t sub) {
        for (size_t i = 0; i < t->n_rows; i++)
                if (t->rows[i].kind == KIND_RM && t->rows[i].nr == nr && t->rows[i].sub == sub)
                        return t->rows[i].n;
        return 0;
}

static void print_sizes(const Table *t, FILE *out) {
        (void) fputs(
                "\nQ1 sizes of class 0x40: asked, got, attr, times; what rm_round() would have charged\n",
                out);
        for (size_t i = 0; i < t->n_sizes; i++)
                (void) fprintf(out, "%14llu %14llu 0x%08llx %7llu %14llu%s\n",
                               (unsigned long long) t->sizes[i].a, (unsigned long long) t->sizes[i].b,
                               (unsigned long long) t->sizes[i].c, (unsigned long long) t->sizes[i].n,
                               (unsigned long long) rm_round(t->sizes[i].a),
                               rm_round(t->sizes[i].a) == t->sizes[i].b ? "" : "  <- differs");
        (void) fprintf(out,
                       "live at the end %llu, at most %llu bytes; of files that are closed nothing is seen\n",
                       (unsigned long long) t->live, (unsigned long long) t->peak);
}

static void print_indices(const Table *t, FILE *out) {
        (void) fputs("\nQ2 indices of FB info\n", out);
        for (size_t i = 0; i < t->n_indices; i++)
                (void) fprintf(out, "0x%08llx 0x%02llx %-24s %7llu\n", (unsigned long long) t->indices[i].a,
                               (unsigned long long) t->indices[i].b, name_of_fb((uint32_t) t->indices[i].b),
                               (unsigned long long) t->indices[i].n);
}

static void print_habits(const Table *t, FILE *out) {
        (void) fputs("\nQ3 handles that the driver chose; Q4 parameters not on the stack (outer, inner); by "
                     "XFER_CMD\n",
                     out);
        for (size_t i = 0; i < t->n_rows; i++) {
                const Row *row = &t->rows[i];

                if (row->driver_chose + row->outer_on_heap + row->inner_on_heap + row->transfers > 0)
                        (void) fprintf(
                                out,
                                "%-3s 0x%02x 0x%08x %-24s of %llu: chosen %llu, heap %llu %llu, xfer %llu\n",
                                row->kind == KIND_UVM ? "uvm" : "rm", row->nr, row->sub, sub_words(row),
                                (unsigned long long) row->n, (unsigned long long) row->driver_chose,
                                (unsigned long long) row->outer_on_heap,
                                (unsigned long long) row->inner_on_heap, (unsigned long long) row->transfers);
        }
}

static void print_doors(const Table *t, FILE *out) {
        static const uint32_t travel[] = {0x3D05, 0x3D06, 0x3D08, 0x3D0A, 0x3D0B, 0x3D0C};
        static const uint32_t schedule[] = {RM_CTRL_SET_TIMESLICE, RM_CTRL_PREEMPT, RM_CTRL_DISABLE_CHANNELS,
                                            RM_CTRL_PREEMPTION_MODE};

        (void) fputs("\nQ5 exports and imports\n", out);
        for (size_t i = 0; i < sizeof travel / sizeof *travel; i++)
                (void) fprintf(out, "control 0x%04x %-36s %llu\n", travel[i], name_of_control(travel[i]),
                               (unsigned long long) times(t, RM_ESC_CONTROL, travel[i]));
        (void) fprintf(out, "escapes 0x5c, 0x5d: %llu, %llu\n", (unsigned long long) times(t, 0x5C, 0),
                       (unsigned long long) times(t, 0x5D, 0));
        (void) fputs("\nQ6 controls of the card's time\n", out);
        for (size_t i = 0; i < sizeof schedule / sizeof *schedule; i++)
                (void) fprintf(out, "control 0x%08x %-32s %llu\n", schedule[i], name_of_control(schedule[i]),
                               (unsigned long long) times(t, RM_ESC_CONTROL, schedule[i]));
        (void) fprintf(out, "\nQ7 channel groups: %llu\n",
                       (unsigned long long) times(t, RM_ESC_ALLOC, RM_CLASS_CHANNEL_GROUP));
}

/* in the table with their sizes */
static void print_unknown(const Table *t, FILE *out) {
        (void) fprintf(out,
                       "\nQ9 calls that the gate decides about, in sizes that it does not know: %llu%s\n",
                       (unsigned long long) t->unknown, t->unknown > 0 ? "  <- these pass it unseen" : "");
}

static void print_mappings(const Table *t, FILE *out) {
        static const char *const verbs[] = {[TRACE_IOCTL] = "",
                                            [TRACE_MMAP] = "mmap",
                                            [TRACE_MUNMAP] = "munmap",
                                            [TRACE_MPROTECT] = "mprotect"};

        (void) fputs("\nQ8 mappings: of the driver's files, reservations, and what becomes of them\n", out);
        for (size_t i = 0; i < t->n_mappings; i++) {
                const TraceEvent *e = &t->mappings[i];
                uint64_t at = e->verb == TRACE_MMAP && e->r != 0 ? (uint64_t) e->r : e->addr;

                (void) fprintf(out, "%-8s %-14s 0x%llx length %llu prot %u flags 0x%x offset 0x%llx%s\n",
                               verbs[e->verb], e->file, (unsigned long long) at,
                               (unsigned long long) e->length, e->prot, e->flags,
                               (unsigned long long) e->offset,
                               e->verb == TRACE_MMAP && e->offset == at ? " = the address" : "");
        }
        if (t->more_mappings > 0)
                (void) fprintf(out, "and %zu more\n", t->more_mappings);
}

void table_print(const Table *t, FILE *out) {
        (void) fprintf(out, "%llu events\n", (unsigned long long) t->events);
        print_rows(t, out);
        print_sizes(t, out);
        print_indices(t, out);
        print_habits(t, out);
        print_doors(t, out);
        print_mappings(t, out);
        print_unknown(t, out);
}
