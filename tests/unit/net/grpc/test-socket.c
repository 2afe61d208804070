/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "directory.h"
#include "net/grpc/rpc_socket.h"

static bool can_connect(const char *path) {
        int fd = rpc_socket_connect(path);

        if (fd >= 0)
                (void) close(fd);
        return fd >= 0;
}

static void is_private_whatever_the_umask(void) {
        RpcSocket s = RPC_SOCKET_NULL;
        Fault fault = FAULT_NULL;
        char path[PATH_MAX];
        mode_t before = umask(0);
        struct stat st;
        Directory d;

        directory_begin(&d);
        directory_path(&d, path, "s");
        ASSERT_OK(rpc_socket_listen(path, &s, &fault));
        (void) umask(before);
        ASSERT_OK(lstat(path, &st));
        ASSERT_TRUE(S_ISSOCK(st.st_mode));
        ASSERT_INT(st.st_mode & 07777, 0600);
        ASSERT_TRUE(can_connect(path));
        rpc_socket_done(&s);
        ASSERT_INT(rpc_socket_connect(path), -ENOENT);
        directory_end(&d);
}

/* What a killed instance leaves, under either name. */
static void replaces_stale_sockets(void) {
        RpcSocket old = RPC_SOCKET_NULL, s = RPC_SOCKET_NULL;
        char path[PATH_MAX], other[PATH_MAX];
        Fault fault = FAULT_NULL;
        Directory d;

        directory_begin(&d);
        directory_path(&d, path, "s");
        directory_path(&d, other, "s.new");
        ASSERT_OK(rpc_socket_listen(other, &old, &fault));
        ASSERT_OK(rpc_socket_listen(path, &s, &fault));
        rpc_socket_done(&old); /* its name is gone already */
        ASSERT_OK(rpc_socket_listen(path, &old, &fault));
        rpc_socket_done(&s); /* the name now leads to another socket */
        ASSERT_TRUE(can_connect(path));
        rpc_socket_done(&old);
        directory_end(&d);
}

static void leaves_files_alone(void) {
        RpcSocket s = RPC_SOCKET_NULL;
        Fault fault = FAULT_NULL;
        char path[PATH_MAX];
        Directory d;
        int fd;

        directory_begin(&d);
        directory_path(&d, path, "precious");
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        ASSERT_TRUE(fd >= 0);
        (void) close(fd);
        ASSERT_INT(rpc_socket_listen(path, &s, &fault), -EEXIST);
        ASSERT_CONTAINS(fault.text, path);
        ASSERT_INT(s.fd, -1);
        ASSERT_OK(unlink(path));
        directory_end(&d);
}

static void says_what_is_wrong(void) {
        RpcSocket s = RPC_SOCKET_NULL;
        char name[PATH_MAX], path[PATH_MAX];
        Fault fault = FAULT_NULL;
        Directory d;
        size_t max;

        directory_begin(&d);
        ASSERT_INT(rpc_socket_listen(directory_path(&d, path, "no/s"), &s, &fault), -ENOENT);
        ASSERT_CONTAINS(fault.text, path);
        /* The longest name that fits with ".new" and the NUL; and one more. */
        max = sizeof(struct sockaddr_un) - sizeof(sa_family_t) - strlen(d.path) - 1 - sizeof ".new";
        memset(name, 'x', max);
        name[max] = '\0';
        ASSERT_OK(rpc_socket_listen(directory_path(&d, path, name), &s, &fault));
        rpc_socket_done(&s);
        memcpy(name + max, "x", 2);
        ASSERT_INT(rpc_socket_listen(directory_path(&d, path, name), &s, &fault), -ENAMETOOLONG);
        directory_end(&d);
}

int main(void) {
        return TEST_MAIN(TEST(is_private_whatever_the_umask), TEST(replaces_stale_sockets),
                         TEST(leaves_files_alone), TEST(says_what_is_wrong));
}
