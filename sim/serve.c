/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/serve.h"

#define FUSE_USE_VERSION 35
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "sim/call.h"
#include "sim/finder.h"
#include "sim/process.h"
#include "sim/status.h"
#include "sim/user/contents.h"
#include "sim/worker.h"

enum {
        NAME_SIZE = 32,
        BACKGROUND_MAX = 65535,
};
static const double FOREVER = 86400 * 365.0; /* the kernel may keep answers for ever: they never change */

/* An open file: one of the driver, or the text of status at the time of open(). */
typedef struct Opened {
        SimFile *file;   /* NULL for status */
        uint64_t number; /* counts all opened files */
        int contents;    /* a memfd that belongs to the exports of the file; -1: none */
        Buf text;
        struct Opened *next, **link;
} Opened;

/* A call that waits for the answer which file a descriptor is of. The caller is blocked in it, so
 * its file stays open. */
typedef struct Waiting {
        struct Waiting *next;
        uint64_t token;
        fuse_req_t req;
        Opened *on; /* a waiting call has it open */
        unsigned cmd;
        uint64_t arg;
        int fd;
} Waiting;

struct SimServer {
        Sim *sim;
        SimPages *pages[SIM_CARDS_MAX]; /* by index */
        struct fuse_session *session;
        struct fuse_buf buf;
        SimMount mount;
        Opened *opened;
        Waiting *waiting;
        SimFinder *finder;
        uint64_t number; /* the last number of an open file or a waiting call */
        uid_t uid;
        bool mounted;
};

static SimServer *server_of(fuse_req_t req) {
        return fuse_req_userdata(req);
}

/* If an answer cannot be delivered, its caller is gone. */
static void refuse(fuse_req_t req, int error) {
        (void) fuse_reply_err(req, error);
}

/* ---- names and attributes ---- */

static const struct {
        fuse_ino_t ino;
        const char *name;
} fixed[] = {
        {SIM_INODE_CTL, "nvidiactl"},
        {SIM_INODE_UVM, "nvidia-uvm"},
        {SIM_INODE_UVM_TOOLS, "nvidia-uvm-tools"},
        {SIM_INODE_STATUS, "status"},
};

enum { FIXED = sizeof fixed / sizeof *fixed };

/* The n-th name of the directory; false after the last. */
static bool entry_at(const Sim *s, size_t n, fuse_ino_t *ret_ino, char name[static NAME_SIZE]) {
        if (n < FIXED) {
                *ret_ino = fixed[n].ino;
                (void) snprintf(name, NAME_SIZE, "%s", fixed[n].name); /* it fits */
                return true;
        }
        if (n - FIXED >= s->n_cards)
                return false;
        *ret_ino = SIM_INODE_CARDS + (n - FIXED);
        (void) snprintf(name, NAME_SIZE, "nvidia%u", s->cards[n - FIXED].about.minor); /* it fits */
        return true;
}

static bool is_card(const Sim *s, fuse_ino_t ino) {
        return ino >= SIM_INODE_CARDS && ino - SIM_INODE_CARDS < s->n_cards;
}

/* A card's file has the length of its mapping, the others have size 0. Writes and settings do not
 * change that. */
static bool attributes(const SimServer *v, fuse_ino_t ino, struct stat *ret) {
        *ret = (struct stat){
                .st_ino = ino, .st_nlink = 1, .st_uid = v->uid, .st_gid = getgid(), .st_blksize = 4096};
        if (ino == SIM_INODE_ROOT) {
                ret->st_mode = S_IFDIR | 0755;
                ret->st_nlink = 2;
                return true;
        }
        ret->st_mode = S_IFREG | (ino == SIM_INODE_STATUS ? 0400 : 0666);
        ret->st_size = is_card(v->sim, ino) ? SIM_PAGES_SIZE : 0;
        return is_card(v->sim, ino) || (ino > SIM_INODE_ROOT && ino <= SIM_INODE_STATUS);
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *wanted) {
        const SimServer *v = server_of(req);
        struct fuse_entry_param e = {.attr_timeout = FOREVER, .entry_timeout = FOREVER};
        char name[NAME_SIZE];

        for (size_t i = 0; parent == SIM_INODE_ROOT && entry_at(v->sim, i, &e.ino, name); i++)
                if (strcmp(name, wanted) == 0 && attributes(v, e.ino, &e.attr)) {
                        (void) fuse_reply_entry(req, &e); /* as in refuse() */
                        return;
                }
        refuse(req, ENOENT);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        struct stat st;

        if (!attributes(server_of(req), ino, &st))
                refuse(req, ENOENT);
        else
                (void) fuse_reply_attr(req, &st, FOREVER); /* as in refuse() */
}

/* O_TRUNC and touch(1) succeed on a device, and do nothing. */
static void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *wish, int what,
                       struct fuse_file_info *fi) {
        const int harmless = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
                             FUSE_SET_ATTR_MTIME_NOW | FUSE_SET_ATTR_CTIME;

        if ((what & ~(harmless | FUSE_SET_ATTR_SIZE)) != 0)
                refuse(req, EPERM);
        else if ((what & FUSE_SET_ATTR_SIZE) && wish->st_size != 0)
                refuse(req, EINVAL);
        else
                on_getattr(req, ino, fi);
}

static void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t at, struct fuse_file_info *fi) {
        const SimServer *v = server_of(req);
        char name[NAME_SIZE], page[4096];
        struct stat st = {.st_mode = S_IFREG};
        size_t used = 0, room = size < sizeof page ? size : sizeof page;

        if (ino != SIM_INODE_ROOT) {
                refuse(req, ENOTDIR);
                return;
        }
        for (size_t i = (size_t) at; entry_at(v->sim, i, &st.st_ino, name); i++) {
                size_t n = fuse_add_direntry(req, page + used, room - used, name, &st, (off_t) i + 1);

                if (n > room - used)
                        break;
                used += n;
        }
        (void) fuse_reply_buf(req, page, used); /* as in refuse() */
}

/* ---- open files ---- */

static SimFile *open_file(const SimServer *v, fuse_ino_t ino) {
        switch (ino) {
        case SIM_INODE_CTL:
                return sim_file_open(v->sim, SIM_FILE_CTL, SIM_CARDS_MAX);
        case SIM_INODE_UVM:
                return sim_file_open(v->sim, SIM_FILE_UVM, SIM_CARDS_MAX);
        case SIM_INODE_UVM_TOOLS:
                return sim_file_open(v->sim, SIM_FILE_UVM_TOOLS, SIM_CARDS_MAX);
        default:
                return sim_file_open(v->sim, SIM_FILE_CARD, (uint32_t) (ino - SIM_INODE_CARDS));
        }
}

static void opened_free(Opened *o) {
        if (o->file)
                sim_file_close(o->file);
        if (o->contents >= 0)
                (void) close(o->contents); /* not a file of the driver */
        buf_done(&o->text);
        if (o->link) {
                *o->link = o->next;
                if (o->next)
                        o->next->link = o->link;
        }
        free(o);
}

static Opened *opened_new(SimServer *v, fuse_ino_t ino) {
        Opened *o = calloc(1, sizeof *o);

        if (!o)
                return NULL;
        o->contents = -1;
        if (ino == SIM_INODE_STATUS)
                sim_status_write(v->sim, &o->text);
        else
                o->file = open_file(v, ino);
        if (buf_result(&o->text) < 0 || (ino != SIM_INODE_STATUS && !o->file)) {
                opened_free(o);
                return NULL;
        }
        o->number = ++v->number;
        o->next = v->opened;
        o->link = &v->opened;
        if (o->next)
                o->next->link = &o->next;
        v->opened = o;
        return o;
}

/* The right to read status is checked here, because the kernel checks no modes on this file
 * system. */
static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        SimServer *v = server_of(req);
        uid_t uid = fuse_req_ctx(req)->uid;
        Opened *o;

        if (ino == SIM_INODE_STATUS && uid != v->uid && uid != 0) {
                refuse(req, EACCES);
                return;
        }
        o = opened_new(v, ino);
        if (!o) {
                refuse(req, ENOMEM);
                return;
        }
        fi->fh = (uintptr_t) o;
        fi->direct_io = !is_card(v->sim, ino);
        fi->keep_cache = fi->noflush = is_card(v->sim, ino); /* the mapping counts, not the file's size */
        if (fuse_reply_open(req, fi) == -ENOENT)             /* interrupted: no release will come */
                opened_free(o);
}

static Opened *opened_of(const struct fuse_file_info *fi) {
        return (Opened *) (uintptr_t) fi->fh;
}

static void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        opened_free(opened_of(fi));
        refuse(req, 0);
}

static SimPages *pages_of(const SimServer *v, fuse_ino_t ino) {
        return is_card(v->sim, ino) ? v->pages[ino - SIM_INODE_CARDS] : NULL;
}

static void read_pages(fuse_req_t req, SimPages *p, size_t size, off_t at) {
        size_t from = at >= 0 && at < SIM_PAGES_SIZE ? (size_t) at : SIM_PAGES_SIZE;
        size_t n = SIM_PAGES_SIZE - from < size ? SIM_PAGES_SIZE - from : size;
        char *copy = malloc(n + 1);

        if (!copy) {
                refuse(req, ENOMEM);
                return;
        }
        sim_pages_read(p, from, copy, n);
        (void) fuse_reply_buf(req, copy, n); /* as in refuse() */
        free(copy);
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t at, struct fuse_file_info *fi) {
        Str text = buf_str(&opened_of(fi)->text);
        size_t from = (uint64_t) at < text.len ? (size_t) at : text.len;
        size_t n = text.len - from < size ? text.len - from : size;

        if (pages_of(server_of(req), ino))
                read_pages(req, pages_of(server_of(req), ino), size, at);
        else if (opened_of(fi)->file)
                refuse(req, EINVAL);
        else
                (void) fuse_reply_buf(req, n > 0 ? text.data + from : NULL, n); /* as in refuse() */
}

static void on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t n, off_t at,
                     struct fuse_file_info *fi) {
        SimPages *p = pages_of(server_of(req), ino);

        if (!p || at < 0 || at > SIM_PAGES_SIZE || n > SIM_PAGES_SIZE - (size_t) at) {
                refuse(req, EINVAL);
                return;
        }
        sim_pages_write(p, (size_t) at, data, n);
        (void) fuse_reply_write(req, n); /* as in refuse() */
}

/* Invalidates the words that the server changed in a card's pages, for processes that have mapped
 * them. Without a mapping there is nothing to do. */
static void store(SimServer *v, uint32_t card, SimStores *s) {
        for (size_t i = 0; i < s->n; i++) {
                struct fuse_bufvec b = FUSE_BUFVEC_INIT(s->list[i].n);

                b.buf[0].mem = s->list[i].bytes;
                (void) fuse_lowlevel_notify_store(v->session, SIM_INODE_CARDS + card, (off_t) s->list[i].at,
                                                  &b, 0);
        }
}

static void on_enter(void *data, uint32_t card, uint32_t slot, const SimObject *group) {
        SimServer *v = data;
        SimStores s;

        sim_pages_enter(v->pages[card], slot, group->client->handle, group->handle, group->client->pid, &s);
        store(v, card, &s);
}

static void on_leave(void *data, uint32_t card, uint32_t slot) {
        SimServer *v = data;
        SimStores s;

        sim_pages_leave(v->pages[card], slot, clock_nsec(CLOCK_MONOTONIC), &s);
        store(v, card, &s);
}

static void execute(fuse_req_t req, const Opened *on, unsigned cmd, uint64_t arg, SimProcessCaller *caller) {
        int r = sim_call(on->file, &caller->caller, cmd, arg);

        if (r < 0)
                refuse(req, -r);
        else
                (void) fuse_reply_ioctl(req, r, NULL, 0); /* as in refuse() */
}

/* false: no memory; then the call is made without the answer. */
static bool postpone(SimServer *v, fuse_req_t req, const struct fuse_file_info *fi, unsigned cmd,
                     const void *arg, int fd, SimProcessCaller *caller) {
        bool contents = cmd == SIM_KEEP_CONTENTS || cmd == SIM_GIVE_CONTENTS;
        Waiting *w = calloc(1, sizeof *w);

        if (!w)
                return false;
        *w = (Waiting){.next = v->waiting,
                       .token = ++v->number,
                       .req = req,
                       .on = opened_of(fi),
                       .cmd = cmd,
                       .arg = (uintptr_t) arg,
                       .fd = fd};
        if (sim_finder_ask(v->finder, contents ? SIM_FIND_DUPLICATE : SIM_FIND_NUMBER,
                           (pid_t) caller->caller.pid(&caller->caller), fd, w->token) < 0) {
                free(w);
                return false;
        }
        v->waiting = w;
        return true;
}

static SimFile *file_by_number(const SimServer *v, uint64_t number) {
        for (const Opened *o = v->opened; o; o = o->next)
                if (o->number == number && o->file && o->file->kind == SIM_FILE_CTL)
                        return o->file;
        return NULL;
}

static Waiting *take_waiting(SimServer *v, uint64_t token) {
        Waiting **link = &v->waiting, *w;

        while (*link && (*link)->token != token)
                link = &(*link)->next;
        w = *link;
        if (w)
                *link = w->next;
        return w;
}

static void finish(fuse_req_t req, int error) {
        if (error != 0)
                refuse(req, error);
        else
                (void) fuse_reply_ioctl(req, 0, NULL, 0); /* as in refuse() */
}

static int send_descriptor(int to, int fd) {
        char byte = 0;
        struct iovec io = {&byte, 1};
        _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof fd)] = {0};
        struct msghdr m = {
                .msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
        return sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 : errno;
}

/* Answers a waiting call: 0 or an errno. fd is a duplicate, or -1. */
static int move_contents(Opened *o, unsigned cmd, int fd) {
        _cleanup_close_ int own = fd;
        int r;

        if (fd < 0)
                return EBADF;
        if (cmd == SIM_GIVE_CONTENTS)
                return o->contents < 0 ? ENOENT : send_descriptor(fd, o->contents);
        if (fcntl(fd, F_GET_SEALS) < 0)
                return EINVAL;
        if (o->contents >= 0)
                return EEXIST;
        r = TAKE_FD(own);
        o->contents = r;
        return 0;
}

static void resume(SimServer *v) {
        uint64_t token, number;

        while (sim_finder_take(v->finder, &token, &number)) {
                Waiting *w = take_waiting(v, token);
                SimProcessCaller caller;

                if (!w)
                        continue;
                if (w->cmd == SIM_KEEP_CONTENTS || w->cmd == SIM_GIVE_CONTENTS) {
                        finish(w->req, move_contents(w->on, w->cmd, (int) number - 1));
                        free(w);
                        continue;
                }
                sim_process_caller_init(&caller, &v->mount, fuse_req_ctx(w->req)->pid,
                                        fuse_req_ctx(w->req)->uid);
                caller.fd = w->fd;
                caller.file = file_by_number(v, number);
                execute(w->req, w->on, w->cmd, w->arg, &caller);
                free(w);
        }
}

/* The kernel passes the parameters only if the number says so. They are read and written here in
 * any case. A caller in a pid namespace beside or above the server's has no memory that can be
 * read. */
static void on_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg, struct fuse_file_info *fi,
                     unsigned flags, const void *in, size_t in_size, size_t out_size) {
        SimServer *v = server_of(req);
        const struct fuse_ctx *ctx = fuse_req_ctx(req);
        SimProcessCaller caller;
        int fd;

        if (!opened_of(fi)->file || (flags & (FUSE_IOCTL_COMPAT | FUSE_IOCTL_DIR))) {
                refuse(req, ENOTTY);
                return;
        }
        if (ctx->pid <= 0) {
                refuse(req, EACCES);
                return;
        }
        if (cmd == SIM_WHICH_FILE) {
                (void) fuse_reply_ioctl(req, 0, &opened_of(fi)->number,
                                        sizeof(uint64_t)); /* as in refuse() */
                return;
        }
        sim_process_caller_init(&caller, &v->mount, ctx->pid, ctx->uid);
        if ((cmd == SIM_KEEP_CONTENTS || cmd == SIM_GIVE_CONTENTS) && in_size == sizeof fd) {
                memcpy(&fd, in, sizeof fd);
                if (opened_of(fi)->file->kind != SIM_FILE_CTL || !postpone(v, req, fi, cmd, arg, fd, &caller))
                        refuse(req, ENOTTY);
                return;
        }
        fd = opened_of(fi)->file->kind == SIM_FILE_CTL
                     ? sim_call_descriptor(&caller.caller, cmd, (uintptr_t) arg)
                     : -1;
        if (fd < 0 || !caller.caller.is_ctl(&caller.caller, fd) ||
            !postpone(v, req, fi, cmd, arg, fd, &caller))
                execute(req, opened_of(fi), cmd, (uintptr_t) arg, &caller);
}

/* A close arrives here without its process waiting for the answer. If there is room for all of
 * them, the kernel delivers them in order, before any later call. So for a process, closing has
 * taken effect when it returns. */
static void on_init(void *userdata, struct fuse_conn_info *conn) {
        conn->max_background = conn->congestion_threshold = BACKGROUND_MAX;
}

static const struct fuse_lowlevel_ops operations = {
        .init = on_init,
        .lookup = on_lookup,
        .getattr = on_getattr,
        .setattr = on_setattr,
        .readdir = on_readdir,
        .open = on_open,
        .release = on_release,
        .read = on_read,
        .write = on_write,
        .ioctl = on_ioctl,
};

static void on_lock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock) {
        (void) fuse_reply_err(req, ENOLCK); /* fails only when the caller is gone */
}

static void on_set_lock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
                        int sleep) {
        on_lock(req, ino, fi, lock);
}

/* ---- the server ---- */

/* A server that was killed leaves a mount without use. The next server removes it. */
static void clear_dead(const char *dir) {
        struct statfs st; /* the kernel alone may answer stat() */

        if (statfs(dir, &st) < 0 && errno == ENOTCONN)
                (void) umount2(dir, MNT_DETACH); /* if not: mounting reports it */
}

/* Without the two handlers the kernel keeps the locks itself. */
static int mount_at(SimServer *v, const char *dir, bool no_locks, Fault *fault) {
        struct fuse_lowlevel_ops handlers = operations;
        char name[] = "aliquot-sim", o[] = "-o", options[] = "allow_other,fsname=aliquot-sim,subtype=aliquot";
        char *argv[] = {name, o, options, NULL};
        struct fuse_args args = FUSE_ARGS_INIT(3, argv);
        int r;

        handlers.getlk = no_locks ? on_lock : NULL;
        handlers.setlk = no_locks ? on_set_lock : NULL;
        v->session = fuse_session_new(&args, &handlers, sizeof handlers, v);
        fuse_opt_free_args(&args);
        if (!v->session)
                return fault_set(fault, -ENOMEM, "no FUSE session");
        clear_dead(dir);
        (void) mkdir(dir, 0755); /* if it cannot be made: mounting reports it */
        if (fuse_session_mount(v->session, dir) != 0)
                return fault_set(fault, -EPERM, "cannot mount at %s", dir);
        v->mounted = true;
        r = sim_mount_init(&v->mount, dir, SIM_INODE_CTL);
        return r < 0 ? fault_set(fault, r, "%s: %s", dir, strerror(-r)) : 0;
}

static int make_pages(SimServer *v, const SimPace *pace) {
        for (size_t i = 0; i < v->sim->n_cards; i++) {
                v->pages[i] = sim_pages_new(pace);
                if (!v->pages[i])
                        return -ENOMEM;
        }
        v->sim->listener = (SimListener){on_enter, on_leave, v};
        return 0;
}

int sim_server_new(Sim *s, const char *dir, const SimServerOptions *options, SimServer **ret, Fault *fault) {
        _cleanup_(sim_server_freep) SimServer *v = calloc(1, sizeof *v);
        int r;

        if (!v)
                return fault_set(fault, -ENOMEM, "out of memory");
        v->sim = s;
        v->uid = getuid();
        if (make_pages(v, &options->pace) < 0)
                return fault_set(fault, -ENOMEM, "out of memory");
        r = mount_at(v, dir, options->no_locks, fault);
        if (r < 0)
                return r;
        r = options->cgroups ? sim_mount_cgroups(&v->mount, options->cgroups) : 0;
        if (r < 0)
                return fault_set(fault, r, "%s: %s", options->cgroups, strerror(-r));
        r = sim_finder_new(&v->finder);
        if (r < 0)
                return fault_set(fault, r, "no thread: %s", strerror(-r));
        *ret = TAKE_PTR(v);
        return 0;
}

int sim_server_look(const SimServer *v, const char *dir) {
        _cleanup_close_ int in = -1;
        char name[NAME_SIZE];
        fuse_ino_t ino;
        struct stat st;

        (void) close(fuse_session_fd(v->session)); /* a copy; nothing was written to it */
        in = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (size_t i = 0; in >= 0 && entry_at(v->sim, i, &ino, name); i++)
                if (fstatat(in, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        return -errno;
        return in < 0 ? -errno : 0;
}

/* On the worker, like everything that changes the server's state. An empty request: descriptors
 * were found. */
static void process(void *data, void *request, size_t n) {
        SimServer *v = data;
        struct fuse_buf b = {.size = n, .mem = request};

        if (n > 0)
                fuse_session_process_buf(v->session, &b);
        else
                resume(v);
}

/* Reads and writes of pages are answered here, because the current call may wait for one: its
 * parameters may lie in a mapped card. */
static bool is_about_pages(const struct fuse_buf *b) {
        const struct fuse_in_header *h = b->mem;

        return b->size >= sizeof *h && (h->opcode == FUSE_READ || h->opcode == FUSE_WRITE);
}

/* Handles one request, or the end of the file system. */
static int serve_one(SimServer *v, Worker *w) {
        int r = fuse_session_receive_buf(v->session, &v->buf);

        if (r <= 0)
                return r == -EINTR || r == -EAGAIN ? 1 : r;
        if (!is_about_pages(&v->buf))
                return worker_give(w, v->buf.mem, v->buf.size) < 0 ? -ENOMEM : 1;
        fuse_session_process_buf(v->session, &v->buf);
        return 1;
}

static int serve_found(SimServer *v, Worker *w) {
        sim_finder_hear(v->finder);
        return worker_give(w, "", 0);
}

int sim_server_run(SimServer *v) {
        _cleanup_(worker_freep) Worker *worker = worker_new(process, v);
        _cleanup_close_ int signals = -1;
        sigset_t set;
        int r;

        if (!worker)
                return -ENOMEM;
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGHUP);
        signals = signalfd(-1, &set, SFD_CLOEXEC);
        if (signals < 0)
                return -errno;
        do {
                struct pollfd fds[] = {{.fd = fuse_session_fd(v->session), .events = POLLIN},
                                       {.fd = signals, .events = POLLIN},
                                       {.fd = sim_finder_fd(v->finder), .events = POLLIN}};

                if (poll(fds, 3, -1) < 0)
                        return -errno;
                if (fds[1].revents)
                        return 0;
                if (fds[2].revents && serve_found(v, worker) < 0)
                        return -ENOMEM;
                r = fds[0].revents ? serve_one(v, worker) : 1;
        } while (r > 0 && !fuse_session_exited(v->session));
        return r < 0 && r != -ENODEV ? r : 0;
}

void sim_server_free(SimServer *v) {
        if (!v)
                return;
        while (v->waiting) {
                Waiting *w = take_waiting(v, v->waiting->token);

                refuse(w->req, ENOTCONN);
                free(w);
        }
        if (v->mounted)
                fuse_session_unmount(v->session);
        v->sim->listener = (SimListener){.enter = NULL};
        while (v->opened)
                opened_free(v->opened);
        for (size_t i = 0; i < v->sim->n_cards; i++)
                sim_pages_free(v->pages[i]);
        if (v->session)
                fuse_session_destroy(v->session);
        sim_finder_free(v->finder); /* afterwards every later request has failed */
        free(v->buf.mem);
        free(v);
}
