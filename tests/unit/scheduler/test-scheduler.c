/* SPDX-License-Identifier: Apache-2.0 */

/* The whole scheduler in one loop with an API server. It is called over HTTP as kube-scheduler
 * calls it, while answers are lost, watches are cut and the API server is away. After each test
 * another scheduler, started then, must report the same. */

#include <stdarg.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "kube/api.h"
#include "local/apiserver/store.h"
#include "scheduler/scheduler.h"
#include "test.h"

typedef struct Peer {
        Scheduler *scheduler;
        KubeConfig *config; /* port of its extender */
        KubeClient *client;
} Peer;

typedef struct Fixture {
        sd_event *event;
        Store *store;
        KubeConfig *config;
        KubeClient *client; /* of the store */
        Peer us;
} Fixture;

#define TURN_UNTIL(f, condition)                                                                             \
        do {                                                                                                 \
                usec_t end_ = clock_monotonic_usec() + 300 * USEC_PER_SEC;                                   \
                while (!(condition)) {                                                                       \
                        if (clock_monotonic_usec() > end_)                                                   \
                                TEST_FAIL_("never came true: %s", #condition);                               \
                        ASSERT_TRUE(sd_event_run((f)->event, 100000) >= 0);                                  \
                }                                                                                            \
        } while (0)

/* The clock of leases for a process that is frozen again and again: while `frozen`, each reading is
 * a minute later. Only the leases see this clock. The timers of the event loop have not fired
 * yet. */
static bool frozen;
static time_t gone_by;

__attribute__((visibility("hidden"))) int frozen_clock_gettime(clockid_t clock,
                                                               struct timespec *ts) __asm__("clock_gettime");

int frozen_clock_gettime(clockid_t clock, struct timespec *ts) {
        long r = syscall(SYS_clock_gettime, clock, ts);

        if (r == 0 && clock == CLOCK_BOOTTIME)
                ts->tv_sec += frozen ? gone_by += 60 : gone_by;
        return (int) r;
}

/* ---- calls ---- */

typedef struct Answer {
        bool done;
        KubeOutcome outcome;
        unsigned status;
        Buf body;
} Answer;

static void on_answer(void *userdata, const KubeReply *reply) {
        Answer *a = userdata;

        a->done = true;
        a->outcome = reply->outcome;
        a->status = reply->status;
        buf_append_str(&a->body, reply->body);
        buf_append_char(&a->body, '\0');
}

static void send_to(KubeClient *client, const char *method, const char *path, const char *body, Answer *a) {
        KubeRequest request = {.method = method, .path = path, .body = str_from(body)};

        *a = (Answer){.body = BUF_NULL};
        ASSERT_OK(kube_call(client, &request, on_answer, a, NULL));
}

static void call(Fixture *f, KubeClient *client, const char *method, const char *path, const char *body,
                 Answer *a) {
        send_to(client, method, path, body, a);
        TURN_UNTIL(f, a->done);
}

/* The text of a 200; the caller frees it. */
static char *ask(Fixture *f, const Peer *p, const char *method, const char *path, const char *body) {
        Answer a;

        call(f, p->client, method, path, body, &a);
        ASSERT_INT(a.status, 200);
        return buf_take(&a.body);
}

/* ---- the cluster ---- */

_printf_(2, 3) static void apply(Fixture *f, const char *format, ...) {
        char text[4096];
        Fault fault = FAULT_NULL;
        va_list args;

        va_start(args, format);
        (void) vsnprintf(text, sizeof text, format, args);
        va_end(args);
        if (store_apply(f->store, str_from(text), &fault) != 0)
                TEST_FAIL_("%s", fault.text);
}

static void apply_node(Fixture *f, const char *name, unsigned cards) {
        apply(f,
              "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
              "\"ack.node.gpu.schedule\":\"cgpu\"}},\"status\":{\"allocatable\":{\"aliyun.com/"
              "gpu-mem\":\"%u\","
              "\"aliyun.com/gpu-count\":\"%u\"}}}",
              name, cards * 15, cards);
}

static const char *pod_text(const char *name, unsigned mem) {
        static char text[1024];

        (void) snprintf(text, sizeof text,
                        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
                        "\"default\","
                        "\"uid\":\"uid-%s\"},\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"i\","
                        "\"resources\":{"
                        "\"limits\":{\"aliyun.com/gpu-mem\":\"%u\"}}}]}}",
                        name, name, mem);
        return text;
}

static char *get_pod(Fixture *f, const char *name) {
        char path[256];
        Answer a;

        (void) snprintf(path, sizeof path, "/api/v1/namespaces/default/pods/%s", name);
        call(f, f->client, "GET", path, "", &a);
        ASSERT_INT(a.status, 200);
        return buf_take(&a.body);
}

/* The UID that the store gave the pod. */
static void uid_of(Fixture *f, const char *name, char uid[static 128]) {
        _cleanup_free_ char *pod = get_pod(f, name);
        const char *at = strstr(pod, "\"uid\":\"");

        ASSERT_TRUE(at != NULL);
        (void) snprintf(uid, 128, "%.*s", (int) strcspn(at + 7, "\""), at + 7);
}

static void bind_body(Fixture *f, const char *pod, const char *node, char body[static 512]) {
        char uid[128];

        uid_of(f, pod, uid);
        (void) snprintf(body, 512,
                        "{\"PodName\":\"%s\",\"PodNamespace\":\"default\",\"PodUID\":\"%s\",\"Node\":\"%s\"}",
                        pod, uid, node);
}

static char *bind_pod(Fixture *f, const char *pod, const char *node) {
        char body[512];

        bind_body(f, pod, node, body);
        return ask(f, &f->us, "POST", "/gpushare-scheduler/bind", body);
}

#define ASSERT_BIND(f, pod, node, answer)                                                                    \
        do {                                                                                                 \
                _cleanup_free_ char *answer_ = bind_pod(f, pod, node);                                       \
                ASSERT_CONTAINS(answer_, answer);                                                            \
        } while (0)
#define BOUND "{\"Error\":\"\"}"

/* ---- beginning and end ---- */

static Peer peer_start_with(Fixture *f, SchedulerOptions options) {
        Fault fault = FAULT_NULL;
        char url[64];
        Peer p;

        options.config = f->config;
        options.listen = "127.0.0.1:0";
        if (scheduler_new(f->event, &options, &p.scheduler, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
        (void) snprintf(url, sizeof url, "http://127.0.0.1:%u", scheduler_port(p.scheduler));
        ASSERT_OK(kube_config_for_server(url, &p.config));
        ASSERT_OK(kube_client_new(f->event, p.config, &p.client));
        return p;
}

static Peer peer_start(Fixture *f, bool election, const char *identity) {
        return peer_start_with(f, (SchedulerOptions){.leader_election = election, .identity = identity});
}

static void peer_end(Peer *p) {
        kube_client_free(p->client);
        kube_config_free(p->config);
        scheduler_free(p->scheduler);
        *p = (Peer){0};
}

static void begin(Fixture *f) {
        Fault fault = FAULT_NULL;

        *f = (Fixture){0};
        ASSERT_TRUE(sd_event_new(&f->event) >= 0);
        ASSERT_OK(store_new(f->event, &(StoreOptions){0}, &f->store, &fault));
        ASSERT_OK(kube_config_for_server(store_url(f->store), &f->config));
        ASSERT_OK(kube_client_new(f->event, f->config, &f->client));
        apply_node(f, "n1", 1);
        apply_node(f, "n2", 2);
        f->us = peer_start(f, false, NULL);
        TURN_UNTIL(f, scheduler_is_ready(f->us.scheduler));
}

static char *inspect(Fixture *f, const Peer *p) {
        return ask(f, p, "GET", "/gpushare-scheduler/inspect", "");
}

/* A scheduler that starts now and the running one report the same, as soon as the watch of the
 * latter has caught up. */
static void assert_restart_agrees(Fixture *f) {
        usec_t end = clock_monotonic_usec() + 300 * USEC_PER_SEC;
        Peer fresh = peer_start(f, false, NULL);
        _cleanup_free_ char *theirs = NULL;

        TURN_UNTIL(f, scheduler_is_ready(fresh.scheduler));
        theirs = inspect(f, &fresh);
        for (;;) {
                _cleanup_free_ char *ours = inspect(f, &f->us);

                if (strcmp(ours, theirs) == 0)
                        break;
                if (clock_monotonic_usec() > end)
                        ASSERT_TEXT(ours, theirs);
        }
        peer_end(&fresh);
}

static void end(Fixture *f) {
        assert_restart_agrees(f);
        peer_end(&f->us);
        kube_client_free(f->client);
        kube_config_free(f->config);
        store_free(f->store);
        sd_event_unref(f->event);
}

static void inject(Fixture *f, StoreFaultKind kind, const char *method, const char *path, unsigned count,
                   unsigned status) {
        StoreFault fault = {
                .kind = kind, .method = method, .path_prefix = path, .count = count, .status = status};

        ASSERT_OK(store_inject(f->store, &fault));
}

/* ---- stories ---- */

static void filters_prioritizes_and_binds(void) {
        _cleanup_free_ char *filtered = NULL, *scores = NULL, *pod = NULL;
        char args[2048];
        Fixture f;

        begin(&f);
        apply(&f, "%s", pod_text("a", 4));
        (void) snprintf(args, sizeof args, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[\"n1\",\"n2\"]}",
                        pod_text("a", 4));
        filtered = ask(&f, &f.us, "POST", "/gpushare-scheduler/filter", args);
        ASSERT_CONTAINS(filtered, "\"NodeNames\":[\"n1\",\"n2\"]");
        scores = ask(&f, &f.us, "POST", "/gpushare-scheduler/prioritize", args);
        ASSERT_CONTAINS(scores, "{\"Host\":\"n1\",\"Score\":10},{\"Host\":\"n2\",\"Score\":9}");
        ASSERT_BIND(&f, "a", "n1", BOUND);
        pod = get_pod(&f, "a");
        ASSERT_CONTAINS(pod, "\"nodeName\":\"n1\"");
        ASSERT_CONTAINS(pod, "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":4}}\"");
        ASSERT_CONTAINS(pod, "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\"");
        ASSERT_BIND(&f, "a", "n1", BOUND); /* the same request, as after a time-out */
        ASSERT_BIND(&f, "a", "n2", "has been bound to node n1 already");
        end(&f);
}

/* Both nodes are empty: binpack takes the smaller one, the other order the first by name. */
static void the_order_of_nodes_is_an_option(void) {
        _cleanup_free_ char *binpack = NULL, *fragmentation = NULL;
        char args[2048];
        Fixture f;
        Peer p;

        begin(&f);
        apply_node(&f, "n0", 2);
        p = peer_start_with(&f, (SchedulerOptions){.by_fragment = true});
        TURN_UNTIL(&f, scheduler_is_ready(p.scheduler));
        (void) snprintf(args, sizeof args, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[\"n0\",\"n1\"]}",
                        pod_text("a", 4));
        binpack = ask(&f, &f.us, "POST", "/gpushare-scheduler/prioritize", args);
        fragmentation = ask(&f, &p, "POST", "/gpushare-scheduler/prioritize", args);
        ASSERT_CONTAINS(binpack, "{\"Host\":\"n1\",\"Score\":10}");
        ASSERT_CONTAINS(fragmentation, "{\"Host\":\"n0\",\"Score\":10}");
        peer_end(&p);
        end(&f);
}

static void a_lost_answer_is_no_lost_slice(void) {
        Fixture f;

        begin(&f);
        apply(&f, "%s", pod_text("a", 10));
        apply(&f, "%s", pod_text("b", 10));
        inject(&f, STORE_FAULT_LOSE_ANSWER, "POST", "/api/v1/namespaces/default/pods/a/binding", 1, 0);
        ASSERT_BIND(&f, "a", "n1", BOUND);
        ASSERT_BIND(&f, "b", "n1", "node n1: no card has 10 GiB of gpu-mem free");
        end(&f);
}

static void a_lost_request_gives_back(void) {
        Fixture f;

        begin(&f);
        apply(&f, "%s", pod_text("a", 10));
        inject(&f, STORE_FAULT_CUT, "POST", "/api/v1/namespaces/default/pods/a/binding", 2, 0);
        ASSERT_BIND(&f, "a", "n1", "\"Error\":\"");
        for (;;) { /* the second GET comes after a second; then another try may succeed */
                _cleanup_free_ char *answer = bind_pod(&f, "a", "n1");

                if (strcmp(answer, BOUND) == 0)
                        break;
                ASSERT_TRUE(sd_event_run(f.event, 100000) >= 0);
        }
        end(&f);
}

static void statuses_are_told_and_give_back(void) {
        static const unsigned statuses[] = {400, 403, 409, 410, 422, 429};
        Fixture f;

        begin(&f);
        apply(&f, "%s", pod_text("a", 15));
        for (size_t i = 0; i < ELEMENTSOF(statuses); i++) {
                inject(&f, STORE_FAULT_STATUS, "POST", "/api/v1/namespaces/default/pods/a/binding", 1,
                       statuses[i]);
                ASSERT_BIND(&f, "a", "n1", "\"Error\":\"");
                assert_restart_agrees(&f);
        }
        ASSERT_BIND(&f, "a", "n1", BOUND);
        end(&f);
}

static void a_pod_deleted_between_filter_and_bind(void) {
        char body[512];
        Answer a;
        Fixture f;

        begin(&f);
        apply(&f, "%s", pod_text("a", 4));
        bind_body(&f, "a", "n1", body);
        call(&f, f.client, "DELETE", "/api/v1/namespaces/default/pods/a?gracePeriodSeconds=0", "", &a);
        ASSERT_INT(a.status, 200);
        buf_done(&a.body);
        call(&f, f.us.client, "POST", "/gpushare-scheduler/bind", body, &a);
        ASSERT_INT(a.status, 200);
        ASSERT_CONTAINS(a.body.data, "\"Error\":\"");
        ASSERT_FALSE(strcmp(a.body.data, BOUND) == 0);
        buf_done(&a.body);
        end(&f);
}

static void watches_are_cut_and_histories_forgotten(void) {
        char name[16];
        Fixture f;

        begin(&f);
        for (unsigned i = 0; i < 6; i++) {
                (void) snprintf(name, sizeof name, "p%u", i);
                inject(&f, STORE_FAULT_CUT_WATCH, NULL, "/api/v1/pods", 1, 0);
                apply(&f, "%s", pod_text(name, 5));
                if (i % 2)
                        store_forget_history(f.store);
                ASSERT_BIND(&f, name, i % 3 ? "n2" : "n1", BOUND);
                assert_restart_agrees(&f);
        }
        end(&f);
}

static void the_api_server_goes_away_and_comes_back(void) {
        char body[512];
        Answer a;
        Fixture f;

        begin(&f);
        apply(&f, "%s", pod_text("a", 4));
        apply(&f, "%s", pod_text("b", 4));
        ASSERT_BIND(&f, "a", "n1", BOUND);
        bind_body(&f, "b", "n1", body);
        store_vanish(f.store, true);
        call(&f, f.us.client, "POST", "/gpushare-scheduler/bind", body, &a);
        ASSERT_INT(a.status, 200);
        ASSERT_CONTAINS(a.body.data, "\"Error\":\"");
        ASSERT_FALSE(strcmp(a.body.data, BOUND) == 0);
        buf_done(&a.body);
        ASSERT_TRUE(scheduler_is_ready(f.us.scheduler)); /* its view is as good as before */
        apply_node(&f, "n3", 4);                         /* meanwhile */
        store_forget_history(f.store);
        store_vanish(f.store, false);
        assert_restart_agrees(&f);
        for (;;) {
                _cleanup_free_ char *answer = bind_pod(&f, "b", "n3");

                if (strcmp(answer, BOUND) == 0)
                        break;
                ASSERT_TRUE(sd_event_run(f.event, 100000) >= 0);
        }
        end(&f);
}

static void a_hundred_at_once_never_overcommit(void) {
        static char bodies[100][512];
        Answer answers[100];
        unsigned bound = 0;
        char name[16];
        Fixture f;

        begin(&f);
        for (unsigned i = 0; i < 100; i++) {
                (void) snprintf(name, sizeof name, "p%u", i);
                apply(&f, "%s", pod_text(name, 4));
                bind_body(&f, name, i % 3 ? "n2" : "n1", bodies[i]);
        }
        inject(&f, STORE_FAULT_LOSE_ANSWER, "POST", "/api/v1/namespaces/default/pods/p", 3, 0);
        for (unsigned i = 0; i < 100; i++)
                send_to(f.us.client, "POST", "/gpushare-scheduler/bind", bodies[i], &answers[i]);
        for (unsigned i = 0; i < 100; i++) {
                TURN_UNTIL(&f, answers[i].done);
                ASSERT_INT(answers[i].status, 200);
                if (strcmp(answers[i].body.data, BOUND) == 0)
                        bound++;
                else
                        ASSERT_CONTAINS(answers[i].body.data, "no card has 4 GiB of gpu-mem free");
                buf_done(&answers[i].body);
        }
        ASSERT_INT(bound, 9); /* three of 4 on each of three cards of 15 */
        end(&f);
}

static void released(void *userdata) {
        *(bool *) userdata = true;
}

static bool is_bound_by(Fixture *f, const Peer *p, const char *body) {
        Answer a;
        bool bound;

        call(f, p->client, "POST", "/gpushare-scheduler/bind", body, &a);
        ASSERT_INT(a.status, 200);
        bound = strcmp(a.body.data, BOUND) == 0;
        if (!bound)
                ASSERT_CONTAINS(a.body.data, "this replica");
        buf_done(&a.body);
        return bound;
}

/* The second leader lists before it binds: it knows what the first has bound. */
static void leadership_is_handed_over(void) {
        char body_a[512], body_b[512];
        bool gone = false;
        Peer first, second;
        Fixture f;

        begin(&f);
        apply(&f, "%s", pod_text("a", 10));
        apply(&f, "%s", pod_text("b", 5));
        bind_body(&f, "a", "n1", body_a);
        bind_body(&f, "b", "n1", body_b);
        first = peer_start(&f, true, "first");
        TURN_UNTIL(&f, scheduler_is_ready(first.scheduler));
        while (!is_bound_by(&f, &first, body_a))
                ASSERT_TRUE(sd_event_run(f.event, 100000) >= 0);
        second = peer_start(&f, true, "second");
        TURN_UNTIL(&f, scheduler_is_ready(second.scheduler));
        ASSERT_FALSE(is_bound_by(&f, &second, body_b));
        ASSERT_OK(scheduler_release(first.scheduler, released, &gone));
        TURN_UNTIL(&f, gone);
        ASSERT_FALSE(is_bound_by(&f, &first, body_b));
        while (!is_bound_by(&f, &second, body_b))
                ASSERT_TRUE(sd_event_run(f.event, 100000) >= 0);
        peer_end(&first);
        peer_end(&second);
        end(&f);
}

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
#define UUID   "_11112222-3333-4444-5555-666677778888"

/* Writes the Lease as a kube-scheduler does. */
static void write_lease(Fixture *f, const char *method, const char *holder) {
        bool creates = strcmp(method, "POST") == 0;
        char body[512];
        Answer a;

        (void) snprintf(body, sizeof body,
                        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
                        "\"name\":\"l\",\"namespace\":\"kube-system\"},\"spec\":{\"holderIdentity\":\"%s\","
                        "\"leaseDurationSeconds\":15,\"renewTime\":\"2001-01-01T00:00:00.000000Z\"}}",
                        holder);
        a = (Answer){.body = BUF_NULL};
        ASSERT_OK(kube_call(f->client,
                            &(KubeRequest){.method = method,
                                           .path = creates ? LEASES : LEASES "/l",
                                           .content_type = creates ? NULL : "application/merge-patch+json",
                                           .body = str_from(body)},
                            on_answer, &a, NULL));
        TURN_UNTIL(f, a.done);
        ASSERT_INT(a.status / 100, 2);
        buf_done(&a.body);
}

static Peer replica_start(Fixture *f, bool follows, const char *identity) {
        Peer p = peer_start_with(f, (SchedulerOptions){.leader_election = true,
                                                       .identity = identity,
                                                       .kube_scheduler_lease = follows ? "l" : NULL,
                                                       .kube_scheduler_namespace = "kube-system"});

        TURN_UNTIL(f, scheduler_is_ready(p.scheduler));
        return p;
}

/* Asks for a Binding until the answer has the text, or, without one, until the replica leads. */
static char *bind_until(Fixture *f, const Peer *p, const char *body, const char *text) {
        for (;;) {
                char *answer = ask(f, p, "POST", "/gpushare-scheduler/bind", body);

                if (text ? strstr(answer, text) != NULL : !strstr(answer, "this replica"))
                        return answer;
                free(answer);
                ASSERT_TRUE(sd_event_run(f->event, 100000) >= 0);
        }
}

static void until_a_bind_is_open(Fixture *f, const Peer *p) {
        bool open = false;

        while (!open) {
                _cleanup_free_ char *metrics = ask(f, p, "GET", "/metrics", "");

                open = strstr(metrics, "aliquot_scheduler_binds_open 1\n");
        }
}

/* A Binding of the first leader is under way when the Lease is given back. The second leader must
 * not list before the API server has carried it out. follows: the Lease is kube-scheduler's. */
static void hand_over_with_an_open_bind(bool follows) {
        StoreFault slow = {.kind = STORE_FAULT_DELAY,
                           .method = "POST",
                           .path_prefix = "/api/v1/namespaces/default/pods/a/binding",
                           .count = 1,
                           .delay_usec = 3500000};
        _cleanup_free_ char *bound = NULL, *waits = NULL, *refused = NULL;
        char body_a[512], body_b[512], body_c[512];
        Peer first, second;
        bool gone = false;
        Answer a;
        Fixture f;

        begin(&f);
        apply(&f, "%s", pod_text("a", 10));
        apply(&f, "%s", pod_text("b", 10));
        apply(&f, "%s", pod_text("c", 1));
        bind_body(&f, "a", "n1", body_a);
        bind_body(&f, "b", "n1", body_b);
        bind_body(&f, "c", "n1", body_c);
        first = replica_start(&f, follows, "first");
        if (follows) {
                waits = bind_until(&f, &first, body_c, "does not exist");
                write_lease(&f, "POST", "first" UUID);
        }
        bound = bind_until(&f, &first, body_c, NULL);
        ASSERT_TEXT(bound, BOUND);
        second = replica_start(&f, follows, "second");
        free(TAKE_PTR(waits));
        waits = bind_until(&f, &second, body_b, follows ? "is held by first" : "this replica");
        ASSERT_OK(store_inject(f.store, &slow));
        send_to(first.client, "POST", "/gpushare-scheduler/bind", body_a, &a);
        until_a_bind_is_open(&f, &first);
        if (follows) {
                ASSERT_INT(scheduler_release(first.scheduler, released, &gone), 1);
                write_lease(&f, "PATCH", "");
                free(TAKE_PTR(waits));
                waits = bind_until(&f, &second, body_b, "has no holder");
                write_lease(&f, "PATCH", "second" UUID);
        } else
                ASSERT_OK(scheduler_release(first.scheduler, released, &gone));
        refused = bind_until(&f, &second, body_b, NULL);
        ASSERT_CONTAINS(refused, "no card has 10");
        TURN_UNTIL(&f, a.done && gone == !follows);
        ASSERT_TEXT(a.body.data, BOUND);
        buf_done(&a.body);
        peer_end(&first);
        peer_end(&second);
        end(&f);
}

static void a_lease_is_given_back_behind_the_last_binding(void) {
        hand_over_with_an_open_bind(false);
}

static void bindings_from_before_a_lease_was_given_back_are_awaited(void) {
        hand_over_with_an_open_bind(true);
}

/* Its lease may have expired while it was frozen. A request is read before the timer that would say
 * so. */
static void a_leader_that_was_frozen_does_not_bind(void) {
        char body_a[512], body_b[512];
        Peer first;
        Fixture f;

        begin(&f);
        apply(&f, "%s", pod_text("a", 10));
        apply(&f, "%s", pod_text("b", 5));
        bind_body(&f, "a", "n1", body_a);
        bind_body(&f, "b", "n1", body_b);
        first = peer_start(&f, true, "first");
        TURN_UNTIL(&f, scheduler_is_ready(first.scheduler));
        while (!is_bound_by(&f, &first, body_a))
                ASSERT_TRUE(sd_event_run(f.event, 100000) >= 0);
        frozen = true;
        ASSERT_FALSE(is_bound_by(&f, &first, body_b));
        frozen = false;
        while (!is_bound_by(&f, &first, body_b))
                ASSERT_TRUE(sd_event_run(f.event, 100000) >= 0);
        peer_end(&first);
        end(&f);
}

/* ---- what the leader writes on nodes and pods ---- */

static char *get_text(Fixture *f, const char *path) {
        Answer a;

        call(f, f->client, "GET", path, "", &a);
        ASSERT_INT(a.status, 200);
        return buf_take(&a.body);
}

/* Runs the loop until the object at `path` contains, or no longer contains, `text`. */
static void until_says(Fixture *f, const char *path, const char *text, bool says) {
        usec_t end = clock_monotonic_usec() + 300 * USEC_PER_SEC;

        for (;;) {
                _cleanup_free_ char *object = get_text(f, path);

                if ((strstr(object, text) != NULL) == says)
                        return;
                if (clock_monotonic_usec() > end)
                        TEST_FAIL_("%s: %s", path, object);
        }
}

static void apply_fence(Fixture *f, const char *devices) {
        apply(f,
              "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"n1-device-status\","
              "\"namespace\":\"kube-system\"},\"data\":{\"devices\":\"%s\"}}",
              devices);
}

/* ---- waking ---- */

static char *filter_on(Fixture *f, const char *pod) {
        _cleanup_free_ char *object = get_pod(f, pod);
        char args[4096];

        (void) snprintf(args, sizeof args, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[\"n1\"]}", object);
        return ask(f, &f->us, "POST", "/gpushare-scheduler/filter", args);
}

/* Filters until the answer has this text: the watch may lag. */
static void filter_until(Fixture *f, const char *pod, const char *text) {
        for (bool seen = false; !seen;) {
                _cleanup_free_ char *answer = filter_on(f, pod);

                seen = strstr(answer, text) != NULL;
        }
}

static bool is_kicked(Fixture *f, const char *pod) {
        _cleanup_free_ char *object = get_pod(f, pod);

        return strstr(object, "\"aliquot.dev/kick\"") != NULL;
}

/* kube-scheduler hears of no ConfigMap. Of the pods that no node took, those that fit the card now
 * are woken; once, and no others. */
static void a_fence_that_lifts_wakes_waiting_pods(void) {
        static const char *const waiting[] = {"a", "b"};
        char name[16];
        Fixture f;
        Answer a;

        begin(&f);
        apply(&f, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"unhealthy-gpu-n1\","
                  "\"namespace\":\"kube-system\"},\"data\":{\"gpus\":\"0\"}}");
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++) {
                apply(&f, "%s", pod_text(waiting[i], 4));
                filter_until(&f, waiting[i], "\"NodeNames\":[]");
        }
        apply(&f, "%s", pod_text("large", 40));
        filter_until(&f, "large", "\"NodeNames\":[]");
        apply(&f, "%s", pod_text("unasked", 4));
        for (int i = 0; i < 40; i++) { /* more than one turn wakes */
                (void) snprintf(name, sizeof name, "m%02d", i);
                apply(&f, "%s", pod_text(name, 4));
                filter_until(&f, name, "\"NodeNames\":[]");
        }
        ASSERT_FALSE(is_kicked(&f, "a"));
        call(&f, f.client, "DELETE", "/api/v1/namespaces/kube-system/configmaps/unhealthy-gpu-n1", "", &a);
        buf_done(&a.body);
        until_says(&f, "/api/v1/namespaces/default/pods/a", "\"aliquot.dev/kick\"", true);
        until_says(&f, "/api/v1/namespaces/default/pods/b", "\"aliquot.dev/kick\"", true);
        until_says(&f, "/api/v1/namespaces/default/pods/m39", "\"aliquot.dev/kick\"", true);
        ASSERT_FALSE(is_kicked(&f, "large"));
        ASSERT_FALSE(is_kicked(&f, "unasked"));
        end(&f);
}

/* ---- conditions ---- */

#define NODE_N1 "/api/v1/nodes/n1"
#define EVENTS  "/api/v1/events"

static void patch_fence(Fixture *f, const char *devices) {
        Answer a = {.body = BUF_NULL};
        char patch[128];

        (void) snprintf(patch, sizeof patch, "{\"data\":{\"devices\":\"%s\"}}", devices);
        ASSERT_OK(kube_merge_patch(f->client, "/api/v1/namespaces/kube-system/configmaps/n1-device-status",
                                   "", str_from(patch), STR(""), on_answer, &a, NULL));
        TURN_UNTIL(f, a.done);
        ASSERT_INT(a.status, 200);
        buf_done(&a.body);
}

static void a_wrong_fence_becomes_a_condition_and_goes_again(void) {
        _cleanup_free_ char *n2 = NULL, *first = NULL, *second = NULL;
        Fixture f;

        begin(&f);
        apply_fence(&f, "- {deviceId: x, healthy: false}\\n- {deviceId: 0, healthy: false}");
        until_says(&f, NODE_N1, "\"GPUFenceMisconfigured\"", true);
        until_says(&f, NODE_N1,
                   "configmap kube-system/n1-device-status: data.devices[0] is {\\\"deviceId\\\":\\\"x\\\",",
                   true);
        until_says(&f, NODE_N1, ": gpu0 fenced by it", true);
        until_says(&f, EVENTS, "\"GPUFenceMisconfigured\"", true);
        n2 = get_text(&f, "/api/v1/nodes/n2");
        ASSERT_TRUE(!strstr(n2, "GPUFenceMisconfigured"));
        /* A scheduler that starts now finds the object as it would write it, and writes nothing. */
        first = get_text(&f, NODE_N1);
        assert_restart_agrees(&f);
        second = get_text(&f, NODE_N1);
        ASSERT_TEXT(first, second);
        /* The ConfigMap is repaired while no scheduler runs: the next one updates the condition. */
        peer_end(&f.us);
        patch_fence(&f, "- {deviceId: 0, healthy: false}");
        f.us = peer_start(&f, false, NULL);
        until_says(&f, NODE_N1, "every ConfigMap that fences cards is understood", true);
        until_says(&f, NODE_N1, "gpu0 fenced by it", false);
        end(&f);
}

/* 404: the node is there again by the time of the answer. */
static void every_second_write_of_a_condition_fails(void) {
        static const unsigned statuses[] = {409, 429, 404};
        _cleanup_free_ char *first = NULL, *second = NULL;
        char devices[8], message[64];
        Fixture f;

        begin(&f);
        apply_fence(&f, "[]");
        for (unsigned i = 0; i < ELEMENTSOF(statuses); i++) {
                inject(&f, STORE_FAULT_STATUS, "PATCH", NODE_N1, 1, statuses[i]);
                inject(&f, STORE_FAULT_DELAY, "PATCH", NODE_N1, 1, 0); /* carried out */
                (void) snprintf(devices, sizeof devices, "%u", i);
                (void) snprintf(message, sizeof message, "data.devices is %u, must be a list", i);
                patch_fence(&f, devices);
                until_says(&f, NODE_N1, message, true);
        }
        first = get_text(&f, NODE_N1);
        assert_restart_agrees(&f); /* nothing is written again meanwhile */
        second = get_text(&f, NODE_N1);
        ASSERT_TEXT(first, second);
        end(&f);
}

static void differing_annotations_become_one_event(void) {
        Fixture f;

        begin(&f);
        apply(&f, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"less\",\"namespace\":"
                  "\"default\","
                  "\"annotations\":{\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":2}}"
                  "\"}},\"spec\":{"
                  "\"nodeName\":\"n2\",\"containers\":[{\"name\":\"main\",\"image\":\"i\",\"resources\":{"
                  "\"limits\":{"
                  "\"aliyun.com/gpu-mem\":\"5\"}}}]}}");
        until_says(&f, EVENTS, "\"GPUAllocationDiffers\"", true);
        until_says(&f, EVENTS, "2 of aliyun.com/gpu-mem, its limit is 5; the limits count", true);
        apply(&f, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n3\",\"labels\":{"
                  "\"ack.node.gpu.schedule\":\"core-mem\"}}}");
        until_says(&f, EVENTS, "\"GPUShareMisconfigured\"", true);
        until_says(&f, EVENTS, "ack.node.gpu.schedule is \\\"core-mem\\\", must be share, cgpu, core_mem,",
                   true);
        end(&f);
}

int main(void) {
        return TEST_MAIN(
                TEST(filters_prioritizes_and_binds), TEST(the_order_of_nodes_is_an_option),
                TEST(a_fence_that_lifts_wakes_waiting_pods), TEST(a_lost_answer_is_no_lost_slice),
                TEST(a_lost_request_gives_back), TEST(statuses_are_told_and_give_back),
                TEST(a_pod_deleted_between_filter_and_bind), TEST(watches_are_cut_and_histories_forgotten),
                TEST(the_api_server_goes_away_and_comes_back), TEST(a_hundred_at_once_never_overcommit),
                TEST(leadership_is_handed_over), TEST(a_lease_is_given_back_behind_the_last_binding),
                TEST(bindings_from_before_a_lease_was_given_back_are_awaited),
                TEST(a_wrong_fence_becomes_a_condition_and_goes_again),
                TEST(every_second_write_of_a_condition_fails), TEST(differing_annotations_become_one_event),
                TEST(a_leader_that_was_frozen_does_not_bind));
}
