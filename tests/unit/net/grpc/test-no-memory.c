/* SPDX-License-Identifier: Apache-2.0 */

/* Every allocation of this room fails once, one at a time, through two whole calls: each call ends,
 * nothing crashes and nothing leaks (the leak sanitizer checks that). The linker puts these
 * functions in malloc's place; nghttp2 and systemd have their own. */

#include <errno.h>

#include "failing.h"
#include "fixture.h"

static void note(void *userdata, const RpcReply *reply) {
        unsigned *done = userdata;

        (*done)++;
}

static void handle_echo(void *userdata, RpcCall *call, Str message) {
        rpc_reply(call, message);
}

static void handle_fail(void *userdata, RpcCall *call, Str message) {
        rpc_fail(call, RPC_ABORTED, "a text");
}

static const RpcMethod methods[] = {{"/echo", handle_echo}, {"/fail", handle_fail}};

/* 0: no allocation failed. */
static int attempt(sd_event *event, const char *path) {
        const RpcServerOptions server_options = {
                .path = path, .methods = methods, .n_methods = ELEMENTSOF(methods)};
        const RpcClientOptions client_options = {.path = path};
        _cleanup_(rpc_server_freep) RpcServer *server = NULL;
        _cleanup_(rpc_client_freep) RpcClient *client = NULL;
        usec_t end = clock_monotonic_usec() + 100 * USEC_PER_SEC;
        unsigned asked = 0, done = 0;

        if (rpc_server_new(event, &server_options, NULL, &server, NULL) < 0) {
                ASSERT_TRUE(server == NULL);
                return -ENOMEM;
        }
        if (rpc_client_new(event, &client_options, &client) < 0) {
                ASSERT_TRUE(client == NULL);
                return -ENOMEM;
        }
        for (size_t i = 0; i < ELEMENTSOF(methods); i++)
                if (rpc_call(client, methods[i].path, STR("hello"), 0, note, &done, NULL) == 0)
                        asked++;
        while (done < asked) {
                ASSERT_TRUE(clock_monotonic_usec() < end);
                ASSERT_TRUE(sd_event_run(event, 100000) >= 0);
        }
        return 0;
}

static void every_call_ends(void) {
        char path[PATH_MAX];
        sd_event *event;
        unsigned n = 0;
        Directory d;

        directory_begin(&d);
        directory_path(&d, path, "s");
        ASSERT_OK(sd_event_new(&event));
        do {
                countdown = ++n;
                (void) attempt(event, path); /* only the end matters, not how it ended */
        } while (countdown == 0);
        countdown = 0;
        ASSERT_TRUE(n > 10); /* many allocations did happen */
        ASSERT_OK(attempt(event, path));
        sd_event_unref(event);
        directory_end(&d);
}

int main(void) {
        return TEST_MAIN(TEST(every_call_ends));
}
