/* SPDX-License-Identifier: Apache-2.0 */

/* Server and client in one loop. Calls by grpcio are in tests/blackbox/rpc.py. */

#include <errno.h>
#include <sys/socket.h>

#include "fixture.h"
#include "net/grpc/rpc_socket.h"

/* ---- answers ---- */

static void a_unary_call_is_answered(void) {
        Fixture f;

        fixture_begin(&f);
        assert_echo(&f, STR("hello"));
        ASSERT_TEXT(f.reply.fault.text, "");
        assert_echo(&f, STR(""));
        assert_echo(&f, STR("a\0b"));
        fixture_end(&f);
}

static void fails_with_words(void) {
        Fixture f;

        fixture_begin(&f);
        call_and_wait(&f, "/test/fail", STR("x"));
        ASSERT_INT(f.reply.status, RPC_FAILED_PRECONDITION);
        ASSERT_CONTAINS(f.reply.fault.text, "/test/fail on /tmp/");
        ASSERT_CONTAINS(f.reply.fault.text, ": FAILED_PRECONDITION: card \xc3\xbc: 100 % full");
        ASSERT_INT(f.reply.message.len, 0);
        call_and_wait(&f, "/test/nothing", STR("x"));
        ASSERT_INT(f.reply.status, RPC_UNIMPLEMENTED);
        call_and_wait(&f, "/test/empty", STR("x"));
        ASSERT_INT(f.reply.status, RPC_INTERNAL); /* OK, but no message */
        assert_echo(&f, STR("still here"));
        fixture_end(&f);
}

static void answers_later_and_side_by_side(void) {
        Fixture f;

        fixture_begin(&f);
        call(&f, "/test/later", STR("x"), 0);
        TURN_UNTIL(&f, f.kept);
        for (unsigned i = 0; i < 200; i++) /* more than the server takes at once */
                call(&f, "/test/echo", STR("x"), 0);
        TURN_UNTIL(&f, f.done == 200);
        ASSERT_INT(f.handled, 201);
        rpc_reply(f.kept, STR("late"));
        TURN_UNTIL(&f, f.done == 201);
        ASSERT_STR(buf_str(&f.body), STR("late"));
        ASSERT_INT(f.closed, 0); /* on_close is called only for calls without an answer */
        fixture_end(&f);
}

static void carries_megabytes(void) {
        _cleanup_free_ char *bytes = pattern(4 * MIB);
        Fixture f;

        fixture_begin(&f);
        assert_echo(&f, (Str){bytes, 4 * MIB});
        call_and_wait(&f, "/test/echo", (Str){bytes, 4 * MIB - 1});
        ASSERT_INT(f.reply.status, RPC_OK);
        fixture_end(&f);
}

/* ---- limits ---- */

static void refuses_long_requests(void) {
        _cleanup_free_ char *bytes = pattern(3 * MIB);
        Fixture f;

        fixture_begin(&f);
        f.server = rpc_server_free(f.server);
        start_server(&f, f.path, 1000, 0);
        assert_echo(&f, (Str){bytes, 1000});
        call_and_wait(&f, "/test/echo", (Str){bytes, 1001});
        ASSERT_INT(f.reply.status, RPC_RESOURCE_EXHAUSTED);
        ASSERT_CONTAINS(f.reply.fault.text, "longer than allowed");
        call_and_wait(&f, "/test/echo", (Str){bytes, 3 * MIB});
        ASSERT_INT(f.reply.status, RPC_RESOURCE_EXHAUSTED);
        ASSERT_INT(f.handled, 1);
        assert_echo(&f, (Str){bytes, 1000}); /* on the same connection */
        fixture_end(&f);
}

static void refuses_long_replies(void) {
        Fixture f;

        fixture_begin(&f);
        f.client = rpc_client_free(f.client);
        start_client(&f, 5);
        assert_echo(&f, STR("12345"));
        call_and_wait(&f, "/test/echo", STR("123456"));
        ASSERT_INT(f.reply.status, RPC_RESOURCE_EXHAUSTED);
        assert_echo(&f, STR("12345"));
        fixture_end(&f);
}

static void refuses_long_calls(void) {
        _cleanup_free_ char *bytes = calloc(1, 16 * MIB + 1);
        RpcRequest *untouched = NULL;
        Fixture f;

        ASSERT_TRUE(bytes != NULL);
        fixture_begin(&f);
        ASSERT_INT(rpc_call(f.client, "/test/echo", (Str){bytes, 16 * MIB + 1}, 0, on_done, &f, &untouched),
                   -ENOBUFS);
        ASSERT_TRUE(untouched == NULL);
        fixture_end(&f);
}

/* A peer that does not read: nothing is sent while the handler runs. */
static void bounds_what_waits(void) {
        Fixture f;

        fixture_begin(&f);
        call(&f, "/test/flood", STR("x"), 0);
        TURN_UNTIL(&f, f.done == 1);
        ASSERT_INT(f.refused, -ENOBUFS);
        ASSERT_INT(f.sent, 16 * MIB);
        ASSERT_INT(f.reply.status, RPC_INTERNAL); /* many answers to a call that has one */
        TURN_UNTIL(&f, f.closed == 1);
        fixture_end(&f);
}

/* ---- ends ---- */

static void cancels(void) {
        Fixture f;
        RpcRequest *request;

        fixture_begin(&f);
        request = call(&f, "/test/later", STR("x"), 0);
        TURN_UNTIL(&f, f.kept);
        request = rpc_request_free(request);
        TURN_UNTIL(&f, f.closed == 1);
        ASSERT_TRUE(f.kept == NULL);
        request = call(&f, "/test/later", STR("x"), 0); /* before it was sent at all */
        request = rpc_request_free(request);
        ASSERT_TRUE(request == NULL);
        assert_echo(&f, STR("x"));
        ASSERT_INT(f.done, 1);
        ASSERT_INT(f.closed, 1);
        fixture_end(&f);
}

/* On a loaded machine the deadline may pass before the request is sent: then with a longer one. */
static void keeps_deadlines(void) {
        bool was_handled = false;
        unsigned tries = 0;

        for (usec_t timeout = 50 * USEC_PER_MSEC; !was_handled; timeout *= 2) {
                Fixture f;

                ASSERT_TRUE(tries++ < 10);
                fixture_begin(&f);
                call(&f, "/test/later", STR("x"), timeout);
                TURN_UNTIL(&f, f.done == 1 && f.closed == f.handled);
                ASSERT_INT(f.reply.status, RPC_DEADLINE_EXCEEDED);
                was_handled = f.handled == 1;
                fixture_end(&f);
        }
}

static void reports_a_server_that_is_not_there(void) {
        Fixture f;

        fixture_begin(&f);
        f.server = rpc_server_free(f.server);
        call_and_wait(&f, "/test/echo", STR("x"));
        ASSERT_INT(f.reply.status, RPC_UNAVAILABLE);
        ASSERT_CONTAINS(f.reply.fault.text, f.path);
        ASSERT_CONTAINS(f.reply.fault.text, "No such file");
        start_server(&f, f.path, 0, 0);
        assert_echo(&f, STR("x"));
        f.server = rpc_server_free(f.server);
        start_server(&f, f.path, 0, 0); /* as when a kubelet restarts */
        TURN_UNTIL(&f, sd_event_run(f.event, 0) == 0);
        assert_echo(&f, STR("x"));
        fixture_end(&f);
}

static void reports_a_server_that_dies(void) {
        Fixture f;

        fixture_begin(&f);
        call(&f, "/test/later", STR("x"), 0);
        TURN_UNTIL(&f, f.kept);
        f.server = rpc_server_free(f.server);
        ASSERT_INT(f.closed, 1);
        TURN_UNTIL(&f, f.done == 1);
        ASSERT_INT(f.reply.status, RPC_UNAVAILABLE);
        ASSERT_CONTAINS(f.reply.fault.text, "connection broke");
        fixture_end(&f);
}

static void tells_of_a_client_that_dies(void) {
        Fixture f;

        fixture_begin(&f);
        call(&f, "/test/later", STR("x"), 0);
        TURN_UNTIL(&f, f.kept);
        f.client = rpc_client_free(f.client);
        TURN_UNTIL(&f, f.closed == 1);
        ASSERT_INT(f.done, 0);
        start_client(&f, 0);
        assert_echo(&f, STR("x"));
        fixture_end(&f);
}

/* The answer comes after the peer has gone but before the server knows it, in each state of the
 * loop. */
static void survives_an_answer_to_a_closed_connection(void) {
        unsigned survived = 0;
        Fixture f;

        fixture_begin(&f);
        for (unsigned turns = 0; f.closed == 0; turns++, survived++) {
                call(&f, "/test/later", STR("x"), 0);
                TURN_UNTIL(&f, f.kept);
                f.client = rpc_client_free(f.client);
                start_client(&f, 0);
                for (unsigned i = 0; i < turns; i++)
                        ASSERT_TRUE(sd_event_run(f.event, 0) >= 0);
                if (!f.kept)
                        break;
                ASSERT_OK(rpc_send(f.kept, STR("x")));
                rpc_reply(f.kept, STR("x"));
                f.kept = NULL;
        }
        ASSERT_TRUE(survived >= 2); /* before the server has seen it, and after */
        ASSERT_INT(f.closed, 1);
        assert_echo(&f, STR("x"));
        fixture_end(&f);
}

static void frees_the_server_in_a_handler(void) {
        Fixture f;

        fixture_begin(&f);
        call(&f, "/test/later", STR("x"), 0);
        call(&f, "/test/free", STR("x"), 0);
        call(&f, "/test/echo", STR("x"), 0);
        TURN_UNTIL(&f, f.done == 3);
        ASSERT_TRUE(f.server == NULL);
        ASSERT_INT(f.closed, 2);
        ASSERT_INT(f.reply.status, RPC_UNAVAILABLE);
        fixture_end(&f);
}

static void on_done_free_client(void *userdata, const RpcReply *reply) {
        Fixture *f = userdata;

        f->done++;
        f->client = rpc_client_free(f->client);
}

static void frees_the_client_in_done(void) {
        Fixture f;

        fixture_begin(&f);
        for (unsigned i = 0; i < 3; i++)
                ASSERT_OK(rpc_call(f.client, "/test/echo", STR("x"), 0, on_done_free_client, &f, NULL));
        TURN_UNTIL(&f, f.done == 1);
        TURN_UNTIL(&f, sd_event_run(f.event, 0) == 0);
        ASSERT_INT(f.done, 1);
        fixture_end(&f);
}

typedef struct Chain {
        Fixture *f;
        RpcRequest *own, *other;
        unsigned left;
} Chain;

static void on_done_chain(void *userdata, const RpcReply *reply) {
        Chain *c = userdata;

        ASSERT_INT(reply->status, RPC_OK);
        c->own = rpc_request_free(c->own);
        c->other = rpc_request_free(c->other);
        if (c->left == 0)
                return;
        c->left--;
        ASSERT_OK(rpc_call(c->f->client, "/test/echo", STR("x"), 0, on_done_chain, c, &c->own));
        ASSERT_OK(rpc_call(c->f->client, "/test/later", STR("x"), 0, on_done_chain, c, &c->other));
}

static void calls_and_frees_in_done(void) {
        Fixture f;
        Chain c;

        fixture_begin(&f);
        c = (Chain){.f = &f, .left = 20};
        ASSERT_OK(rpc_call(f.client, "/test/echo", STR("x"), 0, on_done_chain, &c, &c.own));
        TURN_UNTIL(&f, c.left == 0 && !c.own);
        TURN_UNTIL(&f, f.closed == f.handled - 21);
        fixture_end(&f);
}

/* ---- connections ---- */

static int dial(const Fixture *f) {
        int fd = rpc_socket_connect(f->path);

        ASSERT_TRUE(fd >= 0);
        return fd;
}

static bool is_closed(int fd) {
        char bytes[4096];
        ssize_t n;

        while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
                ;
        return n == 0 || errno != EAGAIN;
}

/* Sixteen, the oldest idle one makes room; the one with a call stays. */
static void bounds_connections(void) {
        int fds[16];
        Fixture f;

        fixture_begin(&f);
        call(&f, "/test/later", STR("x"), 0);
        TURN_UNTIL(&f, f.kept);
        for (unsigned i = 0; i < ELEMENTSOF(fds); i++) {
                fds[i] = dial(&f);
                ASSERT_TRUE(sd_event_run(f.event, 1000000) >= 0);
        }
        TURN_UNTIL(&f, is_closed(fds[0]));
        TURN_UNTIL(&f, sd_event_run(f.event, 0) == 0);
        for (unsigned i = 1; i < ELEMENTSOF(fds); i++)
                ASSERT_FALSE(is_closed(fds[i]));
        for (unsigned i = 0; i < ELEMENTSOF(fds); i++)
                (void) close(fds[i]);
        rpc_reply(f.kept, STR("x"));
        TURN_UNTIL(&f, f.done == 1);
        ASSERT_INT(f.reply.status, RPC_OK);
        fixture_end(&f);
}

int main(void) {
        return TEST_MAIN(TEST(a_unary_call_is_answered), TEST(fails_with_words),
                         TEST(answers_later_and_side_by_side), TEST(carries_megabytes),
                         TEST(refuses_long_requests), TEST(refuses_long_replies), TEST(refuses_long_calls),
                         TEST(bounds_what_waits), TEST(cancels), TEST(keeps_deadlines),
                         TEST(reports_a_server_that_is_not_there), TEST(reports_a_server_that_dies),
                         TEST(tells_of_a_client_that_dies), TEST(survives_an_answer_to_a_closed_connection),
                         TEST(frees_the_server_in_a_handler), TEST(frees_the_client_in_done),
                         TEST(calls_and_frees_in_done), TEST(bounds_connections));
}
