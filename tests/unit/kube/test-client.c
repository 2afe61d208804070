/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "net/http/http_stream.h"
#include "peer.h"

/* A server that answers by path. */
typedef struct Server {
        unsigned n_requests;
        char method[8], path[256], content_type[64];
        Buf body;
        HttpExchange *kept;
        HttpStream *stream;
        unsigned n_closed;
} Server;

static void on_closed(void *userdata) {
        Server *s = userdata;

        s->kept = NULL;
        s->stream = NULL;
        s->n_closed++;
}

static void respond_big(HttpExchange *x) {
        _cleanup_buf_ Buf body = BUF_NULL;

        ASSERT_TRUE(buf_reserve(&body, (size_t) KUBE_MAX_BODY + 1));
        memset(body.data, ' ', (size_t) KUBE_MAX_BODY + 1);
        http_respond(x, 200, "application/json", (Str){body.data, (size_t) KUBE_MAX_BODY + 1});
}

static void respond_refusal(HttpExchange *x, unsigned status) {
        _cleanup_buf_ Buf body = BUF_NULL;

        buf_appendf(&body,
                    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"no %u\","
                    "\"reason\":\"%s\",\"code\":%u}",
                    status,
                    status == 409   ? "Conflict"
                    : status == 410 ? "Expired"
                                    : "Other",
                    status);
        if (status == 429)
                http_respond_header(x, "Retry-After", "7");
        http_respond(x, status, "application/json", buf_str(&body));
}

static void handle(void *userdata, HttpExchange *x, const HttpRequest *r) {
        Server *s = userdata;
        uint32_t status;

        s->n_requests++;
        (void) snprintf(s->method, sizeof s->method, "%s", r->method);
        (void) snprintf(s->path, sizeof s->path, "%s", r->path);
        (void) snprintf(s->content_type, sizeof s->content_type, "%s", r->content_type);
        buf_clear(&s->body);
        buf_append_str(&s->body, r->body);
        if (str_has_prefix(str_from(r->path), STR("/status/")) && str_to_u32(str_from(r->path + 8), &status))
                respond_refusal(x, status);
        else if (strcmp(r->path, "/html") == 0)
                http_respond(x, 502, "text/html", STR("<h1>Bad gateway</h1>\nmore\n"));
        else if (strcmp(r->path, "/big") == 0)
                respond_big(x);
        else if (strcmp(r->path, "/cut") == 0)
                http_exchange_cut(x);
        else if (strcmp(r->path, "/stream") == 0)
                s->stream = http_stream_begin(x, 200, "application/json", on_closed, s);
        else if (strcmp(r->path, "/never") == 0) {
                s->kept = x;
                http_exchange_on_close(x, on_closed, s);
        } else
                http_respond(x, 200, "application/json", str_is_empty(r->body) ? STR("{}") : r->body);
}

static void server_done(Server *s) {
        buf_done(&s->body);
}

/* ---- answers ---- */

static void every_method_arrives_as_it_was_meant(void) {
        static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
        Server s = {0};
        Fixture f;
        Told told = {0};

        fixture_begin(&f, handle, &s);
        for (size_t i = 0; i < ELEMENTSOF(methods); i++) {
                const char *body = strcmp(methods[i], "GET") == 0 ? "" : "{\"a\":1}";
                ask(&f, methods[i], "/api/v1/x?q=1", body, &told);
                ASSERT_INT(told.outcome, KUBE_DONE);
                ASSERT_INT(told.status, 200);
                ASSERT_TEXT(told.fault.text, "");
                ASSERT_TEXT(s.method, methods[i]);
                ASSERT_TEXT(s.path, "/api/v1/x");
                ASSERT_STR(buf_str(&s.body), str_from(body));
                ASSERT_TEXT(s.content_type, *body ? "application/json" : "");
        }
        ask(&f, "POST", "/empty", "", &told);
        ASSERT_INT(told.status, 200);
        told_done(&told);
        fixture_end(&f);
        server_done(&s);
}

static void refusals_carry_status_reason_and_words(void) {
        Server s = {0};
        Fixture f;
        Told told = {0};

        fixture_begin(&f, handle, &s);
        ask(&f, "POST", "/status/409?secret=1", "{}", &told);
        ASSERT_INT(told.outcome, KUBE_DONE);
        ASSERT_INT(told.status, 409);
        ASSERT_TEXT(told.reason, "Conflict");
        ASSERT_TEXT(told.fault.text, "POST /status/409: HTTP 409 Conflict: no 409");
        ask(&f, "GET", "/status/410", "", &told);
        ASSERT_TEXT(told.reason, "Expired");
        ask(&f, "GET", "/status/429", "", &told);
        ASSERT_INT(told.retry_after, 7 * USEC_PER_SEC);
        ask(&f, "GET", "/status/500", "", &told);
        ASSERT_INT(told.status, 500);
        ASSERT_INT(told.retry_after, 0);
        ASSERT_TRUE(told.date > 1700000000); /* the server's clock */
        ask(&f, "GET", "/html", "", &told);
        ASSERT_TEXT(told.reason, "");
        ASSERT_TEXT(told.fault.text, "GET /html: HTTP 502: <h1>Bad gateway</h1>");
        told_done(&told);
        fixture_end(&f);
        server_done(&s);
}

static void transient_answers_and_back_off(void) {
        static const struct {
                KubeReply reply;
                bool transient;
        } cases[] = {
                {{.outcome = KUBE_DONE, .status = 200}, false},
                {{.outcome = KUBE_DONE, .status = 409}, false},
                {{.outcome = KUBE_DONE, .status = 410}, false},
                {{.outcome = KUBE_DONE, .status = 429}, true},
                {{.outcome = KUBE_DONE, .status = 500}, true},
                {{.outcome = KUBE_DONE, .status = 503}, true},
                {{.outcome = KUBE_NOT_SENT}, true},
                {{.outcome = KUBE_UNKNOWN}, true},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                ASSERT_INT(kube_reply_is_transient(&cases[i].reply), cases[i].transient);
        for (unsigned attempt = 0; attempt < 70; attempt++) {
                usec_t ceiling = attempt < 5 ? UINT64_C(100) << attempt : 3000, most = 0;
                for (int i = 0; i < 200; i++) {
                        usec_t wait = kube_backoff(attempt, 100, 3000, 0);
                        most = wait > most ? wait : most;
                }
                ASSERT_TRUE(most <= ceiling && most > ceiling / 2); /* by chance in 2^-200 */
        }
        ASSERT_INT(kube_backoff(0, 100, 3000, 2000), 2000);
        ASSERT_INT(kube_backoff(9, 100, 3000, 5000), 3000);
}

static void a_long_answer_is_refused(void) {
        Server s = {0};
        Fixture f;
        Told told = {0};

        fixture_begin(&f, handle, &s);
        ask(&f, "GET", "/big", "", &told);
        ASSERT_INT(told.outcome, KUBE_UNKNOWN);
        ASSERT_CONTAINS(told.fault.text, "longer than 32 MiB");
        ASSERT_INT(told.body.len, 0);
        ask(&f, "GET", "/after", "", &told);
        ASSERT_INT(told.outcome, KUBE_DONE);
        told_done(&told);
        fixture_end(&f);
        server_done(&s);
}

/* ---- streams ---- */

typedef struct Reader {
        unsigned n_begun;
        Buf got;
        int answer;
        KubeCall *cancel;
} Reader;

static int on_data(void *userdata, Str bytes) {
        Reader *r = userdata;

        if (str_is_empty(bytes))
                r->n_begun++;
        buf_append_str(&r->got, bytes);
        if (r->cancel && bytes.len > 0)
                r->cancel = kube_call_free(r->cancel);
        return bytes.len > 0 ? r->answer : 0;
}

typedef struct Streamed {
        Told told;
        Reader reader;
} Streamed;

static void on_streamed(void *userdata, const KubeReply *reply) {
        on_done(&((Streamed *) userdata)->told, reply);
}

static int on_streamed_data(void *userdata, Str bytes) {
        return on_data(&((Streamed *) userdata)->reader, bytes);
}

static KubeCall *stream(Fixture *f, const char *path, Streamed *streamed) {
        KubeRequest request = {
                .method = "GET", .path = path, .timeout = KUBE_NO_TIMEOUT, .on_data = on_streamed_data};
        KubeCall *call;

        ASSERT_OK(kube_call(f->client, &request, on_streamed, streamed, &call));
        return call;
}

static void streams_pass_by_in_pieces(void) {
        Server s = {0};
        Fixture f;
        Streamed t = {0};

        fixture_begin(&f, handle, &s);
        (void) stream(&f, "/stream", &t);
        turn_until(&f, s.stream);
        turn_until(&f, t.reader.n_begun == 1); /* before the first byte: the watch stands */
        ASSERT_OK(http_stream_write(s.stream, STR("{\"a\":1}\n")));
        turn_until(&f, t.reader.got.len == 8);
        ASSERT_OK(http_stream_write(s.stream, STR("{\"b\":2}\n")));
        http_stream_end(TAKE_PTR(s.stream));
        turn_until(&f, t.told.n == 1);
        ASSERT_INT(t.told.outcome, KUBE_DONE);
        ASSERT_INT(t.told.status, 200);
        ASSERT_STR(buf_str(&t.reader.got), STR("{\"a\":1}\n{\"b\":2}\n"));

        /* Cut in the middle: not an end. */
        t.told.n = 0;
        (void) stream(&f, "/stream", &t);
        turn_until(&f, s.stream);
        ASSERT_OK(http_stream_write(s.stream, STR("{\"half")));
        turn_until(&f, t.reader.n_begun == 2 && t.reader.got.len == 22);
        http_stream_cut(TAKE_PTR(s.stream));
        turn_until(&f, t.told.n == 1);
        ASSERT_INT(t.told.outcome, KUBE_UNKNOWN);

        /* The body of a refusal belongs to the reply, not to the stream. */
        t.told.n = 0;
        (void) stream(&f, "/status/410", &t);
        turn_until(&f, t.told.n == 1);
        ASSERT_INT(t.told.status, 410);
        ASSERT_TEXT(t.told.reason, "Expired");
        ASSERT_INT(t.reader.n_begun, 2);
        told_done(&t.told);
        buf_done(&t.reader.got);
        fixture_end(&f);
        server_done(&s);
}

static void a_reader_may_end_or_cancel_its_stream(void) {
        Server s = {0};
        Fixture f;
        Streamed t = {.reader = {.answer = 1}};

        fixture_begin(&f, handle, &s);
        (void) stream(&f, "/stream", &t);
        turn_until(&f, s.stream);
        ASSERT_OK(http_stream_write(s.stream, STR("{}")));
        turn_until(&f, t.told.n == 1);
        ASSERT_INT(t.told.outcome, KUBE_UNKNOWN);
        ASSERT_CONTAINS(t.told.fault.text, "ended by its reader");
        turn_until(&f, s.n_closed == 1);

        t.reader.answer = 0;
        t.reader.cancel = stream(&f, "/stream", &t);
        turn_until(&f, s.stream);
        ASSERT_OK(http_stream_write(s.stream, STR("{}")));
        turn_until(&f, s.n_closed == 2);
        ASSERT_INT(t.told.n, 1);
        told_done(&t.told);
        buf_done(&t.reader.got);
        fixture_end(&f);
        server_done(&s);
}

/* On a loaded machine the time may be over before the request is sent: then with twice the time. */
static void call_until_sent(Fixture *f, KubeRequest *request, Told *told) {
        unsigned tries = 0;

        do {
                unsigned before = told->n;

                ASSERT_TRUE(tries++ < 10);
                ASSERT_OK(kube_call(f->client, request, on_done, told, NULL));
                turn_until(f, told->n > before);
                request->idle_timeout *= 2;
                request->timeout =
                        request->timeout == KUBE_NO_TIMEOUT ? KUBE_NO_TIMEOUT : request->timeout * 2;
        } while (told->outcome == KUBE_NOT_SENT);
}

static void silence_ends_a_stream(void) {
        Server s = {0};
        Fixture f;
        Told told = {0};
        KubeRequest request = {.method = "GET",
                               .path = "/never",
                               .timeout = KUBE_NO_TIMEOUT,
                               .idle_timeout = 20 * USEC_PER_MSEC};

        fixture_begin(&f, handle, &s);
        call_until_sent(&f, &request, &told);
        ASSERT_INT(told.outcome, KUBE_UNKNOWN);
        ASSERT_CONTAINS(told.fault.text, "nothing was heard");
        told_done(&told);
        fixture_end(&f);
        server_done(&s);
}

/* ---- what is not known ---- */

static void no_connection_means_not_sent(void) {
        Fixture f;
        Told told = {0};
        Peer p;

        fixture_begin(&f, NULL, NULL);
        fixture_connect(&f, peer_bind(&p));
        ask(&f, "POST", "/x", "{}", &told);
        ASSERT_INT(told.outcome, KUBE_NOT_SENT);
        ASSERT_INT(told.status, 0);
        ASSERT_CONTAINS(told.fault.text, "POST /x: not sent: ");
        told_done(&told);
        fixture_end(&f);
        peer_end(&p);
}

static void a_lost_answer_is_unknown(void) {
        Server s = {0};
        Fixture f;
        Told told = {0};
        KubeRequest request = {.method = "POST", .path = "/never", .timeout = 30 * USEC_PER_MSEC};

        fixture_begin(&f, handle, &s);
        ask(&f, "POST", "/cut", "{}", &told);
        ASSERT_INT(told.outcome, KUBE_UNKNOWN);
        ASSERT_INT(s.n_requests, 1);
        call_until_sent(&f, &request, &told);
        ASSERT_INT(told.outcome, KUBE_UNKNOWN);
        ASSERT_CONTAINS(told.fault.text, "no answer");
        told_done(&told);
        fixture_end(&f);
        server_done(&s);
}

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

/* A kept connection that the server has just closed. curl writes on it, reads end of file in place
 * of an answer, and would write once more on a new connection. */
static void lose_on_kept_connection(const char *method, Told *told, Peer *p, Fixture *f) {
        KubeRequest first = {.method = "GET", .path = "/first"},
                    second = {.method = method, .path = "/second"};

        ASSERT_OK(kube_call(f->client, &first, on_done, told, NULL));
        turn_until(f, peer_heard(p, "/first"));
        peer_say(p, ANSWER);
        turn_until(f, told->n == 1);
        ASSERT_OK(kube_call(f->client, &second, on_done, told, NULL));
        turn_until(f, peer_heard(p, "/second"));
        ASSERT_INT(p->n_accepted, 1);
        peer_hang_up(p);
}

static void only_a_get_is_sent_twice(void) {
        static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE"};

        for (size_t i = 0; i <= ELEMENTSOF(methods); i++) {
                bool get = i == ELEMENTSOF(methods);
                Told told = {0};
                Fixture f;
                Peer p;

                fixture_begin(&f, NULL, NULL);
                fixture_connect(&f, peer_begin(&p));
                lose_on_kept_connection(get ? "GET" : methods[i], &told, &p, &f);
                if (get) {
                        turn_until(&f, peer_heard(&p, "/second"));
                        ASSERT_INT(p.n_accepted, 2);
                        peer_say(&p, ANSWER);
                }
                turn_until(&f, told.n == 2);
                ASSERT_INT(told.outcome, get ? KUBE_DONE : KUBE_UNKNOWN);
                peer_look(&p);
                ASSERT_FALSE(peer_heard(&p, "/second"));
                told_done(&told);
                fixture_end(&f);
                peer_end(&p);
        }
}

static void a_cut_body_is_unknown(void) {
        Told told = {0};
        Fixture f;
        Peer p;
        KubeRequest request = {.method = "POST", .path = "/x", .body = STR("{}")};

        fixture_begin(&f, NULL, NULL);
        fixture_connect(&f, peer_begin(&p));
        ASSERT_OK(kube_call(f.client, &request, on_done, &told, NULL));
        turn_until(&f, peer_heard(&p, "\r\n\r\n{}"));
        peer_say(&p, "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{\"kind\"");
        peer_hang_up(&p);
        turn_until(&f, told.n == 1);
        ASSERT_INT(told.outcome, KUBE_UNKNOWN);
        ASSERT_INT(told.status, 0);
        told_done(&told);
        fixture_end(&f);
        peer_end(&p);
}

static void endless_headers_are_refused(void) {
        Told told = {0};
        Fixture f;
        Peer p;
        KubeRequest request = {.method = "GET", .path = "/x"};

        fixture_begin(&f, NULL, NULL);
        fixture_connect(&f, peer_begin(&p));
        ASSERT_OK(kube_call(f.client, &request, on_done, &told, NULL));
        turn_until(&f, peer_heard(&p, "\r\n\r\n"));
        peer_say(&p, "HTTP/1.1 200 OK\r\n");
        for (int i = 0; told.n == 0 && i < 20000; i++) {
                char line[80];
                (void) snprintf(line, sizeof line, "X-%d: 0123456789012345678901234567890123456789\r\n", i);
                /* may fail, which ends the wait */
                (void) send(p.fd, line, strlen(line), MSG_NOSIGNAL);
                turn(&f);
        }
        ASSERT_INT(told.n, 1);
        ASSERT_INT(told.outcome, KUBE_UNKNOWN);
        told_done(&told);
        fixture_end(&f);
        peer_end(&p);
}

static void garbage_is_no_answer(void) {
        static const char *const texts[] = {"\r\n\r\n\r\n", "SSH-2.0-OpenSSH_9\r\n", "HTTP/1.1 abc\r\n\r\n",
                                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"};

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                Told told = {0};
                Fixture f;
                Peer p;
                KubeRequest request = {.method = "POST", .path = "/x"};

                fixture_begin(&f, NULL, NULL);
                fixture_connect(&f, peer_begin(&p));
                ASSERT_OK(kube_call(f.client, &request, on_done, &told, NULL));
                turn_until(&f, peer_heard(&p, "\r\n\r\n"));
                peer_say(&p, texts[i]);
                peer_hang_up(&p);
                turn_until(&f, told.n == 1);
                ASSERT_INT(told.outcome, KUBE_UNKNOWN);
                told_done(&told);
                fixture_end(&f);
                peer_end(&p);
        }
}

/* ---- life and death ---- */

static void connections_are_kept(void) {
        Told told = {0};
        Fixture f;
        Peer p;

        fixture_begin(&f, NULL, NULL);
        fixture_connect(&f, peer_begin(&p));
        for (unsigned i = 0; i < 5; i++) {
                KubeRequest request = {.method = i % 2 ? "POST" : "GET", .path = "/x"};
                ASSERT_OK(kube_call(f.client, &request, on_done, &told, NULL));
                turn_until(&f, peer_heard(&p, "\r\n\r\n"));
                peer_say(&p, ANSWER);
                turn_until(&f, told.n == i + 1);
        }
        ASSERT_INT(p.n_accepted, 1);
        told_done(&told);
        fixture_end(&f);
        peer_end(&p);
}

static void many_calls_at_once(void) {
        enum { N = 300 };
        Server s = {0};
        Fixture f;
        Told told = {0};
        KubeRequest request = {.method = "POST", .path = "/x", .body = STR("{}")};

        fixture_begin(&f, handle, &s);
        for (int i = 0; i < N; i++)
                ASSERT_OK(kube_call(f.client, &request, on_done, &told, NULL));
        ASSERT_INT(told.n, 0);
        turn_until(&f, told.n == N);
        ASSERT_INT(told.outcome, KUBE_DONE);
        ASSERT_INT(s.n_requests, N);
        told_done(&told);
        fixture_end(&f);
        server_done(&s);
}

typedef struct Actor {
        Fixture *f;
        KubeCall *own, *other;
        unsigned n;
        unsigned again; /* calls to make inside the callback */
        bool free_client;
} Actor;

static void on_act(void *userdata, const KubeReply *reply) {
        Actor *a = userdata;
        KubeRequest request = {.method = "GET", .path = "/x"};

        a->n++;
        a->own = kube_call_free(a->own);
        a->other = kube_call_free(a->other);
        if (a->again > 0) {
                a->again--;
                ASSERT_OK(kube_call(a->f->client, &request, on_act, a, &a->own));
        }
        if (a->free_client)
                a->f->client = kube_client_free(a->f->client);
}

static int act_on_data(void *userdata, Str bytes) {
        Actor *a = userdata;
        KubeRequest request = {.method = "GET", .path = "/x"};

        if (str_is_empty(bytes))
                return 0;
        a->n++;
        a->own = kube_call_free(a->own);
        if (a->again > 0)
                ASSERT_OK(kube_call(a->f->client, &request, on_act, a, &a->own));
        if (a->free_client)
                a->f->client = kube_client_free(a->f->client);
        return 0;
}

static void callbacks_may_do_anything(void) {
        KubeRequest now = {.method = "GET", .path = "/x"}, never = {.method = "GET", .path = "/never"};
        KubeRequest streaming = {.method = "GET", .path = "/x", .on_data = act_on_data};
        Server s = {0};
        Fixture f;
        Actor a;

        /* Frees itself and another call, and begins a new one. */
        fixture_begin(&f, handle, &s);
        a = (Actor){.f = &f, .again = 3};
        ASSERT_OK(kube_call(f.client, &never, on_act, &a, &a.other));
        ASSERT_OK(kube_call(f.client, &now, on_act, &a, &a.own));
        turn_until(&f, a.n == 4);
        fixture_end(&f);

        /* The same from within curl. */
        fixture_begin(&f, handle, &s);
        a = (Actor){.f = &f, .again = 1};
        ASSERT_OK(kube_call(f.client, &streaming, on_act, &a, &a.own));
        turn_until(&f, a.n == 3);
        fixture_end(&f);

        /* The client is freed with calls in flight: from `done`, from the reader, and
         * from outside. */
        fixture_begin(&f, handle, &s);
        a = (Actor){.f = &f, .free_client = true};
        for (int i = 0; i < 5; i++)
                ASSERT_OK(kube_call(f.client, i % 2 ? &never : &now, on_act, &a, NULL));
        turn_until(&f, a.n > 0);
        turn(&f);
        ASSERT_INT(a.n, 1);
        fixture_end(&f);

        fixture_begin(&f, handle, &s);
        a = (Actor){.f = &f, .free_client = true};
        ASSERT_OK(kube_call(f.client, &never, on_act, &a, NULL));
        ASSERT_OK(kube_call(f.client, &streaming, on_act, &a, NULL));
        turn_until(&f, a.n > 0);
        ASSERT_INT(a.n, 1);
        fixture_end(&f);

        fixture_begin(&f, handle, &s);
        a = (Actor){.f = &f};
        for (int i = 0; i < 5; i++)
                ASSERT_OK(kube_call(f.client, i % 2 ? &never : &now, on_act, &a, NULL));
        turn_until(&f, s.kept);
        fixture_end(&f);
        server_done(&s);
}

int main(void) {
        return TEST_MAIN(
                TEST(every_method_arrives_as_it_was_meant), TEST(refusals_carry_status_reason_and_words),
                TEST(transient_answers_and_back_off), TEST(a_long_answer_is_refused),
                TEST(streams_pass_by_in_pieces), TEST(a_reader_may_end_or_cancel_its_stream),
                TEST(silence_ends_a_stream), TEST(no_connection_means_not_sent),
                TEST(a_lost_answer_is_unknown), TEST(only_a_get_is_sent_twice), TEST(a_cut_body_is_unknown),
                TEST(endless_headers_are_refused), TEST(garbage_is_no_answer), TEST(connections_are_kept),
                TEST(many_calls_at_once), TEST(callbacks_may_do_anything));
}
