/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A server and a client in one loop. The server is our own, with a handler per test; peer.h has a
 * plain socket. */

#include <signal.h>

#include "base/buf.h"
#include "base/clock.h"
#include "kube/client.h"
#include "net/http/http_server.h"
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

/* handler NULL: no server, only the loop. */
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

/* Turns the loop until `condition` holds; the test fails after 100 s. */
#define turn_until(f, condition)                                                                             \
        do {                                                                                                 \
                usec_t end_ = clock_monotonic_usec() + 100 * USEC_PER_SEC;                                   \
                while (!(condition)) {                                                                       \
                        if (clock_monotonic_usec() > end_)                                                   \
                                TEST_FAIL_("100 s have passed without: %s", #condition);                     \
                        turn(f);                                                                             \
                }                                                                                            \
        } while (0)

/* What `done` received, copied. */
typedef struct Told {
        unsigned n;
        KubeOutcome outcome;
        unsigned status;
        usec_t retry_after;
        int64_t date;
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
        told->date = reply->date;
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
