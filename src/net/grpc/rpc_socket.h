/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Unix sockets with a name in the file system. A socket removes its name only while the name leads
 * to it. */

#include <sys/types.h>

#include "base/fault.h"

typedef struct RpcSocket {
        int fd;
        char *path;
        dev_t device;
        ino_t inode;
} RpcSocket;

#define RPC_SOCKET_NULL ((RpcSocket){.fd = -1})

/* Listens at path, mode 0600. The name appears by a rename, so a client never finds a socket that
 * does not listen yet. An existing socket is replaced.
 *
 * Returns 0, or negative errno with a fault that names the path. -EEXIST: another file has the
 * name. -ENAMETOOLONG: path and ".new" do not fit into an address. */
int rpc_socket_listen(const char *path, RpcSocket *ret, Fault *fault);

/* Closes the socket and removes the name, unless another process has put its own socket there. */
void rpc_socket_done(RpcSocket *s);

/* Connects and returns a non-blocking descriptor, or negative errno. connect() of a unix socket
 * never blocks for long; -EAGAIN: the backlog is full. */
int rpc_socket_connect(const char *path);
