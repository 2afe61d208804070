/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A server and a client in one loop. The server is either the house's own, with a handler per test, or a plain socket
 * that says what a test tells it to, byte by byte. */

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "http/server.h"
#include "kube/client.h"
#include "test.h"

typedef struct Fixture {
        sd_event *event;
        HttpServer *server;
        uint16_t port;
        KubeConfig *config;
        KubeClient *client;
} Fixture;

static inline void fixture_connect(Fixture *f, uint16_t port) {
        char url[64];

        (void) snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
        f->port = port;
        ASSERT_OK(kube_config_for_server(url, &f->config));
        ASSERT_OK(kube_client_new(f->event, f->config, &f->client));
}

static inline void fixture_listen(Fixture *f, uint16_t port, HttpHandler handler, void *userdata) {
        char listen[32];
        HttpServerOptions options = {.listen = listen, .max_body = 1024 * 1024};
        Fault fault = FAULT_NULL;

        (void) snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
        ASSERT_OK(http_server_new(f->event, &options, handler, userdata, &f->server, &fault));
}

/* handler NULL: a loop alone. */
static inline void fixture_begin(Fixture *f, HttpHandler handler, void *userdata) {
        *f = (Fixture){0};
        (void) signal(SIGPIPE, SIG_IGN);
        ASSERT_TRUE(sd_event_new(&f->event) >= 0);
        if (!handler)
                return;
        fixture_listen(f, 0, handler, userdata);
        fixture_connect(f, http_server_port(f->server));
}

static inline void fixture_end(Fixture *f) {
        f->client = kube_client_free(f->client);
        f->server = http_server_free(f->server);
        f->config = kube_config_free(f->config);
        f->event = sd_event_unref(f->event);
}

static inline void turn(Fixture *f) {
        ASSERT_TRUE(sd_event_run(f->event, 10000) >= 0);
}

/* Turns the loop until `condition` holds; it is the test that fails when that takes half a minute. */
#define turn_until(f, condition)                                                                             \
        do {                                                                                                 \
                usec_t end_ = clock_monotonic_usec() + 30 * USEC_PER_SEC;                                    \
                while (!(condition)) {                                                                       \
                        if (clock_monotonic_usec() > end_)                                                   \
                                TEST_FAIL_("30 s have passed without: %s", #condition);                      \
                        turn(f);                                                                             \
                }                                                                                            \
        } while (0)

/* What `done` was told, copied. */
typedef struct Told {
        unsigned n;
        KubeOutcome outcome;
        unsigned status;
        usec_t retry_after;
        char reason[64];
        Fault fault;
        Buf body;
} Told;

static inline void on_done(void *userdata, const KubeReply *reply) {
        Told *told = userdata;

        told->n++;
        told->outcome = reply->outcome;
        told->status = reply->status;
        told->retry_after = reply->retry_after;
        (void) snprintf(told->reason, sizeof told->reason, "%s", reply->reason);
        told->fault = reply->fault;
        buf_clear(&told->body);
        buf_append_str(&told->body, reply->body);
}

static inline void told_done(Told *told) {
        buf_done(&told->body);
        *told = (Told){0};
}

/* One call, to its end. */
static inline void ask(Fixture *f, const char *method, const char *path, const char *body, Told *told) {
        KubeRequest request = {.method = method, .path = path, .body = str_from(body)};
        unsigned before = told->n;

        ASSERT_OK(kube_call(f->client, &request, on_done, told, NULL));
        turn_until(f, told->n > before);
}

/* ---- a server that is a script ---- */

typedef struct Peer {
        int listening, fd; /* fd: the connection that was accepted last, -1 when none */
        unsigned n_accepted;
        Buf heard;
} Peer;

static inline uint16_t peer_begin(Peer *p) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t len = sizeof at;

        *p = (Peer){.fd = -1};
        p->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ASSERT_TRUE(p->listening >= 0);
        ASSERT_OK(bind(p->listening, (struct sockaddr *) &at, sizeof at));
        ASSERT_OK(listen(p->listening, 16));
        ASSERT_OK(getsockname(p->listening, (struct sockaddr *) &at, &len));
        return ntohs(at.sin_port);
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
