/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void on_closed(void *userdata) {
        Fixture *f = userdata;

        f->kept = NULL;
        f->stream = NULL;
        f->closed++;
}

static void on_limit(void *userdata, const char *text) {
        Fixture *f = userdata;

        f->told++;
        (void) snprintf(f->text, sizeof f->text, "%s", text);
}

static void handle(void *userdata, HttpExchange *x, const HttpRequest *r) {
        Fixture *f = userdata;

        f->requests++;
        f->body_len = r->body.len;
        if (strcmp(r->path, "/now") == 0)
                http_respond(x, 200, "text/plain", r->body);
        else if (strcmp(r->path, "/query") == 0)
                http_respond(x, 200, "text/plain",
                             str_from(http_query(x, "q") ? http_query(x, "q") : "none"));
        else if (strcmp(r->path, "/cut") == 0)
                http_exchange_cut(x);
        else if (strcmp(r->path, "/stream") == 0)
                f->stream = http_stream_begin(x, 200, "application/json", on_closed, f);
        else if (strcmp(r->path, "/later") == 0) {
                f->kept = x;
                http_exchange_on_close(x, on_closed, f);
        } else {
                http_respond_header(x, "Retry-After", "7");
                http_respond(x, 429, "text/plain", STR("slow down"));
        }
}

void fixture_begin_with(Fixture *f, HttpServerOptions options) {
        Fault fault = FAULT_NULL;

        options.listen = "127.0.0.1:0";
        options.max_body = 100000;
        options.on_limit = on_limit;
        options.name = "test";
        *f = (Fixture){0};
        ASSERT_OK(sd_event_new(&f->event));
        ASSERT_OK(http_server_new(f->event, &options, handle, f, &f->server, &fault));
}

void fixture_begin(Fixture *f) {
        fixture_begin_with(f, (HttpServerOptions){0});
}

void fixture_end(Fixture *f) {
        f->server = http_server_free(f->server);
        f->event = sd_event_unref(f->event);
}

int dial_from(const Fixture *f, unsigned n) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(http_server_port(f->server))};
        struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + n)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_TRUE(fd >= 0);
        ASSERT_OK(bind(fd, (struct sockaddr *) &from, sizeof from));
        ASSERT_OK(connect(fd, (struct sockaddr *) &to, sizeof to));
        return fd;
}

int dial(const Fixture *f) {
        return dial_from(f, 1);
}

void say(int fd, const char *text) {
        ASSERT_INT(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t) strlen(text));
}

void hear(Fixture *f, int fd, const char *text, Buf *got) {
        usec_t end = clock_monotonic_usec() + PATIENCE;

        for (;;) {
                char bytes[65536];
                ssize_t n;

                if (text && got->len > 0 && strstr(got->data, text))
                        return;
                n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
                if (n > 0)
                        buf_append(got, bytes, (size_t) n);
                else if (n == 0 || errno != EAGAIN) {
                        if (text)
                                TEST_FAIL_("closed before \"%s\" came: \"%s\"", text,
                                           got->len ? got->data : "");
                        return;
                }
                if (clock_monotonic_usec() > end)
                        TEST_FAIL_("nothing came, only: \"%s\"", got->len ? got->data : "");
                ASSERT_TRUE(sd_event_run(f->event, 1000) >= 0);
        }
}

void turn_until(Fixture *f, const void *condition, size_t size) {
        static const char zero[16];
        usec_t end = clock_monotonic_usec() + PATIENCE;

        while (memcmp(condition, zero, size) == 0) {
                ASSERT_TRUE(clock_monotonic_usec() < end);
                ASSERT_TRUE(sd_event_run(f->event, 1000) >= 0);
        }
}

void ask(Fixture *f, int fd, const char *path) {
        _cleanup_buf_ Buf got = BUF_NULL;
        char request[128];

        (void) snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
        say(fd, request);
        hear(f, fd, "\r\n\r\n", &got);
}
