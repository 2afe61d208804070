/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/slice_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slice/counter_word.h"
#include "slice/counters.h"
#include "slice/pin.h"

/* ---- reading ---- */

/* Opens a regular file. A symbolic link, or a file of another type, is damage. */
static int open_file(int directory, const char *name, int flags, int *ret) {
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

/* Reads all size bytes, else the file is damaged: a container may cut it between any two calls. */
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

static int write_at(int fd, const void *bytes, size_t size, size_t at) {
        size_t done = 0;

        while (done < size) {
                ssize_t n = pwrite(fd, (const char *) bytes + done, size - done, (off_t) (at + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                done += (size_t) n;
        }
        return 0;
}

static int read_limits(int fd, SliceLimits *ret) {
        int r = read_whole(fd, ret, sizeof *ret);

        if (r != 0)
                return r;
        return ret->magic == SLICE_LIMITS_MAGIC && ret->major == SLICE_MAJOR && ret->size >= sizeof *ret
                       ? 0
                       : SLICE_FILES_E_DAMAGED;
}

static int read_counters(int fd, SliceCounters *ret) {
        int r = read_whole(fd, ret, sizeof *ret);

        if (r != 0)
                return r;
        return ret->magic == SLICE_COUNTERS_MAGIC && ret->major == SLICE_MAJOR && ret->size >= sizeof *ret
                       ? 0
                       : SLICE_FILES_E_DAMAGED;
}

int slice_files_read_limits(int directory, SliceLimits *ret) {
        _cleanup_close_ int fd = -1;
        SliceLimits limits;
        int r = open_file(directory, "limits", O_RDONLY, &fd);

        if (r == 0)
                r = read_limits(fd, &limits);
        if (r != 0)
                return r;
        limits.uuid[sizeof limits.uuid - 1] = '\0'; /* terminated whatever the writer did */
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

/* 1: a process has locked one of these bytes. The question needs only a descriptor for reading. */
static int locked(int fd, size_t at, size_t size) {
        struct flock lock = {
                .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) at, .l_len = (off_t) size};

        if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
                return -errno;
        return lock.l_type != F_UNLCK;
}

static int find_alive(int fd, SliceReport *report) {
        int r = locked(fd, offsetof(SliceCounters, rows), sizeof(SliceRow[SLICE_ROWS]));

        for (size_t i = 0; r > 0 && i < SLICE_ROWS; i++) {
                r = locked(fd, offsetof(SliceCounters, rows) + i * sizeof(SliceRow), 1);
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

/* Finds the dead rows that are pinned, with one reading of the kernel's list of locks, because the
 * counters may say anything. */
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

/* What dead rows hold may be any number if the counters were overwritten, so it is limited to what
 * is used. */
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
        int r = open_file(directory, "counters", O_RDONLY, &fd);

        if (r == 0)
                r = find_alive(fd, &report);
        if (r == 0)
                r = read_counters(fd, &counters);
        if (r != 0)
                return r;
        add_up(&counters, &report);
        *ret = report;
        return 0;
}

/* ---- what has grown ---- */

/* A file system may count blocks of its own to a file. */
#define TRIM_SLACK (UINT64_C(64) << 10)

static uint64_t taken(const struct stat *st) {
        return (uint64_t) st->st_blocks * 512;
}

int slice_files_trim(int directory, uint64_t *ret_bytes) {
        const uint64_t size = sizeof(SliceCounters);
        _cleanup_close_ int fd = -1;
        struct stat st, after;
        int r = open_file(directory, "counters", O_RDWR, &fd);

        *ret_bytes = 0;
        if (r != 0)
                return r;
        if (fstat(fd, &st) < 0)
                return -errno;
        if ((uint64_t) st.st_size <= size && taken(&st) <= size + TRIM_SLACK)
                return 0;
        /* Also if the size is right: what was reserved behind it (FALLOC_FL_KEEP_SIZE) goes. A file
         * that was cut stays cut. */
        if (ftruncate(fd, (uint64_t) st.st_size < size ? st.st_size : (off_t) size) < 0 ||
            fstat(fd, &after) < 0)
                return -errno;
        if ((uint64_t) st.st_size > size)
                *ret_bytes = (uint64_t) st.st_size;
        else if (taken(&after) < taken(&st)) /* else the file system lays files out so */
                *ret_bytes = taken(&st);
        return 0;
}

int slice_files_give_back(int directory) {
        const off_t size = sizeof(SliceCounters);
        _cleanup_close_ int fd = -1;
        struct stat st;
        int r = open_file(directory, "counters", O_RDWR, &fd);

        if (r != 0)
                return r;
        return fstat(fd, &st) < 0 || ftruncate(fd, st.st_size < size ? st.st_size : size) < 0 ? -errno : 0;
}

/* ---- making ---- */

void slice_files_close(SliceFds *fds) {
        cleanup_closep(&fds->limits);
        cleanup_closep(&fds->counters);
        *fds = SLICE_FDS_NULL;
}

/* Writes a new file under a name that is renamed afterwards. If a file was planted under that name,
 * it is unlinked and not written to. */
static int write_beside(int directory, const char *name, const void *bytes, size_t size, mode_t mode,
                        int *ret) {
        _cleanup_close_ int fd = -1;
        int r;

        if (unlinkat(directory, name, 0) < 0 && errno != ENOENT)
                return -errno;
        fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        if (fchmod(fd, mode) < 0) /* not reduced by the umask */
                return -errno;
        r = write_at(fd, bytes, size, 0);
        if (r == 0)
                *ret = TAKE_FD(fd);
        return r;
}

/* Replaces a file. The new one is open for writing before it has its name and until the caller
 * closes it, so no container can have leased it. */
static int replace(int directory, const char *name, const void *bytes, size_t size, mode_t mode, int *ret,
                   Fault *fault) {
        _cleanup_close_ int fd = -1;
        char beside[32];
        int r;

        /* Both names are constants, and short. */
        (void) snprintf(beside, sizeof beside, "%s.new", name);
        r = write_beside(directory, beside, bytes, size, mode, &fd);
        if (r == 0 && renameat(directory, beside, directory, name) < 0)
                r = -errno;
        if (r == 0) {
                *ret = TAKE_FD(fd);
                return 0;
        }
        (void) unlinkat(directory, beside, 0);
        return fault_set(fault, r, "cannot write the slice's %s: %s", name, strerror(-r));
}

static int make_limits(int directory, const SliceSpec *spec, int *ret, Fault *fault) {
        SliceLimits l = {.magic = SLICE_LIMITS_MAGIC,
                         .major = SLICE_MAJOR,
                         .minor = SLICE_MINOR,
                         .size = sizeof l,
                         .limit = spec->limit,
                         .card_bytes = spec->card_bytes,
                         .group_bytes = spec->group_bytes,
                         .card = spec->card,
                         .core_percent = spec->request.percent,
                         .flags = spec->flags,
                         .ctl = spec->ctl,
                         .device = spec->device,
                         .uvm = spec->uvm,
                         .weight = spec->request.weight,
                         .high_priority = spec->request.high_priority,
                         .policy = spec->compute.policy,
                         .max_inst = spec->compute.max_inst,
                         .prio_ratio = spec->compute.prio_ratio};

        if (strlen(spec->uuid) >= sizeof l.uuid)
                return fault_set(fault, -EINVAL, "uuid of card %u is longer than %zu characters: %s",
                                 spec->card, sizeof l.uuid - 1, spec->uuid);
        (void) snprintf(l.uuid, sizeof l.uuid, "%s", spec->uuid);
        /* Cut if it is too long. */
        (void) snprintf(l.container, sizeof l.container, "%s", spec->container);
        return replace(directory, "limits", &l, sizeof l, 0644, ret, fault);
}

static int keep_counters(int directory) {
        _cleanup_close_ int fd = -1;
        SliceCounters counters;
        int r = open_file(directory, "counters", O_RDONLY, &fd);

        return r == 0 ? read_counters(fd, &counters) : r;
}

/* Opens an existing file for writing; -1: it is leased, or not a regular file. */
static int open_writable(int directory, const char *name) {
        int fd = -1;

        (void) open_file(directory, name, O_RDWR, &fd);
        return fd;
}

static int make_counters(int directory, int *ret, Fault *fault) {
        SliceCounters c;
        int r = keep_counters(directory);

        if (r == 0) {
                *ret = open_writable(directory, "counters");
                return 0;
        }
        if (r < 0 && r != -ENOENT)
                return fault_set(fault, r, "cannot read the slice's counters: %s", strerror(-r));
        memset(&c, 0, sizeof c);
        c.magic = SLICE_COUNTERS_MAGIC;
        c.major = SLICE_MAJOR;
        c.minor = SLICE_MINOR;
        c.size = sizeof c;
        return replace(directory, "counters", &c, sizeof c, 0666, ret,
                       fault); /* for any user of the container */
}

/* An existing FIFO stays, because a container may have it mounted. */
static int make_doorbell(int directory, Fault *fault) {
        struct stat st;
        int r = fstatat(directory, SLICE_DOORBELL, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;

        if (r == 0 && !S_ISFIFO(st.st_mode))
                r = unlinkat(directory, SLICE_DOORBELL, 0) < 0 ? -errno : -ENOENT;
        if (r == -ENOENT)
                r = mkfifoat(directory, SLICE_DOORBELL, 0600) < 0 ? -errno : 0;
        /* Not reduced by the umask. */
        if (r == 0 && fchmodat(directory, SLICE_DOORBELL, 0666, 0) < 0)
                r = -errno;
        return r < 0 ? fault_set(fault, r, "cannot make the slice's bell: %s", strerror(-r)) : 0;
}

/* Without OFD locks the preloaded library could open no slice and would refuse all memory. The
 * error comes before a container starts. */
static int check_kernel(int directory, Fault *fault) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

        if (fcntl(directory, F_OFD_GETLK, &lock) < 0 && errno == EINVAL)
                return fault_set(
                        fault, -EOPNOTSUPP,
                        "memory cannot be isolated on this kernel: it has no locks of open files (OFD), "
                        "which Linux has since 3.15");
        return 0;
}

/* limits last: it completes the slice. */
int slice_files_make_open(int directory, const SliceSpec *spec, SliceFds *ret_fds, Fault *fault) {
        _cleanup_(slice_files_close) SliceFds fds = SLICE_FDS_NULL;
        int r = check_kernel(directory, fault);

        if (r == 0)
                r = make_counters(directory, &fds.counters, fault);
        if (r == 0)
                r = make_doorbell(directory, fault);
        if (r == 0)
                r = make_limits(directory, spec, &fds.limits, fault);
        if (r < 0)
                return r;
        *ret_fds = fds;
        fds = SLICE_FDS_NULL;
        return 0;
}

int slice_files_make(int directory, const SliceSpec *spec, Fault *fault) {
        _cleanup_(slice_files_close) SliceFds fds = SLICE_FDS_NULL;

        return slice_files_make_open(directory, spec, &fds, fault);
}

void slice_files_open(int directory, SliceFds *ret_fds) {
        *ret_fds = (SliceFds){.limits = open_writable(directory, "limits"),
                              .counters = open_writable(directory, "counters")};
}

/* ---- changing ---- */

static uint64_t generation_of(const SliceLimits *limits) {
        return atomic_load_explicit(&limits->generation, memory_order_relaxed);
}

/* An odd generation that is newer than the present one. A writer that was killed has left an odd
 * one. */
static uint64_t odd_after(uint64_t generation) {
        return (generation | 1) + (generation % 2 == 1 ? 2 : 0);
}

/* Writes the limit, with an odd generation until it is complete. Generation and limit are
 * neighbours and go out in one write. A process killed between the two writes leaves the new limit
 * and an odd generation, which the next write makes even. */
static int write_limit(int fd, uint64_t generation, uint64_t bytes) {
        uint64_t words[2] = {odd_after(generation), bytes};
        int r;

        _Static_assert(offsetof(SliceLimits, limit) == offsetof(SliceLimits, generation) + sizeof(uint64_t),
                       "one write");
        r = write_at(fd, words, sizeof words, offsetof(SliceLimits, generation));
        words[0]++;
        return r < 0 ? r : write_at(fd, words, sizeof words[0], offsetof(SliceLimits, generation));
}

static bool says_compute(const SliceLimits *l, const CardCompute *c) {
        return generation_of(l) % 2 == 0 && l->policy == c->policy && l->max_inst == c->max_inst &&
               l->prio_ratio == c->prio_ratio;
}

/* Writes only these words, because the arbiter writes the schedule in the same page through its
 * mapping. */
static int write_compute(int fd, uint64_t generation, const CardCompute *c) {
        const uint32_t words[] = {c->policy, c->max_inst, c->prio_ratio};
        uint64_t word = odd_after(generation);
        int r;

        _Static_assert(offsetof(SliceLimits, max_inst) == offsetof(SliceLimits, policy) + 4 &&
                               offsetof(SliceLimits, prio_ratio) == offsetof(SliceLimits, policy) + 8,
                       "one write");
        r = write_at(fd, &word, sizeof word, offsetof(SliceLimits, generation));
        if (r == 0)
                r = write_at(fd, words, sizeof words, offsetof(SliceLimits, policy));
        word++;
        return r < 0 ? r : write_at(fd, &word, sizeof word, offsetof(SliceLimits, generation));
}

static int open_limits(int directory, SliceLimits *limits, int *ret) {
        _cleanup_close_ int fd = -1;
        int r = open_file(directory, "limits", O_RDWR, &fd);

        if (r == 0)
                r = read_limits(fd, limits);
        if (r == 0)
                *ret = TAKE_FD(fd);
        return r;
}

static int changed(int r, Fault *fault) {
        if (r > 0)
                return fault_set(fault, r, "the slice's limits are not a page of version %d", SLICE_MAJOR);
        return r < 0 ? fault_set(fault, r, "cannot write the slice's limits: %s", strerror(-r)) : 0;
}

int slice_files_set_limit(int directory, uint64_t bytes, Fault *fault) {
        _cleanup_close_ int fd = -1;
        SliceLimits limits;
        int r = open_limits(directory, &limits, &fd);

        return changed(r != 0 ? r : write_limit(fd, generation_of(&limits), bytes), fault);
}

int slice_files_set_compute(int directory, const CardCompute *compute, Fault *fault) {
        _cleanup_close_ int fd = -1;
        SliceLimits limits;
        int r = open_limits(directory, &limits, &fd);

        if (r == 0 && !says_compute(&limits, compute))
                r = write_compute(fd, generation_of(&limits), compute);
        return changed(r, fault);
}
