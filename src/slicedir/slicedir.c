/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/slicedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slice/container_paths.h"
#include "slicedir/slice_tmpfs.h"

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
        char name[SLICEDIR_PATH_SIZE];
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

int slicedir_open(Slicedir *b, const char *path, bool make, Fault *fault) {
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
                r = check_own(fd, path, fault);
        if (make && r == 0 && path == own)
                r = check_parent(fd, path, fault);
        if (r < 0)
                return r;
        *b = (Slicedir){.fd = TAKE_FD(fd), .lock = -1};
        (void) snprintf(b->path, sizeof b->path, "%s", path);
        return 0;
}

void slicedir_done(Slicedir *b) {
        slicedir_unlock(b);
        held_fds_done(&b->held);
        if (b->fd >= 0)
                (void) close(b->fd);
        *b = SLICEDIR_NULL;
}

int slicedir_refresh(Slicedir *b, Fault *fault) {
        struct stat here, there;
        Slicedir again;
        int r;

        if (b->fd >= 0 && fstat(b->fd, &here) == 0 && stat(b->path, &there) == 0 &&
            here.st_dev == there.st_dev && here.st_ino == there.st_ino)
                return 0;
        r = slicedir_open(&again, b->path, true, fault);
        if (r < 0)
                return r;
        again.proc = b->proc;
        again.held = b->held; /* containers have them mounted still */
        b->held = (HeldFds){0};
        slicedir_done(b);
        *b = again;
        return 0;
}

int slicedir_lock(Slicedir *b, Fault *fault) {
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

void slicedir_unlock(Slicedir *b) {
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
static bool read_owner(int dir, char ret[static SLICEDIR_OWNER_SIZE]) {
        _cleanup_close_ int fd = openat(dir, OWNER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
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
        if (slice_files_read_report(fd, &slice->cards[at].report) != 0) /* the container's own doing */
                memset(&slice->cards[at].report, 0, sizeof slice->cards[at].report);
        slice->cards[at].number = number;
        slice->n_cards++;
}

/* Also who kept a file of the driver, and neither the owner's descriptor nor a row. */
static bool is_alive(int dir, SlicedirEntry *slice) {
        bool owned = read_owner(dir, slice->owner);

        slice->n_cards = 0;
        for (uint32_t i = 0; i < SLICEDIR_CARDS_MAX; i++)
                read_card(dir, i, slice);
        for (uint32_t i = 0; i < slice->n_cards; i++)
                owned |= slice->cards[i].report.n_alive > 0 || slice->cards[i].report.pinned > 0;
        return owned;
}

/* On a file system of its own: the agent's doing, and nobody else's to throw away. */
static bool has_own_tmpfs(const Slicedir *b, int dir) {
        struct stat here, board;

        return fstat(dir, &here) == 0 && fstat(b->fd, &board) == 0 && here.st_dev != board.st_dev;
}

/* A folder that is nothing but the place for one: whoever does not see what is mounted on it, in a
 * mount namespace of his own, leaves it alone, because the kernel takes away what others have
 * mounted on a folder that is removed. */
enum { MOUNTPOINT_MODE = 0, DIRECTORY_MODE = 0755 };

static bool is_mountpoint(int dir) {
        struct stat st;

        return fstat(dir, &st) == 0 && (st.st_mode & 07777) == MOUNTPOINT_MODE;
}

static void write_path(const Slicedir *b, const char *id,
                       char ret[static SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE]) {
        (void) snprintf(ret, SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE, "%s/%s", b->path, id);
}

/* ---- throwing away ---- */

static void remove_card(int dir, const char *name) {
        _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        if (fd >= 0) {
                (void) unlinkat(fd, "limits", 0);
                (void) unlinkat(fd, "counters", 0);
                (void) unlinkat(fd, SLICE_DOORBELL, 0);
        }
        (void) unlinkat(dir, name, AT_REMOVEDIR);
}

void slicedir_remove(Slicedir *b, const char *id) {
        _cleanup_close_ int dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        char name[16], path[SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE];

        held_fds_drop(&b->held, id);
        if (dir < 0)
                return;
        for (uint32_t i = 0; i < SLICEDIR_CARDS_MAX; i++) {
                (void) snprintf(name, sizeof name, "%u", i);
                remove_card(dir, name);
        }
        (void) unlinkat(dir, SLICEDIR_PRELOAD ".new", 0);
        (void) unlinkat(dir, SLICEDIR_PRELOAD, 0);
        (void) unlinkat(dir, SLICEDIR_PRELOAD_RUN ".new", 0); /* of an agent of another version */
        (void) unlinkat(dir, SLICEDIR_PRELOAD_RUN, 0);
        (void) unlinkat(dir, OWNER ".new", 0);
        (void) unlinkat(dir, OWNER, 0);
        if (has_own_tmpfs(b, dir)) {
                write_path(b, id, path);
                (void) slice_tmpfs_unmount(path);
        }
        (void) unlinkat(b->fd, id, AT_REMOVEDIR);
}

/* ---- all of them ---- */

static int visit_one(Slicedir *b, const char *id, int (*visit)(void *userdata, const SlicedirEntry *slice),
                     void *userdata) {
        _cleanup_close_ int dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        _cleanup_free_ SlicedirEntry *slice = NULL;

        if (dir < 0)
                return 0;
        slice = calloc(1, sizeof *slice);
        if (!slice)
                return -ENOMEM;
        (void) snprintf(slice->id, sizeof slice->id, "%s", id);
        slice->own_tmpfs = has_own_tmpfs(b, dir);
        if (is_alive(dir, slice))
                return visit(userdata, slice);
        if (b->lock >= 0 && !slice->own_tmpfs && !is_mountpoint(dir))
                slicedir_remove(b, id);
        return 0;
}

/* By name, until one answers non-zero, which is returned. */
static int walk(Slicedir *b, int (*step)(Slicedir *b, const char *id, void *userdata), void *userdata) {
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
                if (entry->d_name[0] != '.' && strlen(entry->d_name) < SLICEDIR_ID_SIZE)
                        r = step(b, entry->d_name, userdata);
        (void) closedir(entries);
        return r;
}

typedef struct Visit {
        int (*visit)(void *userdata, const SlicedirEntry *slice);
        void *userdata;
} Visit;

static int each_step(Slicedir *b, const char *id, void *userdata) {
        const Visit *v = userdata;

        return visit_one(b, id, v->visit, v->userdata);
}

int slicedir_each(Slicedir *b, int (*visit)(void *userdata, const SlicedirEntry *slice), void *userdata) {
        return walk(b, each_step, &(Visit){visit, userdata});
}

/* ---- what has grown ---- */

typedef struct Trim {
        void (*visit)(void *userdata, const SlicedirGrown *grown);
        void *userdata;
} Trim;

static void trim_card(int dir, const char *id, uint32_t number, const Trim *t) {
        _cleanup_close_ int fd = -1;
        char name[16], owner[SLICEDIR_OWNER_SIZE];
        uint64_t bytes;

        (void) snprintf(name, sizeof name, "%u", number);
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || slice_files_trim(fd, &bytes) != 0 || bytes == 0)
                return;
        (void) read_owner(dir, owner);
        t->visit(t->userdata, &(SlicedirGrown){id, owner, number, bytes});
}

/* Cards are numbered without gaps. */
static int trim_step(Slicedir *b, const char *id, void *userdata) {
        _cleanup_close_ int dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        char name[16] = "0";

        for (uint32_t i = 0; dir >= 0 && i < SLICEDIR_CARDS_MAX && faccessat(dir, name, F_OK, 0) == 0; i++) {
                trim_card(dir, id, i, userdata);
                (void) snprintf(name, sizeof name, "%u", i + 1);
        }
        return 0;
}

int slicedir_trim(Slicedir *b, void (*visit)(void *userdata, const SlicedirGrown *grown), void *userdata) {
        return walk(b, trim_step, &(Trim){visit, userdata});
}

static int leave(void *userdata, const SlicedirEntry *slice) {
        (void) userdata;
        (void) slice;
        return 0;
}

void slicedir_remove_dead(Slicedir *b, const char *id) {
        (void) visit_one(b, id, leave, NULL); /* out of memory: it stands until somebody looks again */
}

/* ---- a new one ---- */

static int create_owner(int dir, const char *owner, int *ret, Fault *fault) {
        _cleanup_close_ int fd = openat(dir, OWNER, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

        if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0 || dprintf(fd, "%s\n", owner) < 0)
                return fault_set(fault, -errno, "cannot write the slice's owner: %s", strerror(errno));
        *ret = TAKE_FD(fd);
        return 0;
}

/* Whoever looks for new pages watches the board's folder, and is told by its times: what stands
 * deeper, or is mounted there, he does not see. Else he looks now and then. */
static void notify_watchers(const Slicedir *b) {
        (void) futimens(b->fd, NULL);
}

/* Directories that are there already are used again. */
static int write_cards(Slicedir *b, const char *id, int dir, const SliceSpec *specs, size_t n, Fault *fault) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_(slice_files_close) SliceFds held = SLICE_FDS_NULL;
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
                r = slice_files_make_open(fd, &specs[i], &held, fault);
                if (r == 0 && held_fds_put(&b->held, id, (uint32_t) i, &held) < 0)
                        r = fault_set(fault, -ENOMEM, "out of memory");
                if (r < 0)
                        return r;
        }
        notify_watchers(b);
        return 0;
}

/* The other slices are as they were; what is missing is room. */
static int explain_full(const Slicedir *b, int r, Fault *fault) {
        return r == -ENOSPC ? fault_wrap(fault, r, "the board of slices in %s is full", b->path) : r;
}

int slicedir_create(Slicedir *b, const char *id, const char *owner, const SliceSpec *specs, size_t n,
                    int *ret_owner, Fault *fault) {
        _cleanup_close_ int dir = -1, held = -1;
        int r;

        if (n > SLICEDIR_CARDS_MAX || strlen(id) >= SLICEDIR_ID_SIZE)
                return fault_set(fault, -E2BIG, "slice %s: more than %d cards, or a longer name than %d", id,
                                 SLICEDIR_CARDS_MAX, SLICEDIR_ID_SIZE - 1);
        if (mkdirat(b->fd, id, 0755) < 0)
                return fault_set(fault, -errno, "cannot make slice %s: %s", id, strerror(errno));
        dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = dir < 0 ? fault_set(fault, -errno, "cannot open slice %s: %s", id, strerror(errno)) : 0;
        if (r == 0)
                r = create_owner(dir, owner, &held, fault);
        if (r == 0)
                r = write_cards(b, id, dir, specs, n, fault);
        if (r < 0) {
                slicedir_remove(b, id);
                return explain_full(b, r, fault);
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
static const Preload preloads[] = {{SLICEDIR_PRELOAD, SLICE_GATE}, {SLICEDIR_PRELOAD_RUN, SLICE_RUN_GATE}};

/* Each slice has files of its own: the dynamic linker opens one at the start of each program, and a
 * container that leases a file which others have mounted would make their programs wait
 * (slicedir/file_lease.h). */
static int write_preload(int dir, const Preload *p, Fault *fault) {
        _cleanup_close_ int fd = openat(dir, SLICEDIR_PRELOAD ".new",
                                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (fd < 0 || fchmod(fd, 0644) < 0 /* past our umask */ || dprintf(fd, "%s\n", p->gate) < 0 ||
            renameat(dir, SLICEDIR_PRELOAD ".new", dir, p->name) < 0)
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

        for (uint32_t i = 0; i < SLICEDIR_CARDS_MAX && faccessat(dir, name, F_OK, 0) == 0; i++) {
                _cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

                if (fd >= 0)
                        (void) slice_files_give_back(fd);
                (void) snprintf(name, sizeof name, "%u", i + 1);
        }
}

static int open_slice(const Slicedir *b, const char *id, int *ret, Fault *fault) {
        int dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        if (dir < 0)
                return fault_set(fault, -errno, "cannot open slice %s in %s: %s", id, b->path,
                                 strerror(errno));
        *ret = dir;
        return 0;
}

/* Before anything is in it. One with an owner stays where it is: containers have its files
 * mounted. */
static int mount_own_tmpfs(const Slicedir *b, const char *id, size_t n, int *dir, Fault *fault) {
        char path[SLICEDIR_PATH_SIZE + SLICEDIR_ID_SIZE];
        int r;

        if (!b->proc || has_own_tmpfs(b, *dir) || faccessat(*dir, OWNER, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return 0;
        write_path(b, id, path);
        r = slice_tmpfs_mount(path, n, b->proc, fault);
        if (r < 0)
                return r;
        (void) close(TAKE_FD(*dir));
        return open_slice(b, id, dir, fault);
}

static int write_slice(Slicedir *b, const char *id, int dir, const char *owner, const SliceSpec *specs,
                       size_t n, Fault *fault) {
        int r;

        give_back(dir);
        r = write_owner(dir, owner, fault);
        if (r == 0)
                r = write_preloads(dir, fault);
        if (r == 0)
                r = write_cards(b, id, dir, specs, n, fault);
        return explain_full(b, r, fault);
}

int slicedir_update(Slicedir *b, const char *id, const char *owner, const SliceSpec *specs, size_t n,
                    Fault *fault) {
        _cleanup_close_ int dir = -1;
        bool made;
        int r;

        if (n > SLICEDIR_CARDS_MAX || strlen(id) >= SLICEDIR_ID_SIZE)
                return fault_set(fault, -E2BIG, "slice %s: more than %d cards, or a longer name than %d", id,
                                 SLICEDIR_CARDS_MAX, SLICEDIR_ID_SIZE - 1);
        made = mkdirat(b->fd, id, b->proc ? MOUNTPOINT_MODE : DIRECTORY_MODE) == 0;
        if (!made && errno != EEXIST)
                return explain_full(b,
                                    fault_set(fault, -errno, "cannot make slice %s in %s: %s", id, b->path,
                                              strerror(errno)),
                                    fault);
        r = open_slice(b, id, &dir, fault);
        if (r == 0)
                r = mount_own_tmpfs(b, id, n, &dir, fault);
        if (r == 0)
                r = write_slice(b, id, dir, owner, specs, n, fault);
        if (r < 0 && made)
                slicedir_remove(b, id); /* without an owner nobody would throw it away */
        return r;
}

int slicedir_write_preloads(Slicedir *b, const char *id, Fault *fault) {
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
static bool is_agents(Slicedir *b, const char *id) {
        _cleanup_close_ int dir = openat(b->fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), fd = -1;
        char text[sizeof SLICEDIR_AGENT] = "";

        if (dir < 0)
                return false;
        fd = openat(dir, OWNER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return errno == ENOENT && (has_own_tmpfs(b, dir) || is_mountpoint(dir));
        return read(fd, text, strlen(SLICEDIR_AGENT)) == (ssize_t) strlen(SLICEDIR_AGENT) &&
               strcmp(text, SLICEDIR_AGENT) == 0;
}

typedef struct Sweep {
        bool (*keep)(void *userdata, const char *id);
        void *userdata;
} Sweep;

/* Of an agent before us, or it was leased when we looked last. Cards are numbered without gaps. */
static int hold_pages(Slicedir *b, const char *id) {
        for (uint32_t i = 0; i < SLICEDIR_CARDS_MAX; i++) {
                _cleanup_(slice_files_close) SliceFds held = SLICE_FDS_NULL;
                _cleanup_close_ int fd = -1;
                char path[SLICEDIR_ID_SIZE + 16];

                if (held_fds_has(&b->held, id, i))
                        continue;
                (void) snprintf(path, sizeof path, "%s/%u", id, i);
                fd = openat(b->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (fd < 0)
                        return 0;
                slice_files_open(fd, &held);
                if (held_fds_put(&b->held, id, i, &held) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int sweep_step(Slicedir *b, const char *id, void *userdata) {
        const Sweep *s = userdata;

        if (!is_agents(b, id))
                return 0;
        if (s->keep(s->userdata, id))
                return hold_pages(b, id);
        slicedir_remove(b, id);
        return 0;
}

int slicedir_sweep(Slicedir *b, bool (*keep)(void *userdata, const char *id), void *userdata) {
        int r = walk(b, sweep_step, &(Sweep){keep, userdata});

        held_fds_sweep(&b->held, keep, userdata); /* folders that others have removed */
        return r;
}
