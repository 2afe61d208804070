/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/pin.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/sys.h"

enum { TEXT = 4096 };

/* Several inodes: a container may have made another node of the same device. */
#define SEVERAL UINT64_MAX

int pin_file(int fd, uint64_t key) {
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t) key, .l_len = 1};
        int r = (int) sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock);

        if (r == -EBADF) {
                lock.l_type = F_WRLCK; /* open for writing only */
                r = (int) sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock);
        }
        if ((r != -EAGAIN && r != -EACCES) || sys_call(SYS_fcntl, fd, F_OFD_GETLK, &lock) < 0)
                return r;
        return lock.l_start == (off_t) key && lock.l_len == 1 ? 0 : r;
}

void pin_release(int fd, uint64_t key) {
        struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = (off_t) key, .l_len = 1};

        (void) sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock); /* on failure too much is counted */
}

uint64_t pin_inode(int fd) {
        struct stat st;

        st.st_dev = st.st_ino = 0; /* the kernel sets them; the analyzer does not know that */
        if (fd < 0 || sys_call(SYS_fstat, fd, &st) < 0)
                return 0;
        return (((uint64_t) st.st_dev * UINT64_C(0x9E3779B97F4A7C15)) ^ st.st_ino) >> 1 | 1;
}

void pin_note_inode(SliceRow *row, uint64_t inode) {
        uint64_t old = atomic_load_explicit(&row->inode, memory_order_relaxed);

        if (inode == 0 || (old != 0 && old != inode))
                inode = SEVERAL;
        if (old != inode)
                atomic_store_explicit(&row->inode, inode, memory_order_release);
}

/* ---- lists of locks ---- */

static void end_word(PinScan *s) {
        s->before = s->digits && !s->other_signs ? s->word : PIN_NO_NUMBER;
        s->word = 0;
        s->digits = s->other_signs = false;
}

/* The last two words of the line: `before` and the word that was being read. */
static void end_line(PinScan *s) {
        uint64_t first = s->before;

        end_word(s);
        if (!s->done && first == s->before && first != PIN_NO_NUMBER && first != 0)
                s->done = s->each(s->userdata, first);
        s->before = PIN_NO_NUMBER;
}

static void add_sign(PinScan *s, char sign) {
        unsigned digit = (unsigned) sign - '0';

        if (digit > 9 || s->word > (UINT64_C(1) << 63) / 10)
                s->other_signs = true;
        s->digits = true;
        s->word = s->other_signs ? 0 : s->word * 10 + digit;
}

void pin_scan(PinScan *scan, const char *text, size_t n) {
        for (size_t i = 0; i < n; i++) {
                if (text[i] == '\n') /* NOLINT: the kernel has written it */
                        end_line(scan);
                else if (text[i] != ' ' && text[i] != '\t')
                        add_sign(scan, text[i]);
                else if (scan->digits)
                        end_word(scan);
        }
}

/* 0, or negative errno: the list cannot be read. */
static int scan_file(const char *path, PinScan *scan) {
        long fd = sys_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0), n;
        char text[TEXT];

        if (fd < 0)
                return (int) fd;
        while ((n = sys_call(SYS_read, fd, text, sizeof text)) > 0 && !scan->done)
                pin_scan(scan, text, (size_t) n);
        (void) sys_call(SYS_close, fd);
        return n < 0 ? (int) n : 0;
}

typedef struct Keys {
        const uint64_t *keys;
        size_t n;
        bool *listed; /* of each */
} Keys;

static bool mark(void *userdata, uint64_t key) {
        const Keys *k = userdata;

        for (size_t i = 0; i < k->n; i++)
                if (k->keys[i] == key)
                        k->listed[i] = true;
        return false;
}

static bool mark_one(void *userdata, uint64_t key) {
        const Keys *k = userdata;

        return mark(userdata, key) || k->listed[0];
}

/* Reads the list twice, because other processes lock and unlock meanwhile, and a reader cannot know
 * where in the list it is. */
static void list(const uint64_t *keys, bool *ret, size_t n, bool (*each)(void *userdata, uint64_t key)) {
        Keys looked_for = {.keys = keys, .n = n, .listed = ret};

        for (size_t i = 0; i < n; i++)
                ret[i] = false;
        for (unsigned turn = 0; turn < 2; turn++) {
                PinScan scan = PIN_SCAN(each, &looked_for);

                if (scan_file("/proc/locks", &scan) < 0)
                        for (size_t i = 0; i < n; i++)
                                ret[i] = true;
                if (scan.done)
                        return;
        }
}

static bool is_listed(uint64_t key) {
        bool listed;

        list(&key, &listed, 1, mark_one);
        return listed;
}

void pin_find_listed(const uint64_t *keys, bool *ret, size_t n) {
        list(keys, ret, n, mark);
}

/* /proc/self/fdinfo/FD has the locks of that open file. */
static int scan_own(int fd, PinScan *scan) {
        static const char prefix[] = "/proc/self/fdinfo/";
        char path[sizeof prefix + 10], digits[10];
        unsigned number = (unsigned) fd;
        size_t n = 0, at = 0;

        if (fd < 0)
                return -EBADF;
        for (; prefix[at] != '\0'; at++)
                path[at] = prefix[at];
        do
                digits[n++] = (char) ('0' + number % 10);
        while ((number /= 10) > 0);
        while (n > 0)
                path[at++] = digits[--n];
        path[at] = '\0';
        return scan_file(path, scan);
}

static bool is_anothers(void *userdata, uint64_t key) {
        const Keys *own = userdata;

        for (size_t i = 0; i < own->n; i++)
                if (own->keys[i] == key)
                        return false;
        return key < PIN_KEY_END;
}

bool pin_is_shared(int fd, const uint64_t *own, size_t n) {
        PinScan scan = PIN_SCAN(is_anothers, &((Keys){.keys = own, .n = n}));

        return scan_own(fd, &scan) == 0 && scan.done;
}

typedef struct Visit {
        void (*each)(void *userdata, uint64_t key);
        void *userdata;
} Visit;

static bool visit_export(void *userdata, uint64_t key) {
        const Visit *v = userdata;

        if (key >= PIN_KEY_END)
                v->each(v->userdata, key);
        return false;
}

int pin_each_export(int fd, void (*each)(void *userdata, uint64_t key), void *userdata) {
        PinScan scan = PIN_SCAN(visit_export, &((Visit){each, userdata}));

        return scan_own(fd, &scan);
}

/* ---- asking ---- */

/* F_GETLK, unlike F_OFD_GETLK, also reports the OFD locks of this open file itself. It names one
 * lock only, which may be a larger lock of another process that overlaps the byte. */
static PinAnswer ask(int fd, uint64_t key) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) key, .l_len = 1};

        if (sys_call(SYS_fcntl, fd, F_GETLK, &lock) < 0)
                return PIN_YES;
        if (lock.l_type == F_UNLCK)
                return PIN_NO;
        return (uint64_t) lock.l_start == key && lock.l_len == 1 ? PIN_YES : PIN_UNSURE;
}

bool pin_exists(int fd, uint64_t key) {
        PinAnswer answer = ask(fd, key);

        return answer == PIN_UNSURE ? is_listed(key) : answer == PIN_YES;
}

void pin_exist(int fd, const uint64_t *keys, bool *ret, size_t n) {
        uint64_t unsure[PIN_BATCH_MAX];
        bool listed[PIN_BATCH_MAX], any = false;

        for (size_t i = 0; i < n; i++) {
                PinAnswer answer = ask(fd, keys[i]);

                ret[i] = answer == PIN_YES;
                unsure[i] = answer == PIN_UNSURE ? keys[i] : 0;
                any |= unsure[i] != 0;
        }
        if (!any)
                return;
        pin_find_listed(unsure, listed, n);
        for (size_t i = 0; i < n; i++)
                ret[i] |= listed[i] && unsure[i] != 0;
}

PinAnswer pin_query_row(const SliceRow *row, int fd) {
        uint64_t key = atomic_load_explicit(&row->key, memory_order_relaxed);
        uint64_t inode = atomic_load_explicit(&row->inode, memory_order_acquire);

        PinAnswer answer;

        if (key == 0 || inode == 0 || (int64_t) key < 0)
                return PIN_NO;
        if (inode != pin_inode(fd))
                return PIN_UNSURE;
        answer = ask(fd, key);
        return answer == PIN_NO && pin_inode(fd) != inode
                       ? PIN_UNSURE
                       : answer; /* the descriptor is another file's by now */
}

bool pin_holds_row(const SliceRow *row, int fd) {
        PinAnswer answer = pin_query_row(row, fd);

        return answer == PIN_UNSURE ? is_listed(atomic_load_explicit(&row->key, memory_order_relaxed))
                                    : answer == PIN_YES;
}
