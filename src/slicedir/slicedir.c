/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/slicedir-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slicedir/slice_tmpfs.h"

/* ---- the directory ---- */

int slicedir_check_own(int fd, const char *path, Fault *fault) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return fault_set(fault, -errno, "cannot look at %s: %s", path, strerror(errno));
        if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
                return fault_set(fault, -EACCES, "%s belongs to somebody else, or others may write to it",
                                 path);
        return 0;
}

/* Checks the directory above a default one. In /tmp any user may have made it first, and its owner
 * could replace the slice directory. */
static int check_parent(int fd, const char *path, Fault *fault) {
        _cleanup_close_ int above = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char name[SLICEDIR_PATH_SIZE];
        struct stat st;

        (void) snprintf(name, sizeof name, "%s", path);
        *strrchr(name, '/') = '\0'; /* a default path has several slashes */
        if (above < 0 || lstat(name, &st) < 0)
                return fault_set(fault, -errno, "cannot look at %s: %s", name, strerror(errno));
        if (S_ISLNK(st.st_mode))
                return fault_set(fault, -EACCES, "%s is a symbolic link", name);
        return slicedir_check_own(above, name, fault);
}

static void default_path(char *ret, size_t size) {
        const char *runtime = getenv("XDG_RUNTIME_DIR");

        if (geteuid() == 0)
                (void) snprintf(ret, size, "%s", SLICEDIR_DEFAULT);
        else if (runtime && runtime[0] == '/')
                (void) snprintf(ret, size, "%s/aliquot/slices", runtime);
        else
                (void) snprintf(ret, size, "/tmp/aliquot-%u/slices", (unsigned) geteuid());
}

static int make_path(const char *path, Fault *fault) {
        char part[SLICEDIR_PATH_SIZE];
        size_t n = strlen(path);

        if (n >= sizeof part)
                return fault_set(fault, -ENAMETOOLONG, "the path is too long: %s", path);
        memcpy(part, path, n + 1);
        for (size_t i = 1; i <= n; i++) {
                if (part[i] != '/' && part[i] != '\0')
                        continue;
                part[i] = '\0';
                if (mkdir(part, 0755) < 0 && errno != EEXIST)
                        return fault_set(fault, -errno, "cannot make %s: %s", part, strerror(errno));
                if (i < n)
                        part[i] = '/';
        }
        return 0;
}

int slicedir_open(Slicedir *d, const char *path, bool make, Fault *fault) {
        _cleanup_close_ int fd = -1;
        char own[SLICEDIR_PATH_SIZE];
        int r = 0;

        if (!path) {
                default_path(own, sizeof own);
                path = own;
        }
        if (make)
                r = make_path(path, fault);
        if (r < 0)
                return r;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return fault_set(fault, -errno, "cannot open %s: %s", path, strerror(errno));
        if (make)
                r = slicedir_check_own(fd, path, fault);
        if (make && r == 0 && path == own)
                r = check_parent(fd, path, fault);
        if (r < 0)
                return r;
        *d = (Slicedir){.fd = TAKE_FD(fd), .lock = -1};
        (void) snprintf(d->path, sizeof d->path, "%s", path);
        return 0;
}

void slicedir_done(Slicedir *d) {
        slicedir_unlock(d);
        held_fds_done(&d->held);
        if (d->fd >= 0)
                (void) close(d->fd);
        *d = SLICEDIR_NULL;
}

int slicedir_refresh(Slicedir *d, Fault *fault) {
        struct stat here, there;
        Slicedir again;
        int r;

        if (d->fd >= 0 && fstat(d->fd, &here) == 0 && stat(d->path, &there) == 0 &&
            here.st_dev == there.st_dev && here.st_ino == there.st_ino)
                return 0;
        r = slicedir_open(&again, d->path, true, fault);
        if (r < 0)
                return r;
        again.proc = d->proc;
        again.labels = d->labels;
        again.held = d->held; /* containers still have these files mounted */
        d->held = (HeldFds){0};
        slicedir_done(d);
        *d = again;
        return 0;
}

int slicedir_lock(Slicedir *d, Fault *fault) {
        _cleanup_close_ int fd = openat(d->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        int r;

        if (fd < 0)
                return fault_set(fault, -errno, "cannot open the slice directory's lock: %s",
                                 strerror(errno));
        do
                r = flock(fd, LOCK_EX);
        while (r < 0 && errno == EINTR);
        if (r < 0)
                return fault_set(fault, -errno, "cannot lock the slice directory: %s", strerror(errno));
        d->lock = TAKE_FD(fd);
        return 0;
}

void slicedir_unlock(Slicedir *d) {
        if (d->lock >= 0)
                (void) close(d->lock);
        d->lock = -1;
}

/* ---- one slice ---- */

/* Asks for the owner's lock. It is an OFD lock, so that a process can also see its own. */
static bool is_locked(int fd) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

        return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Reads the owner's line. Returns whether the slice has an owner: an agent's slice has one until
 * the agent removes it, and its line begins with SLICEDIR_AGENT. */
static bool read_owner(int dir, char ret[static SLICEDIR_OWNER_SIZE]) {
        _cleanup_close_ int fd = openat(dir, SLICEDIR_OWNER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        ssize_t n;

        ret[0] = '\0';
        if (fd < 0)
                return false;
        n = read(fd, ret, SLICEDIR_OWNER_SIZE - 1);
        ret[n > 0 ? n : 0] = '\0';
        ret[strcspn(ret, "\n")] = '\0';
        return strncmp(ret, SLICEDIR_AGENT, strlen(SLICEDIR_AGENT)) == 0 || is_locked(fd);
}

static void read_card(int dir, uint32_t number, SlicedirEntry *slice) {
        _cleanup_close_ int fd = -1;
        char name[16];
        size_t at = slice->n_cards;

        (void) snprintf(name, sizeof name, "%u", number);
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || slice_files_read_limits(fd, &slice->cards[at].limits) != 0)
                return;
        /* If the container has damaged the counters, the report is all zero. */
        if (slice_files_read_report(fd, &slice->cards[at].report) != 0)
                memset(&slice->cards[at].report, 0, sizeof slice->cards[at].report);
        slice->cards[at].number = number;
        slice->n_cards++;
}

/* A slice is also alive while an open driver file holds memory charged to it, even if its owner
 * lock is free and no row belongs to a living process. */
static bool is_alive(int dir, SlicedirEntry *slice) {
        bool owned = read_owner(dir, slice->owner);

        slice->n_cards = 0;
        for (uint32_t i = 0; i < SLICEDIR_CARDS_MAX; i++)
                read_card(dir, i, slice);
        for (uint32_t i = 0; i < slice->n_cards; i++)
                owned |= slice->cards[i].report.n_alive > 0 || slice->cards[i].report.pinned > 0;
        return owned;
}

bool slicedir_has_own_tmpfs(const Slicedir *d, int dir) {
        struct stat here, above;

        return fstat(dir, &here) == 0 && fstat(d->fd, &above) == 0 && here.st_dev != above.st_dev;
}

bool slicedir_is_mountpoint(int dir) {
        struct stat st;

        return fstat(dir, &st) == 0 && (st.st_mode & 07777) == SLICEDIR_MOUNTPOINT_MODE;
}

void slicedir_slice_path(const Slicedir *d, const char *id,
                         char ret[static SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE]) {
        (void) snprintf(ret, SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE, "%s/%s", d->path, id);
}

/* ---- removing ---- */

/* Whether a dead slice may be removed. Only the agent removes its own, also when their tmpfs has no
 * owner yet, or is not visible in this mount namespace. */
static bool may_remove(int dir, const SlicedirEntry *slice) {
        return slice->own_tmpfs ? strncmp(slice->owner, SLICEDIR_RUN, strlen(SLICEDIR_RUN)) == 0
                                : !slicedir_is_mountpoint(dir);
}

static void remove_card(int dir, const char *name) {
        static const char *const files[] = {"limits.new", "limits", "counters.new", "counters",
                                            SLICE_DOORBELL};
        _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        for (size_t i = 0; fd >= 0 && i < ELEMENTSOF(files); i++)
                (void) unlinkat(fd, files[i], 0);
        (void) unlinkat(dir, name, AT_REMOVEDIR);
}

void slicedir_remove(Slicedir *d, const char *id) {
        _cleanup_close_ int dir = openat(d->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        char name[16], path[SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE];

        held_fds_drop(&d->held, id);
        if (dir < 0)
                return;
        for (uint32_t i = 0; i < SLICEDIR_CARDS_MAX; i++) {
                (void) snprintf(name, sizeof name, "%u", i);
                remove_card(dir, name);
        }
        (void) unlinkat(dir, SLICEDIR_PRELOAD ".new", 0);
        (void) unlinkat(dir, SLICEDIR_PRELOAD, 0);
        (void) unlinkat(dir, SLICEDIR_OWNER ".new", 0);
        (void) unlinkat(dir, SLICEDIR_OWNER, 0);
        if (slicedir_has_own_tmpfs(d, dir)) {
                slicedir_slice_path(d, id, path);
                (void) slice_tmpfs_unmount(path);
        }
        (void) unlinkat(d->fd, id, AT_REMOVEDIR);
}

/* ---- all of them ---- */

static int visit_one(Slicedir *d, const char *id, int (*visit)(void *userdata, const SlicedirEntry *slice),
                     void *userdata) {
        _cleanup_close_ int dir = openat(d->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        _cleanup_free_ SlicedirEntry *slice = NULL;

        if (dir < 0)
                return 0;
        slice = calloc(1, sizeof *slice);
        if (!slice)
                return -ENOMEM;
        (void) snprintf(slice->id, sizeof slice->id, "%s", id);
        slice->own_tmpfs = slicedir_has_own_tmpfs(d, dir);
        if (is_alive(dir, slice))
                return visit(userdata, slice);
        if (d->lock >= 0 && may_remove(dir, slice))
                slicedir_remove(d, id);
        return 0;
}

int slicedir_walk(Slicedir *d, int (*step)(Slicedir *d, const char *id, void *userdata), void *userdata) {
        int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;
        int r = 0;

        if (!entries) {
                r = -errno;
                if (fd >= 0)
                        (void) close(fd);
                return r;
        }
        while (r == 0 && (entry = readdir(entries)))
                if (entry->d_name[0] != '.' && strlen(entry->d_name) < SLICEDIR_ID_SIZE)
                        r = step(d, entry->d_name, userdata);
        (void) closedir(entries);
        return r;
}

typedef struct Visit {
        int (*visit)(void *userdata, const SlicedirEntry *slice);
        void *userdata;
} Visit;

static int each_step(Slicedir *d, const char *id, void *userdata) {
        const Visit *v = userdata;

        return visit_one(d, id, v->visit, v->userdata);
}

int slicedir_each(Slicedir *d, int (*visit)(void *userdata, const SlicedirEntry *slice), void *userdata) {
        return slicedir_walk(d, each_step, &(Visit){visit, userdata});
}

/* ---- cards of slices ---- */

typedef struct CardVisit {
        void (*visit)(void *userdata, const SlicedirCard *card);
        void *userdata;
} CardVisit;

static void visit_card(int dir, const char *id, uint32_t number, const CardVisit *v) {
        _cleanup_close_ int fd = -1;
        char name[16], owner[SLICEDIR_OWNER_SIZE];

        (void) snprintf(name, sizeof name, "%u", number);
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return;
        (void) read_owner(dir, owner);
        v->visit(v->userdata, &(SlicedirCard){id, owner, number, fd, 0});
}

/* Cards are numbered without gaps. */
static int cards_step(Slicedir *d, const char *id, void *userdata) {
        _cleanup_close_ int dir = openat(d->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        char name[16] = "0";

        for (uint32_t i = 0; dir >= 0 && i < SLICEDIR_CARDS_MAX && faccessat(dir, name, F_OK, 0) == 0; i++) {
                visit_card(dir, id, i, userdata);
                (void) snprintf(name, sizeof name, "%u", i + 1);
        }
        return 0;
}

int slicedir_each_card(Slicedir *d, void (*visit)(void *userdata, const SlicedirCard *card), void *userdata) {
        return slicedir_walk(d, cards_step, &(CardVisit){visit, userdata});
}

typedef struct Trim {
        void (*visit)(void *userdata, const SlicedirCard *grown);
        void *userdata;
} Trim;

static void trim_card(void *userdata, const SlicedirCard *card) {
        const Trim *t = userdata;
        uint64_t bytes;

        if (slice_files_trim(card->dir, &bytes) == 0 && bytes > 0)
                t->visit(t->userdata, &(SlicedirCard){card->id, card->owner, card->number, card->dir, bytes});
}

int slicedir_trim(Slicedir *d, void (*visit)(void *userdata, const SlicedirCard *grown), void *userdata) {
        return slicedir_each_card(d, trim_card, &(Trim){visit, userdata});
}

static int leave_slice(void *userdata, const SlicedirEntry *slice) {
        (void) userdata;
        (void) slice;
        return 0;
}

void slicedir_remove_dead(Slicedir *d, const char *id) {
        /* Out of memory: the slice stays until it is visited again. */
        (void) visit_one(d, id, leave_slice, NULL);
}
