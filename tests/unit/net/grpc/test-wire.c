/* SPDX-License-Identifier: Apache-2.0 */

/* Between client and server: slow and broken connections, GOAWAY, and answers of other servers. */

#include <sys/epoll.h>
#include <sys/socket.h>

#include "fixture.h"
#include "net/grpc/rpc_socket.h"

/* ---- a wire that carries one byte at a time, either way ---- */

typedef struct Wire {
        Fixture *f;
        RpcSocket socket;
        int client, server;
        size_t up, limit; /* from the client; the connection is cut there without notice */
} Wire;

static int on_wire(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Wire *w = userdata;
        char byte;

        if ((fd == w->client && w->up == w->limit) || recv(fd, &byte, 1, MSG_DONTWAIT) != 1)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        ASSERT_INT(send(fd == w->client ? w->server : w->client, &byte, 1, MSG_NOSIGNAL), 1);
        if (fd == w->client)
                w->up++;
        return 0;
}

static int on_dial(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        int pair[2], small = 1;
        Wire *w = userdata;

        w->client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        ASSERT_TRUE(w->client >= 0);
        ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
        /* The kernel's smallest buffer: what the server writes does not fit. */
        ASSERT_OK(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
        ASSERT_OK(rpc_server_adopt(w->f->server, pair[0]));
        w->server = pair[1];
        ASSERT_TRUE(sd_event_add_io(w->f->event, NULL, w->client, EPOLLIN, on_wire, w) >= 0);
        ASSERT_TRUE(sd_event_add_io(w->f->event, NULL, w->server, EPOLLIN, on_wire, w) >= 0);
        return 0;
}

static void wire_begin(Wire *w, Fixture *f, size_t limit, usec_t request_timeout) {
        Fault fault = FAULT_NULL;

        fixture_begin(f);
        f->server = rpc_server_free(f->server);
        start_server(f, NULL, 0, request_timeout);
        *w = (Wire){.f = f, .socket = RPC_SOCKET_NULL, .client = -1, .server = -1, .limit = limit};
        ASSERT_OK(rpc_socket_listen(f->path, &w->socket, &fault));
        ASSERT_TRUE(sd_event_add_io(f->event, NULL, w->socket.fd, EPOLLIN, on_dial, w) >= 0);
}

static void wire_end(Wire *w) {
        rpc_socket_done(&w->socket);
        fixture_end(w->f);
        (void) close(w->client);
        (void) close(w->server);
}

static void survives_a_slow_wire(void) {
        /* more than a frame, and than the socket accepts */
        _cleanup_free_ char *bytes = pattern(40000);
        Fixture f;
        Wire w;

        wire_begin(&w, &f, SIZE_MAX, 0);
        assert_echo(&f, STR("hello"));
        assert_echo(&f, (Str){bytes, 40000});
        ASSERT_TRUE(w.up > 40000);
        wire_end(&w);
}

static void waits_for_a_request_only_so_long(void) {
        _cleanup_free_ char *bytes = pattern(40000);
        Fixture f;
        Wire w;

        wire_begin(&w, &f, 20000, 50 * USEC_PER_MSEC);
        call_and_wait(&f, "/test/echo", (Str){bytes, 40000});
        ASSERT_INT(f.reply.status, RPC_DEADLINE_EXCEEDED);
        ASSERT_CONTAINS(f.reply.fault.text, "did not come in time");
        ASSERT_INT(f.handled, 0);
        wire_end(&w);
}

/* The client's own timer is off: the deadline in the request ends the call. On a loaded machine it
 * may pass before the request is handled: then with a longer one. */
static void keeps_the_deadline_that_was_said(void) {
        bool was_handled = false;
        unsigned tries = 0;

        for (usec_t timeout = USEC_PER_SEC; !was_handled; timeout *= 2) {
                Fixture f;
                Wire w;

                ASSERT_TRUE(tries++ < 7);
                wire_begin(&w, &f, SIZE_MAX, 0);
                call(&f, "/test/later", STR("x"), timeout);
                TURN_UNTIL(&f, f.kept || f.done == 1);
                w.limit = w.up;
                was_handled = f.kept != NULL;
                if (was_handled)
                        TURN_UNTIL(&f, f.closed == 1);
                wire_end(&w);
        }
}

/* ---- a server that speaks by hand ---- */

typedef struct Script {
        Fixture f;
        RpcSocket socket;
        int peers[2];
        unsigned n_peers;
} Script;

#define SETTINGS_FRAME "\0\0\0\4\0\0\0\0\0"
#define GOAWAY_FRAME   "\0\0\x8\7\0\0\0\0\0\0\0\0\1\0\0\0\0" /* nothing behind stream 1 */
/* Trailers-Only on stream 1: indexed ":status: 200", grpc-status as a literal. */
#define ABORTED_FRAME "\0\0\x11\1\5\0\0\0\1\x88\0\x0bgrpc-status\x02\x31\x30"

static int on_peer(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Script *s = userdata;

        ASSERT_TRUE(s->n_peers < ELEMENTSOF(s->peers));
        s->peers[s->n_peers++] = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        return 0;
}

static void say(int fd, Str bytes) {
        ASSERT_INT(send(fd, bytes.data, bytes.len, MSG_NOSIGNAL), (ssize_t) bytes.len);
}

/* A call on a connection after GOAWAY waits until that has ended, and then connects again. */
static void waits_behind_goaway(void) {
        Fault fault = FAULT_NULL;
        Script s = {.socket = RPC_SOCKET_NULL};

        fixture_begin(&s.f);
        s.f.server = rpc_server_free(s.f.server);
        ASSERT_OK(rpc_socket_listen(s.f.path, &s.socket, &fault));
        ASSERT_TRUE(sd_event_add_io(s.f.event, NULL, s.socket.fd, EPOLLIN, on_peer, &s) >= 0);

        call(&s.f, "/first", STR("x"), 0);
        TURN_UNTIL(&s.f, s.n_peers == 1);
        say(s.peers[0], STR(SETTINGS_FRAME GOAWAY_FRAME));
        TURN_UNTIL(&s.f, sd_event_run(s.f.event, 0) == 0);
        call(&s.f, "/second", STR("x"), 0);
        TURN_UNTIL(&s.f, sd_event_run(s.f.event, 0) == 0);
        ASSERT_INT(s.n_peers, 1);
        say(s.peers[0], STR(ABORTED_FRAME));
        TURN_UNTIL(&s.f, s.f.done == 1 && s.n_peers == 2);
        ASSERT_INT(s.f.reply.status, RPC_ABORTED);
        say(s.peers[1], STR(SETTINGS_FRAME ABORTED_FRAME));
        TURN_UNTIL(&s.f, s.f.done == 2);
        ASSERT_INT(s.f.reply.status, RPC_ABORTED);

        (void) close(s.peers[0]);
        (void) close(s.peers[1]);
        rpc_socket_done(&s.socket);
        fixture_end(&s.f);
}

int main(void) {
        return TEST_MAIN(TEST(survives_a_slow_wire), TEST(waits_for_a_request_only_so_long),
                         TEST(keeps_the_deadline_that_was_said), TEST(waits_behind_goaway));
}
