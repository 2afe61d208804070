/* SPDX-License-Identifier: Apache-2.0 */

/* The binder against an API server that answers as the test says, in any order. Each test checks
 * the outcome of a Binding and what it does to the reservation. A second view, made from the pods
 * of the API server alone, must have the same sums. */

#include "fake_api.h"
#include "fixture.h"
#include "random.h"
#include "scheduler/bind/binder.h"

enum { CARD = 15, N_NODES = 3 };

typedef struct Fixture {
        sd_event *event;
        View *view;
        Metrics metrics;
        SchedulerContext context;
        Binder *binder;
        bool deposed; /* not the leader any more */
} Fixture;

typedef struct Answer {
        unsigned n;
        char error[1024];
} Answer;

static void on_done(void *userdata, const char *error) {
        Answer *a = userdata;

        a->n++;
        (void) snprintf(a->error, sizeof a->error, "%s", error);
}

static void list_nodes(View *v) {
        char name[16];

        view_list_begin(v, VIEW_NODES);
        for (unsigned i = 1; i <= N_NODES; i++) {
                (void) snprintf(name, sizeof name, "n%u", i);
                feed(v, VIEW_NODES, REFLECTOR_LISTED, node_json(name, "cgpu", CARD * i, i, ""));
        }
        view_list_end(v, VIEW_NODES);
}

static Fixture setup(void) {
        Fixture f = {0};

        ASSERT_TRUE(sd_event_new(&f.event) >= 0);
        ASSERT_OK(view_new(&f.view));
        list_nodes(f.view);
        view_list_begin(f.view, VIEW_PODS);
        view_list_end(f.view, VIEW_PODS);
        return f;
}

static const char *may_not_act(void *userdata) {
        return ((Fixture *) userdata)->deposed ? "this replica is not the leader" : NULL;
}

/* The context is in the fixture, which the caller owns: the binder points to it. */
static void start(Fixture *f) {
        f->context = (SchedulerContext){.client = fake_client(f->event),
                                        .view = f->view,
                                        .metrics = &f->metrics,
                                        .recorder = (KubeEventRecorder *) f, /* never dereferenced */
                                        .may_not_act = may_not_act,
                                        .userdata = f};
        ASSERT_OK(binder_new(&f->context, 1, &f->binder));
}

static void teardown(Fixture *f) {
        binder_free(f->binder);
        ASSERT_INT(fake_n_calls(), 0);
        view_free(f->view);
        sd_event_unref(f->event);
}

static Bind *bind_uid(Fixture *f, const char *name, const char *uid, const char *node, Answer *a) {
        BindingArgs args = {.name = str_from(name),
                            .namespace_ = STR("default"),
                            .uid = str_from(uid),
                            .node = str_from(node)};
        Bind *bind;

        binder_bind(f->binder, &args, on_done, a, &bind);
        ASSERT_INT(bind == NULL, a->n > 0);
        ASSERT_TRUE(ledger_check(f->view->ledger));
        return bind;
}

static Bind *bind_pod(Fixture *f, const char *name, const char *node, Answer *a) {
        char uid[64];

        (void) snprintf(uid, sizeof uid, "uid-%s", name);
        return bind_uid(f, name, uid, node, a);
}

static void see(Fixture *f, const char *pod) {
        feed(f->view, VIEW_PODS, REFLECTOR_MODIFIED, pod);
}

#define WAITING(name, ...) pod_json(name, .phase = "Pending", .state = "waiting", .mem = __VA_ARGS__)

/* A pod of our profile without a share. */
#define NOTHING(pod, more)                                                                                   \
        pod_json(pod, .phase = "Pending", .state = "waiting",                                                \
                 .spec = "\"schedulerName\":\"ack-co-scheduler\",", .annotations = more)

/* Runs the loop until the next GET, which waits for a timer. */
static KubeCall *next_get(Fixture *f) {
        while (!fake_call(FAKE_GET))
                ASSERT_TRUE(sd_event_run(f->event, UINT64_MAX) >= 0);
        return fake_call(FAKE_GET);
}

/* The pod as the API server has it after the Binding. */
static const char *bound_by(const KubeCall *binding, const char *units) {
        static char allocation[4][256], time[4][32];
        static unsigned turn;
        char *a = allocation[++turn % 4], *t = time[turn % 4];
        const char *from = strstr(fake_annotations(binding), "gpushare.allocation\":\"");
        const char *when = strstr(fake_annotations(binding), "assume-time\":\"");

        from += strlen("gpushare.allocation\":\"");
        (void) snprintf(a, sizeof allocation[0], "%.*s", (int) (strstr(from, "}}\"") + 2 - from), from);
        when += strlen("assume-time\":\"");
        (void) snprintf(t, sizeof time[0], "%.*s", (int) strspn(when, "0123456789"), when);
        return pod_json(fake_name(binding), .uid = fake_uid(binding), .mem = units,
                        .node = fake_node(binding), .allocation = a, .assume_time = t);
}

static void reserve_and_post(Fixture *f, const char *name, const char *node, Answer *a) {
        see(f, WAITING(name, "4"));
        ASSERT_TRUE(bind_pod(f, name, node, a) != NULL);
        ASSERT_TRUE(fake_call(FAKE_BIND) != NULL);
        ASSERT_USED(f->view, node, 0, 4);
}

/* ---- outcomes ---- */

static void binds_with_one_call(void) {
        Fixture f = setup();
        Answer a = {0};
        KubeCall *call;

        start(&f);
        see(&f, WAITING("a", "4"));
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &a) != NULL);
        ASSERT_INT(fake_n_calls(), 1);
        call = fake_call(FAKE_BIND);
        ASSERT_TEXT(fake_uid(call), "uid-a");
        ASSERT_TEXT(fake_node(call), "n1");
        ASSERT_CONTAINS(fake_annotations(call),
                        "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":4}}\"");
        ASSERT_CONTAINS(fake_annotations(call), "\"scheduler.framework.gpushare.assigned\":\"false\"");
        ASSERT_CONTAINS(fake_annotations(call), "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"");
        ASSERT_CONTAINS(fake_annotations(call), "\"ALIYUN_COM_GPU_MEM_DEV\":\"15\"");
        ASSERT_INT(a.n, 0);
        fake_reply(call, KUBE_DONE, 201, "");
        ASSERT_INT(a.n, 1);
        ASSERT_TEXT(a.error, "");
        ASSERT_USED(f.view, "n1", 0, 4);
        ASSERT_INT(binder_n_open(f.binder), 0);
        /* First an older event, then the bound pod, then the same request again. */
        see(&f, WAITING("a", "4"));
        ASSERT_USED(f.view, "n1", 0, 4);
        see(&f, pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":4}}"));
        ASSERT_USED(f.view, "n1", 0, 4);
        a = (Answer){0};
        ASSERT_FALSE(bind_pod(&f, "a", "n1", &a));
        ASSERT_TEXT(a.error, "");
        a = (Answer){0};
        ASSERT_FALSE(bind_pod(&f, "a", "n2", &a));
        ASSERT_TEXT(a.error, "pod default/a has been bound to node n1 already");
        ASSERT_INT(f.metrics.binds[METRICS_BIND_BOUND], 1);
        ASSERT_INT(f.metrics.binds[METRICS_BIND_ALREADY], 1);
        teardown(&f);
}

static void a_refusal_of_the_api_server_gives_back(void) {
        static const struct {
                KubeOutcome outcome;
                unsigned status;
        } cases[] = {{KUBE_DONE, 400}, {KUBE_DONE, 403}, {KUBE_DONE, 404},
                     {KUBE_DONE, 422}, {KUBE_DONE, 429}, {KUBE_NOT_SENT, 0}};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fixture f = setup();
                Answer a = {0};

                start(&f);
                reserve_and_post(&f, "a", "n1", &a);
                fake_reply(fake_call(FAKE_BIND), cases[i].outcome, cases[i].status, "");
                ASSERT_INT(a.n, 1);
                ASSERT_CONTAINS(a.error, "the API server said");
                ASSERT_USED(f.view, "n1", 0, 0);
                ASSERT_INT(fake_n_calls(), 0);
                ASSERT_INT(f.metrics.binds[METRICS_BIND_REJECTED], 1);
                /* May be tried again. */
                ASSERT_TRUE(view_pod_find(f.view, STR("uid-a"))->request != NULL);
                a = (Answer){0};
                ASSERT_TRUE(bind_pod(&f, "a", "n2", &a) != NULL);
                teardown(&f);
        }
}

static void a_lost_answer_is_settled_by_a_get(void) {
        static const struct {
                KubeOutcome outcome;
                unsigned status;
        } cases[] = {{KUBE_UNKNOWN, 0}, {KUBE_DONE, 500}, {KUBE_DONE, 504}, {KUBE_DONE, 409}};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fixture f = setup();
                Answer a = {0};
                const char *bound;

                start(&f);
                reserve_and_post(&f, "a", "n1", &a);
                bound = bound_by(fake_call(FAKE_BIND), "4");
                fake_reply(fake_call(FAKE_BIND), cases[i].outcome, cases[i].status, "");
                ASSERT_INT(a.n, 0);
                ASSERT_USED(f.view, "n1", 0, 4);
                fake_reply(next_get(&f), KUBE_DONE, 200, bound);
                ASSERT_INT(a.n, 1);
                ASSERT_TEXT(a.error, "");
                ASSERT_USED(f.view, "n1", 0, 4);
                ASSERT_INT(f.metrics.binds[METRICS_BIND_BOUND], 1);
                ASSERT_INT(f.metrics.binds[METRICS_BIND_UNKNOWN], cases[i].status != 409);
                teardown(&f);
        }
}

static void the_reservation_stays_until_the_outcome_is_known(void) {
        Fixture f = setup();
        Answer a = {0};
        const char *bound;

        start(&f);
        reserve_and_post(&f, "a", "n1", &a);
        bound = bound_by(fake_call(FAKE_BIND), "4");
        fake_reply(fake_call(FAKE_BIND), KUBE_UNKNOWN, 0, "");
        fake_reply(next_get(&f), KUBE_NOT_SENT, 0, ""); /* the API server is away */
        ASSERT_INT(a.n, 1);
        ASSERT_CONTAINS(a.error, "it is not known yet whether pod default/a was bound to node n1");
        for (unsigned i = 0; i < 20; i++) {
                fake_reply(next_get(&f), i % 2 ? KUBE_UNKNOWN : KUBE_DONE, i % 2 ? 0 : 500, "");
                ASSERT_USED(f.view, "n1", 0, 4);
        }
        /* Lists and events meanwhile change nothing, and a second request is refused. */
        see(&f, WAITING("a", "4"));
        view_list_begin(f.view, VIEW_PODS);
        feed(f.view, VIEW_PODS, REFLECTOR_LISTED, WAITING("a", "4"));
        view_list_end(f.view, VIEW_PODS);
        ASSERT_USED(f.view, "n1", 0, 4);
        a = (Answer){0};
        ASSERT_FALSE(bind_pod(&f, "a", "n2", &a));
        ASSERT_CONTAINS(a.error, "is being bound to node n1, whose outcome is still open");
        fake_reply(next_get(&f), KUBE_DONE, 200, bound);
        ASSERT_USED(f.view, "n1", 0, 4);
        ASSERT_INT(binder_n_open(f.binder), 0);
        teardown(&f);
}

static void not_bound_is_believed_the_second_time(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        reserve_and_post(&f, "a", "n1", &a);
        fake_reply(fake_call(FAKE_BIND), KUBE_UNKNOWN, 0, "");
        fake_reply(next_get(&f), KUBE_DONE, 200, WAITING("a", "4"));
        ASSERT_INT(a.n, 1); /* kube-scheduler has its answer before the second GET */
        ASSERT_USED(f.view, "n1", 0, 4);
        fake_reply(next_get(&f), KUBE_DONE, 200, WAITING("a", "4"));
        ASSERT_USED(f.view, "n1", 0, 0);
        ASSERT_INT(binder_n_open(f.binder), 0);
        teardown(&f);
}

static void bound_late_counts(void) {
        Fixture f = setup();
        Answer a = {0};
        const char *bound;

        start(&f);
        reserve_and_post(&f, "a", "n1", &a);
        bound = bound_by(fake_call(FAKE_BIND), "4");
        fake_reply(fake_call(FAKE_BIND), KUBE_UNKNOWN, 0, "");
        fake_reply(next_get(&f), KUBE_DONE, 200, WAITING("a", "4"));
        fake_reply(next_get(&f), KUBE_DONE, 200, bound);
        ASSERT_USED(f.view, "n1", 0, 4);
        ASSERT_INT(f.metrics.binds[METRICS_BIND_BOUND], 1);
        teardown(&f);
}

static void a_conflict_that_is_not_bound_gives_back(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        reserve_and_post(&f, "a", "n1", &a);
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 409, "");
        fake_reply(next_get(&f), KUBE_DONE, 200, WAITING("a", "4"));
        ASSERT_CONTAINS(a.error, "the API server said 409");
        ASSERT_USED(f.view, "n1", 0, 0);
        teardown(&f);
}

static void bound_by_another_scheduler_counts_where_it_is(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        reserve_and_post(&f, "a", "n1", &a);
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 409, "");
        fake_reply(next_get(&f), KUBE_DONE, 200,
                   pod_json("a", .mem = "4", .node = "n2", .allocation = "{\\\"0\\\":{\\\"1\\\":4}}"));
        ASSERT_TEXT(a.error, "pod default/a has been bound to node n2 by somebody else");
        ASSERT_USED(f.view, "n1", 0, 0);
        ASSERT_USED(f.view, "n2", 1, 4);
        ASSERT_INT(f.metrics.binds[METRICS_BIND_ELSEWHERE], 1);
        ASSERT_CONTAINS(fake_last_note(), "by somebody else");
        teardown(&f);
}

static void a_pod_that_is_gone_gives_back(void) {
        for (unsigned another = 0; another < 2; another++) {
                Fixture f = setup();
                Answer a = {0};

                start(&f);
                reserve_and_post(&f, "a", "n1", &a);
                fake_reply(fake_call(FAKE_BIND), KUBE_UNKNOWN, 0, "");
                if (another)
                        fake_reply(next_get(&f), KUBE_DONE, 200,
                                   pod_json("a", .uid = "other", .mem = "4", .node = "n1"));
                else
                        fake_reply(next_get(&f), KUBE_DONE, 404, "");
                ASSERT_CONTAINS(a.error, "pod default/a is gone");
                ASSERT_USED(f.view, "n1", 0, 0);
                teardown(&f);
        }
}

/* ---- the watch is faster ---- */

static void the_watch_may_say_it_first(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        reserve_and_post(&f, "a", "n1", &a);
        see(&f, bound_by(fake_call(FAKE_BIND), "4"));
        ASSERT_USED(f.view, "n1", 0, 4);
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_TEXT(a.error, "");
        ASSERT_USED(f.view, "n1", 0, 4);
        teardown(&f);
}

/* 500: the GET after it was answered before the deletion. 0: so was the GET of a fetch. 504: it was
 * answered before the pod ended. */
static void deleted_while_it_is_being_bound(void) {
        static const unsigned status[] = {404, 409, 201, 500, 0, 504};

        for (size_t i = 0; i < ELEMENTSOF(status); i++) {
                const char *ended = pod_json("a", .node = "n1", .phase = "Failed", .state = ""), *bound;
                Fixture f = setup();
                Answer a = {0};

                start(&f);
                status[i] > 0 ? reserve_and_post(&f, "a", "n1", &a) : (void) bind_pod(&f, "a", "n1", &a);
                bound = status[i] > 0 ? bound_by(fake_call(FAKE_BIND), "4") : WAITING("a", "4");
                feed(f.view, VIEW_PODS, status[i] == 504 ? REFLECTOR_MODIFIED : REFLECTOR_DELETED, ended);
                ASSERT_USED(f.view, "n1", 0, 0);
                if (status[i] > 0)
                        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, status[i], "");
                if (fake_n_calls() > 0)
                        fake_reply(next_get(&f), KUBE_DONE, status[i] == 409 ? 404 : 200, bound);
                ASSERT_INT(a.n, 1);
                ASSERT_INT(a.error[0] == '\0', status[i] == 201 || status[i] == 504);
                ASSERT_USED(f.view, "n1", 0, 0);
                ASSERT_INT(HASH_COUNT(f.view->pods), 0);
                teardown(&f);
        }
}

static void what_the_watch_replaced_is_not_given_back(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        reserve_and_post(&f, "a", "n1", &a);
        see(&f, pod_json("a", .mem = "4", .node = "n2", .allocation = "{\\\"0\\\":{\\\"0\\\":4}}"));
        ASSERT_USED(f.view, "n1", 0, 0);
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 403, "");
        ASSERT_USED(f.view, "n2", 0, 4);
        teardown(&f);
}

/* ---- pods that are not in the view ---- */

static void fetches_what_it_does_not_know(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &a) != NULL);
        fake_reply(fake_call(FAKE_GET), KUBE_DONE, 200, WAITING("a", "4"));
        ASSERT_USED(f.view, "n1", 0, 4);
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_TEXT(a.error, "");
        see(&f, WAITING("a", "4")); /* its ADDED comes late */
        ASSERT_USED(f.view, "n1", 0, 4);
        teardown(&f);
}

static void a_leader_that_was_deposed_meanwhile_sends_no_binding(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &a) != NULL);
        f.deposed = true;
        fake_reply(fake_call(FAKE_GET), KUBE_DONE, 200, WAITING("a", "4"));
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_TEXT(a.error, "this replica is not the leader");
        ASSERT_USED(f.view, "n1", 0, 0);
        teardown(&f);
}

/* Another replica has bound the pod after the GET was answered, and the watch has brought it. */
static void what_was_fetched_may_be_older_than_the_view(void) {
        static const char *const nodes[] = {"n2", "n3"};

        for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
                Fixture f = setup();
                Answer a = {0};

                start(&f);
                ASSERT_TRUE(bind_pod(&f, "a", nodes[i], &a) != NULL);
                see(&f, pod_json("a", .mem = "4", .node = "n2", .allocation = "{\\\"0\\\":{\\\"1\\\":4}}"));
                fake_reply(fake_call(FAKE_GET), KUBE_DONE, 200, WAITING("a", "4"));
                ASSERT_INT(fake_n_calls(), 0);
                ASSERT_INT(a.n, 1);
                if (i == 0)
                        ASSERT_TEXT(a.error, "");
                else
                        ASSERT_CONTAINS(a.error, "has been bound to node n2 already");
                ASSERT_USED(f.view, "n2", 0, 0);
                ASSERT_USED(f.view, "n2", 1, 4);
                feed(f.view, VIEW_PODS, REFLECTOR_DELETED,
                     pod_json("a", .mem = "4", .node = "n2", .allocation = "{\\\"0\\\":{\\\"1\\\":4}}"));
                ASSERT_USED(f.view, "n2", 1, 0);
                teardown(&f);
        }
}

static void what_was_fetched_may_not_be_bindable(void) {
        static const struct {
                unsigned status;
                const char *error;
                PodText pod;
        } cases[] = {
                {404, "pod default/a is gone", {0}},
                {500, "the API server said 500", {0}},
                {200,
                 "with UID uid-a is gone, another one has its name",
                 {.name = "a", .uid = "u2", .mem = "4"}},
                {200, "is being deleted", {.name = "a", .mem = "4", .terminating = true}},
                {200, "has been bound to node n2 already", {.name = "a", .mem = "4", .node = "n2"}},
                {200, "is 33, must be a multiple of 5", {.name = "a", .mem = "4", .core = "33"}},
                {200, "node n1: no card is large enough for 16 GiB of gpu-mem", {.name = "a", .mem = "16"}},
                {200, "", {.name = "a", .mem = "4", .node = "n1"}},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fixture f = setup();
                Answer a = {0};

                start(&f);
                ASSERT_TRUE(bind_pod(&f, "a", "n1", &a) != NULL);
                fake_reply(fake_call(FAKE_GET), KUBE_DONE, cases[i].status,
                           cases[i].status == 200 ? pod_json_(cases[i].pod) : "");
                ASSERT_INT(a.n, 1);
                ASSERT_CONTAINS(a.error, cases[i].error);
                ASSERT_INT(a.error[0] == '\0', cases[i].error[0] == '\0');
                ASSERT_INT(fake_n_calls(), 0);
                ASSERT_TRUE(ledger_check(f.view->ledger));
                teardown(&f);
        }
}

static void pods_of_others_are_bound_without_annotations(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        ASSERT_TRUE(bind_pod(&f, "web", "n1", &a) != NULL);
        fake_reply(fake_call(FAKE_GET), KUBE_DONE, 200, pod_json("web", .phase = "Pending"));
        ASSERT_TEXT(fake_annotations(fake_call(FAKE_BIND)), "{}");
        fake_reply(fake_call(FAKE_BIND), KUBE_UNKNOWN, 0, "");
        fake_reply(next_get(&f), KUBE_DONE, 200, pod_json("web", .node = "n1"));
        ASSERT_INT(a.n, 1);
        ASSERT_TEXT(a.error, "");
        ASSERT_INT(HASH_COUNT(f.view->pods), 0);
        teardown(&f);
}

#define FORGED                                                                                               \
        ",\"aliquot.dev/init-allocation\":\"{\\\"0\\\":{\\\"0\\\":15}}\",\"aliquot.dev/gpu-core\":\"5\","    \
        "\"gpushare.alibabacloud.com/core-percentage\":\"{\\\"0\\\":{\\\"3\\\":100}}\""

static void assert_emptied(const char *annotations) {
        ASSERT_CONTAINS(annotations, "\"aliquot.dev/init-allocation\":\"\"");
        ASSERT_CONTAINS(annotations, "\"gpushare.alibabacloud.com/core-percentage\":\"\"");
        ASSERT_TRUE(!strstr(annotations, "gpu-core") && !strstr(annotations, "resize-status"));
}

#define TWO_CARDS                                                                                            \
        ",\"annotations\":{\"aliquot.dev/"                                                                   \
        "cards\":\"[{\\\"index\\\":0,\\\"units\\\":15,\\\"uuid\\\":\\\"GPU-0\\\","                           \
        "\\\"model\\\":\\\"Tesla "                                                                           \
        "V100\\\"},{\\\"index\\\":1,\\\"units\\\":15,\\\"uuid\\\":\\\"GPU-1\\\",\\\"model\\\":"              \
        "\\\"NVIDIA A100\\\"}]\"}"

static void a_bind_takes_a_card_that_the_pod_chose(void) {
        Answer seen = {0}, fetched = {0}, none = {0};
        Fixture f = setup();

        start(&f);
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("two", "cgpu", 30, 2, TWO_CARDS));
        see(&f, pod_json("a", .mem = "4", .phase = "Pending", .state = "waiting",
                         .annotations = ",\"nvidia.com/use-gputype\":\"a100\""));
        ASSERT_TRUE(bind_pod(&f, "a", "two", &seen) != NULL);
        ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_BIND)), "\\\"0\\\":{\\\"1\\\":4}}");
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_TRUE(bind_pod(&f, "b", "two", &fetched) != NULL);
        fake_reply(fake_call(FAKE_GET), KUBE_DONE, 200,
                   pod_json("b", .mem = "4", .phase = "Pending", .state = "waiting",
                            .annotations = ",\"aliquot.dev/gpu-uuid\":\"!GPU-1\""));
        ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_BIND)), "\\\"0\\\":{\\\"0\\\":4}}");
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        see(&f, pod_json("c", .mem = "12", .phase = "Pending", .state = "waiting",
                         .annotations = ",\"aliquot.dev/gpu-type\":\"A100\""));
        ASSERT_TRUE(bind_pod(&f, "c", "two", &none) == NULL);
        ASSERT_CONTAINS(none.error, "no card of type A100 has 12 GiB of gpu-mem free");
        teardown(&f);
}

/* A Binding cannot remove keys: those that a user wrote, and that get no value, must be emptied. */
static void a_binding_empties_the_other_system_keys(void) {
        Answer seen = {0}, fetched = {0}, plain = {0};
        Fixture f = setup();

        start(&f);
        see(&f, pod_json("a", .mem = "4", .phase = "Pending", .state = "waiting", .annotations = FORGED));
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &seen) != NULL);
        assert_emptied(fake_annotations(fake_call(FAKE_BIND)));
        ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_BIND)), "\\\"0\\\":{\\\"0\\\":4}}");
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_TRUE(bind_pod(&f, "b", "n2", &fetched) != NULL);
        fake_reply(fake_call(FAKE_GET), KUBE_DONE, 200,
                   pod_json("b", .mem = "4", .phase = "Pending", .state = "waiting", .annotations = FORGED));
        assert_emptied(fake_annotations(fake_call(FAKE_BIND)));
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_TRUE(bind_pod(&f, "web", "n1", &plain) != NULL); /* a pod without a share */
        fake_reply(fake_call(FAKE_GET), KUBE_DONE, 200,
                   pod_json("web", .phase = "Pending", .annotations = FORGED));
        assert_emptied(fake_annotations(fake_call(FAKE_BIND)));
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        teardown(&f);
}

/* The view knows what a Binding of such a pod must empty. */
static void a_pod_that_asks_for_nothing_is_not_fetched(void) {
        Answer first = {0}, again = {0}, other = {0};
        Fixture f = setup();

        start(&f);
        see(&f, NOTHING("web", FORGED));
        ASSERT_TRUE(bind_pod(&f, "web", "n1", &first) != NULL);
        ASSERT_INT(fake_n_calls(), 1);
        assert_emptied(fake_annotations(fake_call(FAKE_BIND)));
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 403, "");
        ASSERT_CONTAINS(first.error, "the API server said");
        /* The mark stays for the next attempt, and ends with the Binding. */
        ASSERT_TRUE(bind_pod(&f, "web", "n2", &again) != NULL);
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_TEXT(again.error, "");
        ASSERT_FALSE(view_pod_find(f.view, STR("uid-web")));
        /* Pods of other schedulers leave no mark. */
        see(&f, pod_json("db", .phase = "Pending"));
        ASSERT_TRUE(bind_pod(&f, "db", "n1", &other) != NULL);
        ASSERT_TRUE(fake_call(FAKE_GET) != NULL);
        teardown(&f);
}

/* A lost answer: the GET says that the pod is on its node. */
static void a_lost_answer_about_a_pod_that_asks_for_nothing(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        see(&f, NOTHING("web", NULL));
        ASSERT_TRUE(bind_pod(&f, "web", "n1", &a) != NULL);
        fake_reply(fake_call(FAKE_BIND), KUBE_UNKNOWN, 0, "");
        fake_reply(fake_call(FAKE_GET), KUBE_DONE, 200, pod_json("web", .node = "n1"));
        ASSERT_INT(a.n, 1);
        ASSERT_TEXT(a.error, "");
        ASSERT_FALSE(view_pod_find(f.view, STR("uid-web")));
        teardown(&f);
}

/* ---- many at once ---- */

enum { MANY = 100 };

static Bind *bind_nothing(Fixture *f, unsigned i, Answer *a) {
        static char name[16];

        (void) snprintf(name, sizeof name, "w%03u", i);
        see(f, NOTHING(name, NULL));
        return bind_pod(f, name, "n1", a);
}

/* The client has connections for some Bindings. The time of the others must not pass before they
 * are sent, so they wait in the binder. */
static void bindings_wait_for_their_turn(void) {
        static Answer answers[MANY];
        Fixture f = setup();
        size_t at_once;

        start(&f);
        for (unsigned i = 0; i < MANY; i++)
                ASSERT_TRUE(bind_nothing(&f, i, &answers[i]) != NULL);
        at_once = fake_n_calls();
        ASSERT_TRUE(at_once > 1 && at_once <= KUBE_MAX_CONNECTIONS / 2);
        ASSERT_INT(binder_n_open(f.binder), MANY);
        for (unsigned i = 0; i < MANY; i++) {
                char name[16];

                (void) snprintf(name, sizeof name, "w%03u", i);
                ASSERT_INT(fake_n_calls(), at_once < MANY - i ? at_once : MANY - i);
                ASSERT_TEXT(fake_name(fake_call(FAKE_BIND)), name); /* the oldest */
                ASSERT_INT(answers[i].n, 0);
                fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
                ASSERT_INT(answers[i].n, 1);
                ASSERT_TEXT(answers[i].error, "");
        }
        ASSERT_INT(binder_n_open(f.binder), 0);
        teardown(&f);
}

/* A GET takes the connection of its Binding: no new one is sent meanwhile. */
static void lost_answers_keep_their_turns(void) {
        static Answer answers[MANY];
        Fixture f = setup();
        size_t at_once;

        start(&f);
        for (unsigned i = 0; i < MANY; i++)
                ASSERT_TRUE(bind_nothing(&f, i, &answers[i]) != NULL);
        at_once = fake_n_calls();
        for (size_t i = 0; i < at_once; i++)
                fake_reply(fake_call(FAKE_BIND), KUBE_UNKNOWN, 0, "");
        ASSERT_INT(fake_n_calls(), at_once);
        ASSERT_FALSE(fake_call(FAKE_BIND));
        fake_reply(fake_call(FAKE_GET), KUBE_UNKNOWN, 0, "");
        ASSERT_INT(fake_n_calls(), at_once);
        ASSERT_TRUE(fake_call(FAKE_BIND));
        binder_free(TAKE_PTR(f.binder));
        teardown(&f);
}

/* The API server answers nothing for long: the later GETs wait for their turn, too. */
static void later_gets_wait_for_their_turn(void) {
        static Answer answers[MANY];
        Fixture f = setup();
        size_t at_once;

        start(&f);
        for (unsigned i = 0; i < MANY; i++)
                ASSERT_TRUE(bind_nothing(&f, i, &answers[i]) != NULL);
        at_once = fake_n_calls();
        for (unsigned i = 0; i < MANY; i++) {
                fake_reply(fake_call(FAKE_BIND), KUBE_UNKNOWN, 0, "");
                fake_reply(fake_call(FAKE_GET), KUBE_UNKNOWN, 0, "");
        }
        ASSERT_INT(fake_n_calls(), 0);
        for (unsigned i = 0; i < MANY; i++) /* their timers end */
                ASSERT_TRUE(sd_event_run(f.event, 60 * USEC_PER_SEC) > 0);
        for (unsigned i = 0; i < MANY; i++) {
                ASSERT_INT(fake_n_calls(), at_once < MANY - i ? at_once : MANY - i);
                fake_reply(fake_call(FAKE_GET), KUBE_DONE, 200,
                           pod_json(fake_name(fake_call(FAKE_GET)), .node = "n1"));
        }
        ASSERT_INT(binder_n_open(f.binder), 0);
        teardown(&f);
}

static void a_bind_is_given_up_while_its_pod_is_fetched(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        binder_abandon(bind_pod(&f, "a", "n1", &a));
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_INT(binder_n_open(f.binder), 0);
        ASSERT_INT(a.n, 0);
        teardown(&f);
}

static void a_queued_bind_is_given_up_before_it_is_sent(void) {
        Answer gone = {0}, late = {0}, first = {0}, own = {0};
        Fixture f = setup();
        unsigned n = 0;
        Bind *bind, *left;

        start(&f);
        do
                ASSERT_TRUE(bind_nothing(&f, n++, &first) != NULL);
        while (fake_n_calls() == n);
        /* With a share: its reservation is given back. */
        see(&f, WAITING("g", "4"));
        left = bind_pod(&f, "g", "n1", &gone);
        ASSERT_USED(f.view, "n1", 0, 4);
        bind = bind_pod(&f, "g", "n1", &late);
        ASSERT_TRUE(bind == NULL && strstr(late.error, "is being bound to node n1"));
        binder_abandon(left);
        ASSERT_INT(gone.n, 0);
        ASSERT_USED(f.view, "n1", 0, 0);
        ASSERT_INT(fake_n_calls(), n - 1);
        ASSERT_TRUE(bind_pod(&f, "g", "n1", &own) != NULL);
        /* Leadership ends while it waits. */
        f.deposed = true;
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_TEXT(own.error, "this replica is not the leader");
        ASSERT_USED(f.view, "n1", 0, 0);
        ASSERT_INT(fake_n_calls(), n - 2);
        binder_free(TAKE_PTR(f.binder));
        teardown(&f);
}

/* ---- the Event of a bind ---- */

static void the_cards_stand_in_an_event(void) {
        static const struct {
                PodText pod;
                const char *node, *note;
        } cases[] = {
                {{.name = "a", .mem = "4"}, "n1", "4 GiB of gpu0 on n1"},
                {{.name = "b", .mem = "3", .core = "30"}, "c1", "3 GiB and 30 percent of gpu0 on c1"},
                {{.name = "c", .mem = "16", .labels = "\"aliyun.com/gpu-count\":\"2\""},
                 "n2",
                 "8 GiB of each of gpu0, gpu1 on n2"},
                {{.name = "d", .mem = "16"}, "u1", "16 x 128MiB of gpu0 on u1"},
        };
        Fixture f = setup();

        start(&f);
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("c1", "core_mem", 15, 1, ""));
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED,
             node_json("u1", "cgpu", 126, 1, ",\"annotations\":{\"aliquot.dev/gpu-mem-unit\":\"128MiB\"}"));
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                PodText pod = cases[i].pod;
                unsigned events = fake_n_events();
                Answer a = {0};

                pod.phase = "Pending";
                pod.state = "waiting";
                see(&f, pod_json_(pod));
                ASSERT_TRUE(bind_pod(&f, pod.name, cases[i].node, &a) != NULL);
                ASSERT_INT(fake_n_events(), events); /* not before the API server has the Binding */
                fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
                ASSERT_INT(a.n, 1);
                ASSERT_TEXT(a.error, "");
                ASSERT_INT(fake_n_events(), events + 1);
                ASSERT_TEXT(fake_last_note(), cases[i].note);
        }
        teardown(&f);
}

/* ---- refusals and concurrency ---- */

static void a_change_that_waits_is_refused_at_bind(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        see(&f, WAITING("a", "4"));
        feed(f.view, VIEW_NODES, REFLECTOR_MODIFIED,
             node_json("n1", "share", 15, 1,
                       ",\"annotations\":{\"aliquot.dev/mode-in-force\":\"cgpu\","
                       "\"aliquot.dev/change-pending\":\"mode cgpu -> share\"}"));
        ASSERT_FALSE(bind_pod(&f, "a", "n1", &a));
        ASSERT_TEXT(a.error, "node n1: node(s) take no new slice while a change of mode or unit waits");
        ASSERT_INT(fake_n_calls(), 0);
        teardown(&f);
}

static void refuses_with_a_reason_and_an_event(void) {
        Fixture f = setup();
        Answer a = {0};
        unsigned events = fake_n_events();

        start(&f);
        see(&f, WAITING("a", "12"));
        see(&f, WAITING("b", "4"));
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &a) != NULL);
        ASSERT_FALSE(bind_pod(&f, "b", "n1", &a));
        ASSERT_TEXT(a.error, "node n1: no card has 4 GiB of gpu-mem free");
        ASSERT_INT(fake_n_events(), events + 1);
        ASSERT_TEXT(fake_last_note(), "node n1: no card has 4 of gpu-mem free: gpu0 3 of 15");
        ASSERT_INT(f.metrics.refusals[REFUSAL_NO_ROOM], 1);
        a = (Answer){0};
        ASSERT_FALSE(bind_pod(&f, "b", "nowhere", &a));
        ASSERT_TEXT(a.error, "node nowhere: node(s) are not known as GPU nodes");
        teardown(&f);
}

static void an_abandoned_bind_goes_on(void) {
        Fixture f = setup();
        Answer a = {0};

        start(&f);
        see(&f, WAITING("a", "4"));
        binder_abandon(bind_pod(&f, "a", "n1", &a));
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_INT(a.n, 0);
        ASSERT_USED(f.view, "n1", 0, 4);
        teardown(&f);
}

static void a_hundred_binds_never_overcommit(void) {
        Fixture f = setup();
        Answer answers[100] = {0};
        unsigned posted = 0, bound = 0;
        char name[16];

        start(&f);
        for (unsigned i = 0; i < 100; i++) {
                char node[] = "n1";

                (void) snprintf(name, sizeof name, "p%u", i);
                node[1] = (char) ('1' + i % N_NODES);
                see(&f, WAITING(name, "4"));
                posted += bind_pod(&f, name, node, &answers[i]) != NULL;
        }
        ASSERT_INT(posted, 18); /* three of 4 on each card of 15, six cards */
        ASSERT_INT(fake_n_calls(), posted);
        for (unsigned i = 0; fake_call(FAKE_BIND); i++) {
                KubeCall *call = fake_call(FAKE_BIND);

                for (unsigned n = 1; n <= N_NODES; n++)
                        for (unsigned c = 0; c < n; c++) {
                                char node[] = {'n', (char) ('0' + n), '\0'};

                                ASSERT_TRUE(card_of(f.view, node, c)->used <= CARD);
                        }
                bound += i % 2;
                fake_reply(call, KUBE_DONE, i % 2 ? 201 : 422, "");
        }
        ASSERT_INT(bound, 9);
        ASSERT_INT(f.metrics.binds[METRICS_BIND_BOUND], bound);
        ASSERT_TRUE(ledger_check(f.view->ledger));
        teardown(&f);
}

/* ---- restart in the middle of anything ---- */

enum { PODS = 14 };

/* What the API server has. */
typedef struct Server {
        char pods[PODS][4096]; /* "" when deleted */
} Server;

static void assert_restart_agrees(Fixture *f, const Server *s) {
        _cleanup_(view_freep) View *fresh = NULL;
        _cleanup_free_ char *ours = NULL, *theirs = NULL;

        ASSERT_OK(view_new(&fresh));
        list_nodes(fresh);
        view_list_begin(fresh, VIEW_PODS);
        for (unsigned i = 0; i < PODS; i++)
                if (s->pods[i][0])
                        feed(fresh, VIEW_PODS, REFLECTOR_LISTED, s->pods[i]);
        view_list_end(fresh, VIEW_PODS);
        ours = sums_of(f->view->ledger);
        theirs = sums_of(fresh->ledger);
        ASSERT_TEXT(ours, theirs);
}

static Random random_state;

/* A Binding, carried out or not, answered or not. The watch brings the pod before or after. */
static void serve_binding(Fixture *f, Server *s, KubeCall *call) {
        unsigned i = (unsigned) strtoul(fake_name(call) + 1, NULL, 10), kind = random_below(&random_state, 6);
        bool exists = strstr(s->pods[i], fake_uid(call)),
             done = exists && kind < 4 && !strstr(s->pods[i], "nodeName");

        if (done)
                (void) snprintf(s->pods[i], sizeof s->pods[i], "%s", bound_by(call, "3"));
        if (done && random_below(&random_state, 2))
                see(f, s->pods[i]);
        if (kind % 2)
                fake_reply(call, KUBE_UNKNOWN, 0, "");
        else
                fake_reply(call, KUBE_DONE, done ? 201 : exists ? 409 : 404, "");
}

static void serve_get(Server *s, KubeCall *call) {
        unsigned i = (unsigned) strtoul(fake_name(call) + 1, NULL, 10);
        bool exists = s->pods[i][0] != '\0';

        if (random_below(&random_state, 4) == 0)
                fake_reply(call, KUBE_UNKNOWN, 0, "");
        else
                fake_reply(call, KUBE_DONE, exists ? 200 : 404, s->pods[i]);
}

/* Answers every call until none is open. */
static void settle(Fixture *f, Server *s) {
        while (binder_n_open(f->binder) > 0) {
                KubeCall *call = fake_call(FAKE_BIND);

                if (call)
                        serve_binding(f, s, call);
                else if (fake_call(FAKE_GET))
                        serve_get(s, fake_call(FAKE_GET));
                else
                        ASSERT_TRUE(sd_event_run(f->event, UINT64_MAX) >= 0);
        }
}

static void a_restart_in_the_middle_of_anything(void) {
        Fixture f = setup();
        static Server s;
        static Answer answers[PODS];
        char name[16], uid[PODS][32], node[] = "n1";

        random_state = (Random){11};
        start(&f);
        for (unsigned step = 0; step < 4000; step++) {
                unsigned i = random_below(&random_state, PODS);

                (void) snprintf(name, sizeof name, "p%u", i);
                node[1] = (char) ('1' + random_below(&random_state, N_NODES));
                if (!s.pods[i][0]) {
                        (void) snprintf(uid[i], sizeof uid[i], "uid-%s-%04u", name, step); /* never again */
                        (void) snprintf(s.pods[i], sizeof s.pods[i], "%s", WAITING(name, "3", .uid = uid[i]));
                        if (random_below(&random_state, 3)) /* else the bind fetches the pod */
                                see(&f, s.pods[i]);
                } else if (random_below(&random_state, 5) == 0) {
                        feed(f.view, VIEW_PODS, REFLECTOR_DELETED, s.pods[i]);
                        s.pods[i][0] = '\0';
                } else {
                        answers[i] = (Answer){0};
                        (void) bind_uid(&f, name, uid[i], node, &answers[i]);
                        answers[i].n = 0;
                }
                if (random_below(&random_state, 3) == 0)
                        settle(&f, &s);
                if (binder_n_open(f.binder) == 0)
                        assert_restart_agrees(&f, &s);
                ASSERT_TRUE(ledger_check(f.view->ledger));
        }
        settle(&f, &s);
        assert_restart_agrees(&f, &s);
        ASSERT_TRUE(f.metrics.binds[METRICS_BIND_BOUND] > 100);
        ASSERT_TRUE(f.metrics.binds[METRICS_BIND_UNKNOWN] > 100);
        teardown(&f);
}

int main(void) {
        return TEST_MAIN(
                TEST(binds_with_one_call), TEST(a_refusal_of_the_api_server_gives_back),
                TEST(a_lost_answer_is_settled_by_a_get),
                TEST(the_reservation_stays_until_the_outcome_is_known),
                TEST(not_bound_is_believed_the_second_time), TEST(bound_late_counts),
                TEST(a_conflict_that_is_not_bound_gives_back),
                TEST(bound_by_another_scheduler_counts_where_it_is), TEST(a_pod_that_is_gone_gives_back),
                TEST(the_watch_may_say_it_first), TEST(deleted_while_it_is_being_bound),
                TEST(what_the_watch_replaced_is_not_given_back), TEST(fetches_what_it_does_not_know),
                TEST(a_binding_empties_the_other_system_keys), TEST(a_bind_takes_a_card_that_the_pod_chose),
                TEST(a_change_that_waits_is_refused_at_bind),
                TEST(a_leader_that_was_deposed_meanwhile_sends_no_binding),
                TEST(bindings_wait_for_their_turn), TEST(lost_answers_keep_their_turns),
                TEST(later_gets_wait_for_their_turn), TEST(a_bind_is_given_up_while_its_pod_is_fetched),
                TEST(a_queued_bind_is_given_up_before_it_is_sent),
                TEST(a_pod_that_asks_for_nothing_is_not_fetched),
                TEST(a_lost_answer_about_a_pod_that_asks_for_nothing),
                TEST(what_was_fetched_may_be_older_than_the_view), TEST(what_was_fetched_may_not_be_bindable),
                TEST(pods_of_others_are_bound_without_annotations), TEST(the_cards_stand_in_an_event),
                TEST(refuses_with_a_reason_and_an_event), TEST(an_abandoned_bind_goes_on),
                TEST(a_hundred_binds_never_overcommit), TEST(a_restart_in_the_middle_of_anything));
}
