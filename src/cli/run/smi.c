/* SPDX-License-Identifier: Apache-2.0 */

/* aliquot-smi: the slices of this machine, or, inside a container, its own. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/run/processes.h"
#include "cli/run/utilization.h"
#include "slice/container_paths.h"
#include "slicedir/slicedir.h"

#define MIB (UINT64_C(1) << 20)

enum { EXIT_NO = 1, EXIT_USAGE = 2, EXIT_BROKEN = 3 };

typedef struct Row {
        char container[256];
        uint32_t card, core;
        uint64_t used, limit, peak, refused; /* bytes, bytes, bytes, reservations */
        /* counters that cannot be read; only the limit is known */
        bool damaged;
        UtilizationSample look;
        double busy; /* percent of the card's time; negative: not known */
        char uuid[SLICE_UUID];
        Processes processes;
} Row;

typedef struct Table {
        Row *rows;
        size_t n;
} Table;

static const char usage[] =
        "Usage: aliquot smi [-o json|table] [--board DIR]\n"
        "\n"
        "Slices: container, card, memory used and limit, compute used over the last "
        "moment and limit, processes.\n"
        "On a machine all of its slices, inside a container, or `aliquot run`, its own.\n";

/* ---- reading ---- */

/* The text is ours or the agent's, and containers cannot write it. Control characters are replaced
 * all the same, because it goes to a terminal. */
static void copy_text(char *to, size_t size, const char *from, size_t from_size) {
        size_t n = strnlen(from, from_size);

        if (n >= size)
                n = size - 1;
        for (size_t i = 0; i < n; i++)
                to[i] = (unsigned char) from[i] < ' ' || from[i] == '"' || from[i] == '\\' || from[i] == 0x7F
                                ? '?'
                                : from[i];
        to[n] = '\0';
}

static int add(Table *t, const SliceLimits *limits, const SliceReport *report, int directory) {
        Row *grown = reallocarray(t->rows, t->n + 1, sizeof *grown);
        struct stat counters, pages;
        Row *row;

        if (!grown)
                return -ENOMEM;
        t->rows = grown;
        row = &grown[t->n++];
        *row = (Row){.card = limits->card,
                     .core = limits->core_percent,
                     .used = report->used - (report->dead < report->used ? report->dead : report->used),
                     .limit = limits->limit,
                     .peak = report->peak,
                     .refused = report->refused,
                     .look = utilization_begin(limits, directory)};
        copy_text(row->container, sizeof row->container, limits->container, sizeof limits->container);
        copy_text(row->uuid, sizeof row->uuid, limits->uuid, sizeof limits->uuid);
        if (fstatat(directory, "counters", &counters, AT_SYMLINK_NOFOLLOW) == 0 &&
            fstatat(directory, "limits", &pages, AT_SYMLINK_NOFOLLOW) == 0)
                processes_find(&counters, &pages, &row->processes);
        return 0;
}

/* Returns 0 when the directory was read or is no slice, or -ENOMEM. */
static int read_directory(Table *t, int fd) {
        SliceReport report = {.used = 0};
        SliceLimits limits;
        bool damaged;
        int r;

        if (slice_files_read_limits(fd, &limits) != 0)
                return 0;
        damaged = slice_files_read_report(fd, &report) != 0;
        r = add(t, &limits, &report, fd);
        if (r == 0)
                t->rows[t->n - 1].damaged = damaged;
        return r;
}

/* The directory of this process's slices, in a container or inside `aliquot run`. NULL: it has
 * none. */
static const char *own_slices(void) {
        const char *mounted = slice_container_pages(), *named = secure_getenv("ALIQUOT_SLICES");

        if (mounted)
                return mounted;
        return named && named[0] == '/' ? named : NULL;
}

static int read_own(Table *t, const char *slices) {
        char path[SLICEDIR_PATH_SIZE];
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < SLICEDIR_CARDS_MAX; i++) {
                _cleanup_close_ int fd = -1;

                if ((size_t) snprintf(path, sizeof path, "%s/%u", slices, i) >= sizeof path)
                        return -ENAMETOOLONG;
                fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (fd >= 0)
                        r = read_directory(t, fd);
        }
        return r;
}

typedef struct Visit {
        Table *table;
        Slicedir *slicedir;
} Visit;

static int visit(void *userdata, const SlicedirEntry *slice) {
        const Visit *v = userdata;
        char path[SLICEDIR_ID_SIZE + 16];
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < slice->n_cards; i++) {
                _cleanup_close_ int fd = -1;

                (void) snprintf(path, sizeof path, "%s/%u", slice->id, slice->cards[i].number);
                fd = openat(v->slicedir->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (fd >= 0)
                        r = read_directory(v->table, fd);
        }
        return r;
}

static int read_slicedir(Table *t, const char *path, Fault *fault) {
        _cleanup_(slicedir_done) Slicedir slicedir = SLICEDIR_NULL;
        int r;

        r = slicedir_open(&slicedir, path, false, fault);
        if (r == -ENOENT && !path)
                return 0; /* no slice was ever made here */
        return r < 0 ? r : slicedir_each(&slicedir, visit, &(Visit){.table = t, .slicedir = &slicedir});
}

/* Waits the sampling time only if a slice has a compute limit. */
static void measure(Table *t) {
        bool wait = false;

        for (size_t i = 0; i < t->n; i++)
                wait |= t->rows[i].look.directory >= 0;
        if (wait)
                (void) nanosleep(&(struct timespec){.tv_nsec = UTILIZATION_MSEC * 1000000L}, NULL);
        for (size_t i = 0; i < t->n; i++)
                t->rows[i].busy = utilization_end(&t->rows[i].look);
}

static int compare(const void *a, const void *b) {
        const Row *x = a, *y = b;
        int r = (x->card > y->card) - (x->card < y->card);

        return r != 0 ? r : strcmp(x->container, y->container);
}

/* ---- showing ---- */

/* Formats "28.7/30". "-" stands for a part that is not known or not limited, and for the whole
 * where compute is not limited. */
static void format_compute(const Row *row, char ret[static 24]) {
        char used[12] = "-", limit[12] = "-";

        if (row->busy >= 0)
                (void) snprintf(used, sizeof used, "%.1f", row->busy);
        if (row->core > 0)
                (void) snprintf(limit, sizeof limit, "%u", row->core);
        if (row->busy < 0 && row->core == 0)
                (void) snprintf(ret, 24, "-");
        else
                (void) snprintf(ret, 24, "%s/%s", used, limit);
}

static void format_memory(const Row *row, char ret[static 48]) {
        char used[24] = "damaged";

        if (!row->damaged)
                (void) snprintf(used, sizeof used, "%llu", (unsigned long long) (row->used / MIB));
        (void) snprintf(ret, 48, "%s/%llu", used, (unsigned long long) (row->limit / MIB));
}

static void print_table(const Table *t) {
        int width = (int) strlen("CONTAINER");

        for (size_t i = 0; i < t->n; i++)
                if ((int) strlen(t->rows[i].container) > width)
                        width = (int) strlen(t->rows[i].container);
        (void) printf("%-*s  CARD   MEMORY (MiB)     COMPUTE (%%)  PROCESSES\n", width, "CONTAINER");
        for (size_t i = 0; i < t->n; i++) {
                const Row *row = &t->rows[i];
                char memory[48], core[24];

                format_memory(row, memory);
                format_compute(row, core);
                (void) printf("%-*s  GPU%-3u %-16s %-12s %zu\n", width, row->container, row->card, memory,
                              core, row->processes.n);
        }
}

static void print_row_json(const Row *row) {
        char used[32] = "";

        if (row->busy >= 0)
                (void) snprintf(used, sizeof used, ",\"used\":%.1f", row->busy);
        (void) printf("{\"container\":\"%s\",\"card\":%u,\"uuid\":\"%s\",\"memory\":{", row->container,
                      row->card, row->uuid);
        if (row->damaged)
                (void) fputs("\"damaged\":true,", stdout);
        else
                (void) printf("\"used\":%llu,\"peak\":%llu,\"refused\":%llu,", (unsigned long long) row->used,
                              (unsigned long long) row->peak, (unsigned long long) row->refused);
        (void) printf("\"limit\":%llu},\"compute\":{\"limit\":%u%s},\"processes\":[",
                      (unsigned long long) row->limit, row->core, used);
        for (size_t i = 0; i < row->processes.n && i < PROCESSES_MAX; i++)
                (void) printf("%s%ld", i > 0 ? "," : "", (long) row->processes.pids[i]);
        (void) fputs("]}", stdout);
}

static void print_json(const Table *t) {
        (void) fputs("{\"slices\":[", stdout);
        for (size_t i = 0; i < t->n; i++) {
                if (i > 0)
                        (void) putchar(',');
                print_row_json(&t->rows[i]);
        }
        (void) fputs("]}\n", stdout);
}

/* ---- the program ---- */

static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},
        {"board", required_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
};

/* 0, or the exit status plus one. */
static int take_options(int argc, char **argv, bool *ret_json, const char **ret_board) {
        int option;

        argv[0] = (char *) "aliquot smi"; /* the name in getopt's messages */
        while ((option = getopt_long(argc, argv, "o:h", options, NULL)) != -1)
                if (option == 'b')
                        *ret_board = optarg;
                else if (option == 'o' && (strcmp(optarg, "json") == 0 || strcmp(optarg, "table") == 0))
                        *ret_json = strcmp(optarg, "json") == 0;
                else if (option == 'h') {
                        (void) fputs(usage, stdout);
                        return fflush(stdout) == 0 ? 1 : EXIT_BROKEN + 1;
                } else {
                        if (option == 'o')
                                (void) fprintf(stderr, "aliquot smi: -o %s: must be json or table\n", optarg);
                        return EXIT_USAGE + 1;
                }
        if (optind < argc) {
                (void) fprintf(stderr, "aliquot smi: %s: there are no arguments\n", argv[optind]);
                return EXIT_USAGE + 1;
        }
        return 0;
}

int main(int argc, char **argv) {
        const char *slicedir = NULL, *own;
        Fault fault = FAULT_NULL;
        Table table = {.n = 0};
        bool json = false;
        int r;

        if (file_hold_standard() < 0)
                return EXIT_BROKEN;
        r = take_options(argc, argv, &json, &slicedir);
        if (r != 0)
                return r - 1;
        own = slicedir ? NULL : own_slices();
        r = own ? read_own(&table, own) : read_slicedir(&table, slicedir, &fault);
        if (r < 0) {
                (void) fprintf(stderr, "aliquot smi: %s\n", fault.text[0] ? fault.text : strerror(-r));
                free(table.rows);
                return EXIT_BROKEN;
        }
        measure(&table);
        if (table.n > 0)
                qsort(table.rows, table.n, sizeof *table.rows, compare);
        if (json)
                print_json(&table);
        else
                print_table(&table);
        free(table.rows);
        return fflush(stdout) == 0 ? 0 : EXIT_BROKEN;
}
