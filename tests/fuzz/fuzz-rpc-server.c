/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes of a peer into the server: every call that a handler got ends, by its answer or by
 * on_close, and the server goes on. The first byte: 1 puts the preface and SETTINGS in front, 2
 * reads nothing until the end. */

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "net/grpc/rpc_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HELLO = 1, DEAF = 2, MAX_INPUT = 65536, MAX_KEPT = 8 };

static RpcCall *kept[MAX_KEPT];
static unsigned open_calls;

static void on_close(void *userdata) {
        RpcCall **slot = userdata;

        *slot = NULL;
        open_calls--;
}

static void handle_echo(void *userdata, RpcCall *call, Str message) {
        rpc_reply(call, message);
}

static void handle_fail(void *userdata, RpcCall *call, Str message) {
        char text[64];

        (void) snprintf(text, sizeof text, STR_FMT, STR_ARG(message));
        rpc_fail(call, RPC_ABORTED, text);
}

/* Each call answers the one that is eight calls older. */
static void handle_later(void *userdata, RpcCall *call, Str message) {
        static unsigned at;
        RpcCall **slot = &kept[at++ % MAX_KEPT];

        if (*slot) {
                assert(rpc_send(*slot, message) == 0);
                rpc_reply(*slot, message);
                open_calls--;
        }
        *slot = call;
        open_calls++;
        rpc_call_on_close(call, on_close, slot);
}

static const RpcMethod methods[] = {{"/e", handle_echo}, {"/f", handle_fail}, {"/l", handle_later}};

static void drain(int fd) {
        char bytes[65536];

        while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
                ;
}

static void settle(sd_event *event, int fd, bool deaf) {
        int r;

        do {
                r = sd_event_run(event, 0);
                assert(r >= 0);
                if (fd >= 0 && !deaf)
                        drain(fd);
        } while (r > 0);
}

static void feed(sd_event *event, int fd, Str bytes, bool deaf) {
        while (bytes.len > 0) {
                ssize_t n = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno != EAGAIN)
                        return; /* the server has closed the connection */
                n = n < 0 ? 0 : n;
                bytes = (Str){bytes.data + n, bytes.len - (size_t) n};
                settle(event, fd, deaf);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const Str hello = STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0");
        const RpcServerOptions options = {
                .methods = methods, .n_methods = ELEMENTSOF(methods), .max_message = 1000};
        static RpcServer *server;
        static sd_event *event;
        int pair[2];
        bool deaf;

        if (size < 1 || size > MAX_INPUT)
                return 0;
        if (!server)
                assert(sd_event_new(&event) >= 0 &&
                       rpc_server_new(event, &options, NULL, &server, NULL) == 0);
        deaf = data[0] & DEAF;
        assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
        assert(rpc_server_adopt(server, pair[0]) == 0);
        if (data[0] & HELLO)
                feed(event, pair[1], hello, deaf);
        feed(event, pair[1], (Str){(const char *) data + 1, size - 1}, deaf);
        settle(event, pair[1], deaf);
        (void) close(pair[1]);
        settle(event, -1, true);
        assert(open_calls == 0);
        return 0;
}
