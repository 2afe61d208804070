/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/smi_print.h"
#include "gpu/cards/out_of_service.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define MIB (UINT64_C(1) << 20)

enum { COMM_MAX = 64 }; /* most bytes of a name that are read; TASK_COMM_LEN is 16 */

/* A card and the sums of its slices. */
typedef struct CardSum {
        uint32_t index, core;
        const char *uuid, *model;
        uint64_t total, allocated, used; /* bytes */
        uint64_t driver;                 /* used bytes by the driver's count; 0: not known */
        const HostCard *card;            /* NULL: the driver does not report it */
        size_t n_slices;
} CardSum;

typedef struct CardSums {
        CardSum list[SLICEDIR_CARDS_MAX + SLICEDIR_CARDS_MAX];
        size_t n;
} CardSums;

static CardSum *sum_of(CardSums *sums, const SmiSlice *s) {
        for (size_t i = 0; i < sums->n; i++)
                if (strncmp(sums->list[i].uuid, s->uuid, SLICE_UUID) == 0)
                        return &sums->list[i];
        if (sums->n == ELEMENTSOF(sums->list))
                return NULL;
        sums->list[sums->n] =
                (CardSum){.index = s->card, .uuid = s->uuid, .model = "", .total = s->card_bytes};
        return &sums->list[sums->n++];
}

static void add_up(CardSums *sums, const HostCards *cards, const SmiSlices *slices) {
        for (uint32_t i = 0; i < cards->n; i++) {
                const HostCard *c = &cards->cards[i];

                sums->list[sums->n++] = (CardSum){.index = c->index,
                                                  .uuid = c->uuid,
                                                  .model = c->model,
                                                  .total = c->bytes,
                                                  .driver = c->used,
                                                  .card = c};
        }
        for (size_t i = 0; i < slices->n; i++) {
                CardSum *sum = sum_of(sums, &slices->list[i]);

                if (!sum)
                        continue;
                sum->allocated += slices->list[i].limit;
                sum->used += slices->list[i].damaged ? 0 : slices->list[i].used;
                sum->core += slices->list[i].core;
                sum->n_slices++;
        }
}

static const CardSum *find_sum(const CardSums *sums, Str uuid) {
        for (size_t i = 0; i < sums->n; i++)
                if (str_eq(str_from(sums->list[i].uuid), uuid))
                        return &sums->list[i];
        return NULL;
}

/* Returns the bytes that processes hold outside of these slices. */
static uint64_t outside_of(const CardSum *c) {
        return host_cards_outside(&(HostCard){.used = c->driver, .held = c->used});
}

static bool is_in_slice(const SmiSlices *slices, uint32_t pid) {
        for (size_t i = 0; i < slices->n; i++)
                for (size_t k = 0; k < slices->list[i].processes.n && k < PROCESSES_MAX; k++)
                        if (slices->list[i].processes.pids[k] == (pid_t) pid)
                                return true;
        return false;
}

/* Returns the next process from *at on that the driver names and that is in none of these slices;
 * NULL: none. */
static const HostHolder *next_outside(const CardSum *c, const SmiSlices *slices, uint32_t *at) {
        while (c->card && *at < c->card->n_holders) {
                const HostHolder *h = &c->card->holders[(*at)++];

                if (!is_in_slice(slices, h->pid))
                        return h;
        }
        return NULL;
}

static uint64_t free_of(const CardSum *c) {
        return c->total > c->allocated ? c->total - c->allocated : 0;
}

/* ---- for people ---- */

enum {
        CARD_NAME,
        CARD_MODEL,
        CARD_BAR,
        CARD_TOTAL,
        CARD_ALLOCATED,
        CARD_FREE,
        CARD_USED,
        CARD_CORE,
        CARD_SLICES,
        CARD_COLUMNS
};

static const GridColumn card_columns[CARD_COLUMNS] = {
        [CARD_NAME] = {.title = "CARD"},
        [CARD_MODEL] = {.title = "MODEL", .shrink_to = 12, .drop = 4},
        [CARD_BAR] = {.title = "MEMORY (MiB)", .bar = true, .drop = 1},
        [CARD_TOTAL] = {.title = "TOTAL", .right = true},
        [CARD_ALLOCATED] = {.title = "ALLOCATED", .right = true},
        [CARD_FREE] = {.title = "FREE", .right = true},
        [CARD_USED] = {.title = "USED", .right = true},
        [CARD_CORE] = {.title = "CORE", .right = true, .drop = 3},
        [CARD_SLICES] = {.title = "SLICES", .right = true, .drop = 2},
};

static void mib_cell(Grid *g, size_t column, uint64_t bytes) {
        grid_textf(g, column, GRID_PLAIN, "%" PRIu64, bytes / MIB);
}

static void card_row(Grid *g, const CardSum *c) {
        grid_row(g);
        grid_textf(g, CARD_NAME, GRID_PLAIN, "GPU%" PRIu32, c->index);
        grid_text(g, CARD_MODEL, str_from(c->model[0] ? c->model : "-"), GRID_PLAIN);
        grid_bar(g, CARD_BAR, c->allocated, c->total);
        mib_cell(g, CARD_TOTAL, c->total);
        mib_cell(g, CARD_ALLOCATED, c->allocated);
        grid_textf(g, CARD_FREE, free_of(c) == 0 ? GRID_DIM : GRID_GOOD, "%" PRIu64, free_of(c) / MIB);
        mib_cell(g, CARD_USED, c->used);
        grid_textf(g, CARD_CORE, c->core > 100 ? GRID_BAD : GRID_PLAIN, "%" PRIu32 "%%", c->core);
        grid_textf(g, CARD_SLICES, GRID_PLAIN, "%zu", c->n_slices);
}

/* Prints "GPU1 takes no new slice: WHY". A card that the driver does not report has its UUID there.
 * The text is from a file, so grid_fold() replaces its control characters by '?'. */
static void print_out_of_service(const CardSums *sums, Str lines, const GridStyle *style, Buf *out) {
        OutOfService o;

        while (out_of_service_next(&lines, &o)) {
                const CardSum *sum = find_sum(sums, o.uuid);
                _cleanup_buf_ Buf text = BUF_NULL;

                if (sum)
                        buf_appendf(&text, "GPU%" PRIu32, sum->index);
                else
                        buf_append_str(&text, o.uuid);
                buf_appendf(&text, " takes no new slice: " STR_FMT, STR_ARG(o.why));
                grid_tone(GRID_WARN, style, out);
                grid_fold(buf_str(&text), style->width, out);
                grid_tone(GRID_PLAIN, style, out);
                out->broken |= text.broken;
        }
}

/* Appends "; by process 4711 (python3) 12316 MiB, 4712 (sh) 300 MiB". A process chooses its own
 * name, so callers replace control characters by '?'. */
static void put_outside(const CardSum *c, const SmiSlices *slices, Buf *text) {
        const HostHolder *h;
        uint32_t at = 0;

        for (size_t n = 0; (h = next_outside(c, slices, &at)); n++) {
                _cleanup_buf_ Buf name = BUF_NULL;
                char path[64];

                (void) snprintf(path, sizeof path, "/proc/%" PRIu32 "/comm", h->pid);
                if (file_read(path, COMM_MAX, &name) < 0)
                        buf_append_str(&name, STR("?"));
                buf_appendf(text, "%s %" PRIu32 " (" STR_FMT ")", n == 0 ? "; by process" : ",", h->pid,
                            STR_ARG(str_trim(buf_str(&name))));
                if (h->bytes != UINT64_MAX)
                        buf_appendf(text, " %" PRIu64 " MiB", h->bytes / MIB);
        }
}

/* Writes memory that no slice counts and no row shows. Nothing where there is none. */
static void write_outside(const CardSum *c, const SmiSlices *slices, Buf *text) {
        if (outside_of(c) == 0)
                return;
        buf_appendf(text,
                    "GPU%" PRIu32 ": processes in none of these slices hold %" PRIu64
                    " MiB; by the driver %" PRIu64 " of %" PRIu64 " MiB are used",
                    c->index, outside_of(c) / MIB, c->driver / MIB, c->total / MIB);
        put_outside(c, slices, text);
}

static void print_outside(const CardSums *sums, const SmiSlices *slices, const GridStyle *style, Buf *out) {
        for (size_t i = 0; i < sums->n; i++) {
                _cleanup_buf_ Buf text = BUF_NULL;

                write_outside(&sums->list[i], slices, &text);
                out->broken |= text.broken;
                if (text.len == 0)
                        continue;
                grid_tone(GRID_WARN, style, out);
                grid_fold(buf_str(&text), style->width, out);
                grid_tone(GRID_PLAIN, style, out);
        }
}

int smi_print_outside(const HostCards *cards, const SmiSlices *slices, Buf *out) {
        CardSums sums = {.n = 0};

        add_up(&sums, cards, slices);
        for (size_t i = 0; i < sums.n; i++) {
                size_t before = out->len;

                write_outside(&sums.list[i], slices, out);
                for (size_t k = before; k < out->len; k++) /* a process chooses its own name */
                        if (out->data[k] == '\n')
                                out->data[k] = '?';
                if (out->len > before)
                        buf_append_char(out, '\n');
        }
        return buf_result(out);
}

static int print_cards(const HostCards *cards, Str out_of_service, const SmiSlices *slices,
                       const GridStyle *style, Buf *out) {
        _cleanup_(grid_done) Grid grid = {.columns = card_columns, .n_columns = CARD_COLUMNS};
        CardSums sums = {.n = 0};

        add_up(&sums, cards, slices);
        int r = 0;

        for (size_t i = 0; i < sums.n; i++)
                card_row(&grid, &sums.list[i]);
        if (sums.n > 0)
                r = grid_print(&grid, grid.n_rows, style, out);
        if (r == 0)
                print_outside(&sums, slices, style, out);
        if (r == 0)
                print_out_of_service(&sums, out_of_service, style, out);
        return r;
}

enum {
        SLICE_NAME,
        SLICE_CARD,
        SLICE_USER,
        SLICE_COMMAND,
        SLICE_AGE,
        SLICE_MEMORY,
        SLICE_PEAK,
        SLICE_REFUSED,
        SLICE_CORE,
        SLICE_PROCESSES,
        SLICE_COLUMNS
};

static const GridColumn slice_columns[SLICE_COLUMNS] = {
        [SLICE_NAME] = {.title = "CONTAINER", .shrink_to = 20},
        [SLICE_CARD] = {.title = "CARD"},
        [SLICE_USER] = {.title = "USER", .shrink_to = 8, .drop = 3},
        [SLICE_COMMAND] = {.title = "COMMAND", .shrink_to = 8, .drop = 4},
        [SLICE_AGE] = {.title = "AGE", .right = true, .drop = 1},
        [SLICE_MEMORY] = {.title = "MEMORY (MiB)", .right = true},
        [SLICE_PEAK] = {.title = "PEAK", .right = true, .drop = 2},
        [SLICE_REFUSED] = {.title = "REFUSED", .right = true, .drop = 6},
        [SLICE_CORE] = {.title = "COMPUTE (%)", .right = true, .drop = 7},
        [SLICE_PROCESSES] = {.title = "PROCESSES", .right = true, .drop = 5},
};

/* Formats "28.7/30". "-" stands for a use that is not known or a limit that there is not; one "-"
 * is printed where both are missing. */
static void compute_cell(Grid *g, const SmiSlice *s) {
        char used[12] = "-", limit[12] = "-";

        if (s->busy >= 0)
                (void) snprintf(used, sizeof used, "%.1f", s->busy);
        if (s->core > 0)
                (void) snprintf(limit, sizeof limit, "%" PRIu32, s->core);
        if (s->busy < 0 && s->core == 0)
                grid_text(g, SLICE_CORE, STR("-"), GRID_PLAIN);
        else
                grid_textf(g, SLICE_CORE, GRID_PLAIN, "%s/%s", used, limit);
}

static void memory_cells(Grid *g, const SmiSlice *s) {
        if (s->damaged) {
                grid_textf(g, SLICE_MEMORY, GRID_BAD, "damaged/%" PRIu64, s->limit / MIB);
                return;
        }
        grid_textf(g, SLICE_MEMORY, GRID_PLAIN, "%" PRIu64 "/%" PRIu64, s->used / MIB, s->limit / MIB);
        mib_cell(g, SLICE_PEAK, s->peak);
        grid_textf(g, SLICE_REFUSED, s->refused > 0 ? GRID_WARN : GRID_PLAIN, "%" PRIu64, s->refused);
}

/* Formats an age as kubectl does, mostly with two or three digits. */
static void age_cell(Grid *g, int64_t age) {
        static const struct {
                int64_t below, unit;
                char name;
        } units[] = {{120, 1, 's'}, {7200, 60, 'm'}, {172800, 3600, 'h'}, {INT64_MAX, 86400, 'd'}};

        for (size_t i = 0; i < ELEMENTSOF(units) && age >= 0; i++)
                if (age < units[i].below) {
                        grid_textf(g, SLICE_AGE, GRID_PLAIN, "%" PRId64 "%c", age / units[i].unit,
                                   units[i].name);
                        return;
                }
}

static void slice_row(Grid *g, const SmiSlice *s) {
        grid_row(g);
        grid_text(g, SLICE_NAME, str_from(s->container), GRID_PLAIN);
        grid_textf(g, SLICE_CARD, GRID_PLAIN, "GPU%" PRIu32, s->card);
        grid_text(g, SLICE_USER, str_from(s->user[0] ? s->user : "-"), GRID_PLAIN);
        grid_text(g, SLICE_COMMAND, str_from(s->command[0] ? s->command : "-"), GRID_PLAIN);
        age_cell(g, s->age);
        memory_cells(g, s);
        compute_cell(g, s);
        grid_textf(g, SLICE_PROCESSES, GRID_PLAIN, "%zu", s->processes.n);
}

static void print_total(const SmiSlices *slices, const GridStyle *style, Buf *out) {
        uint64_t used = 0, limit = 0, refused = 0;
        _cleanup_buf_ Buf text = BUF_NULL;

        for (size_t i = 0; i < slices->n; i++) {
                const SmiSlice *s = &slices->list[i];

                used += s->damaged ? 0 : s->used;
                refused += s->damaged ? 0 : s->refused;
                limit += s->limit;
        }
        buf_appendf(&text, "%zu slice%s: %" PRIu64 " of %" PRIu64 " MiB used, %" PRIu64 " refused", slices->n,
                    slices->n == 1 ? "" : "s", used / MIB, limit / MIB, refused);
        grid_fold(buf_str(&text), style->width, out);
        out->broken |= text.broken;
}

int smi_print_table(const HostCards *cards, Str out_of_service, const SmiSlices *slices,
                    const GridStyle *style, Buf *out) {
        _cleanup_(grid_done) Grid grid = {.columns = slice_columns, .n_columns = SLICE_COLUMNS};
        size_t start = out->len;
        int r = cards ? print_cards(cards, out_of_service, slices, style, out) : 0;

        if (r == 0 && out->len > start)
                buf_append_char(out, '\n');
        for (size_t i = 0; i < slices->n; i++)
                slice_row(&grid, &slices->list[i]);
        if (slices->n == 0)
                buf_append_str(out, STR("No slices.\n"));
        else if (r == 0)
                r = grid_print(&grid, grid.n_rows, style, out);
        if (slices->n > 0)
                print_total(slices, style, out);
        return r < 0 ? r : buf_result(out);
}

/* ---- for programs ---- */

/* Appends a text of the driver. Replaces what JSON would escape. */
static void append_plain(Str text, Buf *out) {
        for (size_t i = 0; i < text.len; i++) {
                char c = text.data[i];

                buf_append_char(out, c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c);
        }
}

static void why_json(const CardSum *c, Str lines, Buf *out) {
        OutOfService o;

        while (out_of_service_next(&lines, &o))
                if (str_eq(str_from(c->uuid), o.uuid)) {
                        buf_append_str(out, STR(",\"outOfService\":\""));
                        append_plain(o.why, out);
                        buf_append_char(out, '"');
                        return;
                }
}

static void outside_json(const CardSum *c, const SmiSlices *slices, Buf *out) {
        const HostHolder *h;
        uint32_t at = 0;

        if (outside_of(c) == 0)
                return;
        buf_appendf(out, ",\"outside\":%" PRIu64 ",\"outsideProcesses\":[", outside_of(c));
        for (size_t n = 0; (h = next_outside(c, slices, &at)); n++)
                buf_appendf(out, "%s%" PRIu32, n > 0 ? "," : "", h->pid);
        buf_append_char(out, ']');
}

static void card_json(const CardSum *c, Str out_of_service, const SmiSlices *slices, Buf *out) {
        buf_appendf(out, "{\"card\":%" PRIu32 ",\"uuid\":\"", c->index);
        append_plain(str_from(c->uuid), out);
        buf_append_str(out, STR("\",\"model\":\""));
        append_plain(str_from(c->model), out);
        buf_appendf(out,
                    "\",\"memory\":{\"total\":%" PRIu64 ",\"allocated\":%" PRIu64 ",\"free\":%" PRIu64
                    ",\"used\":%" PRIu64 "},\"compute\":{\"allocated\":%" PRIu32 "},\"slices\":%zu",
                    c->total, c->allocated, free_of(c), c->used, c->core, c->n_slices);
        outside_json(c, slices, out);
        why_json(c, out_of_service, out);
        buf_append_char(out, '}');
}

static void cards_json(const HostCards *cards, Str out_of_service, const SmiSlices *slices, Buf *out) {
        CardSums sums = {.n = 0};

        add_up(&sums, cards, slices);
        buf_append_str(out, STR("\"cards\":["));
        for (size_t i = 0; i < sums.n; i++) {
                buf_append_str(out, i > 0 ? STR(",") : STR(""));
                card_json(&sums.list[i], out_of_service, slices, out);
        }
        buf_append_str(out, STR("],"));
}

static void slice_json(const SmiSlice *s, Buf *out) {
        buf_appendf(out,
                    "{\"container\":\"%s\",\"card\":%" PRIu32
                    ",\"uuid\":\"%s\",\"user\":\"%s\",\"command\":\"%s\",",
                    s->container, s->card, s->uuid, s->user, s->command);
        if (s->age >= 0)
                buf_appendf(out, "\"age\":%" PRId64 ",", s->age);
        buf_append_str(out, STR("\"memory\":{"));
        if (s->damaged)
                buf_append_str(out, STR("\"damaged\":true,"));
        else
                buf_appendf(out, "\"used\":%" PRIu64 ",\"peak\":%" PRIu64 ",\"refused\":%" PRIu64 ",",
                            s->used, s->peak, s->refused);
        buf_appendf(out, "\"limit\":%" PRIu64 "},\"compute\":{\"limit\":%" PRIu32, s->limit, s->core);
        if (s->busy >= 0)
                buf_appendf(out, ",\"used\":%.1f", s->busy);
        buf_append_str(out, STR("},\"processes\":["));
        for (size_t i = 0; i < s->processes.n && i < PROCESSES_MAX; i++)
                buf_appendf(out, "%s%ld", i > 0 ? "," : "", (long) s->processes.pids[i]);
        buf_append_str(out, STR("]}"));
}

int smi_print_json(const HostCards *cards, Str out_of_service, const SmiSlices *slices, Buf *out) {
        buf_append_char(out, '{');
        if (cards)
                cards_json(cards, out_of_service, slices, out);
        buf_append_str(out, STR("\"slices\":["));
        for (size_t i = 0; i < slices->n; i++) {
                buf_append_str(out, i > 0 ? STR(",") : STR(""));
                slice_json(&slices->list[i], out);
        }
        buf_append_str(out, STR("]}\n"));
        return buf_result(out);
}
