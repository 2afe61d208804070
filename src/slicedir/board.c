/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/board.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slice/inside.h"
#include "slicedir/mount.h"

#define OWNER "owner"

/* ---- the directory ---- */

/* Of a user who is not root: nobody else may have put it there. */
static int check_own(int fd, const char *path, Fault *fault) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return fault_set(fault, -errno, "cannot look at %s: %s", path, strerror(errno));
        if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
                return fault_set(fault, -EACCES, "%s belongs to somebody else, or others may write to it",
                                 path);
        return 0;
}

/* The folder above a default board is of our making, too, unless somebody was there before us: in
 * /tmp anybody may be. Whoever owns it could put another board there for each who asks. */
static int check_parent(int fd, const char *path, Fault *fault) {
        _cleanup_close_ int above = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char name[BOARD_PATH];
        struct stat st;

        (void) snprintf(name, sizeof name, "%s", path);
        *strrchr(name, '/') = '\0'; /* a default has several */
        if (above < 0 || lstat(name, &st) < 0)
                return fault_set(fault, -errno, "cannot look at %s: %s", name, strerror(errno));
        if (S_ISLNK(st.st_mode))
                return fault_set(fault, -EACCES, "%s is a symbolic link", name);
        return check_own(above, name, fault);
}

static void default_path(char *ret, size_t size) {
        const char *runtime = getenv("XDG_RUNTIME_DIR");

        if (geteuid() == 0)
                (void) snprintf(ret, size, "%s", BOARD_DEFAULT);
        else if (runtime && runtime[0] == '/')
                (void) snprintf(ret, size, "%s/aliquot/slices", runtime);
        else
                (void) snprintf(ret, size, "/tmp/aliquot-%u/slices", (unsigned) geteuid());
}

static int make_path(const char *path, Fault *fault) {
        char part[BOARD_PATH];
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

int board_open(Board *b, const char *path, bool make, Fault *fault) {
        _cleanup_close_ int fd = -1;
        char own[BOARD_PATH];
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
                r = check_own(fd, path, fault);
        if (make && r == 0 && path == own)
                r = check_parent(fd, path, fault);
        if (r < 0)
                return r;
        *b = (Board){.fd = TAKE_FD(fd), .lock = -1};
        (void) snprintf(b->path, sizeof b->path, "%s", path);
        return 0;
}

void board_done(Board *b) {
        board_unlock(b);
        kept_done(&b->kept);
        if (b->fd >= 0)
                (void) close(b->fd);
        *b = BOARD_NULL;
}

int board_refresh(Board *b, Fault *fault) {
        struct stat here, there;
        Board again;
        int r;

        if (b->fd >= 0 && fstat(b->fd, &here) == 0 && stat(b->path, &there) == 0 &&
            here.st_dev == there.st_dev && here.st_ino == there.st_ino)
                return 0;
        r = board_open(&again, b->path, true, fault);
        if (r < 0)
                return r;
        again.proc = b->proc;
        again.kept = b->kept; /* containers have them mounted still */
        b->kept = (Kept){0};
        board_done(b);
        *b = again;
        return 0;
}

int board_lock(Board *b, Fault *fault) {
        _cleanup_close_ int fd = openat(b->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        int r;

        if (fd < 0)
                return fault_set(fault, -errno, "cannot open the board's lock: %s", strerror(errno));
        do
                r = flock(fd, LOCK_EX);
        while (r < 0 && errno == EINTR);
        if (r < 0)
                return fault_set(fault, -errno, "cannot lock the board: %s", strerror(errno));
        b->lock = TAKE_FD(fd);
        return 0;
}

void board_unlock(Board *b) {
        if (b->lock >= 0)
                (void) close(b->lock);
        b->lock = -1;
}

/* ---- one slice ---- */

/* The owner's lock is one of the open file, so that it is told apart from one's own within a
 * process. */
static bool is_locked(int fd) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

        return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Returns whether somebody has it. The agent's are there as long as the agent lets them stand: they
 * begin with another word. */
static bool read_owner(int dir, char ret[static BOARD_OWNER]) {
        _cleanup_close_ int fd = openat(dir, OWNER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        ssize_t n;

        ret[0] = '\0';
        if (fd < 0)
                return false;
        n = read(fd, ret, BOARD_OWNER - 1);
        ret[n > 0 ? n : 0] = '\0';
        ret[strcspn(ret, "\n")] = '\0';
        return strncmp(ret, BOARD_AGENT, strlen(BOARD_AGENT)) == 0 || is_locked(fd);
}

static void read_card(int dir, uint32_t number, BoardSlice *slice) {
        _cleanup_close_ int fd = -1;
        char name[16];
        size_t at = slice->n_cards;

        (void) snprintf(name, sizeof name, "%u", number);
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || slice_files_limits(fd, &slice->cards[at].limits) != 0)
                return;
        if (slice_files_read(fd, &slice->cards[at].report) != 0) /* the container's own doing */
                memset(&slice->cards[at].report, 0, sizeof slice->cards[at].report);
        slice->cards[at].number = number;
        slice->n_cards++;
}

/* Also who kept a file of the driver, and neither the owner's descriptor nor a row. */
static bool lives(int dir, BoardSlice *slice) {
        bool owned = read_owner(dir, slice->owner);

        slice->n_cards = 0;
        for (uint32_t i = 0; i < BOARD_CARDS; i++)
                read_card(dir, i, slice);
        for (uint32_t i = 0; i < slice->n_cards; i++)
                owned |= slice->cards[i].report.n_alive > 0 || slice->cards[i].report.kept > 0;
        return owned;
}

/* On a file system of its own: the agent's doing, and nobody else's to throw away. */
static bool is_apart(const Board *b, int dir) {
        struct stat here, board;

        return fstat(dir, &here) == 0 && fstat(b->fd, &board) == 0 && here.st_dev != board.st_dev;
}

/* A folder that is nothing but the place for one: whoever does not see what is mounted on it, in a
 * mount namespace of his own, leaves it alone, because the kernel takes away what others have
 * mounted on a folder that is removed. */
enum { PLACE = 0, FOLDER = 0755 };

static bool is_place(int dir) {
        struct stat st;

        return fstat(dir, &st) == 0 && (st.st_mode & 07777) == PLACE;
}

static void write_path(const Board *b, const char *id, char ret[static BOARD_PATH + BOARD_ID]) {
        (void) snprintf(ret, BOARD_PATH + BOARD_ID, "%s/%s", b->path, id);
}

/* ---- throwing away ---- */

static void remove_card(int dir, const char *name) {
        _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        if (fd >= 0) {
                (void) unlinkat(fd, "limits", 0);
                (void) unlinkat(fd, "counters", 0);
                (void) unlinkat(fd, SLICE_BELL, 0);
        }
        (void) unlinkat(dir, name, AT_REMOVEDIR);
}

void board_drop(Board *b, const char *id) {
        _cleanup_close_ int dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        char name[16], path[BOARD_PATH + BOARD_ID];

        kept_drop(&b->kept, id);
        if (dir < 0)
                return;
        for (uint32_t i = 0; i < BOARD_CARDS; i++) {
                (void) snprintf(name, sizeof name, "%u", i);
                remove_card(dir, name);
        }
        (void) unlinkat(dir, BOARD_PRELOAD ".new", 0);
        (void) unlinkat(dir, BOARD_PRELOAD, 0);
        (void) unlinkat(dir, BOARD_PRELOAD_RUN ".new", 0); /* of an agent of another version */
        (void) unlinkat(dir, BOARD_PRELOAD_RUN, 0);
        (void) unlinkat(dir, OWNER ".new", 0);
        (void) unlinkat(dir, OWNER, 0);
        if (is_apart(b, dir)) {
                write_path(b, id, path);
                (void) slice_unmount(path);
        }
        (void) unlinkat(b->fd, id, AT_REMOVEDIR);
}

/* ---- all of them ---- */

static int visit_one(Board *b, const char *id, int (*visit)(void *userdata, const BoardSlice *slice),
                     void *userdata) {
        _cleanup_close_ int dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        _cleanup_free_ BoardSlice *slice = NULL;

        if (dir < 0)
                return 0;
        slice = calloc(1, sizeof *slice);
        if (!slice)
                return -ENOMEM;
        (void) snprintf(slice->id, sizeof slice->id, "%s", id);
        slice->apart = is_apart(b, dir);
        if (lives(dir, slice))
                return visit(userdata, slice);
        if (b->lock >= 0 && !slice->apart && !is_place(dir))
                board_drop(b, id);
        return 0;
}

/* By name, until one answers non-zero, which is returned. */
static int walk(Board *b, int (*step)(Board *b, const char *id, void *userdata), void *userdata) {
        int fd = openat(b->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
                if (entry->d_name[0] != '.' && strlen(entry->d_name) < BOARD_ID)
                        r = step(b, entry->d_name, userdata);
        (void) closedir(entries);
        return r;
}

typedef struct Visit {
        int (*visit)(void *userdata, const BoardSlice *slice);
        void *userdata;
} Visit;

static int each_step(Board *b, const char *id, void *userdata) {
        const Visit *v = userdata;

        return visit_one(b, id, v->visit, v->userdata);
}

int board_each(Board *b, int (*visit)(void *userdata, const BoardSlice *slice), void *userdata) {
        return walk(b, each_step, &(Visit){visit, userdata});
}

/* ---- what has grown ---- */

typedef struct Trim {
        void (*visit)(void *userdata, const BoardGrown *grown);
        void *userdata;
} Trim;

static void trim_card(int dir, const char *id, uint32_t number, const Trim *t) {
        _cleanup_close_ int fd = -1;
        char name[16], owner[BOARD_OWNER];
        uint64_t bytes;

        (void) snprintf(name, sizeof name, "%u", number);
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || slice_files_trim(fd, &bytes) != 0 || bytes == 0)
                return;
        (void) read_owner(dir, owner);
        t->visit(t->userdata, &(BoardGrown){id, owner, number, bytes});
}

/* Cards are numbered without gaps. */
static int trim_step(Board *b, const char *id, void *userdata) {
        _cleanup_close_ int dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        char name[16] = "0";

        for (uint32_t i = 0; dir >= 0 && i < BOARD_CARDS && faccessat(dir, name, F_OK, 0) == 0; i++) {
                trim_card(dir, id, i, userdata);
                (void) snprintf(name, sizeof name, "%u", i + 1);
        }
        return 0;
}

int board_trim(Board *b, void (*visit)(void *userdata, const BoardGrown *grown), void *userdata) {
        return walk(b, trim_step, &(Trim){visit, userdata});
}

static int leave(void *userdata, const BoardSlice *slice) {
        (void) userdata;
        (void) slice;
        return 0;
}

void board_drop_dead(Board *b, const char *id) {
        (void) visit_one(b, id, leave, NULL); /* out of memory: it stands until somebody looks again */
}

/* ---- a new one ---- */

static int put_owner(int dir, const char *owner, int *ret, Fault *fault) {
        _cleanup_close_ int fd = openat(dir, OWNER, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

        if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0 || dprintf(fd, "%s\n", owner) < 0)
                return fault_set(fault, -errno, "cannot write the slice's owner: %s", strerror(errno));
        *ret = TAKE_FD(fd);
        return 0;
}

/* Whoever looks for new pages watches the board's folder, and is told by its times: what stands
 * deeper, or is mounted there, he does not see. Else he looks now and then. */
static void ring(const Board *b) {
        (void) futimens(b->fd, NULL);
}

/* Directories that are there already are used again. */
static int put_cards(Board *b, const char *id, int dir, const SliceSpec *specs, size_t n, Fault *fault) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_(slice_held_done) SliceHeld held = SLICE_HELD_NULL;
                _cleanup_close_ int fd = -1;
                char name[24];
                int r;

                (void) snprintf(name, sizeof name, "%zu", i);
                if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
                        return fault_set(fault, -errno, "cannot make a slice's directory: %s",
                                         strerror(errno));
                fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (fd < 0)
                        return fault_set(fault, -errno, "cannot open a slice's directory: %s",
                                         strerror(errno));
                r = slice_files_make_held(fd, &specs[i], &held, fault);
                if (r == 0 && kept_put(&b->kept, id, (uint32_t) i, &held) < 0)
                        r = fault_set(fault, -ENOMEM, "out of memory");
                if (r < 0)
                        return r;
        }
        ring(b);
        return 0;
}

/* The other slices are as they were; what is missing is room. */
static int say_full(const Board *b, int r, Fault *fault) {
        return r == -ENOSPC ? fault_wrap(fault, r, "the board of slices in %s is full", b->path) : r;
}

int board_put(Board *b, const char *id, const char *owner, const SliceSpec *specs, size_t n, int *ret_owner,
              Fault *fault) {
        _cleanup_close_ int dir = -1, held = -1;
        int r;

        if (n > BOARD_CARDS || strlen(id) >= BOARD_ID)
                return fault_set(fault, -E2BIG, "slice %s: more than %d cards, or a longer name than %d", id,
                                 BOARD_CARDS, BOARD_ID - 1);
        if (mkdirat(b->fd, id, 0755) < 0)
                return fault_set(fault, -errno, "cannot make slice %s: %s", id, strerror(errno));
        dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = dir < 0 ? fault_set(fault, -errno, "cannot open slice %s: %s", id, strerror(errno)) : 0;
        if (r == 0)
                r = put_owner(dir, owner, &held, fault);
        if (r == 0)
                r = put_cards(b, id, dir, specs, n, fault);
        if (r < 0) {
                board_drop(b, id);
                return say_full(b, r, fault);
        }
        *ret_owner = TAKE_FD(held);
        return 0;
}

static int write_owner(int dir, const char *owner, Fault *fault) {
        _cleanup_close_ int fd =
                openat(dir, OWNER ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (fd < 0 || dprintf(fd, "%s\n", owner) < 0 || renameat(dir, OWNER ".new", dir, OWNER) < 0)
                return fault_set(fault, -errno, "cannot write the slice's owner: %s", strerror(errno));
        return 0;
}

typedef struct Preload {
        const char *name, *gate;
} Preload;

/* Both are written, because the mounts of a container were named when its pod was admitted, perhaps
 * by an agent of another version. */
static const Preload preloads[] = {{BOARD_PRELOAD, SLICE_GATE}, {BOARD_PRELOAD_RUN, SLICE_RUN_GATE}};

/* Each slice has files of its own: the dynamic linker opens one at the start of each program, and a
 * container that leases a file which others have mounted would make their programs wait
 * (slicedir/lease.h). */
static int write_preload(int dir, const Preload *p, Fault *fault) {
        _cleanup_close_ int fd = openat(dir, BOARD_PRELOAD ".new",
                                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (fd < 0 || fchmod(fd, 0644) < 0 /* past our umask */ || dprintf(fd, "%s\n", p->gate) < 0 ||
            renameat(dir, BOARD_PRELOAD ".new", dir, p->name) < 0)
                return fault_set(fault, -errno, "cannot write the slice's %s: %s", p->name, strerror(errno));
        return 0;
}

static int write_preloads(int dir, Fault *fault) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(preloads); i++)
                r = write_preload(dir, &preloads[i], fault);
        return r;
}

/* Room for what is written beside the files comes back, if a container has taken it. Where it does
 * not, that write says so. */
static void give_back(int dir) {
        char name[16] = "0";

        for (uint32_t i = 0; i < BOARD_CARDS && faccessat(dir, name, F_OK, 0) == 0; i++) {
                _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

                if (fd >= 0)
                        (void) slice_files_give_back(fd);
                (void) snprintf(name, sizeof name, "%u", i + 1);
        }
}

static int open_slice(const Board *b, const char *id, int *ret, Fault *fault) {
        int dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        if (dir < 0)
                return fault_set(fault, -errno, "cannot open slice %s in %s: %s", id, b->path,
                                 strerror(errno));
        *ret = dir;
        return 0;
}

/* Before anything is in it. One with an owner stays where it is: containers have its files
 * mounted. */
static int set_apart(const Board *b, const char *id, size_t n, int *dir, Fault *fault) {
        char path[BOARD_PATH + BOARD_ID];
        int r;

        if (!b->proc || is_apart(b, *dir) || faccessat(*dir, OWNER, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return 0;
        write_path(b, id, path);
        r = slice_mount(path, n, b->proc, fault);
        if (r < 0)
                return r;
        (void) close(TAKE_FD(*dir));
        return open_slice(b, id, dir, fault);
}

static int say_anew(Board *b, const char *id, int dir, const char *owner, const SliceSpec *specs, size_t n,
                    Fault *fault) {
        int r;

        give_back(dir);
        r = write_owner(dir, owner, fault);
        if (r == 0)
                r = write_preloads(dir, fault);
        if (r == 0)
                r = put_cards(b, id, dir, specs, n, fault);
        return say_full(b, r, fault);
}

int board_renew(Board *b, const char *id, const char *owner, const SliceSpec *specs, size_t n, Fault *fault) {
        _cleanup_close_ int dir = -1;
        bool made;
        int r;

        if (n > BOARD_CARDS || strlen(id) >= BOARD_ID)
                return fault_set(fault, -E2BIG, "slice %s: more than %d cards, or a longer name than %d", id,
                                 BOARD_CARDS, BOARD_ID - 1);
        made = mkdirat(b->fd, id, b->proc ? PLACE : FOLDER) == 0;
        if (!made && errno != EEXIST)
                return say_full(b,
                                fault_set(fault, -errno, "cannot make slice %s in %s: %s", id, b->path,
                                          strerror(errno)),
                                fault);
        r = open_slice(b, id, &dir, fault);
        if (r == 0)
                r = set_apart(b, id, n, &dir, fault);
        if (r == 0)
                r = say_anew(b, id, dir, owner, specs, n, fault);
        if (r < 0 && made)
                board_drop(b, id); /* without an owner nobody would throw it away */
        return r;
}

int board_preload(Board *b, const char *id, Fault *fault) {
        _cleanup_close_ int dir = -1;
        int r = open_slice(b, id, &dir, fault);

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(preloads); i++)
                if (faccessat(dir, preloads[i].name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                        r = write_preload(dir, &preloads[i], fault);
        return r;
}

/* One that is mounted, or could be, is the agent's, also where it was killed before it wrote the
 * owner; or where the place could not be removed with the slice, because that was mounted a second
 * time in our namespace, as below a view of the host's root. */
static bool is_agents(Board *b, const char *id) {
        _cleanup_close_ int dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), fd = -1;
        char text[sizeof BOARD_AGENT] = "";

        if (dir < 0)
                return false;
        fd = openat(dir, OWNER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return errno == ENOENT && (is_apart(b, dir) || is_place(dir));
        return read(fd, text, strlen(BOARD_AGENT)) == (ssize_t) strlen(BOARD_AGENT) &&
               strcmp(text, BOARD_AGENT) == 0;
}

typedef struct Sweep {
        bool (*keep)(void *userdata, const char *id);
        void *userdata;
} Sweep;

/* Of an agent before us, or it was leased when we looked last. Cards are numbered without gaps. */
static int keep_pages(Board *b, const char *id) {
        for (uint32_t i = 0; i < BOARD_CARDS; i++) {
                _cleanup_(slice_held_done) SliceHeld held = SLICE_HELD_NULL;
                _cleanup_close_ int fd = -1;
                char path[BOARD_ID + 16];

                if (kept_has(&b->kept, id, i))
                        continue;
                (void) snprintf(path, sizeof path, "%s/%u", id, i);
                fd = openat(b->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (fd < 0)
                        return 0;
                slice_files_hold(fd, &held);
                if (kept_put(&b->kept, id, i, &held) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int sweep_step(Board *b, const char *id, void *userdata) {
        const Sweep *s = userdata;

        if (!is_agents(b, id))
                return 0;
        if (s->keep(s->userdata, id))
                return keep_pages(b, id);
        board_drop(b, id);
        return 0;
}

int board_sweep(Board *b, bool (*keep)(void *userdata, const char *id), void *userdata) {
        int r = walk(b, sweep_step, &(Sweep){keep, userdata});

        kept_sweep(&b->kept, keep, userdata); /* folders that others have removed */
        return r;
}
