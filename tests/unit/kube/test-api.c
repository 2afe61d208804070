/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "net/http/http_server.h"
#include "store_fixture.h"

static void gets_and_binds(void) {
        KubeBinding binding = {.namespace_ = STR("default"),
                               .name = STR("a"),
                               .node = STR("n1"),
                               .annotations = STR("{\"k\":\"v\"}")};
        Answer a = {0};
        Fixture f;

        fixture_begin(&f, 0);
        apply_node(&f, "n1");
        apply_pod(&f, "a");
        ASSERT_OK(kube_bind(f.client, &binding, on_answer, &a, NULL));
        ASSERT_INT(a.n, 0); /* never before the call returns */
        TURN_UNTIL(&f, a.n == 1);
        ASSERT_INT(a.status, 201);
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 2);
        ASSERT_INT(a.status, 200);
        ASSERT_CONTAINS(a.body, "\"nodeName\":\"n1\"");
        ASSERT_CONTAINS(a.body, "\"k\":\"v\"");
        ASSERT_OK(kube_bind(f.client, &binding, on_answer, &a, NULL)); /* bound already */
        TURN_UNTIL(&f, a.n == 3);
        ASSERT_INT(a.outcome, KUBE_DONE);
        ASSERT_INT(a.status, 409);
        ASSERT_TEXT(a.reason, "Conflict");
        ASSERT_CONTAINS(a.fault.text, "POST /api/v1/namespaces/default/pods/a/binding: HTTP 409 Conflict: ");
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("none"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 4);
        ASSERT_INT(a.status, 404);
        ASSERT_TEXT(a.reason, "NotFound");
        ASSERT_FALSE(kube_reply_is_transient(&(KubeReply){.outcome = a.outcome, .status = a.status}));
        fixture_end(&f);
}

static void patches_with_a_precondition(void) {
        Answer a = {0};
        Fixture f;
        char version[64];
        const char *path = "/api/v1/namespaces/default/pods/a", *at;

        fixture_begin(&f, 0);
        apply_pod(&f, "a");
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 1);
        at = strstr(a.body, "\"resourceVersion\":\"");
        ASSERT_TRUE(at != NULL);
        (void) snprintf(version, sizeof version, "%.*s", (int) strcspn(at + 19, "\""), at + 19);
        ASSERT_OK(kube_merge_patch(f.client, path, "", STR("{\"metadata\":{\"annotations\":{\"x\":\"1\"}}}"),
                                   str_from(version), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 2);
        ASSERT_INT(a.status, 200);
        /* The object has changed since: the same version again is a conflict, no version is not. */
        ASSERT_OK(kube_merge_patch(f.client, path, "", STR("{\"metadata\":{\"annotations\":{\"x\":\"2\"}}}"),
                                   str_from(version), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 3);
        ASSERT_INT(a.status, 409);
        ASSERT_OK(kube_merge_patch(f.client, path, "status", STR("{\"status\":{\"phase\":\"Running\"}}"),
                                   STR(""), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 4);
        ASSERT_INT(a.status, 200);
        ASSERT_CONTAINS(a.body, "\"Running\"");
        ASSERT_OK(kube_merge_patch(f.client, path, "status", STR("{\"status\":{\"phase\":\"Failed\"}}"),
                                   str_from(version), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 5);
        ASSERT_INT(a.status, 409);
        fixture_end(&f);
}

static void tells_the_three_outcomes_apart(void) {
        static const StoreFault busy = {
                .kind = STORE_FAULT_STATUS, .count = 1, .status = 429, .retry_after = 3};
        static const StoreFault broken = {.kind = STORE_FAULT_STATUS, .count = 1, .status = 500};
        static const StoreFault lost = {.kind = STORE_FAULT_LOSE_ANSWER, .method = "POST", .count = 9};
        KubeBinding binding = {.namespace_ = STR("default"), .name = STR("a"), .node = STR("n1")};
        Answer a = {0};
        Fixture f;

        fixture_begin(&f, 0);
        apply_node(&f, "n1");
        apply_pod(&f, "a");
        ASSERT_OK(store_inject(f.store, &busy));
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 1);
        ASSERT_INT(a.status, 429);
        ASSERT_TRUE(a.retry_after == 3 * USEC_PER_SEC);
        ASSERT_TRUE(kube_reply_is_transient(&(KubeReply){.outcome = a.outcome, .status = a.status}));
        ASSERT_OK(store_inject(f.store, &broken));
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 2);
        ASSERT_INT(a.status, 500);

        ASSERT_OK(store_inject(f.store, &lost));
        ASSERT_OK(kube_bind(f.client, &binding, on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 3);
        ASSERT_INT(a.outcome, KUBE_UNKNOWN);
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 4);
        ASSERT_CONTAINS(a.body, "\"nodeName\":\"n1\""); /* it had been carried out */

        ASSERT_OK(store_vanish(f.store, true));
        /* curl 8.23 writes to a kept connection although its peer has closed it */
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 5);
        ASSERT_TRUE(a.outcome != KUBE_DONE);
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 6);
        ASSERT_INT(a.outcome, KUBE_NOT_SENT);
        ASSERT_CONTAINS(a.fault.text, "GET /api/v1/namespaces/default/pods/a: ");
        ASSERT_OK(store_vanish(f.store, false));
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 7);
        ASSERT_INT(a.status, 200);
        fixture_end(&f);
}

static void a_slow_answer_is_unknown(void) {
        static const StoreFault slow = {
                .kind = STORE_FAULT_DELAY, .method = "POST", .count = 1, .delay_usec = 3600000000};
        KubeRequest request = {
                .method = "POST",
                .path = "/api/v1/nodes",
                .timeout = 100000,
                .body = STR("{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}")};
        Answer a = {0};
        Fixture f;

        fixture_begin(&f, 0);
        ASSERT_OK(store_inject(f.store, &slow));
        for (; a.n == 0 || a.outcome == KUBE_NOT_SENT; request.timeout *= 2) { /* on a loaded machine */
                unsigned before = a.n;

                ASSERT_TRUE(before < 10);
                ASSERT_OK(kube_call(f.client, &request, on_answer, &a, NULL));
                TURN_UNTIL(&f, a.n > before);
        }
        ASSERT_INT(a.outcome, KUBE_UNKNOWN);
        ASSERT_CONTAINS(a.fault.text, "it may have been carried out");
        fixture_end(&f);
}

typedef struct Chain {
        Fixture *f;
        KubeCall *other;
        unsigned done;
} Chain;

static void on_never(void *userdata, const KubeReply *reply) {
        TEST_FAIL_("a cancelled call answered");
}

static void on_first(void *userdata, const KubeReply *reply) {
        Chain *c = userdata;

        c->done++;
        c->other = kube_call_free(c->other);
        if (c->done < 3)
                ASSERT_OK(kube_get_pod(c->f->client, STR("default"), STR("a"), on_first, c, NULL));
        /* inside its own callback, with calls in flight */
        else
                c->f->client = kube_client_free(c->f->client);
}

static void calls_are_made_cancelled_and_freed_inside_callbacks(void) {
        Chain c = {0};
        Fixture f;

        fixture_begin(&f, 0);
        c.f = &f;
        apply_pod(&f, "a");
        ASSERT_OK(kube_get_pod(f.client, STR("default"), STR("a"), on_first, &c, NULL));
        ASSERT_OK(store_inject(f.store, &(StoreFault){.kind = STORE_FAULT_DELAY,
                                                      .path_prefix = "/api/v1/nodes",
                                                      .count = 5,
                                                      .delay_usec = 3600000000}));
        ASSERT_OK(kube_call(f.client, &(KubeRequest){.method = "GET", .path = "/api/v1/nodes"}, on_never,
                            NULL, &c.other));
        ASSERT_OK(kube_call(f.client, &(KubeRequest){.method = "GET", .path = "/api/v1/nodes/x"}, on_never,
                            NULL, NULL));
        TURN_UNTIL(&f, !f.client);
        ASSERT_INT(c.done, 3);
        fixture_end(&f);
}

static void echo(void *userdata, HttpExchange *x, const HttpRequest *r) {
        _cleanup_buf_ Buf text = BUF_NULL;

        buf_appendf(&text, "%s %s %s " STR_FMT, r->method, r->path, r->content_type, STR_ARG(r->body));
        http_respond(x, 200, "text/plain", buf_str(&text));
}

static void events_are_counted_not_repeated(void) {
        KubeEventRecorder *r = NULL;
        KubeEvent event = {.kind = "Pod",
                           .namespace_ = STR("default"),
                           .name = STR("a"),
                           .uid = STR("u"),
                           .type = "Warning",
                           .reason = "Refused",
                           .note = "no \"room\""};
        Answer a = {0};
        Fixture f;

        fixture_begin(&f, 0);
        ASSERT_OK(kube_event_recorder_new(f.client, "test", &r));
        kube_event(r, &event);
        for (unsigned wanted = 1; !strstr(a.body, "\"count\":1"); wanted++) {
                ASSERT_OK(kube_call(f.client, &(KubeRequest){.method = "GET", .path = "/api/v1/events"},
                                    on_answer, &a, NULL));
                TURN_UNTIL(&f, a.n == wanted);
        }
        ASSERT_CONTAINS(a.body, "no \\\"room\\\"");
        kube_event(r, &event);
        for (unsigned wanted = a.n + 1; !strstr(a.body, "\"count\":2"); wanted++) {
                ASSERT_OK(kube_call(f.client, &(KubeRequest){.method = "GET", .path = "/api/v1/events"},
                                    on_answer, &a, NULL));
                TURN_UNTIL(&f, a.n == wanted);
        }
        /* one Event */
        ASSERT_TRUE(!strstr(strstr(a.body, "\"involvedObject\"") + 1, "\"involvedObject\""));
        (void) kube_event_recorder_free(r);
        fixture_end(&f);
}

/* Of a long name as much as has room is in the Event's, which must be a name itself. */
static void a_cut_name_is_a_name(void) {
        enum { KEPT = 227 };
        KubeEventRecorder *r = NULL;
        KubeEvent event = {.kind = "Pod",
                           .namespace_ = STR("default"),
                           .uid = STR("u"),
                           .type = "Normal",
                           .reason = "R",
                           .note = "x"};
        char name[254], begin[KEPT + 12];
        const char *is;
        Answer a = {0};
        Fixture f;

        memset(name, 'a', sizeof name - 1);
        memcpy(name + KEPT, "-.-", 3); /* bytes 228 to 230 */
        name[sizeof name - 1] = '\0';
        event.name = str_from(name);
        (void) snprintf(begin, sizeof begin, "\"name\":\"%.*s.", KEPT, name);
        fixture_begin(&f, 0);
        ASSERT_OK(kube_event_recorder_new(f.client, "test", &r));
        kube_event(r, &event);
        TURN_UNTIL(&f, kube_event_counters(r).created + kube_event_counters(r).lost == 1);
        ASSERT_INT(kube_event_counters(r).lost, 0);
        ASSERT_OK(kube_call(f.client, &(KubeRequest){.method = "GET", .path = "/api/v1/events"}, on_answer,
                            &a, NULL));
        TURN_UNTIL(&f, a.n == 1);
        is = strstr(a.body, begin);
        ASSERT_TRUE(is != NULL);
        ASSERT_INT(strspn(is + strlen(begin), "0123456789abcdef"), 16);
        (void) kube_event_recorder_free(r);
        fixture_end(&f);
}

static void an_event_that_replaces_has_the_last_note(void) {
        KubeEventRecorder *r = NULL;
        KubeEvent event = {.kind = "Pod",
                           .namespace_ = STR("default"),
                           .name = STR("a"),
                           .uid = STR("u"),
                           .type = "Normal",
                           .reason = "Nearest",
                           .note = "first",
                           .replaces = true};
        Answer a = {0};
        Fixture f;

        fixture_begin(&f, 0);
        ASSERT_OK(kube_event_recorder_new(f.client, "test", &r));
        kube_event(r, &event);
        event.note = "\"second\"";
        kube_event(r, &event);
        for (unsigned wanted = 1; !strstr(a.body, "\"count\":2"); wanted++) {
                ASSERT_OK(kube_call(f.client, &(KubeRequest){.method = "GET", .path = "/api/v1/events"},
                                    on_answer, &a, NULL));
                TURN_UNTIL(&f, a.n == wanted);
        }
        ASSERT_CONTAINS(a.body, "\"message\":\"\\\"second\\\"\"");
        ASSERT_TRUE(!strstr(strstr(a.body, "\"involvedObject\"") + 1, "\"involvedObject\""));
        (void) kube_event_recorder_free(r);
        fixture_end(&f);
}

/* The bytes that are sent, read at a socket. */
static void patch_body(Str patch, Str version, const char *expected) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(kube_config_freep) KubeConfig *config = NULL;
        _cleanup_(http_server_freep) HttpServer *server = NULL;
        HttpServerOptions options = {.listen = "127.0.0.1:0", .max_body = 10000};
        Fixture f = {0};
        Answer a = {0};
        char url[64];

        ASSERT_TRUE(sd_event_new(&event) >= 0);
        f.event = event;
        ASSERT_OK(http_server_new(event, &options, echo, NULL, &server, NULL));
        (void) snprintf(url, sizeof url, "http://127.0.0.1:%u", http_server_port(server));
        ASSERT_OK(kube_config_for_server(url, &config));
        ASSERT_OK(kube_client_new(event, config, &f.client));
        ASSERT_INT(kube_merge_patch(f.client, "/x", "status", patch, version, on_answer, &a, NULL),
                   expected ? 0 : -EINVAL);
        if (expected) {
                TURN_UNTIL(&f, a.n == 1);
                ASSERT_TEXT(a.body, expected);
        }
        (void) kube_client_free(f.client);
}

static void the_version_goes_into_the_patch(void) {
        patch_body(STR("{}"), STR(""), "PATCH /x/status application/merge-patch+json {}");
        patch_body(STR("{}"), STR("7"),
                   "PATCH /x/status application/merge-patch+json {\"metadata\":{\"resourceVersion\":\"7\"}}");
        patch_body(
                STR(" { \"a\" : [1, 2] , \"metadata\" : { \"x\" : null , \"resourceVersion\" : \"1\" } } "),
                STR("7"),
                "PATCH /x/status application/merge-patch+json "
                "{\"a\":[1, 2],\"metadata\":{\"resourceVersion\":\"7\",\"x\":null}}");
        patch_body(STR("{\"a\":{\"metadata\":{}}}"), STR("7\"8"),
                   "PATCH /x/status application/merge-patch+json "
                   "{\"a\":{\"metadata\":{}},\"metadata\":{\"resourceVersion\":\"7\\\"8\"}}");
        patch_body(STR("[]"), STR("7"), NULL);
        patch_body(STR("{\"a\":"), STR("7"), NULL);
        patch_body(STR("{\"metadata\":7}"), STR("7"), NULL);
}

static void names_lead_nowhere_else(void) {
        static const char *const names[] = {"../../nodes/n", "a?watch=true", "a#b", "%2e%2e", "a b\r\nX: y"};
        Answer a = {0};
        Fixture f;

        fixture_begin(&f, 0);
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                ASSERT_OK(kube_get_pod(f.client, STR("default"), str_from(names[i]), on_answer, &a, NULL));
                TURN_UNTIL(&f, a.n == i + 1);
                ASSERT_INT(a.outcome, KUBE_DONE);
                ASSERT_INT(a.status, 404);
        }
        fixture_end(&f);
}

/* An object in trouble gets 25 Events and no more; its neighbour still gets its own. */
static void one_object_cannot_flood_the_server(void) {
        KubeEventRecorder *r = NULL;
        KubeEvent event = {.kind = "Pod",
                           .namespace_ = STR("default"),
                           .uid = STR("u"),
                           .type = "Warning",
                           .reason = "R"};
        Fixture f;
        char note[32];

        fixture_begin(&f, 0);
        ASSERT_OK(kube_event_recorder_new(f.client, "test", &r));
        event.name = STR("a");
        event.note = note;
        for (int i = 0; i < 100; i++) {
                (void) snprintf(note, sizeof note, "note %d", i);
                kube_event(r, &event);
        }
        TURN_UNTIL(&f, kube_event_counters(r).created == 25);
        ASSERT_INT(kube_event_counters(r).dropped, 75);
        event.name = STR("b");
        event.note = "the same";
        kube_event(r, &event);
        TURN_UNTIL(&f, kube_event_counters(r).created == 26);
        for (int i = 1; i < 10; i++)
                kube_event(r, &event);
        TURN_UNTIL(&f, kube_event_counters(r).repeated ==
                               1); /* nine repeats while the first was on its way: one patch */
        (void) kube_event_recorder_free(r);
        fixture_end(&f);
}

/* The Events of many objects at once leave connections to other calls, and all but the first 100
 * wait for their turn. Those beyond what the recorder remembers are counted as lost. */
static void many_events_wait_for_each_other(void) {
        KubeEventRecorder *r = NULL;
        KubeEvent event = {.kind = "Pod",
                           .namespace_ = STR("default"),
                           .uid = STR("u"),
                           .type = "Normal",
                           .reason = "R",
                           .note = "x"};
        Fixture f;
        char name[32];
        usec_t begin;

        fixture_begin(&f, 0);
        begin = clock_monotonic_usec();
        ASSERT_OK(kube_event_recorder_new(f.client, "test", &r));
        for (int i = 0; i < 4200; i++) {
                (void) snprintf(name, sizeof name, "p%04d", i);
                event.name = str_from(name);
                kube_event(r, &event);
        }
        ASSERT_TRUE(kube_event_counters(r).created < KUBE_MAX_CONNECTIONS / 2);
        ASSERT_INT(kube_event_counters(r).lost, 4200 - 4096);
        TURN_UNTIL(&f, kube_event_counters(r).created >= 120);
        ASSERT_TRUE(kube_event_counters(r).created <=
                    100 + (clock_monotonic_usec() - begin) / (20 * USEC_PER_MSEC));
        ASSERT_INT(kube_event_counters(r).lost, 4200 - 4096);
        (void) kube_event_recorder_free(r);
        /* A recorder that ends forgets those that wait. */
        ASSERT_OK(kube_event_recorder_new(f.client, "test", &r));
        for (int i = 0; i < 50; i++) {
                (void) snprintf(name, sizeof name, "q%04d", i);
                event.name = str_from(name);
                kube_event(r, &event);
        }
        (void) kube_event_recorder_free(r);
        fixture_end(&f);
}

static void a_lost_event_is_counted_and_forgotten(void) {
        static const StoreFault refused = {
                .kind = STORE_FAULT_STATUS, .method = "POST", .count = 1, .status = 403};
        KubeEventRecorder *r = NULL;
        KubeEvent event = {.kind = "Node",
                           .name = STR("n"),
                           .uid = STR("u"),
                           .type = "Normal",
                           .reason = "R",
                           .note = "x"};
        Fixture f;

        fixture_begin(&f, 0);
        ASSERT_OK(store_inject(f.store, &refused));
        ASSERT_OK(kube_event_recorder_new(f.client, "test", &r));
        kube_event(r, &event);
        TURN_UNTIL(&f, kube_event_counters(r).lost == 1);
        kube_event(r, &event); /* created, not patched: the server does not have it */
        TURN_UNTIL(&f, kube_event_counters(r).created == 1);
        event.note = "y";
        kube_event(r, &event);
        (void) kube_event_recorder_free(r); /* with its call in flight */
        ASSERT_TRUE(sd_event_run(f.event, 1000) >= 0);
        fixture_end(&f);
}

/* An answer that is lost, an API server that is away, and one that wants fewer requests: one Event
 * with the last count is there in the end. */
static void an_event_without_an_answer_is_written_again(void) {
        static const StoreFault faults[] = {
                {.kind = STORE_FAULT_LOSE_ANSWER, .method = "POST", .count = 1},
                {.kind = STORE_FAULT_CUT, .method = "POST", .count = 1},
                {.kind = STORE_FAULT_STATUS, .method = "POST", .count = 1, .status = 503},
                {.kind = STORE_FAULT_LOSE_ANSWER, .method = "PATCH", .count = 1},
        };
        KubeEventRecorder *r = NULL;
        KubeEvent event = {.kind = "Node", .uid = STR("u"), .type = "Normal", .reason = "R", .note = "x"};
        Fixture f;
        char name[32];

        fixture_begin(&f, 0);
        ASSERT_OK(kube_event_recorder_new(f.client, "test", &r));
        for (size_t i = 0; i < ELEMENTSOF(faults); i++) {
                size_t n_events = 0;
                Answer a = {0};

                (void) snprintf(name, sizeof name, "n%zu", i);
                event.name = str_from(name);
                ASSERT_OK(store_inject(f.store, &faults[i]));
                kube_event(r, &event);
                TURN_UNTIL(&f, kube_event_counters(r).created == i + 1);
                kube_event(r, &event);
                TURN_UNTIL(&f, kube_event_counters(r).repeated == i + 1);
                ASSERT_OK(kube_call(f.client, &(KubeRequest){.method = "GET", .path = "/api/v1/events"},
                                    on_answer, &a, NULL));
                TURN_UNTIL(&f, a.n == 1);
                for (const char *at = a.body; (at = strstr(at, "\"involvedObject\"")); at++)
                        n_events++;
                ASSERT_INT(n_events, i + 1); /* one of each object */
                ASSERT_TRUE(!strstr(a.body, "\"count\":1"));
        }
        ASSERT_INT(kube_event_counters(r).lost, 0);
        (void) kube_event_recorder_free(r);
        fixture_end(&f);
}

/* The path, a blank, and the body that came there. */
static void echo_request(void *userdata, HttpExchange *x, const HttpRequest *request) {
        _cleanup_buf_ Buf text = BUF_NULL;

        buf_appendf(&text, "%s %s " STR_FMT, request->method, request->path, STR_ARG(request->body));
        http_respond(x, 201, "text/plain", buf_str(&text));
}

static void evicts_the_pod_of_this_uid(void) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(kube_config_freep) KubeConfig *config = NULL;
        _cleanup_(http_server_freep) HttpServer *server = NULL;
        HttpServerOptions options = {.listen = "127.0.0.1:0", .max_body = 10000};
        Fixture f = {0};
        Answer a = {0};
        char url[64];

        ASSERT_TRUE(sd_event_new(&event) >= 0);
        f.event = event;
        ASSERT_OK(http_server_new(event, &options, echo_request, NULL, &server, NULL));
        (void) snprintf(url, sizeof url, "http://127.0.0.1:%u", http_server_port(server));
        ASSERT_OK(kube_config_for_server(url, &config));
        ASSERT_OK(kube_client_new(event, config, &f.client));
        ASSERT_OK(kube_evict(f.client, STR("team"), STR("p"), STR("uid-p"), on_answer, &a, NULL));
        TURN_UNTIL(&f, a.n == 1);
        ASSERT_TEXT(a.body,
                    "POST /api/v1/namespaces/team/pods/p/eviction "
                    "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p\","
                    "\"namespace\":\"team\"},\"deleteOptions\":{\"preconditions\":{\"uid\":\"uid-p\"}}}");
        (void) kube_client_free(f.client);
}

int main(void) {
        return TEST_MAIN(
                TEST(gets_and_binds), TEST(evicts_the_pod_of_this_uid), TEST(patches_with_a_precondition),
                TEST(tells_the_three_outcomes_apart), TEST(a_slow_answer_is_unknown),
                TEST(calls_are_made_cancelled_and_freed_inside_callbacks),
                TEST(events_are_counted_not_repeated), TEST(a_cut_name_is_a_name),
                TEST(an_event_that_replaces_has_the_last_note), TEST(the_version_goes_into_the_patch),
                TEST(names_lead_nowhere_else), TEST(one_object_cannot_flood_the_server),
                TEST(many_events_wait_for_each_other), TEST(a_lost_event_is_counted_and_forgotten),
                TEST(an_event_without_an_answer_is_written_again));
}
