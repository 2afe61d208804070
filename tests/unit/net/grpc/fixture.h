/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Our server and our client in one loop, with a directory for the socket between them. */

#include "base/buf.h"
#include "directory.h"
#include "net/grpc/rpc_client.h"
#include "net/grpc/rpc_server.h"

enum { MIB = 1024 * 1024 };

/* No test needs as long on a slow machine. */
#define PATIENCE (100 * USEC_PER_SEC)

typedef struct Fixture {
        Directory directory;
        char path[PATH_MAX];
        sd_event *event;
        RpcServer *server;
        RpcClient *client;
        RpcCall *kept; /* of /test/later */
        unsigned handled, closed, done;
        int refused; /* the result of rpc_send() when it accepted no more */
        size_t sent;
        RpcReply reply; /* the latest one; its message is in body */
        Buf body;
} Fixture;

void fixture_begin(Fixture *f); /* starts server and client */
void fixture_end(Fixture *f);   /* checks that nothing is left behind */

/* methods: /test/echo, fail, later, flood (until no more is taken), empty, free (the server). path
 * NULL: none. request_timeout 0: PATIENCE. */
void start_server(Fixture *f, const char *path, size_t max_message, usec_t request_timeout);
void start_client(Fixture *f, size_t max_message);

/* One more turn of the loop; the test fails when it is `end`. */
void turn(const Fixture *f, usec_t end);

#define TURN_UNTIL(f, condition)                                                                             \
        for (usec_t end_ = clock_monotonic_usec() + PATIENCE; !(condition);)                                 \
        turn(f, end_)

void on_done(void *userdata, const RpcReply *reply);
/* timeout 0: PATIENCE. */
RpcRequest *call(Fixture *f, const char *method, Str message, usec_t timeout);
void call_and_wait(Fixture *f, const char *method, Str message);
void assert_echo(Fixture *f, Str message);
char *pattern(size_t n); /* bytes to be compared; freed by the caller */
