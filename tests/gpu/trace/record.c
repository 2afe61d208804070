/* SPDX-License-Identifier: Apache-2.0 */

/* librm-trace.so: preloaded into a program, it writes every call of NVIDIA's driver as a line into
 * the file that RM_TRACE names (line.h has the format; rm-trace reads it). Every call goes to the
 * kernel unchanged. It must not be used together with the gate, because it does not see the gate's
 * own calls.
 *
 * It interposes ioctl, mmap, mmap64, munmap and mprotect. It only records calls on files called
 * nvidia*, large reservations of addresses, and later calls on these. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "gpu/rm/export.h"
#include "gpu/rm/rm.h"
#include "line.h"

enum { RANGES = 4096, RESERVED = 64 << 20, OF_ANY_CLASS = 64 };
#define EXPORTED(name) __asm__(name) __attribute__((visibility("default")))

/* ---- where it goes ---- */

static int out = -1;
static unsigned long long start;

static unsigned long long now(void) {
        struct timespec t = {0};

        (void) sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
        return (unsigned long long) t.tv_sec * 1000000000ull + (unsigned long long) t.tv_nsec;
}

/* A high number, which programs that count their descriptors do not reach. */
static int output(void) {
        const char *path = getenv("RM_TRACE");
        long fd;

        if (out >= 0 || !path)
                return out;
        fd = sys_call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (fd < 0)
                return -1;
        out = (int) sys_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 900);
        if (out < 0)
                out = (int) fd;
        else
                (void) sys_call(SYS_close, fd);
        start = now();
        return out;
}

typedef struct Text {
        size_t n;
        char text[TRACE_LINE];
} Text;

__attribute__((format(printf, 2, 3))) static void add(Text *t, const char *format, ...) {
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(t->text + t->n, sizeof t->text - t->n, format, arguments);
        va_end(arguments);
        if (n > 0 && t->n + (size_t) n < sizeof t->text)
                t->n += (size_t) n;
}

static void add_hex(Text *t, const uint8_t *bytes, size_t n) {
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < n && t->n + 2 < sizeof t->text; i++) {
                t->text[t->n++] = digits[bytes[i] >> 4];
                t->text[t->n++] = digits[bytes[i] & 15];
        }
}

static void add_bytes(Text *t, const char *name, const TraceBytes *b) {
        if (b->n == 0)
                return;
        add(t, " %s=", name);
        add_hex(t, b->before, b->n);
        add(t, "/");
        add_hex(t, b->after, b->n);
}

static void finish(Text *t) {
        if (t->n + 1 < sizeof t->text)
                t->text[t->n++] = '\n';
        (void) sys_call(SYS_write, output(), t->text, t->n);
}

static void begin(Text *t, const char *verb, unsigned long long at, const char *file) {
        t->n = 0;
        add(t, "%s pid=%ld tid=%ld at=%llu ns=%llu file=%s", verb, sys_call(SYS_getpid), sys_call(SYS_gettid),
            at - start, now() - at, file);
}

/* ---- files and stacks ---- */

/* The file's name if it is one of the driver's; else "". */
static void name_of(int fd, char *ret, size_t size) {
        char link[32], path[256];
        const char *base;
        long n;

        ret[0] = '\0';
        (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = sys_call(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
        if (fd < 0 || n <= 0)
                return;
        path[n] = '\0';
        base = strrchr(path, '/');
        if (base && strncmp(base + 1, "nvidia", 6) == 0 && strcspn(base, " \n") == strlen(base))
                (void) snprintf(ret, size, "%s", base + 1);
}

/* Whether an address is on this thread's stack; looked up once per thread. */
static int on_stack(uint64_t at) {
        static __thread uint64_t low, high;
        pthread_attr_t attributes;
        void *base;
        size_t size;

        if (high == 0 && pthread_getattr_np(pthread_self(), &attributes) == 0) {
                if (pthread_attr_getstack(&attributes, &base, &size) == 0) {
                        low = (uint64_t) (uintptr_t) base;
                        high = low + size;
                }
                (void) pthread_attr_destroy(&attributes);
        }
        return at >= low && at < high;
}

/* As many bytes as there are. */
static size_t copy(uint8_t *to, uint64_t from, size_t n) {
        struct iovec ours = {to, n}, theirs = {(void *) (uintptr_t) from, n};
        long got;

        if (from == 0 || n == 0)
                return 0;
        got = sys_call(SYS_process_vm_readv, sys_call(SYS_getpid), &ours, 1, &theirs, 1, 0);
        return got > 0 ? (size_t) got : 0;
}

/* ---- ioctl ---- */

static uint64_t word64(const uint8_t *p, size_t at) {
        uint64_t value;

        memcpy(&value, p + at, sizeof value);
        return value;
}

static uint32_t word32(const uint8_t *p, size_t at) {
        uint32_t value;

        memcpy(&value, p + at, sizeof value);
        return value;
}

typedef struct Discovery {
        uint64_t outer, inner, list;
} Discovery;

/* The structure that the parameters of a call point to. */
static void find_inner(TraceEvent *e, Discovery *look) {
        const uint8_t *p = e->outer.before;
        size_t size = 0;

        if (e->nr == RM_ESC_ALLOC && e->outer.n == sizeof(RmAlloc))
                size = word32(p, offsetof(RmAlloc, params_size));
        else if (e->nr == RM_ESC_ALLOC && e->outer.n == sizeof(RmAllocRights))
                size = word32(p, offsetof(RmAllocRights, params_size));
        else if (e->nr == RM_ESC_CONTROL && e->outer.n == sizeof(RmControl))
                size = word32(p, offsetof(RmControl, params_size));
        else
                return;
        look->inner = word64(p, offsetof(RmAlloc, params)); /* at 16 in all of them */
        e->inner_size = (uint32_t) size;
        if (e->nr == RM_ESC_ALLOC && size == 0) /* the class determines their length */
                size = word32(p, offsetof(RmAlloc, class_)) == RM_CLASS_MEMORY_LOCAL ? sizeof(RmMemoryParams)
                                                                                     : OF_ANY_CLASS;
        e->inner.n = copy(e->inner.before, look->inner, size < TRACE_INNER ? size : TRACE_INNER);
}

static void find_list(TraceEvent *e, Discovery *look) {
        uint32_t cmd = word32(e->outer.before, offsetof(RmControl, cmd));
        size_t size;

        if (e->nr != RM_ESC_CONTROL || e->inner.n < sizeof(RmFbInfo) ||
            (cmd != RM_CTRL_FB_INFO && cmd != RM_CTRL_SURFACE_INFO))
                return;
        size = (size_t) word32(e->inner.before, 0) * sizeof(RmFbEntry);
        look->list = word64(e->inner.before, offsetof(RmFbInfo, list));
        e->list.n = copy(e->list.before, look->list, size < TRACE_LIST ? size : TRACE_LIST);
}

static void look_before(TraceEvent *e, Discovery *look, unsigned long request, uint64_t argument) {
        size_t size;

        e->nr = rm_ioctl_nr(request);
        e->size = rm_ioctl_size(request);
        look->outer = argument;
        if (strncmp(e->file, "nvidia-uvm", 10) == 0) {
                e->nr = (uint32_t) request; /* plain numbers; the length of the parameters is not in them */
                e->size = 0;
        }
        size = e->size > 0 ? e->size : TRACE_UVM;
        e->outer.n = copy(e->outer.before, argument, size < TRACE_OUTER ? size : TRACE_OUTER);
        if (e->nr == RM_ESC_XFER_CMD && e->outer.n >= sizeof(RmXfer)) {
                e->transfer = 1;
                e->nr = word32(e->outer.before, 0);
                e->size = word32(e->outer.before, 4);
                look->outer = word64(e->outer.before, 8);
                e->outer.n =
                        copy(e->outer.before, look->outer, e->size < TRACE_OUTER ? e->size : TRACE_OUTER);
        }
        if (e->size > 0) {
                find_inner(e, look);
                find_list(e, look);
        }
}

static void look_after(TraceEvent *e, const Discovery *look) {
        (void) copy(e->outer.after, look->outer, e->outer.n);
        (void) copy(e->inner.after, look->inner, e->inner.n);
        (void) copy(e->list.after, look->list, e->list.n);
}

static void write_ioctl(const TraceEvent *e, const Discovery *look, unsigned long long at) {
        static __thread Text t;

        begin(&t, "ioctl", at, e->file);
        add(&t, " nr=0x%x size=%u r=%lld inner-size=%u xfer=%d where=%c%c", e->nr, e->size, (long long) e->r,
            e->inner_size, e->transfer, on_stack(look->outer) ? 's' : 'h',
            look->inner == 0        ? '-'
            : on_stack(look->inner) ? 's'
                                    : 'h');
        add_bytes(&t, "outer", &e->outer);
        add_bytes(&t, "inner", &e->inner);
        add_bytes(&t, "list", &e->list);
        finish(&t);
}

static long with_errno(long r) {
        if (r >= 0 || r < -4095)
                return r;
        errno = (int) -r;
        return -1;
}

static long traced_ioctl(int fd, unsigned long request, uint64_t argument) {
        static __thread TraceEvent e;
        static __thread int inside; /* calls of a signal handler in between are not recorded */
        Discovery look = {0};
        unsigned long long at;
        long r;

        if (inside || output() < 0)
                return sys_call(SYS_ioctl, fd, request, argument);
        memset(&e, 0, offsetof(TraceEvent, outer));
        e.outer.n = e.inner.n = e.list.n = 0;
        name_of(fd, e.file, sizeof e.file);
        if (e.file[0] == '\0')
                return sys_call(SYS_ioctl, fd, request, argument);
        inside = 1;
        look_before(&e, &look, request, argument);
        at = now();
        r = sys_call(SYS_ioctl, fd, request, argument);
        e.r = r;
        e.ns = now() - at;
        look_after(&e, &look);
        write_ioctl(&e, &look, at);
        inside = 0;
        return r;
}

int trace_ioctl(int fd, unsigned long request, ...) EXPORTED("ioctl");
int trace_ioctl(int fd, unsigned long request, ...) {
        void *argument;
        va_list more;

        va_start(more, request);
        argument = va_arg(more, void *);
        va_end(more);
        return (int) with_errno(traced_ioctl(fd, request, (uint64_t) (uintptr_t) argument));
}

/* ---- mappings ---- */

/* Recorded mappings; later calls on them are recorded, too. Entries are never removed. */
static struct { uint64_t start, end; } ranges[RANGES];
static unsigned n_ranges;

static void remember(uint64_t at, uint64_t length) {
        unsigned i = __atomic_fetch_add(&n_ranges, 1, __ATOMIC_RELAXED);

        if (i >= RANGES)
                return;
        ranges[i].start = at;
        ranges[i].end = at + length;
}

static int is_known(uint64_t at, uint64_t length) {
        unsigned n = __atomic_load_n(&n_ranges, __ATOMIC_RELAXED);

        for (unsigned i = 0; i < n && i < RANGES; i++)
                if (at < ranges[i].end && at + length > ranges[i].start)
                        return 1;
        return 0;
}

static void write_mapping(const char *verb, unsigned long long at, const char *file, uint64_t address,
                          uint64_t length, int protection, int flags, uint64_t offset, long r) {
        Text t;

        begin(&t, verb, at, file);
        add(&t, " addr=0x%llx length=%llu prot=%d flags=0x%x offset=0x%llx r=%ld",
            (unsigned long long) address, (unsigned long long) length, protection, flags,
            (unsigned long long) offset, r);
        finish(&t);
}

static long traced_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        uint64_t at = (uint64_t) (uintptr_t) address;
        unsigned long long begin_ = now();
        char file[TRACE_FILE] = "";
        long r = sys_call(SYS_mmap, address, length, protection, flags, fd, offset);
        int reserves = protection == PROT_NONE && length >= RESERVED;

        if (output() < 0)
                return r;
        if (!(flags & MAP_ANONYMOUS))
                name_of(fd, file, sizeof file);
        if (file[0] == '\0' && !reserves && !((flags & MAP_FIXED) && is_known(at, length)))
                return r;
        write_mapping("mmap", begin_, file[0] ? file : "none", at, length, protection, flags,
                      (uint64_t) offset, r);
        if (r >= 0 || r < -4095)
                remember((uint64_t) r, length);
        return r;
}

void *trace_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
        EXPORTED("mmap");
void *trace_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        return (void *) with_errno(traced_mmap(address, length, protection, flags, fd, offset));
}

void *trace_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
        EXPORTED("mmap64");
void *trace_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        return (void *) with_errno(traced_mmap(address, length, protection, flags, fd, offset));
}

int trace_munmap(void *address, size_t length) EXPORTED("munmap");
int trace_munmap(void *address, size_t length) {
        unsigned long long begin_ = now();
        uint64_t at = (uint64_t) (uintptr_t) address;
        long r = sys_call(SYS_munmap, address, length);

        if (is_known(at, length))
                write_mapping("munmap", begin_, "none", at, length, 0, 0, 0, r);
        return (int) with_errno(r);
}

int trace_mprotect(void *address, size_t length, int protection) EXPORTED("mprotect");
int trace_mprotect(void *address, size_t length, int protection) {
        unsigned long long begin_ = now();
        uint64_t at = (uint64_t) (uintptr_t) address;
        long r = sys_call(SYS_mprotect, address, length, protection);

        if (is_known(at, length))
                write_mapping("mprotect", begin_, "none", at, length, protection, 0, 0, r);
        return (int) with_errno(r);
}
