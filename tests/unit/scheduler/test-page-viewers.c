/* SPDX-License-Identifier: Apache-2.0 */

/* Streams of the page over real sockets, in one loop with their readers. */

#include "scheduler/page_viewers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "fixture.h"

typedef struct Fixture {
        sd_event *event;
        View *view;
        PageState state;
        PageViewers *viewers;
        HttpServer *server;
        bool leading;
} Fixture;

static void handle(void *userdata, HttpExchange *x, const HttpRequest *request) {
        Fixture *f = userdata;

        page_viewers_add(f->viewers, x, strcmp(request->path, "/login") == 0 ? 3 * USEC_PER_SEC : 0);
}

static void fixture_begin(Fixture *f) {
        *f = (Fixture){0};
        ASSERT_OK(sd_event_new(&f->event));
        ASSERT_OK(view_new(&f->view));
        f->state.view = f->view;
        f->state.leading = &f->leading;
        ASSERT_OK(page_viewers_new(f->event, &f->state, &f->viewers));
        ASSERT_OK(http_server_new(f->event, &(HttpServerOptions){.listen = "127.0.0.1:0"}, handle, f,
                                  &f->server, NULL));
}

static void fixture_end(Fixture *f) {
        http_server_free(f->server);
        page_viewers_free(f->viewers);
        page_state_done(&f->state);
        view_free(f->view);
        sd_event_unref(f->event);
}

static int ask(const Fixture *f, const char *path) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(http_server_port(f->server))};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char text[128];

        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_TRUE(fd >= 0);
        ASSERT_OK(connect(fd, (struct sockaddr *) &to, sizeof to));
        (void) snprintf(text, sizeof text, "GET %s HTTP/1.0\r\nHost: x\r\n\r\n", path);
        ASSERT_INT(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t) strlen(text));
        return fd;
}

/* Turns the loop once; false when the peer has closed. */
static bool hear(Fixture *f, int fd, Buf *got) {
        char bytes[4096];
        ssize_t n;

        ASSERT_TRUE(sd_event_run(f->event, 10 * USEC_PER_MSEC) >= 0);
        n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n > 0)
                buf_append(got, bytes, (size_t) n);
        else if (n == 0 || errno != EAGAIN)
                return false;
        buf_append(got, "", 1); /* for strstr() */
        got->len--;
        return true;
}

static void hear_text(Fixture *f, int fd, const char *text, Buf *got) {
        usec_t end = clock_monotonic_usec() + 100 * USEC_PER_SEC;

        while (!strstr(got->len > 0 ? got->data : "", text)) {
                ASSERT_TRUE(clock_monotonic_usec() < end);
                ASSERT_TRUE(hear(f, fd, got));
        }
}

static void a_stream_behind_a_login_ends_with_a_word(void) {
        _cleanup_buf_ Buf got = BUF_NULL, other = BUF_NULL, next = BUF_NULL;
        usec_t end = clock_monotonic_usec() + 100 * USEC_PER_SEC;
        int login, open, again;
        Fixture f;

        fixture_begin(&f);
        open = ask(&f, "/");
        login = ask(&f, "/login");
        hear_text(&f, login, "event: state\n", &got);
        hear_text(&f, open, "event: state\n", &other);
        while (hear(&f, login, &got))
                ASSERT_TRUE(clock_monotonic_usec() < end);
        ASSERT_CONTAINS(got.data, "\n\nevent: again\ndata: {}\n\n");

        again = ask(&f, "/login"); /* its place is free, and the rounds go on */
        hear_text(&f, again, "event: state\n", &next);
        ASSERT_TRUE(hear(&f, open, &other));
        ASSERT_TRUE(!strstr(other.data, "again"));
        (void) close(login);
        (void) close(open);
        (void) close(again);
        fixture_end(&f);
}

static void the_last_stream_may_end_so(void) {
        _cleanup_buf_ Buf got = BUF_NULL, next = BUF_NULL;
        usec_t end = clock_monotonic_usec() + 100 * USEC_PER_SEC;
        int login, again;
        Fixture f;

        fixture_begin(&f);
        login = ask(&f, "/login");
        while (hear(&f, login, &got))
                ASSERT_TRUE(clock_monotonic_usec() < end);
        again = ask(&f, "/");
        hear_text(&f, again, "event: state\n", &next);
        (void) close(login);
        (void) close(again);
        fixture_end(&f);
}

int main(void) {
        return TEST_MAIN(TEST(a_stream_behind_a_login_ends_with_a_word), TEST(the_last_stream_may_end_so));
}
