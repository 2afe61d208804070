/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/slice_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "arbiter/tunables.h"
#include "base/clock.h"
#include "slicedir/slice_files.h"

enum { FUTEX_SHARED_WAKE = FUTEX_WAKE, LIVENESS_CHECKS = 8, LIVENESS_REST_FACTOR = 1000 };

/* ---- opening ---- */

static int open_own(int directory, const char *name, int flags, mode_t type) {
        _cleanup_close_ int fd =
                openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        return (st.st_mode & S_IFMT) == type ? TAKE_FD(fd) : -EINVAL;
}

/* `counters` is never written. It is open for writing because that prevents leases on it
 * (slicedir/file_lease.h). */
void slice_channel_open_missing(SliceChannel *s, int directory) {
        if (s->counters < 0)
                s->counters = open_own(directory, "counters", O_RDWR, S_IFREG);
        if (s->doorbell < 0)
                s->doorbell = open_own(directory, SLICE_DOORBELL, O_RDWR,
                                       S_IFIFO); /* with a writer of our own it never hangs up */
}

static int map_limits(SliceChannel *s) {
        struct stat st;
        void *p;

        if (fstat(s->limits_fd, &st) < 0)
                return -errno;
        if (st.st_size < (off_t) sizeof(SliceLimits))
                return SLICE_FILES_E_DAMAGED;
        p = mmap(NULL, sizeof(SliceLimits), PROT_READ | PROT_WRITE, MAP_SHARED, s->limits_fd, 0);
        if (p == MAP_FAILED)
                return -errno;
        s->limits = p;
        s->dev = st.st_dev;
        s->ino = st.st_ino;
        return 0;
}

int slice_channel_open(int directory, SliceChannel *ret) {
        SliceChannel s = {
                .limits_fd = -1, .counters = -1, .doorbell = -1, .aggregate = REPORT_AGGREGATE_NULL};
        SliceLimits limits;
        int r = slice_files_read_limits(directory, &limits);

        if (r != 0)
                return r;
        s.limits_fd = open_own(directory, "limits", O_RDWR, S_IFREG);
        r = s.limits_fd < 0 ? s.limits_fd : map_limits(&s);
        if (r != 0) {
                slice_channel_done(&s);
                return r;
        }
        memcpy(s.uuid, limits.uuid, sizeof s.uuid);
        s.compute = slice_files_compute(&limits);
        s.request = slice_files_request(&limits);
        slice_channel_open_missing(&s, directory);
        *ret = s;
        return 0;
}

void slice_channel_done(SliceChannel *s) {
        if (s->limits)
                (void) munmap(s->limits, sizeof *s->limits);
        for (size_t i = 0; i < 3; i++) {
                int fd = i == 0 ? s->limits_fd : i == 1 ? s->counters : s->doorbell;

                if (fd >= 0)
                        (void) close(fd);
        }
        *s = (SliceChannel){.limits_fd = -1, .counters = -1, .doorbell = -1};
}

static bool is_same(const CardCompute *a, const ComputeRequest *b, const CardCompute *c,
                    const ComputeRequest *d) {
        return a->policy == c->policy && a->max_inst == c->max_inst && a->prio_ratio == c->prio_ratio &&
               b->percent == d->percent && b->weight == d->weight && b->high_priority == d->high_priority;
}

bool slice_channel_policy_changed(SliceChannel *s) {
        CardCompute compute;
        ComputeRequest request;

        if (!slice_channel_is_whole(s))
                return false;
        compute = slice_files_compute(s->limits);
        request = slice_files_request(s->limits);
        if (is_same(&compute, &request, &s->compute, &s->request))
                return false;
        s->compute = compute;
        s->request = request;
        return true;
}

/* ---- reading ---- */

/* A living process holds the lock of its row. */
static bool is_alive(const SliceChannel *s, uint32_t row) {
        struct flock lock = {.l_type = F_WRLCK,
                             .l_whence = SEEK_SET,
                             .l_start = (off_t) (offsetof(SliceCounters, rows) + row * sizeof(SliceRow)),
                             .l_len = 1};

        return fcntl(s->counters, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static RowReport row_report(const SliceWork *w) {
        return (RowReport){.want_since = atomic_load_explicit(&w->wants, memory_order_relaxed),
                           .busy = atomic_load_explicit(&w->busy, memory_order_relaxed),
                           .in_flight = atomic_load_explicit(&w->in_flight, memory_order_relaxed),
                           .launched = atomic_load_explicit(&w->launched, memory_order_relaxed),
                           .drained = atomic_load_explicit(&w->drained, memory_order_relaxed),
                           .first_launch = atomic_load_explicit(&w->began, memory_order_relaxed)};
}

/* Checks one row's lock. A tenant can make this slow: the kernel walks all locks of the file, and
 * there may be a million. After a slow check none is made for a while. Processor time is measured,
 * so that load does not count. */
static void check_row(SliceChannel *s, uint32_t row, uint64_t now) {
        uint64_t before = clock_nsec(CLOCK_THREAD_CPUTIME_ID), took;

        s->n_checks_left--;
        s->dead[row] = !is_alive(s, row);
        took = clock_nsec(CLOCK_THREAD_CPUTIME_ID) - before;
        if (took > MAX_LIVENESS_COST_NS)
                s->liveness_paused_until =
                        now + (took > LIVENESS_REST_NS / LIVENESS_REST_FACTOR ? took * LIVENESS_REST_FACTOR
                                                                              : LIVENESS_REST_NS);
        if (s->dead[row])
                report_aggregate_forget(&s->aggregate, row, now);
}

/* Adds one row to the report. A dead row is checked again, because another process may have taken
 * it. A new row whose check is not possible counts as alive. The next reading of this kind starts
 * at the first row that was not checked. */
static void add_row(SliceChannel *s, uint32_t row, const RowReport *report, uint64_t now,
                    bool check_liveness) {
        if (check_liveness || s->dead[row] || !s->is_row[row]) {
                if (s->n_checks_left > 0 && now >= s->liveness_paused_until)
                        check_row(s, row, now);
                else if (!s->check_skipped) {
                        s->check_skipped = true;
                        s->next_start[s->read_kind] = s->position;
                }
        }
        s->is_row[row] = !s->dead[row];
        if (!s->dead[row])
                report_aggregate_add(&s->aggregate, row, report, s->window.number, now, MAX_ROW_BUSY_NS);
}

/* Reads the work of one row. False: the file is cut short, so the row is not there. */
static bool read_work(const SliceChannel *s, uint32_t row, SliceWork *ret) {
        size_t at = offsetof(SliceCounters, rows) + row * sizeof(SliceRow) + offsetof(SliceRow, work);

        return pread(s->counters, ret, sizeof *ret, (off_t) at) == (ssize_t) sizeof *ret;
}

/* Reads the rows that have or had work, or all of them. */
static void read_rows(SliceChannel *s, uint64_t now, bool all, bool check_liveness) {
        SliceRow rows[SLICE_ROWS];
        ssize_t n = all ? pread(s->counters, rows, sizeof rows, offsetof(SliceCounters, rows)) : 0;

        for (uint32_t k = 0; k < SLICE_ROWS; k++) {
                uint32_t i = s->position = (s->start + k) % SLICE_ROWS;
                RowReport report;

                if (all ? n < (ssize_t) ((i + 1) * sizeof(SliceRow))
                        : !s->is_row[i] || !read_work(s, i, &rows[i].work))
                        continue;
                report = row_report(&rows[i].work);
                if (s->is_row[i] || report.want_since != 0 || report.in_flight != 0)
                        add_row(s, i, &report, now, check_liveness);
        }
}

void slice_channel_read(SliceChannel *s, uint64_t now, bool all, bool check_liveness, TenantReport *ret) {
        bool closed = !s->window.open && s->window.closes <= now;

        report_aggregate_begin(&s->aggregate, s->window_opened, closed ? s->window.closes : 0);
        if (check_liveness)
                s->liveness_at = now;
        if (all)
                s->swept_at = now;
        s->n_checks_left = LIVENESS_CHECKS;
        s->check_skipped = false;
        s->read_kind = (all ? 2U : 0U) + (check_liveness ? 1U : 0U);
        s->start = s->next_start[s->read_kind];
        if (s->counters >= 0)
                read_rows(s, now, all, check_liveness);
        report_aggregate_end(&s->aggregate, now);
        *ret = s->aggregate.report;
}

/* ---- writing ---- */

bool slice_channel_is_whole(const SliceChannel *s) {
        struct stat st;

        return fstat(s->limits_fd, &st) == 0 && st.st_size >= (off_t) sizeof(SliceLimits);
}

/* Wakes the threads that wait for the window. FUTEX_WAKE finds them by address and does not read
 * the word. */
static void wake_waiters(SliceSchedule *schedule) {
        (void) syscall(SYS_futex, &schedule->window, FUTEX_SHARED_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The window word is written last: a process that sees an open window also sees its end and depth.
 * Threads are only woken if launches may pass now. */
void slice_channel_write(SliceChannel *s, const EngineWindow *w, uint64_t now) {
        SliceSchedule *t = &s->limits->schedule;
        uint32_t window = w->number << 1 | (w->open ? SCHED_WINDOW_OPEN : 0),
                 flags = w->gated ? SCHED_F_GATED : 0U;
        bool changed, may_launch;

        if (!slice_channel_is_whole(s))
                return;
        may_launch = (w->open && atomic_load_explicit(&t->window, memory_order_relaxed) != window) ||
                     (atomic_load_explicit(&t->flags, memory_order_relaxed) != flags && !w->gated);
        changed = atomic_load_explicit(&t->window, memory_order_relaxed) != window ||
                  atomic_load_explicit(&t->flags, memory_order_relaxed) != flags;
        if (w->open || changed) {
                atomic_store_explicit(&t->depth, w->depth, memory_order_relaxed);
                atomic_store_explicit(&t->sharers, w->sharers, memory_order_relaxed);
                atomic_store_explicit(&t->rest, w->drain_ns, memory_order_relaxed);
                atomic_store_explicit(&t->closes, w->closes, memory_order_relaxed);
        }
        atomic_store_explicit(&t->granted, w->granted, memory_order_relaxed);
        if (w->used > atomic_load_explicit(&t->used, memory_order_relaxed)) /* never decreases */
                atomic_store_explicit(&t->used, w->used, memory_order_relaxed);
        atomic_store_explicit(&t->seen, now, memory_order_release);
        if (w->open && (!s->window.open || s->window.number != w->number))
                s->window_opened = now;
        s->window = *w;
        s->written_at = now;
        if (!changed)
                return;
        atomic_store_explicit(&t->flags, flags, memory_order_release);
        atomic_store(&t->window, window);
        if (may_launch)
                wake_waiters(t);
}

bool slice_channel_drain_doorbell(SliceChannel *s, uint64_t now) {
        char bytes[512];

        if (now - s->period_since >= DOORBELL_PERIOD_NS) {
                s->period_since = now;
                s->rings = 0;
        }
        while (read(s->doorbell, bytes, sizeof bytes) == (ssize_t) sizeof bytes &&
               ++s->rings < SLICE_CHANNEL_RINGS)
                ;
        return ++s->rings < SLICE_CHANNEL_RINGS;
}
