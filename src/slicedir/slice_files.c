/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/slice_files-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slice/counter_word.h"
#include "slice/counters.h"
#include "slice/pin.h"

/* ---- reading ---- */

int slice_files_open_file(int directory, const char *name, int flags, int *ret) {
        _cleanup_close_ int fd =
                openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
        struct stat st;

        if (fd < 0)
                return errno == ELOOP || errno == ENXIO ? SLICE_FILES_E_DAMAGED : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return SLICE_FILES_E_DAMAGED;
        *ret = TAKE_FD(fd);
        return 0;
}

/* Reads all size bytes. A shorter file is damaged: a container may truncate it between any two
 * calls. */
static int read_whole(int fd, void *into, size_t size) {
        size_t done = 0;

        while (done < size) {
                ssize_t n = pread(fd, (char *) into + done, size - done, (off_t) done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return SLICE_FILES_E_DAMAGED;
                done += (size_t) n;
        }
        return 0;
}

int slice_files_load_limits(int fd, SliceLimits *ret) {
        int r = read_whole(fd, ret, sizeof *ret);

        if (r != 0)
                return r;
        return ret->magic == SLICE_LIMITS_MAGIC && ret->version == SLICE_VERSION && ret->size == sizeof *ret
                       ? 0
                       : SLICE_FILES_E_DAMAGED;
}

int slice_files_load_counters(int fd, SliceCounters *ret) {
        int r = read_whole(fd, ret, sizeof *ret);

        if (r != 0)
                return r;
        return ret->magic == SLICE_COUNTERS_MAGIC && ret->version == SLICE_VERSION && ret->size == sizeof *ret
                       ? 0
                       : SLICE_FILES_E_DAMAGED;
}

int slice_files_read_limits(int directory, SliceLimits *ret) {
        _cleanup_close_ int fd = -1;
        SliceLimits limits;
        int r = slice_files_open_file(directory, "limits", O_RDONLY, &fd);

        if (r == 0)
                r = slice_files_load_limits(fd, &limits);
        if (r != 0)
                return r;
        limits.uuid[sizeof limits.uuid - 1] = '\0'; /* terminated whatever the file contains */
        limits.container[sizeof limits.container - 1] = '\0';
        memcpy(ret, &limits, sizeof limits);
        return 0;
}

CardCompute slice_files_compute(const SliceLimits *l) {
        if (l->flags & SLICE_FLAG_OPEN)
                return (CardCompute){.policy = COMPUTE_NATIVE};
        return (CardCompute){.policy = l->policy < COMPUTE_POLICIES ? l->policy : COMPUTE_UNSET,
                             .max_inst = l->max_inst,
                             .prio_ratio = l->prio_ratio};
}

ComputeRequest slice_files_request(const SliceLimits *l) {
        if (l->flags & SLICE_FLAG_OPEN)
                return (ComputeRequest){.percent = 0};
        return (ComputeRequest){
                .percent = l->core_percent, .weight = l->weight, .high_priority = l->high_priority != 0};
}

/* ---- the report ---- */

/* Returns 1 if a process has locked one of these bytes, 0 if none has, or negative errno. The query
 * needs only a descriptor for reading. */
static int query_lock(int fd, size_t at, size_t size) {
        struct flock lock = {
                .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) at, .l_len = (off_t) size};

        if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
                return -errno;
        return lock.l_type != F_UNLCK;
}

static int find_alive(int fd, SliceReport *report) {
        int r = query_lock(fd, offsetof(SliceCounters, rows), sizeof(SliceRow[SLICE_ROWS]));

        for (size_t i = 0; r > 0 && i < SLICE_ROWS; i++) {
                r = query_lock(fd, offsetof(SliceCounters, rows) + i * sizeof(SliceRow), 1);
                if (r < 0)
                        return r;
                report->alive[i] = r == 1;
                report->n_alive += report->alive[i];
                r = 1;
        }
        return r < 0 ? r : 0;
}

static uint64_t bytes_of(uint64_t units) {
        return (units > SLICE_MAX_UNITS ? SLICE_MAX_UNITS : units) * SLICE_UNIT;
}

/* Finds the dead rows that are pinned. Reads the kernel's list of locks only, because the row's
 * inodes may be forged by the container. */
static void find_pinned(const SliceCounters *c, const SliceReport *report, bool pinned[static SLICE_ROWS]) {
        uint64_t keys[SLICE_ROWS];
        bool any = false;

        for (size_t i = 0; i < SLICE_ROWS; i++) {
                const SliceRow *row = &c->rows[i];
                bool may_be = !report->alive[i] && slice_row_held(row) != 0 &&
                              atomic_load_explicit(&row->inode, memory_order_relaxed) != 0;

                keys[i] = may_be ? atomic_load_explicit(&row->key, memory_order_relaxed) : 0;
                pinned[i] = false;
                any |= keys[i] != 0;
        }
        if (any)
                pin_find_listed(keys, pinned, SLICE_ROWS);
        for (size_t i = 0; i < SLICE_ROWS; i++)
                pinned[i] = pinned[i] && keys[i] != 0;
}

static uint64_t sum_of(int64_t units, uint64_t most) {
        uint64_t bytes = units > 0 ? bytes_of((uint64_t) units) : 0;

        return bytes < most ? bytes : most;
}

/* The units of dead rows may be any number if the counters were overwritten, so their sum is
 * limited to what is used. */
static void add_up(const SliceCounters *c, SliceReport *report) {
        int64_t units, dead = 0, left = 0; /* 256 numbers of 42 bits do not overflow */
        bool pinned[SLICE_ROWS];

        report->used = bytes_of(slice_used_units(atomic_load_explicit(&c->used, memory_order_relaxed)));
        report->peak = bytes_of(atomic_load_explicit(&c->peak, memory_order_relaxed));
        report->refused = atomic_load_explicit(&c->refused, memory_order_relaxed);
        find_pinned(c, report, pinned);
        for (size_t i = 0; i < SLICE_ROWS; i++) {
                units = slice_row_held(&c->rows[i]);
                report->held[i] = units * SLICE_UNIT;
                dead += !report->alive[i] && !pinned[i] ? units : 0;
                left += pinned[i] ? units : 0;
        }
        report->dead = sum_of(dead, report->used);
        report->pinned = sum_of(left, report->used - report->dead);
}

/* Living rows are found before the counters are read. A process that dies in between then counts as
 * alive with what it held, not as dead with what another process has since reserved. */
int slice_files_read_report(int directory, SliceReport *ret) {
        _cleanup_close_ int fd = -1;
        SliceReport report = {.n_alive = 0};
        SliceCounters counters;
        int r = slice_files_open_file(directory, "counters", O_RDONLY, &fd);

        if (r == 0)
                r = find_alive(fd, &report);
        if (r == 0)
                r = slice_files_load_counters(fd, &counters);
        if (r != 0)
                return r;
        add_up(&counters, &report);
        *ret = report;
        return 0;
}

static bool is_behind(uint32_t sequence, uint32_t last) {
        return ((sequence - last) & SLICE_SEQUENCE_MASK) > SLICE_SEQUENCE_MASK / 2;
}

int slice_files_read_sequences(int directory, SliceSequences *s, bool *ret_behind) {
        _cleanup_close_ int fd = -1;
        SliceCounters c;
        struct stat st;
        bool known;
        int r = slice_files_open_file(directory, "counters", O_RDONLY, &fd);

        *ret_behind = false;
        if (r == 0 && fstat(fd, &st) < 0)
                r = -errno;
        if (r == 0)
                r = slice_files_load_counters(fd, &c);
        if (r != 0)
                return r;
        known = s->inode == st.st_ino;
        s->inode = st.st_ino;
        s->refused = atomic_load_explicit(&c.refused, memory_order_relaxed);
        s->rowless = atomic_load_explicit(&c.rowless, memory_order_relaxed);
        for (uint32_t i = 0; i < ELEMENTSOF(s->lanes); i++) {
                uint32_t sequence = slice_word_sequence(atomic_load_explicit(
                        &c.rows[i / SLICE_LANES].lanes[i % SLICE_LANES].held, memory_order_relaxed));

                *ret_behind |= known && is_behind(sequence, s->lanes[i]);
                s->lanes[i] = sequence;
        }
        return 0;
}

int slice_files_read_usage(int directory, SliceUsage *ret) {
        _cleanup_close_ int fd = -1;
        SliceCounters c;
        int r = slice_files_open_file(directory, "counters", O_RDONLY, &fd);

        if (r == 0)
                r = read_whole(fd, &c, offsetof(SliceCounters, rows));
        if (r != 0)
                return r;
        if (c.magic != SLICE_COUNTERS_MAGIC || c.version != SLICE_VERSION || c.size != sizeof c)
                return SLICE_FILES_E_DAMAGED;
        *ret = (SliceUsage){
                .used = bytes_of(slice_used_units(atomic_load_explicit(&c.used, memory_order_relaxed))),
                .peak = bytes_of(atomic_load_explicit(&c.peak, memory_order_relaxed)),
                .refused = atomic_load_explicit(&c.refused, memory_order_relaxed),
                .rowless = atomic_load_explicit(&c.rowless, memory_order_relaxed)};
        return 0;
}

/* ---- enlarged counters ---- */

/* Bytes by which a file's blocks may exceed its size: file systems count blocks of their own to
 * it. */
#define TRIM_SLACK (UINT64_C(64) << 10)

static uint64_t taken_bytes(const struct stat *st) {
        return (uint64_t) st->st_blocks * 512;
}

int slice_files_trim(int directory, uint64_t *ret_bytes) {
        const uint64_t size = sizeof(SliceCounters);
        _cleanup_close_ int fd = -1;
        struct stat st, after;
        int r = slice_files_open_file(directory, "counters", O_RDWR, &fd);

        *ret_bytes = 0;
        if (r != 0)
                return r;
        if (fstat(fd, &st) < 0)
                return -errno;
        if ((uint64_t) st.st_size <= size && taken_bytes(&st) <= size + TRIM_SLACK)
                return 0;
        /* Also if the size is right: truncation frees blocks reserved beyond the end
         * (FALLOC_FL_KEEP_SIZE). A file that is too short stays short. */
        if (ftruncate(fd, (uint64_t) st.st_size < size ? st.st_size : (off_t) size) < 0 ||
            fstat(fd, &after) < 0)
                return -errno;
        if ((uint64_t) st.st_size > size)
                *ret_bytes = (uint64_t) st.st_size;
        else if (taken_bytes(&after) < taken_bytes(&st)) /* else they are the file system's */
                *ret_bytes = taken_bytes(&st);
        return 0;
}

int slice_files_give_back(int directory) {
        const off_t size = sizeof(SliceCounters);
        _cleanup_close_ int fd = -1;
        struct stat st;
        int r = slice_files_open_file(directory, "counters", O_RDWR, &fd);

        if (r != 0)
                return r;
        return fstat(fd, &st) < 0 || ftruncate(fd, st.st_size < size ? st.st_size : size) < 0 ? -errno : 0;
}
