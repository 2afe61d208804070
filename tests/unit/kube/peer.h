/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A scripted server: a plain socket that sends what a test tells it to, byte by byte, and closes on
 * demand. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "test.h"

typedef struct Peer {
        int listening, fd; /* fd: the connection that was accepted last, -1 when none */
        unsigned n_accepted;
        Buf heard;
} Peer;

/* Binds a free port of 127.0.0.1 and returns it. Nothing listens: connections to it are refused. */
static inline uint16_t peer_bind(Peer *p) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t len = sizeof at;

        *p = (Peer){.fd = -1};
        p->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ASSERT_TRUE(p->listening >= 0);
        ASSERT_OK(bind(p->listening, (struct sockaddr *) &at, sizeof at));
        ASSERT_OK(getsockname(p->listening, (struct sockaddr *) &at, &len));
        return ntohs(at.sin_port);
}

/* The same, and listens. */
static inline uint16_t peer_begin(Peer *p) {
        uint16_t port = peer_bind(p);

        ASSERT_OK(listen(p->listening, 16));
        return port;
}

static inline void peer_hang_up(Peer *p) {
        if (p->fd >= 0)
                (void) close(p->fd);
        p->fd = -1;
        buf_clear(&p->heard);
}

static inline void peer_end(Peer *p) {
        peer_hang_up(p);
        buf_done(&p->heard);
        (void) close(p->listening);
}

/* Takes a new connection and new bytes, if there are any. */
static inline void peer_look(Peer *p) {
        char bytes[65536];
        ssize_t n;
        int fd = accept4(p->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
                peer_hang_up(p);
                p->fd = fd;
                p->n_accepted++;
        }
        if (p->fd < 0)
                return;
        n = recv(p->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n > 0)
                buf_append(&p->heard, bytes, (size_t) n);
}

static inline bool peer_heard(Peer *p, const char *text) {
        peer_look(p);
        return p->heard.len > 0 && strstr(p->heard.data, text);
}

static inline void peer_say(Peer *p, const char *text) {
        ASSERT_INT(send(p->fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t) strlen(text));
        buf_clear(&p->heard);
}
