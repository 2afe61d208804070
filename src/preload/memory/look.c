/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/look.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "preload/inject/loaded.h"
#include "slice/container_paths.h"

/* Beside the places where pages are mounted (slice/container_paths.h), a directory of another name serves
 * `aliquot run` and tests, and is believed only where nothing is mounted, and never in a program
 * with rights of its own. */
#define SLICES_NAME "ALIQUOT_SLICES"

enum {
        SLICES_MAX = 32,
        AUXV_MAX = 64,
        ENTRIES_SIZE = 2048,
};

extern char **environ __attribute__((weak));

/* ---- the environment, without libc ---- */

static const char *value_of(const char *entry, const char *name) {
        while (*name != '\0' && *entry == *name) {
                entry++;
                name++;
        }
        return *name == '\0' && *entry == '=' ? entry + 1 : NULL;
}

const char *look_environment(const char *name) {
        const char *value = NULL;

        if (!&environ || !environ)
                return NULL;
        for (char **e = environ; *e && !value; e++)
                value = value_of(*e, name);
        return value;
}

/* The kernel's word. */
typedef enum Secure { SECURE_NO, SECURE_YES, SECURE_UNKNOWN } Secure;

static Secure is_secure(void) {
        Elf64_auxv_t auxv[AUXV_MAX] = {{0}};
        long fd = sys_call(SYS_openat, AT_FDCWD, "/proc/self/auxv", O_RDONLY | O_CLOEXEC, 0), n;

        if (fd < 0)
                return SECURE_UNKNOWN;
        n = sys_call(SYS_read, fd, auxv, sizeof auxv);
        (void) sys_call(SYS_close, fd); /* only read from */
        for (long i = 0; i < n / (long) sizeof auxv[0]; i++)
                if (auxv[i].a_type == AT_SECURE)
                        return auxv[i].a_un.a_val != 0 ? SECURE_YES : SECURE_NO;
        return SECURE_UNKNOWN;
}

/* ---- pages ---- */

bool look_path(const char *directory, unsigned n, const char *file, char path[LOOK_PATH]) {
        size_t at = 0;

        for (; *directory && at < LOOK_PATH - 16; directory++)
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

int look_limits(const char *directory, unsigned n, SliceLimits *ret) {
        char path[LOOK_PATH];
        long fd, r;

        if (!look_path(directory, n, "/limits", path))
                return -ENAMETOOLONG;
        fd = sys_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
                return (int) fd;
        ret->magic = 0;
        r = sys_call(SYS_read, fd, ret, sizeof *ret);
        (void) sys_call(SYS_close, fd); /* only read from */
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

/* "0" to "31"; SLICES_MAX: another name. */
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

/* Trying each of 32 names would take longer than all the rest. */
bool look_which(const char *directory, uint32_t *ret) {
        char entries[ENTRIES_SIZE] __attribute__((aligned(8))) = {0};
        long fd = sys_call(SYS_openat, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), n;

        *ret = 0;
        if (fd < 0)
                return false;
        while ((n = sys_call(SYS_getdents64, fd, entries, sizeof entries)) > 0)
                *ret |= numbers_in(entries, n);
        (void) sys_call(SYS_close, fd); /* only read from */
        return n == 0;
}

/* A page that cannot be read is not an open one. */
static bool is_open(const char *directory) {
        SliceLimits limits;
        uint32_t slices;

        if (!look_which(directory, &slices) || slices == 0)
                return false;
        for (unsigned n = 0; n < SLICES_MAX; n++)
                if ((slices >> n & 1) &&
                    (look_limits(directory, n, &limits) < 0 || !(limits.flags & SLICE_FLAG_OPEN)))
                        return false;
        return true;
}

/* ---- the directory ---- */

/* 0, or what the kernel says. No descriptor is needed for it. */
static long is_directory(const char *path) {
        struct stat st;
        long r;

        st.st_mode = 0; /* the kernel sets it; the analyzer cannot know */
        r = sys_call(SYS_newfstatat, AT_FDCWD, path, &st, 0);
        if (r < 0)
                return r;
        return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* Where nothing is mounted. One that was named and is not there is no permission to go without. */
static Look look_named(const char **ret_directory) {
        const char *named = look_environment(SLICES_NAME);
        Secure secure;

        if (!named || named[0] == '\0')
                return LOOK_NONE;
        secure = is_secure();
        if (secure == SECURE_YES)
                return LOOK_NONE;
        if (secure == SECURE_UNKNOWN || named[0] != '/' || is_directory(named) < 0)
                return LOOK_CANNOT;
        *ret_directory = named;
        return LOOK_SLICES;
}

static Look look_at(const char *directory, const char **ret_directory) {
        long r = is_directory(directory);

        if (r == 0)
                *ret_directory = directory;
        else if (r != -ENOENT && r != -ENOTDIR)
                return LOOK_CANNOT;
        return r == 0 ? LOOK_SLICES : LOOK_NONE;
}

Look look_for_slices(const char **ret_directory) {
        Look look;

        *ret_directory = NULL;
        look = look_at(SLICE_PAGES, ret_directory);
        if (look == LOOK_NONE)
                look = look_at(SLICE_RUN_PAGES, ret_directory);
        if (look == LOOK_NONE)
                look = look_named(ret_directory);
        if (look == LOOK_SLICES && is_open(*ret_directory))
                return LOOK_OPEN;
        /* An isolated container loads the library from one of these paths. Without pages the
         * process has changed its root, or the pages were taken away. */
        return look == LOOK_NONE && (loaded_as(SLICE_GATE) || loaded_as(SLICE_RUN_GATE)) ? LOOK_CANNOT : look;
}
