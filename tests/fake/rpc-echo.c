/* SPDX-License-Identifier: Apache-2.0 */

/* Our gRPC server and client as a program, for tests against other implementations:
 *
 *     rpc-echo serve PATH
 *             serves until stdin closes, then prints "handled=N closed=N rss=KIB"
 *     rpc-echo call PATH METHOD TIMEOUT_MS COUNT
 *             makes COUNT calls one after the other with stdin as their message, and prints
 *             "STATUS BYTES SUM" and the fault of the last one */

#include <inttypes.h>
#include <sys/epoll.h>

#include "base/buf.h"
#include "base/file.h"
#include "net/grpc/rpc_client.h"
#include "net/grpc/rpc_server.h"

enum { MAX_STDIN = 16 * 1024 * 1024, STREAM_LENGTH = 5, BIG = 4194304 };

/* ---- serve ---- */

typedef struct Serving {
        sd_event *event;
        unsigned handled, closed;
} Serving;

static void on_close(void *userdata) {
        Serving *s = userdata;

        s->closed++;
}

static void handle_echo(void *userdata, RpcCall *call, Str message) {
        Serving *s = userdata;

        s->handled++;
        rpc_reply(call, message);
}

/* The message is the text. */
static void handle_fail(void *userdata, RpcCall *call, Str message) {
        _cleanup_free_ char *text = str_dup(message);

        rpc_fail(call, RPC_FAILED_PRECONDITION, text ? text : "out of memory");
}

static void handle_never(void *userdata, RpcCall *call, Str message) {
        Serving *s = userdata;

        s->handled++;
        rpc_call_on_close(call, on_close, userdata);
}

static void handle_stream(void *userdata, RpcCall *call, Str message) {
        for (unsigned i = 0; i < STREAM_LENGTH; i++)
                if (rpc_send(call, message) < 0) {
                        rpc_fail(call, RPC_RESOURCE_EXHAUSTED, "too much");
                        return;
                }
        rpc_end(call);
}

/* Like ListAndWatch: one long answer, and the stream stays open. */
static void handle_watch(void *userdata, RpcCall *call, Str message) {
        _cleanup_free_ char *bytes = calloc(1, BIG);

        rpc_call_on_close(call, on_close, userdata);
        if (bytes)
                (void) rpc_send(call, (Str){bytes, BIG}); /* the test notices a missing message */
}

static void handle_stats(void *userdata, RpcCall *call, Str message) {
        const Serving *s = userdata;
        char text[64];
        int n = snprintf(text, sizeof text, "%u %u", s->handled, s->closed);

        rpc_reply(call, (Str){text, (size_t) n});
}

static int on_stdin(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        const Serving *s = userdata;

        return sd_event_exit(s->event, 0); /* stdin is never written, so it was closed */
}

static unsigned long resident_kib(void) {
        _cleanup_buf_ Buf status = BUF_NULL;
        const char *line;

        if (file_read("/proc/self/status", MAX_STDIN, &status) < 0 || !(line = strstr(status.data, "VmRSS:")))
                return 0;
        return strtoul(line + strlen("VmRSS:"), NULL, 10);
}

static int serve(sd_event *event, const char *path) {
        static const RpcMethod methods[] = {
                {"/test.Echo/Echo", handle_echo},   {"/test.Echo/Fail", handle_fail},
                {"/test.Echo/Never", handle_never}, {"/test.Echo/Stream", handle_stream},
                {"/test.Echo/Watch", handle_watch}, {"/test.Echo/Stats", handle_stats},
        };
        const RpcServerOptions options = {.path = path, .methods = methods, .n_methods = ELEMENTSOF(methods)};
        _cleanup_(rpc_server_freep) RpcServer *server = NULL;
        Serving s = {.event = event};
        Fault fault = FAULT_NULL;

        if (rpc_server_new(event, &options, &s, &server, &fault) < 0 ||
            sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_stdin, &s) < 0) {
                (void) fprintf(stderr, "%s\n", fault.text);
                return 1;
        }
        printf("ready\n");
        (void) fflush(stdout);
        if (sd_event_loop(event) < 0)
                return 1;
        printf("handled=%u closed=%u rss=%lu\n", s.handled, s.closed, resident_kib());
        return 0;
}

/* ---- call ---- */

typedef struct Calling {
        sd_event *event;
        RpcClient *client;
        const char *method;
        Str message;
        usec_t timeout;
        unsigned long left;
} Calling;

static int call_next(Calling *c);

static void on_done(void *userdata, const RpcReply *reply) {
        Calling *c = userdata;

        if (reply->status == RPC_OK && --c->left > 0) {
                if (call_next(c) < 0)
                        (void) sd_event_exit(c->event, 1);
                return;
        }
        printf("%s %zu %016" PRIx64 "\n%s\n", rpc_status_to_string(reply->status), reply->message.len,
               str_hash64(reply->message, 0), reply->fault.text);
        (void) sd_event_exit(c->event, 0);
}

static int call_next(Calling *c) {
        return rpc_call(c->client, c->method, c->message, c->timeout, on_done, c, NULL);
}

static int call(sd_event *event, char **args) {
        const RpcClientOptions options = {.path = args[0]};
        _cleanup_(rpc_client_freep) RpcClient *client = NULL;
        _cleanup_buf_ Buf message = BUF_NULL;
        Calling c = {.event = event, .method = args[1]};
        uint64_t timeout, count;

        if (!str_to_u64(str_from(args[2]), &timeout) || !str_to_u64(str_from(args[3]), &count) ||
            file_read("-", MAX_STDIN, &message) < 0 || rpc_client_new(event, &options, &client) < 0)
                return 1;
        c.client = client;
        c.message = buf_str(&message);
        c.timeout = timeout * USEC_PER_MSEC;
        c.left = count;
        if (call_next(&c) < 0)
                return 1;
        return sd_event_loop(event) < 0;
}

int main(int argc, char **argv) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;

        if (sd_event_new(&event) < 0)
                return 1;
        if (argc == 3 && strcmp(argv[1], "serve") == 0)
                return serve(event, argv[2]);
        if (argc == 6 && strcmp(argv[1], "call") == 0)
                return call(event, argv + 2);
        (void) fprintf(stderr, "usage: rpc-echo serve PATH | call PATH METHOD TIMEOUT_MS COUNT\n");
        return 2;
}
