/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/pin.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/sys.h"

enum {
        TEXT = 4096,
        READINGS = 8, /* of the list of locks */
        NOTES = 16,   /* attempts to record inodes */
};

/* Stands for several inodes: the container has a dma-buf, or made another node of the same device.
 * No file has this number, because inode_of() returns odd ones. */
#define SEVERAL UINT32_C(0xFFFFFFFE)

int pin_file(int fd, uint64_t key) {
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t) key, .l_len = 1};
        int r = (int) sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock);

        if (r == -EBADF) {
                lock.l_type = F_WRLCK; /* for files open for writing only */
                r = (int) sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock);
        }
        if ((r != -EAGAIN && r != -EACCES) || sys_call(SYS_fcntl, fd, F_OFD_GETLK, &lock) < 0)
                return r;
        return lock.l_start == (off_t) key && lock.l_len == 1 ? 0 : r;
}

int pin_file_alone(int fd, uint64_t key, bool *ret_alone) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) key, .l_len = 1};

        *ret_alone = sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock) == 0;
        return *ret_alone ? 0 : pin_file(fd, key);
}

void pin_release(int fd, uint64_t key) {
        struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = (off_t) key, .l_len = 1};

        /* if it fails, the row's bytes stay charged */
        (void) sys_call(SYS_fcntl, fd, F_OFD_SETLK, &lock);
}

/* A 31-bit hash of the file's inode and file system, made odd; 0: not known. */
static uint32_t inode_of(int fd) {
        struct stat st;
        uint64_t mixed;

        st.st_dev = st.st_ino = 0; /* the kernel sets them; the analyzer does not know that */
        if (fd < 0 || sys_call(SYS_fstat, fd, &st) < 0)
                return 0;
        /* Multiplied at the end: the inodes of nvidiactl and nvidia-uvm often differ by 1. */
        mixed = (((uint64_t) st.st_dev * UINT64_C(0x9E3779B97F4A7C15)) ^ st.st_ino) *
                UINT64_C(0xD6E8FEB86659FD93);
        return (uint32_t) (mixed >> 33 | 1);
}

static uint32_t part_of(uint64_t inodes, PinFileKind kind) {
        return (uint32_t) (inodes >> 32 * (unsigned) kind);
}

static uint64_t in_part(uint32_t inode, PinFileKind kind) {
        return (uint64_t) inode << 32 * (unsigned) kind;
}

uint64_t pin_inode(int fd, PinFileKind kind) {
        uint32_t inode = inode_of(fd);

        if (kind == PIN_OTHER)
                return inode != 0 ? in_part(SEVERAL, PIN_RM) : 0;
        return in_part(inode, kind);
}

uint64_t pin_merge_inodes(uint64_t a, uint64_t b) {
        uint64_t merged = 0;

        for (PinFileKind kind = PIN_RM; kind <= PIN_UVM; kind++) {
                uint32_t x = part_of(a, kind), y = part_of(b, kind);

                merged |= in_part(x == 0 || x == y ? y : y == 0 ? x : SEVERAL, kind);
        }
        return merged;
}

/* Threads may note at once, and a container may write anything here, so the loop is bounded. */
void pin_note_inodes(SliceRow *row, uint64_t inodes) {
        uint64_t old = atomic_load_explicit(&row->inode, memory_order_relaxed);

        for (unsigned i = 0; i < NOTES; i++) {
                uint64_t merged = pin_merge_inodes(old, inodes);

                if (merged == old || atomic_compare_exchange_strong(&row->inode, &old, merged))
                        return;
        }
        atomic_store(&row->inode, in_part(SEVERAL, PIN_RM) | in_part(SEVERAL, PIN_UVM));
}

/* ---- parsing lists of locks ---- */

static void end_word(PinScan *s) {
        s->before = s->digits && !s->other_signs ? s->word : PIN_NO_NUMBER;
        s->word = 0;
        s->digits = s->other_signs = false;
}

/* The last two words of a line are the first and last byte of the lock: `before` and the current
 * word. */
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

/* Opens a file of procfs only: after chroot a program may have made other files under these
 * names. */
static long open_proc(const char *path) {
        long fd = sys_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
        struct statfs fs;

        fs.f_type = 0; /* the kernel sets it; the analyzer does not know that */
        if (fd < 0 || (sys_call(SYS_fstatfs, fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC))
                return fd;
        (void) sys_call(SYS_close, fd);
        return -ENOENT;
}

/* Returns 0, or negative errno: the list cannot be read. */
static int scan_file(const char *path, PinScan *scan) {
        long fd = open_proc(path), n;
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
        bool *listed; /* whether each key is in the list */
} Keys;

static bool mark_key(void *userdata, uint64_t key) {
        const Keys *k = userdata;

        for (size_t i = 0; i < k->n; i++)
                if (k->keys[i] == key)
                        k->listed[i] = true;
        return false;
}

static bool mark_one(void *userdata, uint64_t key) {
        const Keys *k = userdata;

        return mark_key(userdata, key) || k->listed[0];
}

/* The kernel gives at most a page in one read(), and begins the next one at the number of a line
 * (seq_read_iter() in fs/seq_file.c). So a line is left out if locks before it end in between. A
 * key that is found exists. One that is missing is gone only if several readings miss it. */
static void list_keys(const uint64_t *keys, bool *ret, size_t n, bool (*each)(void *userdata, uint64_t key)) {
        Keys looked_for = {.keys = keys, .n = n, .listed = ret};

        for (size_t i = 0; i < n; i++)
                ret[i] = false;
        for (unsigned turn = 0; turn < READINGS; turn++) {
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

        list_keys(&key, &listed, 1, mark_one);
        return listed;
}

void pin_find_listed(const uint64_t *keys, bool *ret, size_t n) {
        list_keys(keys, ret, n, mark_key);
}

/* Scans the locks of one open file, which /proc/self/fdinfo/FD lists. */
static int scan_own(int fd, PinScan *scan) {
        char path[PIN_FD_PATH];

        if (fd < 0)
                return -EBADF;
        pin_files_fd_path("/proc/self/fdinfo/", fd, path);
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
PinAnswer pin_ask(int fd, uint64_t key, bool alone) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) key, .l_len = 1};

        if (sys_call(SYS_fcntl, fd, F_GETLK, &lock) < 0)
                return PIN_UNSURE;
        if (lock.l_type == F_UNLCK)
                return PIN_NO;
        if ((uint64_t) lock.l_start == key && lock.l_len == 1)
                return PIN_YES;
        return alone ? PIN_NO : PIN_UNSURE;
}

/* Asks through a descriptor of that inode: the program's descriptor may refer to another file by
 * now. */
static PinAnswer ask_inode(int fd, uint32_t inode, uint64_t key, bool alone) {
        PinAnswer answer = inode_of(fd) == inode ? pin_ask(fd, key, alone) : PIN_UNSURE;

        return answer == PIN_NO && inode_of(fd) != inode ? PIN_UNSURE : answer;
}

/* A container that had nvidia-uvm has it after a restart, too, perhaps with another inode. So where
 * it cannot be opened, the program has no descriptor left, or has removed it. */
PinAnswer pin_query(PinFiles *files, PinFileKind kind, uint64_t inodes, uint64_t key, bool alone) {
        uint32_t inode = part_of(inodes, kind);
        PinAnswer answer;
        int fd;

        if (inode == 0)
                return PIN_NO;
        if (inode == SEVERAL) /* the program's file may be one of them */
                return pin_ask(files->file, key, false) == PIN_YES ? PIN_YES : PIN_UNSURE;
        answer = ask_inode(files->file, inode, key, alone);
        if (answer != PIN_UNSURE)
                return answer;
        fd = pin_files_get(files, kind);
        return fd < 0 && kind == PIN_UVM ? PIN_YES : ask_inode(fd, inode, key, alone);
}

PinAnswer pin_query_row(const SliceRow *row, PinFiles *files) {
        uint64_t key = atomic_load_explicit(&row->key, memory_order_relaxed);
        uint64_t inodes = atomic_load_explicit(&row->inode, memory_order_acquire);
        PinAnswer rm, uvm;

        if (key == 0 || inodes == 0 || (int64_t) key < 0)
                return PIN_NO;
        rm = pin_query(files, PIN_RM, inodes, key, false);
        if (rm == PIN_YES)
                return PIN_YES;
        uvm = pin_query(files, PIN_UVM, inodes, key, false);
        return uvm == PIN_YES ? PIN_YES : rm == PIN_NO && uvm == PIN_NO ? PIN_NO : PIN_UNSURE;
}

bool pin_holds_row(const SliceRow *row, int fd) {
        PinFiles files = PIN_FILES(fd);
        PinAnswer answer = pin_query_row(row, &files);

        pin_files_close(&files);
        return answer == PIN_UNSURE ? is_listed(atomic_load_explicit(&row->key, memory_order_relaxed))
                                    : answer == PIN_YES;
}
