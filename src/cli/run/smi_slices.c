/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/smi_slices.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "slice/container_paths.h"

/* Copies a text for terminals and for JSON. Replaces what is not printable ASCII, and what JSON
 * would escape. */
static void copy_text(char *to, size_t size, const char *from, size_t from_size) {
        size_t n = strnlen(from, from_size);

        if (n >= size)
                n = size - 1;
        for (size_t i = 0; i < n; i++)
                to[i] = from[i] < ' ' || from[i] > '~' || from[i] == '"' || from[i] == '\\' ? '?' : from[i];
        to[n] = '\0';
}

/* Returns the seconds since the slice was made; -1: not known. A file system without the time of
 * birth has that of the last change, when a file of the slice was made or replaced. */
static int64_t age_of(int directory) {
        struct statx st;
        int64_t since, now = (int64_t) time(NULL);

        if (statx(directory, "", AT_EMPTY_PATH, STATX_BTIME | STATX_MTIME, &st) < 0)
                return -1;
        since = st.stx_mask & STATX_BTIME ? st.stx_btime.tv_sec : st.stx_mtime.tv_sec;
        return now > since ? now - since : 0;
}

/* Sets user and command, those of the process with the lowest pid. */
static void find_user(SmiSlice *row) {
        char path[64], text[SMI_TEXT] = "";
        _cleanup_fclose_ FILE *file = NULL;
        const struct passwd *user;
        struct stat st;

        if (row->processes.n == 0)
                return;
        (void) snprintf(path, sizeof path, "/proc/%ld", (long) row->processes.pids[0]);
        if (stat(path, &st) < 0)
                return; /* it has ended since */
        user = getpwuid(st.st_uid);
        if (user)
                copy_text(row->user, sizeof row->user, user->pw_name, SMI_TEXT);
        else
                (void) snprintf(row->user, sizeof row->user, "%lu", (unsigned long) st.st_uid);
        (void) snprintf(path, sizeof path, "/proc/%ld/comm", (long) row->processes.pids[0]);
        file = fopen(path, "re");
        if (file && fgets(text, sizeof text, file)) {
                text[strcspn(text, "\n")] = '\0';
                copy_text(row->command, sizeof row->command, text, sizeof text);
        }
}

static int add_slice(SmiSlices *t, const SliceLimits *limits, const SliceReport *report, int directory) {
        SmiSlice *grown = reallocarray(t->list, t->n + 1, sizeof *grown);
        struct stat counters, pages;
        SmiSlice *row;

        if (!grown)
                return -ENOMEM;
        t->list = grown;
        row = &grown[t->n++];
        *row = (SmiSlice){.card = limits->card,
                          .core = limits->core_percent,
                          .used = report->used - (report->dead < report->used ? report->dead : report->used),
                          .age = age_of(directory),
                          .card_bytes = limits->card_bytes,
                          .limit = limits->limit,
                          .peak = report->peak,
                          .refused = report->refused,
                          .look = utilization_begin(limits, directory)};
        copy_text(row->container, sizeof row->container, limits->container, sizeof limits->container);
        copy_text(row->uuid, sizeof row->uuid, limits->uuid, sizeof limits->uuid);
        if (fstatat(directory, "counters", &counters, AT_SYMLINK_NOFOLLOW) == 0 &&
            fstatat(directory, "limits", &pages, AT_SYMLINK_NOFOLLOW) == 0)
                processes_find(&counters, &pages, &row->processes);
        find_user(row);
        return 0;
}

/* Returns 0 when the directory was read or is no slice, or -ENOMEM. */
static int read_directory(SmiSlices *t, int fd) {
        SliceReport report = {.used = 0};
        SliceLimits limits;
        bool damaged;
        int r;

        if (slice_files_read_limits(fd, &limits) != 0)
                return 0;
        damaged = slice_files_read_report(fd, &report) != 0;
        r = add_slice(t, &limits, &report, fd);
        if (r == 0)
                t->list[t->n - 1].damaged = damaged;
        return r;
}

const char *smi_slices_own(void) {
        const char *mounted = slice_container_pages(), *named = secure_getenv("ALIQUOT_SLICES");

        if (mounted)
                return mounted;
        return named && named[0] == '/' ? named : NULL;
}

static int read_cards(SmiSlices *t, const char *slices) {
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
        SmiSlices *table;
        Slicedir *slicedir;
} Visit;

static int visit_slice(void *userdata, const SlicedirEntry *slice) {
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

static int read_all(SmiSlices *t, const char *path, Fault *fault) {
        _cleanup_(slicedir_done) Slicedir slicedir = SLICEDIR_NULL;
        int r;

        r = slicedir_open(&slicedir, path, false, fault);
        if (r == -ENOENT && !path)
                return 0; /* no slice was ever made here */
        return r < 0 ? r : slicedir_each(&slicedir, visit_slice, &(Visit){.table = t, .slicedir = &slicedir});
}

/* Waits the sampling time only if a slice has a compute limit. */
static void measure_compute(SmiSlices *t) {
        struct timespec left = {.tv_nsec = UTILIZATION_MSEC * 1000000L};
        bool wait = false;

        for (size_t i = 0; i < t->n; i++)
                wait |= t->list[i].look.directory >= 0;
        while (wait && nanosleep(&left, &left) < 0 && errno == EINTR)
                ; /* the terminal has another size */
        for (size_t i = 0; i < t->n; i++)
                t->list[i].busy = utilization_end(&t->list[i].look);
}

static int compare_slices(const void *a, const void *b) {
        const SmiSlice *x = a, *y = b;
        int r = (x->card > y->card) - (x->card < y->card);

        return r != 0 ? r : strcmp(x->container, y->container);
}

static int finish_list(SmiSlices *t, int r) {
        if (r < 0) {
                smi_slices_done(t);
                return r;
        }
        measure_compute(t);
        if (t->n > 0)
                qsort(t->list, t->n, sizeof *t->list, compare_slices);
        return 0;
}

int smi_slices_read_own(const char *slices, SmiSlices *ret) {
        *ret = (SmiSlices){.n = 0};
        return finish_list(ret, read_cards(ret, slices));
}

int smi_slices_read(const char *path, SmiSlices *ret, Fault *fault) {
        *ret = (SmiSlices){.n = 0};
        return finish_list(ret, read_all(ret, path, fault));
}

void smi_slices_done(SmiSlices *s) {
        for (size_t i = 0; i < s->n; i++)
                if (s->list[i].look.directory >= 0)
                        (void) close(s->list[i].look.directory);
        free(s->list);
        *s = (SmiSlices){.n = 0};
}
