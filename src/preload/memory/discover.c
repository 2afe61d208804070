/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/discover.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "preload/inject/loaded.h"
#include "slice/container_paths.h"

/* Names a directory of pages other than the mounted ones (slice/container_paths.h), for `aliquot
 * run` and tests. It is only used if nothing is mounted, and never in a program with rights of its
 * own (AT_SECURE). */
#define SLICES_NAME "ALIQUOT_SLICES"

enum {
        SLICES_MAX = 32,
        AUXV_MAX = 64,
        ENTRIES_SIZE = 2048,
};

extern char **environ __attribute__((weak));

/* The end of the main stack, where the kernel has put arguments, environment and auxv; the symbol
 * has the oldest version there is. */
extern void *__libc_stack_end __attribute__((weak));

/* ---- the environment, without libc ---- */

static const char *value_of(const char *entry, const char *name) {
        while (*name != '\0' && *entry == *name) {
                entry++;
                name++;
        }
        return *name == '\0' && *entry == '=' ? entry + 1 : NULL;
}

const char *discover_environment(const char *name) {
        const char *value = NULL;

        if (!&environ || !environ)
                return NULL;
        for (char **e = environ; *e && !value; e++)
                value = value_of(*e, name);
        return value;
}

/* Values of AT_SECURE, which the kernel sets for a program with rights of its own. */
typedef enum Secure { SECURE_UNKNOWN, SECURE_NO, SECURE_YES } Secure;

static _Atomic int secure_at_start; /* Secure; children of fork inherit it */

static Secure secure_in(const Elf64_auxv_t *auxv, size_t n) {
        for (size_t i = 0; i < n && auxv[i].a_type != AT_NULL; i++)
                if (auxv[i].a_type == AT_SECURE)
                        return auxv[i].a_un.a_val != 0 ? SECURE_YES : SECURE_NO;
        return SECURE_UNKNOWN;
}

/* Reads AT_SECURE before the program runs, and without a system call. Later /proc/self/auxv may be
 * closed to the process: it has changed its user, or is not dumpable for another reason. A dynamic
 * linker that was called as a program may have moved the arguments, so their number is not used. */
__attribute__((constructor)) static void learn_at_start(void) {
        const uintptr_t *p = &__libc_stack_end ? __libc_stack_end : NULL;

        if (!p)
                return;
        for (p++; *p != 0;)
                p++; /* the arguments */
        for (p++; *p != 0;)
                p++; /* the environment */
        atomic_store(&secure_at_start, secure_in((const Elf64_auxv_t *) (p + 1), AUXV_MAX));
}

/* Asks the kernel if learn_at_start() did not run yet, as for a driver call of another library's
 * constructor, or with another C library. */
static Secure is_secure(void) {
        Secure known = (Secure) atomic_load(&secure_at_start);
        Elf64_auxv_t auxv[AUXV_MAX] = {{0}};
        long fd, n;

        if (known != SECURE_UNKNOWN)
                return known;
        fd = sys_call(SYS_openat, AT_FDCWD, "/proc/self/auxv", O_RDONLY | O_CLOEXEC, 0);
        if (fd < 0)
                return SECURE_UNKNOWN;
        n = sys_call(SYS_read, fd, auxv, sizeof auxv);
        (void) sys_call(SYS_close, fd); /* it was only read */
        return n > 0 ? secure_in(auxv, (size_t) n / sizeof auxv[0]) : SECURE_UNKNOWN;
}

/* ---- pages ---- */

bool discover_path(const char *directory, unsigned n, const char *file, char path[DISCOVER_PATH]) {
        size_t at = 0;

        for (; *directory && at < DISCOVER_PATH - 16; directory++)
                path[at++] = *directory;
        if (*directory)
                return false;
        path[at++] = '/';
        if (n >= 10)
                path[at++] = (char) ('0' + n / 10);
        path[at++] = (char) ('0' + n % 10);
        do
                path[at++] = *file;
        while (*file++);
        return true;
}

int discover_limits(const char *directory, unsigned n, SliceLimits *ret) {
        char path[DISCOVER_PATH];
        long fd, r;

        if (!discover_path(directory, n, "/limits", path))
                return -ENAMETOOLONG;
        fd = sys_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
                return (int) fd;
        ret->magic = 0;
        r = sys_call(SYS_read, fd, ret, sizeof *ret);
        (void) sys_call(SYS_close, fd); /* it was only read */
        if (r < 0)
                return (int) r;
        return r == (long) sizeof *ret && ret->magic == SLICE_LIMITS_MAGIC ? 0 : -EPROTO;
}

typedef struct Entry { /* linux_dirent64 */
        uint64_t ino;
        int64_t next;
        uint16_t size;
        uint8_t type;
        char name[];
} Entry;

/* "0" to "31"; SLICES_MAX: the name is another one. */
static unsigned number_of(const char *name) {
        unsigned n = 0;

        if (name[0] == '0' && name[1] != '\0')
                return SLICES_MAX;
        for (size_t i = 0; name[i] != '\0'; i++) {
                if (name[i] < '0' || name[i] > '9' || i == 2)
                        return SLICES_MAX;
                n = n * 10 + (unsigned) (name[i] - '0');
        }
        return name[0] != '\0' && n < SLICES_MAX ? n : SLICES_MAX;
}

static uint32_t numbers_in(const char *entries, long n) {
        uint32_t found = 0;

        for (long at = 0; at + (long) offsetof(Entry, name) < n;) {
                const Entry *e = (const Entry *) (const void *) (entries + at);
                unsigned number = number_of(e->name);

                if (number < SLICES_MAX)
                        found |= 1u << number;
                if (e->size == 0)
                        break;
                at += e->size;
        }
        return found;
}

/* One listing is cheaper than a try of each of 32 names. */
bool discover_numbers(const char *directory, uint32_t *ret) {
        char entries[ENTRIES_SIZE] __attribute__((aligned(8))) = {0};
        long fd = sys_call(SYS_openat, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), n;

        *ret = 0;
        if (fd < 0)
                return false;
        while ((n = sys_call(SYS_getdents64, fd, entries, sizeof entries)) > 0)
                *ret |= numbers_in(entries, n);
        (void) sys_call(SYS_close, fd); /* it was only read */
        return n == 0;
}

/* Whether all pages have SLICE_FLAG_OPEN. One that cannot be read does not count as open. */
static bool is_open(const char *directory) {
        SliceLimits limits;
        uint32_t slices;

        if (!discover_numbers(directory, &slices) || slices == 0)
                return false;
        for (unsigned n = 0; n < SLICES_MAX; n++)
                if ((slices >> n & 1) &&
                    (discover_limits(directory, n, &limits) < 0 || !(limits.flags & SLICE_FLAG_OPEN)))
                        return false;
        return true;
}

/* ---- the directory ---- */

/* Returns 0 or negative errno. Needs no descriptor. */
static long is_directory(const char *path) {
        struct stat st;
        long r;

        st.st_mode = 0; /* the kernel sets it, which the analyzer cannot know */
        r = sys_call(SYS_newfstatat, AT_FDCWD, path, &st, 0);
        if (r < 0)
                return r;
        return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* Looks for the named directory when nothing is mounted. One that is named but missing must not
 * switch the gate off. */
static Discovery discover_named(const char **ret_directory) {
        const char *named = discover_environment(SLICES_NAME);
        Secure secure;

        if (!named || named[0] == '\0')
                return DISCOVERY_NONE;
        secure = is_secure();
        if (secure == SECURE_YES)
                return DISCOVERY_NONE;
        if (secure == SECURE_UNKNOWN || named[0] != '/' || is_directory(named) < 0)
                return DISCOVERY_FAILED;
        *ret_directory = named;
        return DISCOVERY_SLICES;
}

static Discovery discover_at(const char *directory, const char **ret_directory) {
        long r = is_directory(directory);

        if (r == 0)
                *ret_directory = directory;
        else if (r != -ENOENT && r != -ENOTDIR)
                return DISCOVERY_FAILED;
        return r == 0 ? DISCOVERY_SLICES : DISCOVERY_NONE;
}

Discovery discover_slices(const char **ret_directory) {
        Discovery found;

        *ret_directory = NULL;
        found = discover_at(SLICE_PAGES, ret_directory);
        if (found == DISCOVERY_NONE)
                found = discover_at(SLICE_RUN_PAGES, ret_directory);
        if (found == DISCOVERY_NONE)
                found = discover_named(ret_directory);
        if (found == DISCOVERY_SLICES && is_open(*ret_directory))
                return DISCOVERY_OPEN;
        /* An isolated container loads the library from one of these paths. If there are no pages
         * then, the process has changed its root, or the pages were removed. */
        return found == DISCOVERY_NONE && (loaded_as(SLICE_GATE) || loaded_as(SLICE_RUN_GATE))
                       ? DISCOVERY_FAILED
                       : found;
}
