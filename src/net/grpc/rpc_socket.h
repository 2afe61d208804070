/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Unix sockets with a name in the file system, ours as long as the name leads to it. */

#include <sys/types.h>

#include "base/fault.h"

typedef struct RpcSocket {
        int fd;
        char *path;
        dev_t device;
        ino_t inode;
} RpcSocket;

#define RPC_SOCKET_NULL ((RpcSocket){.fd = -1})

/* Listens at path, mode 0600. It appears there complete, by a rename: no client ever finds a socket
 * that nobody listens to. A socket that stands there is replaced; anything else is left alone and
 * -EEXIST. -ENAMETOOLONG when path and ".new" do not fit into an address; else the errno of the
 * call that failed. fault names the path. */
int rpc_socket_listen(const char *path, RpcSocket *ret, Fault *fault);

/* Closes, and takes the name away unless somebody else has put his own socket there. */
void rpc_socket_done(RpcSocket *s);

/* Connects; the descriptor is non-blocking. A unix socket's connect() never takes long: -EAGAIN is
 * a full backlog. */
int rpc_socket_connect(const char *path);
