/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <errno.h>

static void on_close(void *userdata) {
        Fixture *f = userdata;

        f->kept = NULL;
        f->closed++;
}

static void handle_echo(void *userdata, RpcCall *call, Str message) {
        Fixture *f = userdata;

        f->handled++;
        rpc_reply(call, message);
}

static void handle_fail(void *userdata, RpcCall *call, Str message) {
        rpc_fail(call, RPC_FAILED_PRECONDITION, "card \xc3\xbc: 100 %\nfull");
}

static void handle_later(void *userdata, RpcCall *call, Str message) {
        Fixture *f = userdata;

        f->handled++;
        f->kept = call;
        rpc_call_on_close(call, on_close, f);
}

/* Sends until no more is accepted; the call stays open. */
static void handle_flood(void *userdata, RpcCall *call, Str message) {
        Fixture *f = userdata;
        _cleanup_free_ char *chunk = calloc(1, MIB);

        ASSERT_TRUE(chunk != NULL);
        rpc_call_on_close(call, on_close, f);
        while ((f->refused = rpc_send(call, (Str){chunk, MIB - 5})) == 0)
                f->sent += MIB;
}

static void handle_empty(void *userdata, RpcCall *call, Str message) {
        rpc_end(call);
}

static void handle_free_server(void *userdata, RpcCall *call, Str message) {
        Fixture *f = userdata;

        rpc_call_on_close(call, on_close, f);
        f->server = rpc_server_free(f->server);
}

static const RpcMethod methods[] = {{"/test/echo", handle_echo},   {"/test/fail", handle_fail},
                                    {"/test/later", handle_later}, {"/test/flood", handle_flood},
                                    {"/test/empty", handle_empty}, {"/test/free", handle_free_server}};

void start_server(Fixture *f, const char *path, size_t max_message, usec_t request_timeout) {
        const RpcServerOptions options = {.path = path,
                                          .methods = methods,
                                          .n_methods = ELEMENTSOF(methods),
                                          .max_message = max_message,
                                          .request_timeout =
                                                  request_timeout > 0 ? request_timeout : PATIENCE};
        Fault fault = FAULT_NULL;

        if (rpc_server_new(f->event, &options, f, &f->server, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
}

void start_client(Fixture *f, size_t max_message) {
        const RpcClientOptions options = {.path = f->path, .max_message = max_message};

        ASSERT_OK(rpc_client_new(f->event, &options, &f->client));
}

void fixture_begin(Fixture *f) {
        *f = (Fixture){0};
        directory_begin(&f->directory);
        directory_path(&f->directory, f->path, "s");
        ASSERT_OK(sd_event_new(&f->event));
        start_server(f, f->path, 0, 0);
        start_client(f, 0);
}

void fixture_end(Fixture *f) {
        f->client = rpc_client_free(f->client);
        f->server = rpc_server_free(f->server);
        f->event = sd_event_unref(f->event);
        buf_done(&f->body);
        directory_end(&f->directory);
}

void turn(const Fixture *f, usec_t end) {
        ASSERT_TRUE(clock_monotonic_usec() < end);
        ASSERT_TRUE(sd_event_run(f->event, 100000) >= 0);
}

void on_done(void *userdata, const RpcReply *reply) {
        Fixture *f = userdata;

        f->done++;
        f->reply = *reply;
        buf_clear(&f->body);
        buf_append_str(&f->body, reply->message);
}

RpcRequest *call(Fixture *f, const char *method, Str message, usec_t timeout) {
        RpcRequest *request = NULL;
        unsigned before = f->done;

        ASSERT_OK(
                rpc_call(f->client, method, message, timeout > 0 ? timeout : PATIENCE, on_done, f, &request));
        ASSERT_INT(f->done, before); /* never before it returns */
        return request;
}

void call_and_wait(Fixture *f, const char *method, Str message) {
        unsigned before = f->done;

        call(f, method, message, 0);
        TURN_UNTIL(f, f->done > before);
}

void assert_echo(Fixture *f, Str message) {
        call_and_wait(f, "/test/echo", message);
        if (f->reply.status != RPC_OK)
                TEST_FAIL_("%s", f->reply.fault.text);
        ASSERT_TRUE(str_eq(buf_str(&f->body), message));
}

char *pattern(size_t n) {
        char *bytes = malloc(n);

        ASSERT_TRUE(bytes != NULL);
        for (size_t i = 0; i < n; i++)
                bytes[i] = (char) (i * 7 + i / 251);
        return bytes;
}
