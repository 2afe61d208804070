/* SPDX-License-Identifier: Apache-2.0 */

/* Which connection goes when there are too many, and when the server ends. */

#include <errno.h>
#include <sys/socket.h>

#include "fixture.h"
#include "kube/tls.h"
#include "thorough.h"

/* The server has closed it without an answer. */
static void assert_closed(Fixture *f, int fd) {
        _cleanup_buf_ Buf got = BUF_NULL;

        hear(f, fd, NULL, &got);
        ASSERT_INT(got.len, 0);
}

static void assert_counted(const Fixture *f, const char *series) {
        const HttpServer *servers[] = {NULL, f->server};
        _cleanup_buf_ Buf out = BUF_NULL;

        http_server_write_closed(servers, ELEMENTSOF(servers), "closed_total", &out);
        ASSERT_CONTAINS(out.data, "# TYPE closed_total counter\n");
        ASSERT_CONTAINS(out.data, series);
}

static void close_all(const int fds[], size_t n) {
        for (size_t i = 0; i < n; i++)
                (void) close(fds[i]);
}

static int dial_used(Fixture *f, unsigned address) {
        int fd = dial_from(f, address);

        ask(f, fd, "/now");
        return fd;
}

static void the_oldest_without_a_request_goes(void) {
        enum { MAX = 8 };
        Fixture f;
        int fds[MAX + 3];

        fixture_begin_with(&f, (HttpServerOptions){.max_connections = MAX, .max_of_address = MAX});
        fds[0] = dial_used(&f, 1);
        for (unsigned i = 1; i < MAX; i++)
                fds[i] = dial_from(&f, i);
        ask(&f, fds[0], "/now");
        ASSERT_INT(f.told, 0);
        for (unsigned i = MAX; i < ELEMENTSOF(fds); i++) {
                fds[i] = dial(&f);
                assert_closed(&f, fds[i - MAX + 1]);
        }
        ASSERT_INT(f.told, 1); /* and not again within the minute */
        ASSERT_CONTAINS(f.text, "listener=test rule=listener address=127.0.0.1 of_address=");
        ASSERT_CONTAINS(f.text, " all=9 closed=1");
        assert_counted(&f, "closed_total{listener=\"test\",rule=\"listener\"} 3\n");
        assert_counted(&f, "closed_total{listener=\"test\",rule=\"refused\"} 0\n");
        ask(&f, fds[0], "/now");
        for (unsigned i = 4; i < ELEMENTSOF(fds); i++)
                ask(&f, fds[i], "/now");
        close_all(fds, ELEMENTSOF(fds));
        fixture_end(&f);
}

static void half_of_the_places_are_for_new_ones(void) {
        int used[3], fresh[3];
        Fixture f;

        /* two of four may be fresh, and the third fresh one is one too many of them */
        fixture_begin_with(&f, (HttpServerOptions){.max_connections = 4, .max_of_address = 4});
        for (size_t i = 0; i < ELEMENTSOF(used); i++)
                used[i] = dial_used(&f, 1);
        ask(&f, used[0], "/now");
        fresh[0] = dial_from(&f, 2);
        fresh[1] = dial_from(&f, 2);
        assert_closed(&f, used[1]);
        fresh[2] = dial_from(&f, 2);
        assert_closed(&f, fresh[0]);
        ask(&f, used[0], "/now");
        ask(&f, used[2], "/now");
        ask(&f, fresh[1], "/now");
        ask(&f, fresh[2], "/now");
        close_all(used, ELEMENTSOF(used));
        close_all(fresh, ELEMENTSOF(fresh));
        fixture_end(&f);
}

static void an_address_has_a_limit_of_its_own(void) {
        int other, fds[5];
        Fixture f;

        fixture_begin_with(&f, (HttpServerOptions){.max_connections = 100, .max_of_address = 3});
        other = dial_from(&f, 1); /* older than all of them */
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                fds[i] = dial_from(&f, 2);
        assert_closed(&f, fds[0]);
        assert_closed(&f, fds[1]);
        ASSERT_INT(f.told, 1);
        ASSERT_CONTAINS(f.text, "listener=test rule=address address=127.0.0.2 of_address=4 all=5 closed=1");
        assert_counted(&f, "closed_total{listener=\"test\",rule=\"address\"} 2\n");
        ask(&f, other, "/now");
        for (size_t i = 2; i < ELEMENTSOF(fds); i++)
                ask(&f, fds[i], "/now");
        (void) close(other);
        close_all(fds, ELEMENTSOF(fds));
        fixture_end(&f);
}

/* As many requests as the server takes may be answered at once, also for one address. */
static void those_that_are_answered_stay(void) {
        HttpExchange *kept[2];
        int busy[2], refused, later;
        Fixture f;

        fixture_begin_with(&f, (HttpServerOptions){.max_connections = 2, .max_of_address = 1});
        for (size_t i = 0; i < ELEMENTSOF(busy); i++) {
                busy[i] = dial(&f);
                say(busy[i], "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
                f.kept = NULL;
                turn_until(&f, &f.kept, sizeof f.kept);
                kept[i] = f.kept;
        }
        ASSERT_INT(f.told, 0);
        refused = dial_from(&f, 2);
        assert_closed(&f, refused);
        ASSERT_CONTAINS(f.text, "rule=refused");
        assert_counted(&f, "closed_total{listener=\"test\",rule=\"refused\"} 1\n");
        for (size_t i = 0; i < ELEMENTSOF(busy); i++) {
                _cleanup_buf_ Buf got = BUF_NULL;

                http_respond(kept[i], 200, "text/plain", STR("at last"));
                hear(&f, busy[i], "at last", &got);
        }
        later = dial_used(&f, 2);
        assert_closed(&f, busy[0]);
        (void) close(refused);
        (void) close(later);
        close_all(busy, ELEMENTSOF(busy));
        fixture_end(&f);
}

/* Sends requests until neither side goes on, because the answers are not read. */
static unsigned stuff(Fixture *f, int fd) {
        _cleanup_buf_ Buf request = BUF_NULL;
        unsigned whole = 0, refused = 0;
        size_t sent = 0;

        buf_append_str(&request, STR("POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"));
        for (int i = 0; i < 10000; i++)
                buf_append_str(&request, STR("0123456789"));
        while (refused < 200) {
                ssize_t n = send(fd, request.data + sent, request.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

                ASSERT_TRUE(n > 0 || errno == EAGAIN);
                refused = n > 0 ? 0 : refused + 1;
                sent += n > 0 ? (size_t) n : 0;
                if (sent == request.len) {
                        sent = 0;
                        whole++;
                }
                ASSERT_TRUE(sd_event_run(f->event, 1000) >= 0);
        }
        return whole;
}

static void one_that_does_not_read_goes(void) {
        unsigned sent;
        int deaf, fd;
        Fixture f;

        fixture_begin_with(&f, (HttpServerOptions){.max_connections = 1});
        deaf = dial(&f);
        sent = stuff(&f, deaf);
        ASSERT_TRUE(sent >= f.requests && f.requests > 0);
        fd = dial_used(&f, 2);
        assert_counted(&f, "closed_total{listener=\"test\",rule=\"listener\"} 1\n");
        (void) close(deaf);
        (void) close(fd);
        fixture_end(&f);
}

/* Nothing, half a record, and half a hello. */
static void a_handshake_has_a_deadline(void) {
        static const char *const begun[] = {"", "\x16\x03\x01", "\x16\x03\x01\x02\x01\x01"};
        HttpServerOptions options = {.first_sec = 1, .tls_cert = tls_server_cert, .tls_key = tls_server_key};
        int fds[ELEMENTSOF(begun)];
        Fixture f;

        fixture_begin_with(&f, options);
        for (size_t i = 0; i < ELEMENTSOF(begun); i++) {
                fds[i] = dial(&f);
                say(fds[i], begun[i]);
        }
        for (size_t i = 0; i < ELEMENTSOF(begun); i++)
                assert_closed(&f, fds[i]);
        assert_counted(&f, "closed_total{listener=\"test\",rule=\"late\"} 3\n");
        ASSERT_INT(f.told, 0);
        close_all(fds, ELEMENTSOF(fds));
        fixture_end(&f);
}

/* A client finds its kept connections closed, and makes its next request on another one. */
static void a_server_that_ends_closes_idle_connections(void) {
        _cleanup_buf_ Buf got = BUF_NULL, fresh_got = BUF_NULL, held_got = BUF_NULL;
        int idle, asks, fresh, held;
        Fixture f;

        fixture_begin(&f);
        held = dial(&f);
        say(held, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
        turn_until(&f, &f.kept, sizeof f.kept);
        idle = dial_used(&f, 1);
        asks = dial_used(&f, 1);
        fresh = dial(&f);
        http_server_keep_alive(f.server, false);
        say(asks, "GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
        hear(&f, asks, NULL, &got);
        ASSERT_CONTAINS(got.data, "HTTP/1.1 200");
        ASSERT_CONTAINS(got.data, "Connection: close");
        assert_closed(&f, idle);
        say(fresh, "GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
        hear(&f, fresh, NULL, &fresh_got);
        ASSERT_CONTAINS(fresh_got.data, "HTTP/1.1 200");
        http_respond(f.kept, 200, "text/plain", STR("at last"));
        hear(&f, held, NULL, &held_got);
        ASSERT_CONTAINS(held_got.data, "at last");
        close_all((int[]){idle, asks, fresh, held}, 4);
        fixture_end(&f);
}

/* ---- any order ---- */

enum { MODEL = 64, MODEL_MAX = 12, MODEL_OF_ADDRESS = 5, ADDRESSES = 4 };

typedef struct Client {
        int fd; /* -1: none */
        unsigned address;
        HttpExchange *exchange; /* its request is held */
} Client;

static unsigned draw(uint64_t *seed, unsigned n) {
        *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        return (unsigned) ((*seed >> 33) % n);
}

static void forget(Client *c) {
        (void) close(c->fd);
        c->fd = -1;
}

/* Forgets those that the server has closed. Those whose request is held are never closed. */
static void sweep(Client clients[static MODEL]) {
        for (size_t i = 0; i < MODEL; i++) {
                char byte;
                ssize_t n;

                if (clients[i].fd < 0)
                        continue;
                n = recv(clients[i].fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
                if (n > 0 || (n < 0 && errno == EAGAIN))
                        continue;
                ASSERT_TRUE(!clients[i].exchange);
                forget(&clients[i]);
        }
}

static bool is_within_limits(const Client clients[static MODEL]) {
        unsigned all = 0, of_address[ADDRESSES + 1] = {0};
        bool within;

        for (size_t i = 0; i < MODEL; i++) {
                all += clients[i].fd >= 0;
                of_address[clients[i].address] += clients[i].fd >= 0 && !clients[i].exchange;
        }
        within = all <= MODEL_MAX;
        for (unsigned i = 1; i <= ADDRESSES; i++)
                within = within && of_address[i] <= MODEL_OF_ADDRESS;
        return within;
}

/* A connection that the client has opened counts as soon as the server accepts it. */
static void turn_until_within_limits(Fixture *f, Client clients[static MODEL]) {
        usec_t end = clock_monotonic_usec() + PATIENCE;

        do {
                ASSERT_TRUE(clock_monotonic_usec() < end);
                ASSERT_TRUE(sd_event_run(f->event, 200) >= 0);
                sweep(clients);
        } while (!is_within_limits(clients));
}

static unsigned held_by(const Client clients[static MODEL]) {
        unsigned n = 0;

        for (size_t i = 0; i < MODEL; i++)
                n += clients[i].fd >= 0 && clients[i].exchange;
        return n;
}

static void open_one(Fixture *f, Client *c, unsigned address, const Client clients[static MODEL]) {
        bool may_be_refused = held_by(clients) >= MODEL_MAX;

        *c = (Client){.fd = dial_from(f, address), .address = address};
        if (address == 1 && !may_be_refused)
                ask(f, c->fd, "/now"); /* a peer that asks at once is answered */
}

/* A fresh connection may be closed when it asks: another one was accepted in the same turn. */
static void ask_one(Fixture *f, Client *c, const char *path) {
        usec_t end = clock_monotonic_usec() + PATIENCE;
        char request[64], bytes[1024];
        ssize_t n;

        (void) snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
        (void) send(c->fd, request, strlen(request), MSG_NOSIGNAL);
        f->kept = NULL;
        do {
                ASSERT_TRUE(clock_monotonic_usec() < end);
                ASSERT_TRUE(sd_event_run(f->event, 1000) >= 0);
                n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        } while (n < 0 && errno == EAGAIN && !f->kept);
        c->exchange = f->kept;
        if (!c->exchange && n <= 0)
                forget(c);
}

static void answer_one(Fixture *f, Client *c) {
        _cleanup_buf_ Buf got = BUF_NULL;

        http_respond(TAKE_PTR(c->exchange), 200, "text/plain", STR("at last"));
        hear(f, c->fd, "at last", &got);
        forget(c);
}

static void any_order_stays_within_the_limits(void) {
        uint64_t seed = 20261129;
        Client clients[MODEL];
        Fixture f;

        printf("seed %llu\n", (unsigned long long) seed);
        for (size_t i = 0; i < MODEL; i++)
                clients[i] = (Client){.fd = -1};
        fixture_begin_with(
                &f, (HttpServerOptions){.max_connections = MODEL_MAX, .max_of_address = MODEL_OF_ADDRESS});
        for (unsigned step = 0, steps = few_or_all(600, 20000); step < steps; step++) {
                Client *c = &clients[draw(&seed, MODEL)];
                unsigned what = draw(&seed, 8);

                if (c->fd < 0)
                        open_one(&f, c, 1 + draw(&seed, ADDRESSES), clients);
                else if (c->exchange)
                        answer_one(&f, c);
                else if (what < 2)
                        forget(c);
                else if (what < 4)
                        ask_one(&f, c, "/later");
                else
                        ask_one(&f, c, "/now");
                turn_until_within_limits(&f, clients);
        }
        fixture_end(&f);
        for (size_t i = 0; i < MODEL; i++)
                if (clients[i].fd >= 0)
                        (void) close(clients[i].fd);
}

int main(void) {
        return TEST_MAIN(TEST(the_oldest_without_a_request_goes), TEST(half_of_the_places_are_for_new_ones),
                         TEST(an_address_has_a_limit_of_its_own), TEST(those_that_are_answered_stay),
                         TEST(one_that_does_not_read_goes), TEST(a_handshake_has_a_deadline),
                         TEST(a_server_that_ends_closes_idle_connections),
                         TEST(any_order_stays_within_the_limits));
}
