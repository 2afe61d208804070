/* SPDX-License-Identifier: Apache-2.0 */

/* Requests, answers and their times. Limits of connections: test-http-connections.c. */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "fixture.h"
#include "kube/tls.h"

static void answers_on_keep_alive(void) {
        _cleanup_buf_ Buf got = BUF_NULL;
        Fixture f;
        int fd;

        fixture_begin(&f);
        fd = dial(&f);
        for (int i = 0; i < 3; i++) {
                buf_clear(&got);
                say(fd, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
                hear(&f, fd, "\r\n\r\nhello", &got);
                ASSERT_CONTAINS(got.data, "HTTP/1.1 200");
        }
        buf_clear(&got);
        say(fd, "GET /query?q=a%20b%2Fc HTTP/1.1\r\nHost: x\r\n\r\n");
        hear(&f, fd, "\r\n\r\na b/c", &got);
        buf_clear(&got);
        say(fd, "GET /other HTTP/1.1\r\nHost: x\r\n\r\n");
        hear(&f, fd, "slow down", &got);
        ASSERT_CONTAINS(got.data, "HTTP/1.1 429");
        ASSERT_CONTAINS(got.data, "Retry-After: 7");
        ASSERT_INT(f.requests, 5);
        (void) close(fd);
        fixture_end(&f);
}

static void ends_connections_with_their_answer(void) {
        _cleanup_buf_ Buf got = BUF_NULL;
        Fixture f;
        int fd;

        fixture_begin(&f);
        fd = dial(&f);
        say(fd, "GET /other HTTP/1.1\r\nHost: x\r\n\r\n");
        hear(&f, fd, "slow down", &got);
        http_server_keep_alive(f.server, false);
        buf_clear(&got);
        say(fd, "GET /other HTTP/1.1\r\nHost: x\r\n\r\n");
        hear(&f, fd, NULL, &got);
        ASSERT_CONTAINS(got.data, "slow down");
        ASSERT_CONTAINS(got.data, "Connection: close");
        (void) close(fd);
        http_server_keep_alive(f.server, true);
        fd = dial(&f);
        for (int i = 0; i < 2; i++) {
                buf_clear(&got);
                say(fd, "GET /other HTTP/1.1\r\nHost: x\r\n\r\n");
                hear(&f, fd, "slow down", &got);
        }
        ASSERT_INT(f.requests, 4);
        (void) close(fd);
        fixture_end(&f);
}

static void takes_a_byte_at_a_time(void) {
        static const char text[] = "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nbyte by one";
        _cleanup_buf_ Buf got = BUF_NULL;
        Fixture f;
        int fd;

        fixture_begin(&f);
        fd = dial(&f);
        for (size_t i = 0; text[i]; i++) {
                say(fd, (char[]){text[i], '\0'});
                (void) sd_event_run(f.event, 0);
        }
        hear(&f, fd, "byte by one", &got);
        (void) close(fd);
        fixture_end(&f);
}

static void refuses_a_body_over_the_limit(void) {
        _cleanup_buf_ Buf got = BUF_NULL, body = BUF_NULL;
        Fixture f;
        int fd;

        fixture_begin(&f);
        fd = dial(&f);
        say(fd, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n");
        hear(&f, fd, "HTTP/1.1 413", &got);
        (void) close(fd);

        /* The length may be unknown until the end: chunks. */
        buf_clear(&got);
        fd = dial(&f);
        say(fd, "POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 1000; i++)
                buf_append(&body, "0123456789", 10);
        for (int i = 0; i < 11; i++) {
                say(fd, "2710\r\n");
                say(fd, body.data);
                say(fd, "\r\n");
                (void) sd_event_run(f.event, 0);
        }
        say(fd, "0\r\n\r\n");
        hear(&f, fd, "HTTP/1.1 413", &got);
        ASSERT_INT(f.requests, 0);
        (void) close(fd);
        fixture_end(&f);
}

/* Until the server's kernel has all of it; then ten turns for the server. */
static void deliver(Fixture *f, int fd) {
        int unread = 1;

        for (int k = 0; k < 10000 && unread > 0; k++) {
                ASSERT_TRUE(sd_event_run(f->event, 1000) >= 0);
                ASSERT_OK(ioctl(fd, SIOCOUTQ, &unread)); /* what its kernel has not acknowledged */
        }
        for (int k = 0; k < 10; k++)
                ASSERT_TRUE(sd_event_run(f->event, 1000) >= 0);
}

static void refuses_bodies_that_are_too_many_together(void) {
        _cleanup_buf_ Buf got = BUF_NULL, body = BUF_NULL;
        int fds[9];
        Fixture f;

        fixture_begin(&f);
        for (int i = 0; i < 90000; i++)
                buf_append_char(&body, 'x');
        for (size_t i = 0; i < ELEMENTSOF(fds);
             /* 9 incomplete bodies of 90,000, where 8 x 100,000 may be held */
             i++) {
                fds[i] = dial(&f);
                say(fds[i], "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 90001\r\n\r\n");
                say(fds[i], body.data);
                deliver(&f, fds[i]);
        }
        say(fds[8], "x");
        hear(&f, fds[8], "HTTP/1.1 503", &got);
        buf_clear(&got);
        say(fds[0], "x");
        hear(&f, fds[0], "HTTP/1.1 200", &got);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                (void) close(fds[i]);
        fixture_end(&f);
}

static void answers_later(void) {
        _cleanup_buf_ Buf got = BUF_NULL;
        Fixture f;
        int fd;

        fixture_begin(&f);
        fd = dial(&f);
        say(fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
        turn_until(&f, &f.kept, sizeof f.kept);
        for (int i = 0; i < 5; i++)
                ASSERT_TRUE(sd_event_run(f.event, 1000) >= 0);
        http_respond(f.kept, 201, "text/plain", STR("at last"));
        hear(&f, fd, "at last", &got);
        ASSERT_CONTAINS(got.data, "HTTP/1.1 201");
        ASSERT_INT(f.closed, 0);
        (void) close(fd);
        fixture_end(&f);
}

static void notices_a_peer_that_leaves(void) {
        Fixture f;
        int fd;

        fixture_begin(&f);
        fd = dial(&f);
        say(fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
        turn_until(&f, &f.kept, sizeof f.kept);
        (void) close(fd);
        turn_until(&f, &f.closed, sizeof f.closed);

        f.closed = 0;
        fd = dial(&f);
        say(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        turn_until(&f, &f.stream, sizeof f.stream);
        (void) close(fd);
        turn_until(&f, &f.closed, sizeof f.closed);
        fixture_end(&f);
}

static void streams(void) {
        _cleanup_buf_ Buf got = BUF_NULL, big = BUF_NULL;
        Fixture f;
        int fd;

        fixture_begin(&f);
        fd = dial(&f);
        say(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        turn_until(&f, &f.stream, sizeof f.stream);
        ASSERT_OK(http_stream_write(f.stream, STR("{\"a\":1}\n")));
        hear(&f, fd, "{\"a\":1}\n", &got);
        ASSERT_OK(http_stream_write(f.stream, STR("{\"b\":2}\n")));
        hear(&f, fd, "{\"b\":2}\n", &got);
        for (int i = 0; i < 300000; i++)
                buf_append(&big, "0123456789", 10);
        ASSERT_OK(http_stream_write(f.stream, buf_str(&big)));
        ASSERT_INT(http_stream_write(f.stream, (Str){big.data, (size_t) 64 * 1024 * 1024}), -ENOBUFS);
        ASSERT_OK(http_stream_write(f.stream, STR("the end")));
        http_stream_end(TAKE_PTR(f.stream));
        hear(&f, fd, "the end\r\n0\r\n\r\n", &got);
        ASSERT_TRUE(got.len > 3000000);
        ASSERT_INT(f.closed, 0);
        (void) close(fd);
        fixture_end(&f);
}

static void a_cut_response_closes_the_connection(void) {
        _cleanup_buf_ Buf got = BUF_NULL;
        Fixture f;
        int fd;

        fixture_begin(&f);
        fd = dial(&f);
        say(fd, "GET /cut HTTP/1.1\r\nHost: x\r\n\r\n");
        hear(&f, fd, NULL, &got);
        ASSERT_INT(got.len, 0);
        (void) close(fd);
        fd = dial(&f);
        say(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        turn_until(&f, &f.stream, sizeof f.stream);
        ASSERT_OK(http_stream_write(f.stream, STR("{\"half")));
        hear(&f, fd, "{\"half", &got);
        http_stream_cut(TAKE_PTR(f.stream));
        hear(&f, fd, NULL, &got);
        ASSERT_TRUE(!strstr(got.data, "0\r\n\r\n"));
        (void) close(fd);
        fixture_end(&f);
}

static void dies_with_open_exchanges(void) {
        Fixture f;
        int a, b;

        fixture_begin(&f);
        a = dial(&f);
        say(a, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
        turn_until(&f, &f.kept, sizeof f.kept);
        b = dial(&f);
        say(b, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        turn_until(&f, &f.stream, sizeof f.stream);
        fixture_end(&f);
        ASSERT_INT(f.closed, 2);
        (void) close(a);
        (void) close(b);
}

/* Answered but not sent yet: the owner no longer has the exchange. */
static void an_answer_ends_the_interest(void) {
        Fixture f;
        int fd;

        fixture_begin(&f);
        fd = dial(&f);
        say(fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
        turn_until(&f, &f.kept, sizeof f.kept);
        http_respond(f.kept, 200, "text/plain", STR("late"));
        fixture_end(&f);
        ASSERT_INT(f.closed, 0);
        (void) close(fd);
}

static void garbage_changes_nothing(void) {
        static const char *const texts[] = {
                "\r\n\r\n\r\n",
                "GET\r\n\r\n",
                "POST /now HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                "POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                "\x16\x03\x01\x02\x00",
        };
        Fixture f;

        fixture_begin(&f);
        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                int fd = dial(&f);
                say(fd, texts[i]);
                for (int k = 0; k < 5; k++)
                        (void) sd_event_run(f.event, 1000);
                (void) close(fd);
        }
        ASSERT_INT(f.requests, 0);
        fixture_end(&f);
}

/* A peer that opens a TLS connection and then sends nothing must cost no more than
 * the connection. */
static void a_silent_handshake_costs_nothing(void) {
        HttpServerOptions options = {.tls_cert = tls_server_cert, .tls_key = tls_server_key};
        unsigned turns = 0;
        Fixture f;
        usec_t end;
        int fd;

        fixture_begin_with(&f, options);
        fd = dial(&f);
        say(fd, "\x16\x03\x01"); /* the beginning of a record */
        for (end = clock_monotonic_usec() + USEC_PER_SEC; clock_monotonic_usec() < end; turns++)
                ASSERT_TRUE(sd_event_run(f.event, USEC_PER_SEC / 4) >= 0);
        ASSERT_TRUE(turns < 500); /* a busy loop makes a hundred times as many */
        (void) close(fd);
        fixture_end(&f);
}

/* Sends a byte now and then, sooner than the server calls a connection idle, until the server
 * closes. */
static void trickle(Fixture *f, int fd) {
        for (int i = 0; i < 600; i++) {
                char byte = 'a';
                ssize_t n;

                (void) send(fd, "a", 1, MSG_NOSIGNAL);
                ASSERT_TRUE(sd_event_run(f->event, 50 * USEC_PER_MSEC) >= 0);
                n = recv(fd, &byte, 1, MSG_DONTWAIT);
                if (n == 0 || (n < 0 && errno != EAGAIN))
                        return;
                ASSERT_INT(n, -1);
                while (sd_event_run(f->event, 0) > 0)
                        ;
                (void) usleep(40000);
        }
        TEST_FAIL_("open after %d bytes", 600);
}

#define SHORT_TIMES ((HttpServerOptions){.first_sec = 1})
/* Where a request is to be heard first: a machine may stand still for a second or two. */
#define LONGER_TIMES ((HttpServerOptions){.first_sec = 6, .idle_sec = 4, .request_sec = 4})

static void a_request_that_never_ends_is_closed(void) {
        static const char *const begun[] = {"", "GET /now HTTP/1.1\r\nHost: x\r\nX: ",
                                            "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n"};
        Fixture f;

        for (size_t i = 0; i < ELEMENTSOF(begun); i++) {
                int fd;

                fixture_begin_with(&f, SHORT_TIMES);
                fd = dial(&f);
                say(fd, begun[i]);
                trickle(&f, fd);
                ASSERT_INT(f.requests, 0);
                (void) close(fd);
                fixture_end(&f);
        }
}

/* Its head has `idle_sec`, its body `request_sec`. */
static void the_next_request_has_a_deadline_too(void) {
        static const struct {
                HttpServerOptions options;
                const char *begun;
        } cases[] = {
                {{.idle_sec = 4}, ""},
                {{.request_sec = 4}, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_buf_ Buf got = BUF_NULL;
                Fixture f;
                int fd;

                fixture_begin_with(&f, cases[i].options);
                fd = dial(&f);
                say(fd, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
                hear(&f, fd, "\r\n\r\nhello", &got);
                say(fd, cases[i].begun);
                trickle(&f, fd);
                ASSERT_INT(f.requests, 1);
                (void) close(fd);
                fixture_end(&f);
        }
}

/* The deadline is the request's. Connections that came later are closed by it in the meantime. */
static void an_answer_may_take_longer(void) {
        _cleanup_buf_ Buf got = BUF_NULL;
        int held, streamed, slow;
        Fixture f;

        fixture_begin_with(&f, LONGER_TIMES);
        held = dial(&f);
        say(held, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
        turn_until(&f, &f.kept, sizeof f.kept);
        streamed = dial(&f);
        say(streamed, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        turn_until(&f, &f.stream, sizeof f.stream);
        slow = dial(&f);
        trickle(&f, slow);
        ASSERT_INT(f.closed, 0);
        http_respond(f.kept, 200, "text/plain", STR("at last"));
        hear(&f, held, "at last", &got);
        buf_clear(&got);
        ASSERT_OK(http_stream_write(f.stream, STR("still here")));
        hear(&f, streamed, "still here", &got);
        http_stream_end(TAKE_PTR(f.stream));
        (void) close(held);
        (void) close(streamed);
        (void) close(slow);
        fixture_end(&f);
}

static void refuses_bad_addresses(void) {
        static const char *const bad[] = {
                "", "8080", "127.0.0.1", "::1:80", "127.0.0.1:65536", "host.name:80", "1.2.3.4:x"};
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        HttpServer *server = NULL;

        ASSERT_OK(sd_event_new(&event));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                Fault fault = FAULT_NULL;
                ASSERT_INT(http_server_new(event, &(HttpServerOptions){.listen = bad[i]}, NULL, NULL, &server,
                                           &fault),
                           -EINVAL);
                ASSERT_CONTAINS(fault.text, bad[i]);
        }
}

int main(void) {
        return TEST_MAIN(TEST(answers_on_keep_alive), TEST(ends_connections_with_their_answer),
                         TEST(takes_a_byte_at_a_time), TEST(refuses_a_body_over_the_limit),
                         TEST(refuses_bodies_that_are_too_many_together), TEST(answers_later),
                         TEST(notices_a_peer_that_leaves), TEST(streams),
                         TEST(a_cut_response_closes_the_connection), TEST(dies_with_open_exchanges),
                         TEST(an_answer_ends_the_interest), TEST(garbage_changes_nothing),
                         TEST(a_silent_handshake_costs_nothing), TEST(a_request_that_never_ends_is_closed),
                         TEST(the_next_request_has_a_deadline_too), TEST(an_answer_may_take_longer),
                         TEST(refuses_bad_addresses));
}
