/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/rpc_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/str.h"

static int make_address(const char *path, const char *suffix, struct sockaddr_un *ret) {
        int n;

        *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
        n = snprintf(ret->sun_path, sizeof ret->sun_path, "%s%s", path, suffix);
        return n < 0 || (size_t) n >= sizeof ret->sun_path ? -ENAMETOOLONG : 0;
}

/* Checks that the name is free, or is a socket. */
static int check_place(const char *path) {
        struct stat st;

        if (lstat(path, &st) < 0)
                return errno == ENOENT ? 0 : -errno;
        return S_ISSOCK(st.st_mode) ? 0 : -EEXIST;
}

/* The kernel gives the file the mode of the socket, less the umask. With fchmod() before bind()
 * there is no moment in which other users could connect. */
static int bind_private(const struct sockaddr_un *address) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return -errno;
        /* left by an instance that was killed */
        if (unlink(address->sun_path) < 0 && errno != ENOENT)
                return -errno;
        if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *) address, sizeof *address) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int listen_and_move(int fd, const char *from, const char *to, struct stat *ret) {
        if (listen(fd, SOMAXCONN) < 0 || lstat(from, ret) < 0 || rename(from, to) < 0)
                return -errno;
        return 0;
}

static int listen_at(const char *path, RpcSocket *ret) {
        _cleanup_free_ char *copy = str_dup(str_from(path));
        _cleanup_close_ int fd = -1;
        struct sockaddr_un address;
        struct stat st;
        int r;

        if (!copy)
                return -ENOMEM;
        r = make_address(path, ".new", &address);
        if (r < 0)
                return r;
        r = check_place(path);
        if (r < 0)
                return r;
        r = bind_private(&address);
        if (r < 0)
                return r;
        fd = r;
        r = listen_and_move(fd, address.sun_path, path, &st);
        if (r < 0) {
                (void) unlink(address.sun_path); /* the first error is reported */
                return r;
        }
        *ret = (RpcSocket){TAKE_FD(fd), TAKE_PTR(copy), st.st_dev, st.st_ino};
        return 0;
}

int rpc_socket_listen(const char *path, RpcSocket *ret, Fault *fault) {
        int r = listen_at(path, ret);

        if (r == -EEXIST)
                return fault_set(fault, r, "cannot listen on %s: it exists and is not a socket", path);
        if (r < 0)
                return fault_set(fault, r, "cannot listen on %s: %s", path, strerror(-r));
        return 0;
}

void rpc_socket_done(RpcSocket *s) {
        struct stat st;

        if (s->path && lstat(s->path, &st) == 0 && st.st_dev == s->device && st.st_ino == s->inode)
                (void) unlink(s->path); /* a name that stays is replaced by the next instance */
        cleanup_closep(&s->fd);
        free(s->path);
        *s = RPC_SOCKET_NULL;
}

int rpc_socket_connect(const char *path) {
        _cleanup_close_ int fd = -1;
        struct sockaddr_un address;
        int r;

        r = make_address(path, "", &address);
        if (r < 0)
                return r;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *) &address, sizeof address) < 0)
                return -errno;
        return TAKE_FD(fd);
}
