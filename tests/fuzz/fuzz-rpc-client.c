/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes of a server into the client: each of two calls is told its end once, with a sentence unless
 * it succeeded. */

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "net/grpc/rpc_client.h"
#include "net/grpc/rpc_socket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 65536, MAX_REPLY = 1000 };

static void on_done(void *userdata, const RpcReply *reply) {
        unsigned *done = userdata;

        assert((reply->status == RPC_OK) == (reply->fault.text[0] == '\0'));
        assert(reply->message.len <= MAX_REPLY);
        (*done)++;
}

static void settle(sd_event *event, int fd) {
        char bytes[65536];
        int r;

        do {
                r = sd_event_run(event, 0);
                assert(r >= 0);
                while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
                        ;
        } while (r > 0);
}

static void feed(sd_event *event, int fd, Str bytes) {
        while (bytes.len > 0) {
                ssize_t n = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno != EAGAIN)
                        return;
                n = n < 0 ? 0 : n;
                bytes = (Str){bytes.data + n, bytes.len - (size_t) n};
                settle(event, fd);
        }
}

static char path[64], directory[] = "/tmp/aliquot-fuzz-XXXXXX";
static RpcSocket server = RPC_SOCKET_NULL;

static void leave_nothing(void) {
        rpc_socket_done(&server);
        (void) rmdir(directory); /* at exit a failure cannot be reported */
}

static void begin(void) {
        assert(mkdtemp(directory));
        (void) snprintf(path, sizeof path, "%s/s", directory);
        assert(rpc_socket_listen(path, &server, NULL) == 0);
        (void) atexit(leave_nothing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const RpcClientOptions options = {.path = path, .max_message = MAX_REPLY};
        static RpcClient *client;
        static sd_event *event;
        unsigned done = 0;
        int fd;

        if (size > MAX_BYTES)
                return 0;
        if (server.fd < 0)
                begin();
        if (!client)
                assert(sd_event_new(&event) >= 0 && rpc_client_new(event, &options, &client) == 0);
        for (unsigned i = 0; i < 2; i++)
                assert(rpc_call(client, "/m", STR("x"), 3600 * USEC_PER_SEC, on_done, &done, NULL) == 0);
        settle(event, server.fd);
        fd = accept4(server.fd, NULL, NULL, SOCK_CLOEXEC);
        assert(fd >= 0);
        feed(event, fd, (Str){(const char *) data, size});
        settle(event, fd);
        (void) close(fd);
        settle(event, server.fd);
        assert(done == 2);
        return 0;
}
