/* SPDX-License-Identifier: Apache-2.0 */

/* Opens a slice page, takes rows and reaps them; declared in slice.h. */

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/sys.h"
#include "slice/counters.h"
#include "slice/pin.h"
#include "slice/slice-internal.h"

/* Part of the preloaded library: raw system calls only. A compiler must not make calls of memcpy()
 * or memset(): old systems lack their symbol versions. tests/unit/slice/symbols.sh checks what the
 * objects import. */

enum { REAP_PAUSE = 1000000 }; /* least ns between two reaps of a process */
enum { STDERR = 2 };

/* ---- the files ---- */

static int join_path(const char *directory, const char *name, char path[SLICE_PATH]) {
        size_t n = 0;

        for (const char *p = directory; *p && n < SLICE_PATH; p++)
                path[n++] = *p;
        for (const char *p = name; n < SLICE_PATH && (path[n] = *p); p++)
                n++;
        return n < SLICE_PATH ? 0 : -ENAMETOOLONG;
}

/* O_NONBLOCK, because opening another kind of file, such as a FIFO, may block. check_file() refuses
 * it. */
static long open_file(const char *path, int flags) {
        return sys_call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
}

/* Opens the counters under a number above 2. The program may have closed its standard files, while
 * other threads still write messages to them: those would be written over the counters. Meanwhile
 * descriptors that cannot be written have the low numbers. */
static long open_counters(const char *path) {
        long low[3], fd;
        size_t n = 0;

        do
                low[n] = sys_call(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0);
        while (low[n] >= 0 && low[n++] <= STDERR && n < 3);
        fd = open_file(path, O_RDWR);
        while (n-- > 0)
                (void) sys_call(SYS_close, low[n]); /* it was not used */
        return fd;
}

/* The file must be regular and long enough: a mapping faults only beyond the end of its file. */
static int check_file(long fd, size_t size, struct stat *ret) {
        long r;

        ret->st_mode = 0; /* the kernel fills it in; the analyzer does not know that */
        r = sys_call(SYS_fstat, fd, ret);
        if (r < 0)
                return (int) r;
        return S_ISREG(ret->st_mode) && ret->st_size >= (off_t) size ? 0 : -EPROTO;
}

static int map_file(long fd, size_t size, int protection, struct stat *st, void **ret) {
        int r = check_file(fd, size, st);
        long p;

        if (r < 0)
                return r;
        p = sys_call(SYS_mmap, 0, size, protection, MAP_SHARED, fd, 0);
        if (p < 0 && p > -4096)
                return (int) p;
        *ret = (void *) p;
        return 0;
}

static void unmap_pages(const void *p, size_t size) {
        /* Fails only for an address without a mapping. */
        if (p)
                (void) sys_call(SYS_munmap, p, size);
}

static bool limits_good(const SliceLimits *l) {
        return l->magic == SLICE_LIMITS_MAGIC && l->version == SLICE_VERSION && l->size == sizeof *l;
}

static bool counters_good(const SliceCounters *c) {
        return c->magic == SLICE_COUNTERS_MAGIC && c->version == SLICE_VERSION && c->size == sizeof *c;
}

/* ---- rows ---- */

/* The lock belongs to the open file, not to the process: it lasts until the last copy of the
 * mapping is gone. */
static long lock_row(long fd, uint32_t row, short type) {
        struct flock lock = {.l_type = type,
                             .l_whence = SEEK_SET,
                             .l_start = (off_t) (offsetof(SliceCounters, rows) + row * sizeof(SliceRow)),
                             .l_len = 1};

        return sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock);
}

/* slice_recover() also clears what the row's last owner wrote about its work. */
static void own_row(SliceCounters *c, uint32_t row, uint64_t key) {
        slice_recover(c, row);
        atomic_store_explicit(&c->rows[row].inode, 0, memory_order_relaxed);
        atomic_store_explicit(&c->rows[row].key, key, memory_order_relaxed);
}

/* Takes one of the first `rows` rows: one that holds nothing or, if there is none, one of a dead
 * owner, releasing its bytes. Each process begins at another row, so that 64 processes that start
 * together need one system call each instead of 32. */
static int take_row(long fd, SliceCounters *c, int file, uint64_t key, uint32_t rows, uint32_t *ret) {
        uint32_t start = (uint32_t) sys_call(SYS_getpid);
        long r = 0;

        for (uint32_t i = 0; rows > 0 && i < 2 * rows; i++) {
                uint32_t row = (start + i) % rows;

                if (i < rows && !slice_row_at_rest(&c->rows[row]))
                        continue;
                r = lock_row(fd, row, F_WRLCK);
                if (r == -EAGAIN || r == -EACCES)
                        continue;
                if (r < 0)
                        return (int) r;
                if (!slice_row_at_rest(&c->rows[row]) && pin_holds_row(&c->rows[row], file)) {
                        /* The owner is dead, but an open file still holds its memory. */
                        (void) lock_row(fd, row, F_UNLCK);
                        continue;
                }
                own_row(c, row, key);
                *ret = row;
                return 0;
        }
        return -EUSERS;
}

/* Takes over a row of a dead process with the same key and a pin that still exists. So the process
 * needs no further row. When it dies in turn, the row is in the same state as before. */
static bool adopt_row(long fd, SliceCounters *c, int file, uint64_t key, uint32_t *ret) {
        for (uint32_t row = 0; row < SLICE_ROWS; row++) {
                SliceRow *r = &c->rows[row];

                if (atomic_load_explicit(&r->key, memory_order_relaxed) != key || slice_row_at_rest(r) ||
                    lock_row(fd, row, F_WRLCK) < 0)
                        continue;
                if (atomic_load_explicit(&r->key, memory_order_relaxed) == key && pin_holds_row(r, file)) {
                        slice_complete(c, row);
                        *ret = row;
                        return true;
                }
                /* The row is not pinned any more, or another process has it by now. */
                (void) lock_row(fd, row, F_UNLCK);
        }
        return false;
}

static long open_again(const SliceUser *s) {
        struct stat st;
        long fd = open_counters(s->path);

        if (fd < 0)
                return fd;
        if (check_file(fd, sizeof(SliceCounters), &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
                return fd;
        (void) sys_call(SYS_close, fd);
        return -ESTALE;
}

typedef struct Reap {
        SliceCounters *counters;
        long fd; /* of the counters */
        PinFiles files;
        unsigned freed;
        /* number of rows below, which only the list of locks can decide; they stay locked until
         * then */
        size_t n;
        uint32_t rows[PIN_BATCH_MAX];
        uint64_t keys[PIN_BATCH_MAX];
} Reap;

static void end_row(Reap *r, uint32_t row, bool dead) {
        if (dead) {
                slice_recover(r->counters, row);
                r->freed++;
        }
        (void) lock_row(r->fd, row,
                        /* Unlocked before close, because a child of fork may have the descriptor,
                         * too. */
                        F_UNLCK);
}

/* The list is read after the rows were locked, because their owners may have locked files until
 * then. */
static void end_unsure(Reap *r) {
        bool listed[PIN_BATCH_MAX];

        if (r->n > 0)
                pin_find_listed(r->keys, listed, r->n);
        for (size_t i = 0; i < r->n; i++)
                end_row(r, r->rows[i], !listed[i]);
        r->n = 0;
}

static void reap_row(Reap *r, uint32_t row) {
        const SliceRow *p = &r->counters->rows[row];
        PinAnswer held;

        if (lock_row(r->fd, row, F_WRLCK) < 0)
                return;
        held = slice_row_at_rest(p) ? PIN_YES : pin_query_row(p, &r->files);
        if (held != PIN_UNSURE) {
                end_row(r, row, held == PIN_NO);
                return;
        }
        r->rows[r->n] = row;
        r->keys[r->n++] = atomic_load_explicit(&p->key, memory_order_relaxed);
        if (r->n == PIN_BATCH_MAX)
                end_unsure(r);
}

unsigned slice_reap(SliceUser *s) {
        Reap r;

        r.counters = s->counters;
        r.fd = -1;
        r.files = PIN_FILES(atomic_load_explicit(&s->file, memory_order_relaxed));
        r.freed = 0;
        r.n = 0;
        for (uint32_t row = 0; row < SLICE_ROWS; row++) {
                if (row == s->row || slice_row_at_rest(&s->counters->rows[row]))
                        continue;
                if (r.fd < 0)
                        r.fd = open_again(s);
                /* Gives up: no descriptor is available, or the process has another root now. */
                if (r.fd < 0)
                        return 0;
                reap_row(&r, row);
        }
        end_unsure(&r);
        pin_files_close(&r.files);
        if (r.fd >= 0)
                (void) sys_call(SYS_close, r.fd);
        return r.freed;
}

bool slice_refresh(SliceUser *s) {
        struct timespec now = {0, 0};
        uint64_t last = atomic_load_explicit(&s->last_reap, memory_order_relaxed), nsec;

        (void) sys_call(SYS_clock_gettime, CLOCK_MONOTONIC_COARSE, &now); /* since Linux 2.6.32 */
        nsec = (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
        if (nsec - last < REAP_PAUSE || !atomic_compare_exchange_strong(&s->last_reap, &last, nsec))
                return false;
        (void) slice_reap(s);
        return true;
}

/* ---- opening ---- */

static int map_limits(const char *directory, const SliceLimits **ret) {
        struct stat st;
        char path[SLICE_PATH];
        void *p = NULL;
        int r = join_path(directory, "/limits", path);
        long fd = r < 0 ? r : open_file(path, O_RDONLY);

        if (fd < 0)
                return (int) fd;
        r = map_file(fd, sizeof(SliceLimits), PROT_READ, &st, &p);
        (void) sys_call(SYS_close, fd);
        if (r < 0)
                return r;
        *ret = p;
        return limits_good(*ret) ? 0 : -EPROTO;
}

/* rows: how many are tried. If not all are, ret may stay without a row (SLICE_NO_ROW). */
static int map_counters(const char *directory, int file, uint64_t key, uint32_t rows, struct stat *st,
                        SliceUser *ret) {
        uint32_t row = SLICE_NO_ROW;
        void *p = NULL;
        int r = join_path(directory, "/counters", ret->path);
        long fd = r < 0 ? r : open_counters(ret->path);

        if (fd < 0)
                return (int) fd;
        r = map_file(fd, sizeof(SliceCounters), PROT_READ | PROT_WRITE, st, &p);
        if (r == 0) {
                ret->counters = p;
                r = counters_good(ret->counters) ? take_row(fd, ret->counters, file, key, rows, &row)
                                                 : -EPROTO;
                if (r == -EUSERS && rows < SLICE_ROWS)
                        r = 0;
                atomic_init(&ret->row, row);
        }
        (void) sys_call(SYS_close, fd); /* the mapping keeps the open file and its lock */
        return r;
}

/* Children inherit the driver's files and with them the pins, so they need no mapping to keep the
 * row. */
static void hide_from_children(SliceUser *s, uint64_t key) {
        bool left = key != 0 && sys_call(SYS_madvise, s->counters, sizeof *s->counters, MADV_DONTFORK) == 0;

        atomic_store_explicit(&s->inherited, !left, memory_order_relaxed);
}

static void begin_use(SliceUser *s, int file, uint64_t key) {
        hide_from_children(s, key);
        atomic_init(&s->file, file);
        for (size_t i = 0; i < SLICE_LANES; i++)
                atomic_init(&s->busy[i], 0);
        atomic_init(&s->last_reap, 0);
}

static void copy_path(const char *from, char *to) {
        for (size_t i = 0; i < SLICE_PATH && (i == 0 || from[i - 1]); i++)
                to[i] = from[i];
}

/* Sets last_limit. An agent that was killed between its two writes leaves the generation odd, but
 * the limit, a single word, whole. So a process that starts now may use the value that was read
 * last. */
static void first_limit(SliceUser *s) {
        uint64_t limit = 0;

        for (unsigned i = 0; i < SLICE_LIMIT_TRIES && !slice_read_limit(s, &limit); i++)
                (void) sys_call(SYS_sched_yield);
        atomic_store_explicit(&s->last_limit, limit, memory_order_relaxed);
}

static int open_slice(const char *directory, int file, uint64_t key, uint32_t rows, SliceUser *ret) {
        struct stat st;
        SliceUser s;
        int r;

        s.limits = NULL;
        s.counters = NULL;
        r = map_limits(directory, &s.limits);
        if (r == 0)
                r = map_counters(directory, file, key, rows, &st, &s);
        if (r < 0) {
                unmap_pages(s.limits, sizeof *s.limits);
                unmap_pages(s.counters, sizeof *s.counters);
                return r;
        }
        ret->limits = s.limits;
        ret->counters = s.counters;
        atomic_init(&ret->row, atomic_load_explicit(&s.row, memory_order_relaxed));
        ret->dev = st.st_dev;
        ret->ino = st.st_ino;
        ret->borrows_limits = false;
        copy_path(s.path, ret->path);
        begin_use(ret, file, key);
        first_limit(ret);
        return 0;
}

int slice_open(const char *directory, SliceUser *ret) {
        return open_slice(directory, -1, 0, SLICE_ROWS, ret);
}

int slice_open_with(const char *directory, int file, uint64_t key, SliceUser *ret) {
        return open_slice(directory, file, key, SLICE_ROWS, ret);
}

int slice_open_early(const char *directory, int file, uint64_t key, SliceUser *ret) {
        return open_slice(directory, file, key, SLICE_EARLY_ROWS, ret);
}

/* The mapping holds the lock, so the file is mapped again, over the old mapping. At no time is
 * there none, and other threads go on reading. */
int slice_need_row(SliceUser *s, int file, uint64_t key) {
        uint32_t row;
        long fd, r;

        if (atomic_load(&s->row) != SLICE_NO_ROW)
                return 0;
        fd = open_again(s);
        if (fd < 0)
                return (int) fd;
        r = take_row(fd, s->counters, file, key, SLICE_ROWS, &row);
        if (r == 0)
                r = sys_call(SYS_mmap, s->counters, sizeof *s->counters, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, fd, 0);
        (void) sys_call(SYS_close, fd); /* the mapping keeps the open file and its lock */
        if (r < 0 && r > -4096)
                return (int) r;
        hide_from_children(s, key);
        atomic_store(&s->row, row);
        return 0;
}

int slice_open_row(const SliceUser *s, int file, uint64_t key, bool adopt, SliceUser *ret) {
        long fd = open_again(s);
        SliceCounters *counters;
        struct stat st;
        void *p = NULL;
        uint32_t row;
        int r;

        if (fd < 0)
                return (int) fd;
        r = map_file(fd, sizeof(SliceCounters), PROT_READ | PROT_WRITE, &st, &p);
        counters = p;
        if (r == 0 && !(adopt && adopt_row(fd, counters, file, key, &row)))
                r = take_row(fd, counters, file, key, SLICE_ROWS, &row);
        (void) sys_call(SYS_close, fd); /* the mapping keeps the open file and its lock */
        if (r < 0) {
                unmap_pages(counters, sizeof *counters);
                return r;
        }
        ret->limits = s->limits;
        ret->counters = counters;
        atomic_init(&ret->row, row);
        ret->dev = s->dev;
        ret->ino = s->ino;
        ret->borrows_limits = true;
        copy_path(s->path, ret->path);
        begin_use(ret, file, key);
        atomic_init(&ret->last_limit, atomic_load_explicit(&s->last_limit, memory_order_relaxed));
        return 0;
}

uint64_t slice_shared_key(SliceUser *s) {
        uint64_t key = atomic_load_explicit(&s->counters->shared, memory_order_relaxed), none = key;

        if (key > 0 && key < PIN_KEY_END)
                return key;
        key = pin_key_new();
        return atomic_compare_exchange_strong(&s->counters->shared, &none, key) ? key : none;
}

/* `inherited` is set after the mapping is. A child that misses it keeps the row too long, but never
 * unmaps memory that is not its own. */
void slice_inherit_on_fork(SliceUser *s) {
        if (!atomic_load_explicit(&s->inherited, memory_order_relaxed) &&
            sys_call(SYS_madvise, s->counters, sizeof *s->counters, MADV_DOFORK) == 0)
                atomic_store_explicit(&s->inherited, true, memory_order_relaxed);
}

static void close_maps(SliceUser *s, bool counters) {
        if (!s->borrows_limits)
                unmap_pages(s->limits, sizeof *s->limits);
        if (counters)
                unmap_pages(s->counters, sizeof *s->counters);
        s->limits = NULL;
        s->counters = NULL;
}

void slice_close(SliceUser *s) {
        close_maps(s, true);
}

/* The child may have another mapping by now where the parent had its counters. */
void slice_close_after_fork(SliceUser *s) {
        close_maps(s, atomic_load_explicit(&s->inherited, memory_order_relaxed));
}
