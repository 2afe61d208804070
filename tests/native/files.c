/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "files.h"
#include "trace.h"

/* The functions of libc that take a path or show a file's attributes. /dev/nvidia* are the
 * simulator's files in NATIVE_DEV, and look like the driver's devices; what the driver and its
 * cards have in /proc and /sys is below NATIVE_ROOT. The functions have names of our own for the
 * compiler, because libc's headers declare some of them as macros. */

#define AS(name) __asm__(name)

enum { PATH_ROOM = 4096 };

/* ---- where a file is ---- */

static const char *folder(const char *variable) {
        const char *value = getenv(variable);

        return value ? value : "/proc/self/absent";
}

static bool starts(const char *path, const char *with) {
        return strncmp(path, with, strlen(with)) == 0;
}

static bool is_device(const char *path) {
        return starts(path, "/dev/nvidia");
}

static bool is_drivers(const char *path) {
        static const char *const prefixes[] = {"/proc/driver/nvidia", "/proc/devices",
                                               "/proc/modules",       "/sys/bus/pci",
                                               "/sys/module/nvidia",  "/sys/devices/pci"};

        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
                if (starts(path, prefixes[i]))
                        return true;
        return false;
}

static const char *place(const char *path, char room[static PATH_ROOM]) {
        if (!path || path[0] != '/' || (!is_device(path) && !is_drivers(path)))
                return path;
        if (is_device(path))
                (void) snprintf(room, PATH_ROOM, "%s/%s", folder("NATIVE_DEV"), path + strlen("/dev/"));
        else
                (void) snprintf(room, PATH_ROOM, "%s%s", folder("NATIVE_ROOT"), path);
        trace("path %s%s", path, syscall(SYS_access, room, F_OK) == 0 ? "" : " missing");
        return room;
}

/* ---- files ---- */

int native_open(const char *path, int flags, ...) AS("open");
int native_open64(const char *path, int flags, ...) AS("open64");
int native_openat(int at, const char *path, int flags, ...) AS("openat");
FILE *native_fopen(const char *path, const char *mode) AS("fopen");
FILE *native_fopen64(const char *path, const char *mode) AS("fopen64");
DIR *native_opendir(const char *path) AS("opendir");
int native_access(const char *path, int mode) AS("access");
int native_faccessat(int at, const char *path, int mode, int flags) AS("faccessat");
ssize_t native_readlink(const char *path, char *text, size_t n) AS("readlink");
int native_chmod(const char *path, mode_t mode) AS("chmod");
int native_mknod(int version, const char *path, mode_t mode, dev_t *device) AS("__xmknod");
int native_scandir(const char *path, void *list, void *filter, void *compare) AS("scandir");
int native_scandir64(const char *path, void *list, void *filter, void *compare) AS("scandir64");

static int open_at(int at, const char *path, int flags, mode_t mode) {
        char room[PATH_ROOM];

        return (int) syscall(SYS_openat, at, at == AT_FDCWD ? place(path, room) : path, flags, mode);
}

#define OPEN_AT(at)                                                                                          \
        va_list more;                                                                                        \
        mode_t mode;                                                                                         \
                                                                                                             \
        va_start(more, flags);                                                                               \
        mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                     \
        va_end(more);                                                                                        \
        return open_at(at, path, flags, mode);

int native_open(const char *path, int flags, ...) {
        OPEN_AT(AT_FDCWD)
}

int native_open64(const char *path, int flags, ...) {
        OPEN_AT(AT_FDCWD)
}

int native_openat(int at, const char *path, int flags, ...) {
        OPEN_AT(at)
}

static FILE *stream(const char *name, const char *path, const char *mode) {
        char room[PATH_ROOM];
        FILE *(*next)(const char *, const char *) =
                (FILE * (*) (const char *, const char *) ) dlsym(RTLD_NEXT, name);

        return next(place(path, room), mode);
}

FILE *native_fopen(const char *path, const char *mode) {
        return stream("fopen", path, mode);
}

FILE *native_fopen64(const char *path, const char *mode) {
        return stream("fopen64", path, mode);
}

DIR *native_opendir(const char *path) {
        char room[PATH_ROOM];
        DIR *(*next)(const char *) = (DIR * (*) (const char *) ) dlsym(RTLD_NEXT, "opendir");

        return next(place(path, room));
}

static int scan(const char *name, const char *path, void *list, void *filter, void *compare) {
        char room[PATH_ROOM];
        int (*next)(const char *, void *, void *, void *) =
                (int (*)(const char *, void *, void *, void *)) dlsym(RTLD_NEXT, name);

        return next(place(path, room), list, filter, compare);
}

int native_scandir(const char *path, void *list, void *filter, void *compare) {
        return scan("scandir", path, list, filter, compare);
}

int native_scandir64(const char *path, void *list, void *filter, void *compare) {
        return scan("scandir64", path, list, filter, compare);
}

int native_access(const char *path, int mode) {
        char room[PATH_ROOM];

        return (int) syscall(SYS_access, place(path, room), mode);
}

int native_faccessat(int at, const char *path, int mode, int flags) {
        char room[PATH_ROOM];

        return (int) syscall(SYS_faccessat2, at, at == AT_FDCWD ? place(path, room) : path, mode, flags);
}

ssize_t native_readlink(const char *path, char *text, size_t n) {
        char room[PATH_ROOM];

        return syscall(SYS_readlink, place(path, room), text, n);
}

/* The library repairs the modes of its devices, and makes missing ones, as root. */
int native_chmod(const char *path, mode_t mode) {
        return is_device(path) ? 0 : (int) syscall(SYS_chmod, path, mode);
}

int native_mknod(int version, const char *path, mode_t mode, dev_t *device) {
        (void) version;
        trace("mknod %s %u:%u", path, major(*device), minor(*device));
        if (!is_device(path))
                return (int) syscall(SYS_mknod, path, mode, *device);
        errno = EPERM;
        return -1;
}

/* ---- attributes ---- */

enum { UVM_MAJOR = 511, RM_MAJOR = 195, CTL_MINOR = 255 };
enum { INODE_CTL = 2, INODE_UVM, INODE_UVM_TOOLS, INODE_CARDS = 16 }; /* sim/serve.h */

static dev_t simulator(void) {
        static dev_t device;
        struct stat st;

        if (device == 0 && syscall(SYS_stat, folder("NATIVE_DEV"), &st) == 0)
                device = st.st_dev;
        return device;
}

static FilesKind kind_of(const struct stat *st) {
        if (simulator() == 0 || st->st_dev != simulator() || !S_ISREG(st->st_mode))
                return FILES_OTHER;
        if (st->st_ino == INODE_CTL)
                return FILES_CTL;
        if (st->st_ino == INODE_UVM || st->st_ino == INODE_UVM_TOOLS)
                return FILES_UVM;
        return st->st_ino >= INODE_CARDS ? FILES_CARD : FILES_OTHER;
}

FilesKind files_kind(int fd) {
        struct stat st;

        return syscall(SYS_fstat, fd, &st) == 0 ? kind_of(&st) : FILES_OTHER;
}

/* A regular file of the simulator becomes the driver's character device. */
static void dress(struct stat *st) {
        FilesKind kind = kind_of(st);

        if (kind == FILES_OTHER)
                return;
        st->st_rdev = kind == FILES_UVM    ? makedev(UVM_MAJOR, (unsigned) (st->st_ino - INODE_UVM))
                      : kind == FILES_CARD ? makedev(RM_MAJOR, (unsigned) (st->st_ino - INODE_CARDS))
                                           : makedev(RM_MAJOR, CTL_MINOR);
        st->st_mode = (st->st_mode & 07777) | S_IFCHR;
        st->st_size = 0;
}

static int stat_at(int at, const char *path, struct stat *st, int flags) {
        char room[PATH_ROOM];
        long r = syscall(SYS_newfstatat, at, at == AT_FDCWD ? place(path, room) : path, st, flags);

        if (r == 0)
                dress(st);
        return (int) r;
}

int native_stat(const char *path, struct stat *st) AS("stat");
int native_stat64(const char *path, struct stat *st) AS("stat64");
int native_lstat(const char *path, struct stat *st) AS("lstat");
int native_fstat(int fd, struct stat *st) AS("fstat");
int native_xstat(int version, const char *path, struct stat *st) AS("__xstat");
int native_xstat64(int version, const char *path, struct stat *st) AS("__xstat64");
int native_fxstat(int version, int fd, struct stat *st) AS("__fxstat");
int native_fxstatat(int version, int at, const char *path, struct stat *st, int flags) AS("__fxstatat");

int native_stat(const char *path, struct stat *st) {
        return stat_at(AT_FDCWD, path, st, 0);
}

int native_stat64(const char *path, struct stat *st) {
        return stat_at(AT_FDCWD, path, st, 0);
}

int native_lstat(const char *path, struct stat *st) {
        return stat_at(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int native_fstat(int fd, struct stat *st) {
        return stat_at(fd, "", st, AT_EMPTY_PATH);
}

int native_xstat(int version, const char *path, struct stat *st) {
        (void) version;
        return stat_at(AT_FDCWD, path, st, 0);
}

int native_xstat64(int version, const char *path, struct stat *st) {
        (void) version;
        return stat_at(AT_FDCWD, path, st, 0);
}

int native_fxstat(int version, int fd, struct stat *st) {
        (void) version;
        return stat_at(fd, "", st, AT_EMPTY_PATH);
}

int native_fxstatat(int version, int at, const char *path, struct stat *st, int flags) {
        (void) version;
        return stat_at(at, path, st, flags);
}
