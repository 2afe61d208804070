/* SPDX-License-Identifier: Apache-2.0 */

/* Gangs through the verbs, the binder and the watch, beside an API server that answers as the test
 * says. The rules of the gangs themselves are in gang/test-gangs.c. */

#include "fake_api.h"
#include "fixture.h"
#include "policy_check.h"
#include "scheduler/controllers/assembler.h"
#include "scheduler/controllers/waker.h"
#include "scheduler/question/policy_bind.h"
#include "scheduler/question/policy_filter.h"
#include "scheduler/verbs/verbs.h"

enum { CARD = 15 };

typedef struct Fixture {
        sd_event *event;
        View *view;
        Metrics metrics;
        SchedulerContext context;
        Binder *binder;
        Assembler *assembler;
        Waker *waker;
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

static void on_pod(void *userdata, const Pod *pod, Str object, ReflectorEvent event) {
        Fixture *f = userdata;

        pending_pod(&f->context.pending, f->view, pod, event);
        assembler_pod(f->assembler, pod, object, event);
}

static unsigned n_rooms; /* places that were given back */

static void on_room(void *userdata, Str node) {
        n_rooms++;
}

static void on_news(void *userdata) {
}

/* Two nodes with one card each. */
static void setup(Fixture *f) {
        *f = (Fixture){0};
        ASSERT_TRUE(sd_event_new(&f->event) >= 0);
        ASSERT_OK(view_new(&f->view));
        view_list_begin(f->view, VIEW_NODES);
        feed(f->view, VIEW_NODES, REFLECTOR_LISTED, node_json("n1", "cgpu", CARD, 1, ""));
        feed(f->view, VIEW_NODES, REFLECTOR_LISTED, node_json("n2", "cgpu", CARD, 1, ""));
        view_list_end(f->view, VIEW_NODES);
        view_list_begin(f->view, VIEW_PODS);
        view_list_end(f->view, VIEW_PODS);
        f->view->on_pod = on_pod;
        f->view->userdata = f;
        f->context = (SchedulerContext){.client = fake_client(f->event),
                                        .view = f->view,
                                        .metrics = &f->metrics,
                                        .recorder = (KubeEventRecorder *) f,
                                        .leading = true};
        ASSERT_OK(assembler_new(&f->context, &f->assembler));
        f->context.units = policy_bind_hooks(f->view->policies);
        ASSERT_OK(binder_new(&f->context, 0, &f->binder));
        ASSERT_OK(waker_new(&f->context, WAKER_PATIENCE, &f->waker));
        f->context.pending.on_news = on_news;
        assembler_set_leading(f->assembler, true);
}

static void teardown(Fixture *f) {
        binder_free(f->binder);
        assembler_free(f->assembler);
        waker_free(f->waker);
        pending_done(&f->context.pending);
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_TRUE(ledger_check(f->view->ledger));
        view_free(f->view);
        sd_event_unref(f->event);
}

#define GANG                                                                                                 \
        "\"pod-group.scheduling.sigs.k8s.io/name\":\"g\","                                                   \
        "\"pod-group.scheduling.sigs.k8s.io/min-available\":\"2\""
#define PROFILE "\"schedulerName\":\"ack-co-scheduler\","
#define GATED   PROFILE "\"schedulingGates\":[{\"name\":\"aliquot.dev/gang\"}],"

#define MEMBER(pod, units, ...)                                                                              \
        pod_json(pod, .mem = units, .phase = "Pending", .state = "waiting", .labels = GANG, __VA_ARGS__)

static void see(Fixture *f, const char *pod) {
        feed(f->view, VIEW_PODS, REFLECTOR_MODIFIED, pod);
}

/* Runs what is due now: the look at the gangs. */
static void look(Fixture *f) {
        for (int i = 0; i < 3; i++)
                ASSERT_TRUE(sd_event_run(f->event, 0) >= 0);
}

static void answer_patches(Fixture *f, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                ASSERT_TRUE(fake_call(FAKE_PATCH));
                fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 200, "");
        }
        ASSERT_TRUE(!fake_call(FAKE_PATCH));
}

static char *verb(Fixture *f, unsigned (*answer)(SchedulerContext *, Str, Buf *), const char *pod,
                  const char *rest) {
        static char text[4096];
        _cleanup_buf_ Buf out = BUF_NULL, body = BUF_NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;

        f->context.now = clock_monotonic_usec();
        f->context.arena = &arena;
        buf_appendf(&body, "{\"Pod\":%s,%s}", pod, rest);
        ASSERT_INT(answer(&f->context, buf_str(&body), &out), 200);
        (void) snprintf(text, sizeof text, "%s", out.data);
        return text;
}

static char *filter(Fixture *f, const char *pod) {
        return verb(f, verb_filter, pod, "\"NodeNames\":[\"n1\",\"n2\"]");
}

static Bind *bind_pod(Fixture *f, const char *name, const char *node, Answer *a) {
        char uid[64];
        BindingArgs args = {.name = str_from(name), .namespace_ = STR("default"), .node = str_from(node)};
        Bind *bind;

        (void) snprintf(uid, sizeof uid, "uid-%s", name);
        args.uid = str_from(uid);
        binder_bind(f->binder, &args, on_done, a, &bind);
        ASSERT_INT(bind == NULL, a->n > 0);
        return bind;
}

/* Both members exist, and the gang is being placed. */
static void begin(Fixture *f) {
        see(f, MEMBER("a", "8", .spec = PROFILE));
        see(f, MEMBER("b", "8", .spec = PROFILE));
        look(f);
        answer_patches(f, 2);
}

/* Of two whole cards. */
static const char *job_pod(const char *name) {
        static char text[1024];

        (void) snprintf(
                text, sizeof text,
                "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\",\"uid\":\"uid-%s\","
                "\"labels\":{\"gpu-topology\":\"j\",\"gpu-topology-replica\":\"2\"}},\"spec\":{" PROFILE
                "\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{\"aliyun.com/gpu\":"
                "\"2\"}}}]},\"status\":{\"phase\":\"Pending\"}}",
                name, name);
        return text;
}

/* One by one the first pod of the job would go to t1, where it leaves no card idle. */
static void a_job_of_whole_cards_goes_to_the_fewest_nodes(void) {
        static const char *const names[] = {"a", "b"};
        Answer answers[2] = {0};
        Fixture f;

        setup(&f);
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("t1", "topology", 2, 2, ""));
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("t2", "topology", 4, 4, ""));
        for (int i = 0; i < 2; i++)
                see(&f, job_pod(names[i]));
        look(&f);
        answer_patches(&f, 2);
        for (int i = 0; i < 2; i++) {
                ASSERT_CONTAINS(verb(&f, verb_filter, job_pod(names[i]), "\"NodeNames\":[\"t1\",\"t2\"]"),
                                "\"NodeNames\":[\"t2\"]");
                ASSERT_TRUE(bind_pod(&f, names[i], "t2", &answers[i]));
        }
        for (int i = 0; i < 2; i++) {
                ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_BIND)),
                                "topology.kubernetes.io/gpu-visible\":\"0,1,2,3\"");
                fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        }
        teardown(&f);
}

/* One whole card and one unit of memory are both one unit on one card. */
static void a_gang_may_have_a_whole_card_and_a_unit(void) {
        static const char whole[] =
                "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"uid-a\",\"labels\":{" GANG
                "}},\"spec\":{" PROFILE "\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{"
                "\"aliyun.com/gpu\":\"1\"}}}]},\"status\":{\"phase\":\"Pending\"}}";
        Answer answers[2] = {0};
        Fixture f;

        setup(&f);
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("t1", "topology", 1, 1, ""));
        see(&f, whole);
        see(&f, MEMBER("b", "1", .spec = PROFILE));
        look(&f);
        answer_patches(&f, 2);
        ASSERT_CONTAINS(verb(&f, verb_filter, whole, "\"NodeNames\":[\"t1\",\"n1\"]"),
                        "\"NodeNames\":[\"t1\"]");
        ASSERT_TRUE(bind_pod(&f, "a", "t1", &answers[0]));
        ASSERT_CONTAINS(
                verb(&f, verb_filter, MEMBER("b", "1", .spec = PROFILE), "\"NodeNames\":[\"t1\",\"n1\"]"),
                "\"NodeNames\":[\"n1\"]");
        ASSERT_TRUE(bind_pod(&f, "b", "n1", &answers[1]));
        for (int i = 0; i < 2; i++)
                fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_TEXT(answers[0].error, "");
        ASSERT_TEXT(answers[1].error, "");
        teardown(&f);
}

/* ---- beside a ResourcePolicy ---- */

/* Unit 1 is n1, unit 2 is n2. A policy counts pods and nodes that are listed after it came. */
static void set_policy(Fixture *f, const char *max_1) {
        _cleanup_buf_ Buf policy = BUF_NULL;

        buf_appendf(
                &policy,
                "{\"metadata\":{\"namespace\":\"default\",\"name\":\"web\",\"uid\":\"u\","
                "\"creationTimestamp\":\"2026-11-21T10:00:00Z\"},\"spec\":{\"selector\":{\"app\":\"web\"},"
                "\"units\":[{\"nodeSelector\":{\"unit\":\"n1\"}%s},{\"nodeSelector\":{\"unit\":\"n2\"}}]}}",
                max_1);
        feed(f->view, VIEW_POLICIES, REFLECTOR_MODIFIED, policy.data);
        view_list_begin(f->view, VIEW_NODES);
        for (int i = 1; i <= 2; i++) {
                _cleanup_buf_ Buf node = BUF_NULL;

                buf_appendf(&node,
                            "{\"metadata\":{\"name\":\"n%d\",\"uid\":\"u-n%d\",\"labels\":{\"unit\":\"n%d\","
                            "\"ack.node.gpu.schedule\":\"cgpu\"}},\"status\":{\"allocatable\":{\"aliyun.com/"
                            "gpu-mem\":\"15\",\"aliyun.com/gpu-count\":\"1\"}}}",
                            i, i, i);
                feed(f->view, VIEW_NODES, REFLECTOR_LISTED, node.data);
        }
        view_list_end(f->view, VIEW_NODES);
        view_list_begin(f->view, VIEW_PODS);
        view_list_end(f->view, VIEW_PODS);
}

#define WEB(pod, units, more)                                                                                \
        pod_json(pod, .mem = units, .phase = "Pending", .state = "waiting", .spec = PROFILE,                 \
                 .labels = "\"app\":\"web\"" more)

/* As the scheduler has them: the policy decides first. */
static void add_policy_chooser(Fixture *f) {
        f->context.choosers[1] = f->context.choosers[0];
        f->context.choosers[0] = policy_filter_chooser(f->view->policies);
        f->context.n_choosers = 2;
}

/* Each node has cards for one member, so the gang needs both units. */
static void a_gang_may_need_two_units(void) {
        static const char *const orders[][2] = {{"a", "b"}, {"b", "a"}, {"a", "b"}, {"b", "a"}};

        for (size_t i = 0; i < ELEMENTSOF(orders); i++) {
                const char *const *order = orders[i];
                Answer answers[2] = {0};
                Fixture f;

                setup(&f);
                set_policy(&f, i % 2 == 0 ? "" : ",\"max\":1");
                add_policy_chooser(&f);
                see(&f, WEB("a", "8", "," GANG));
                see(&f, WEB("b", "8", "," GANG));
                look(&f);
                answer_patches(&f, 2);
                ASSERT_CONTAINS(filter(&f, WEB(order[0], "8", "," GANG)), "\"NodeNames\":[\"n1\"]");
                if (i < 2)
                        ASSERT_TRUE(bind_pod(&f, order[0], "n1", &answers[0]));
                ASSERT_CONTAINS(filter(&f, WEB(order[1], "8", "," GANG)), "\"NodeNames\":[\"n2\"]");
                if (i >= 2) /* kube-scheduler binds beside its next cycle */
                        ASSERT_TRUE(bind_pod(&f, order[0], "n1", &answers[0]));
                ASSERT_TRUE(bind_pod(&f, order[1], "n2", &answers[1]));
                for (int k = 0; k < 2; k++)
                        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
                ASSERT_TEXT(answers[0].error, "");
                ASSERT_TEXT(answers[1].error, "");
                teardown(&f);
        }
}

/* The policy has decided before the gang, and has noted the pod in unit 1. */
static void a_refused_member_leaves_no_note(void) {
        Answer outsider = {0};
        Fixture f;

        setup(&f);
        set_policy(&f, ",\"max\":1");
        add_policy_chooser(&f);
        see(&f, WEB("a", "8", "," GANG));
        see(&f, WEB("x", NULL, ""));
        ASSERT_CONTAINS(filter(&f, WEB("a", "8", "," GANG)), "gang g waits for members: 1 of 2");
        ASSERT_INT(policy_table_find(f.view->policies, STR("uid-a"))->state, POLICY_POD_PENDING);
        ASSERT_CONTAINS(filter(&f, WEB("x", NULL, "")), "\"NodeNames\":[\"n1\"]");
        ASSERT_TRUE(bind_pod(&f, "x", "n1", &outsider));
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_TRUE(policy_table_check(f.view->policies));
        teardown(&f);
}

/* Otherwise the outsider would be bound, and then a member refused whose sibling is posted. */
static void a_held_member_has_its_slot(void) {
        Answer a = {0}, b = {0}, outsider = {0};
        Fixture f;

        setup(&f);
        set_policy(&f, ",\"max\":1");
        see(&f, WEB("a", "8", "," GANG));
        see(&f, WEB("b", "8", "," GANG));
        see(&f, WEB("x", NULL, ""));
        look(&f);
        answer_patches(&f, 2);
        ASSERT_CONTAINS(filter(&f, WEB("a", "8", "," GANG)), "\"NodeNames\":[\"n1\"]");
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &a));
        ASSERT_FALSE(bind_pod(&f, "x", "n1", &outsider));
        ASSERT_TEXT(outsider.error, "unit 1 of policy web is full: 1 of max 1 pods");
        ASSERT_INT(fake_n_calls(), 0);
        (void) filter(&f, WEB("b", "8", "," GANG));
        ASSERT_TRUE(bind_pod(&f, "b", "n2", &b));
        for (int i = 0; i < 2; i++) {
                ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_BIND)),
                                "\"aliquot.dev/resource-policy\":\"web");
                ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_BIND)), "gpushare.allocation");
                fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        }
        ASSERT_TRUE(a.n == 1 && b.n == 1 && a.error[0] == '\0' && b.error[0] == '\0');
        ASSERT_TRUE(policy_table_check(f.view->policies));
        teardown(&f);
}

static void a_hold_that_ends_frees_its_slot(void) {
        for (int i = 0; i < 2; i++) {
                Answer a = {0}, outsider = {0};
                Fixture f;
                Bind *held;

                setup(&f);
                set_policy(&f, ",\"max\":1");
                see(&f, WEB("a", "8", "," GANG));
                see(&f, WEB("b", "8", "," GANG));
                see(&f, WEB("x", NULL, ""));
                look(&f);
                answer_patches(&f, 2);
                (void) filter(&f, WEB("a", "8", "," GANG));
                held = bind_pod(&f, "a", "n1", &a);
                ASSERT_INT(policy_table_find(f.view->policies, STR("uid-a"))->state, POLICY_POD_BINDING);
                if (i == 0)
                        binder_abandon(held);
                else
                        feed(f.view, VIEW_PODS, REFLECTOR_DELETED, WEB("b", "8", "," GANG));
                ASSERT_INT(binder_n_open(f.binder), 0);
                ASSERT_TRUE(bind_pod(&f, "x", "n1", &outsider));
                fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
                ASSERT_TEXT(outsider.error, "");
                ASSERT_TRUE(policy_table_check(f.view->policies));
                teardown(&f);
        }
}

/* ---- */

static void wakes_members_with_their_uid(void) {
        Fixture f;

        setup(&f);
        see(&f, MEMBER("a", "8", .spec = GATED));
        look(&f);
        ASSERT_TRUE(!fake_call(FAKE_PATCH));
        see(&f, MEMBER("b", "8", .spec = PROFILE));
        look(&f);
        ASSERT_TEXT(fake_name(fake_call(FAKE_PATCH)), "/api/v1/namespaces/default/pods/a");
        ASSERT_TEXT(fake_annotations(fake_call(FAKE_PATCH)),
                    "{\"metadata\":{\"uid\":\"uid-a\"},\"spec\":{\"schedulingGates\":null}}");
        fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 200, "");
        ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_PATCH)),
                        "{\"metadata\":{\"uid\":\"uid-b\",\"annotations\":{\"aliquot.dev/kick\":\"");
        fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 500, "");
        teardown(&f);
}

/* Its user took the gang's name away, perhaps while no scheduler ran. kube-scheduler does not ask
 * about a gated pod. */
static void a_pod_that_left_its_gang_loses_the_gate(void) {
        static const char min[] = "\"pod-group.scheduling.sigs.k8s.io/min-available\":\"2\"";
        static const char both[] = PROFILE "\"schedulingGates\":[{\"name\":\"kueue.x-k8s.io/"
                                           "admission\"},{\"name\":\"aliquot.dev/gang\"}],";
        static const char others[] = PROFILE "\"schedulingGates\":[{\"name\":\"kueue.x-k8s.io/admission\"}],";
        Fixture f;

        for (int known = 0; known < 2; known++) {
                setup(&f);
                if (known > 0)
                        see(&f, MEMBER("a", "8", .spec = GATED));
                look(&f);
                ASSERT_TRUE(!fake_call(FAKE_PATCH));
                see(&f, pod_json("a", .mem = "8", .phase = "Pending", .labels = min, .spec = both));
                see(&f, pod_json("b", .mem = "8", .phase = "Pending", .spec = others));
                see(&f, pod_json("c", .mem = "8", .phase = "Pending",
                                 .spec = "\"schedulingGates\":[{\"name\":\"aliquot.dev/gang\"}],"
                                         "\"schedulerName\":\"other\","));
                look(&f);
                ASSERT_TRUE(!fake_call(FAKE_PATCH));
                see(&f, pod_json("a", .mem = "8", .phase = "Pending", .labels = min, .spec = GATED));
                look(&f);
                ASSERT_TRUE(fake_call(FAKE_PATCH));
                ASSERT_TEXT(fake_annotations(fake_call(FAKE_PATCH)),
                            "{\"metadata\":{\"uid\":\"uid-a\"},\"spec\":{\"schedulingGates\":null}}");
                fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 200, "");
                see(&f, pod_json("a", .mem = "8", .phase = "Pending", .labels = min, .spec = PROFILE));
                look(&f);
                ASSERT_TRUE(!fake_call(FAKE_PATCH));
                ASSERT_CONTAINS(filter(&f, pod_json("a", .mem = "8", .phase = "Pending", .labels = min,
                                                    .spec = PROFILE)),
                                "\"NodeNames\":[\"n1\",\"n2\"]");
                teardown(&f);
        }
}

/* 409 too: the UID in the patch is that of another pod, or the object has changed meanwhile. */
static void a_patch_that_is_refused_is_sent_again(void) {
        const unsigned refusals[] = {500, 409};
        Fixture f;

        setup(&f);
        see(&f, pod_json("a", .mem = "8", .node = "n1", .labels = GANG, .spec = PROFILE));
        see(&f, pod_json("b", .mem = "8", .node = "n2", .labels = GANG, .spec = PROFILE));
        see(&f, MEMBER("c", NULL, .spec = GATED));
        look(&f);
        for (size_t i = 0; i < ELEMENTSOF(refusals); i++) {
                ASSERT_TRUE(fake_call(FAKE_PATCH));
                fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, refusals[i], "");
                while (!fake_call(FAKE_PATCH)) /* nothing due for long: the gate would stay */
                        ASSERT_TRUE(sd_event_run(f.event, 10 * USEC_PER_SEC) > 0);
        }
        fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 200, "");
        see(&f, MEMBER("c", NULL, .spec = PROFILE));
        teardown(&f);
}

static void holds_binds_and_posts_them_together(void) {
        Answer a = {0}, b = {0};
        Fixture f;

        setup(&f);
        begin(&f);
        ASSERT_CONTAINS(filter(&f, MEMBER("a", "8", .spec = PROFILE)), "\"NodeNames\":[\"n1\"]");
        ASSERT_USED(f.view, "n1", 0, 8);
        ASSERT_USED(f.view, "n2", 0, 8);
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &a));
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_CONTAINS(filter(&f, MEMBER("b", "8", .spec = PROFILE)), "\"NodeNames\":[\"n2\"]");
        ASSERT_TRUE(bind_pod(&f, "b", "n2", &b));
        ASSERT_INT(fake_n_calls(), 2);
        for (int i = 0; i < 2; i++) {
                ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_BIND)),
                                "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":8}}\"");
                fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        }
        ASSERT_TRUE(a.n == 1 && b.n == 1 && a.error[0] == '\0' && b.error[0] == '\0');
        ASSERT_USED(f.view, "n1", 0, 8);
        ASSERT_USED(f.view, "n2", 0, 8);
        ASSERT_INT(binder_n_open(f.binder), 0);
        teardown(&f);
}

static void a_member_without_a_share_is_held_too(void) {
        Answer a = {0}, b = {0};
        Fixture f;

        setup(&f);
        see(&f, MEMBER("a", "8", .spec = PROFILE));
        see(&f, MEMBER("b", NULL, .spec = PROFILE));
        look(&f);
        answer_patches(&f, 2);
        ASSERT_CONTAINS(filter(&f, MEMBER("b", NULL, .spec = PROFILE)), "\"NodeNames\":[\"n1\",\"n2\"]");
        ASSERT_TRUE(bind_pod(&f, "b", "other", &b));
        ASSERT_INT(fake_n_calls(), 0);
        (void) filter(&f, MEMBER("a", "8", .spec = PROFILE));
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &a));
        ASSERT_INT(fake_n_calls(), 2);
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_TRUE(a.n == 1 && b.n == 1 && a.error[0] == '\0' && b.error[0] == '\0');
        teardown(&f);
}

static void a_held_bind_ends_when_kube_scheduler_goes(void) {
        Answer a = {0}, b = {0};
        Fixture f;

        setup(&f);
        begin(&f);
        (void) filter(&f, MEMBER("a", "8", .spec = PROFILE));
        binder_abandon(bind_pod(&f, "a", "n1", &a));
        ASSERT_INT(binder_n_open(f.binder), 0);
        ASSERT_USED(f.view, "n1", 0, 8); /* the place waits for it */
        (void) filter(&f, MEMBER("b", "8", .spec = PROFILE));
        ASSERT_TRUE(bind_pod(&f, "b", "n2", &b));
        ASSERT_INT(fake_n_calls(), 0);
        a = (Answer){0};
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &a));
        ASSERT_INT(fake_n_calls(), 2);
        teardown(&f);
}

static void a_deleted_member_ends_the_attempt(void) {
        Answer a = {0}, b = {0};
        Fixture f;

        setup(&f);
        begin(&f);
        (void) filter(&f, MEMBER("a", "8", .spec = PROFILE));
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &a));
        feed(f.view, VIEW_PODS, REFLECTOR_DELETED, MEMBER("b", "8", .spec = PROFILE));
        ASSERT_INT(a.n, 1);
        ASSERT_TEXT(a.error, "gang g waits for members: 1 of 2");
        ASSERT_USED(f.view, "n1", 0, 0);
        ASSERT_USED(f.view, "n2", 0, 0);
        ASSERT_INT(bind_pod(&f, "b", "n2", &b) != NULL, 1); /* asks the API server: it may be known there */
        fake_reply(fake_call(FAKE_GET), KUBE_DONE, 404, "");
        teardown(&f);
}

static void the_end_of_leadership_gives_all_back(void) {
        Answer a = {0};
        Fixture f;

        setup(&f);
        begin(&f);
        (void) filter(&f, MEMBER("a", "8", .spec = PROFILE));
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &a));
        f.view->hold.on_room = on_room;
        n_rooms = 0;
        assembler_set_leading(f.assembler, false);
        ASSERT_INT(n_rooms, 2);
        ASSERT_TEXT(a.error, "this replica does not lead any more");
        ASSERT_USED(f.view, "n1", 0, 0);
        ASSERT_USED(f.view, "n2", 0, 0);
        /* Another replica answers filter as for a pod without a gang. */
        ASSERT_CONTAINS(filter(&f, MEMBER("a", "8", .spec = PROFILE)), "\"NodeNames\":[\"n1\",\"n2\"]");
        teardown(&f);
}

/* kube-scheduler asks once, sooner than the watch tells of the pod. */
static void a_member_that_came_late_is_woken(void) {
        Fixture f;

        setup(&f);
        ASSERT_CONTAINS(filter(&f, MEMBER("a", "8", .spec = PROFILE)), "gang member is not known yet");
        see(&f, MEMBER("a", "8", .spec = PROFILE));
        ASSERT_TRUE(fake_call(FAKE_PATCH));
        ASSERT_TEXT(fake_name(fake_call(FAKE_PATCH)), "/api/v1/namespaces/default/pods/a");
        answer_patches(&f, 1);
        see(&f, MEMBER("a", "8", .spec = PROFILE, .priority = 1));
        ASSERT_TRUE(!fake_call(FAKE_PATCH));
        teardown(&f);
}

static void filter_refuses_until_its_turn(void) {
        const char *answer;
        Fixture f;

        setup(&f);
        answer = filter(&f, MEMBER("a", "8", .spec = PROFILE));
        ASSERT_CONTAINS(answer, "\"NodeNames\":[]");
        ASSERT_CONTAINS(answer, "gang member is not known yet");
        see(&f, MEMBER("a", "8", .spec = PROFILE));
        answer = filter(&f, MEMBER("a", "8", .spec = PROFILE));
        ASSERT_CONTAINS(answer,
                        "\"FailedAndUnresolvableNodes\":{\"n1\":\"gang g waits for members: 1 of 2\"");
        ASSERT_CONTAINS(filter(&f, pod_json("single", .mem = "8")), "\"NodeNames\":[\"n1\",\"n2\"]");
        ASSERT_INT(f.metrics.refusals[REFUSAL_GANG], 4);
        teardown(&f);
}

static void a_pod_that_can_never_run_keeps_its_reason(void) {
        Fixture f;

        setup(&f);
        see(&f, MEMBER("a", "many", .spec = PROFILE));
        ASSERT_CONTAINS(filter(&f, MEMBER("a", "many", .spec = PROFILE)), "gpu-mem is many");
        teardown(&f);
}

#define ONE(node, uid) "\"" node "\":{\"Pods\":[{\"UID\":\"" uid "\"}]}"
#define VICTIMS        "\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[{\"UID\":\"%s\"}],\"NumPDBViolations\":0}}"

static const char *preempt(Fixture *f, const char *pod, const char *victim) {
        char rest[256];

        (void) snprintf(rest, sizeof rest, VICTIMS, victim);
        return verb(f, verb_preempt, pod, rest);
}

/* From filter's answer on kube-scheduler may count the member as placed, until it has read that the
 * Bind has failed. */
static void members_that_are_not_bound_are_no_victims(void) {
        const char *big = pod_json("big", .priority = 100, .phase = "Pending", .state = "waiting");
        Answer a = {0};
        Fixture f;

        setup(&f);
        begin(&f);
        (void) filter(&f, MEMBER("a", "8", .spec = PROFILE));
        ASSERT_TEXT(preempt(&f, big, "uid-a"), "{\"NodeNameToMetaVictims\":{}}");
        ASSERT_TRUE(bind_pod(&f, "a", "n1", &a));
        ASSERT_TEXT(preempt(&f, big, "uid-a"), "{\"NodeNameToMetaVictims\":{}}");
        ASSERT_CONTAINS(preempt(&f, big, "uid-other"), "\"UID\":\"uid-other\"");
        feed(f.view, VIEW_PODS, REFLECTOR_DELETED, MEMBER("b", "8", .spec = PROFILE));
        ASSERT_INT(a.n, 1);
        ASSERT_TEXT(preempt(&f, big, "uid-a"), "{\"NodeNameToMetaVictims\":{}}");
        teardown(&f);
}

static void members_preempt_no_pods(void) {
        Fixture f;

        setup(&f);
        begin(&f);
        ASSERT_TEXT(preempt(&f, MEMBER("a", NULL, .spec = PROFILE, .priority = 100), "uid-x"),
                    "{\"NodeNameToMetaVictims\":{}}");
        teardown(&f);
}

#define LOW                                                                                                  \
        pod_json("low", .uid = "low", .mem = "7", .node = "n1", .priority = 1,                               \
                 .allocation = "{\\\"0\\\":{\\\"0\\\":7}}")
#define HIGH                                                                                                 \
        pod_json("high", .mem = "7", .priority = 100, .phase = "Pending", .state = "waiting", .spec = PROFILE)

#define CPU_ONLY pod_json("high", .priority = 100, .phase = "Pending", .state = "waiting", .spec = PROFILE)

/* n1 has 8 units planned for the gang, and 7 of a pod that may be evicted. */
static void setup_planned(Fixture *f) {
        setup(f);
        see(f, LOW);
        see(f, HIGH);
        begin(f);
        (void) filter(f, MEMBER("a", "8", .spec = PROFILE));
        ASSERT_CONTAINS(verb(f, verb_filter, HIGH, "\"NodeNames\":[\"n1\"]"), "\"NodeNames\":[]");
        ASSERT_TEXT(preempt(f, HIGH, "low"), "{\"NodeNameToMetaVictims\":{}}");
}

static PendingPod *waiting(Fixture *f) {
        return pending_find(&f->context.pending, STR("uid-high"));
}

/* Both members have their nodes, and their Bindings are under way. */
static void place_both(Fixture *f, Answer answers[static 2]) {
        for (int i = 0; i < 2; i++) {
                (void) filter(f,
                              i == 0 ? MEMBER("a", "8", .spec = PROFILE) : MEMBER("b", "8", .spec = PROFILE));
                ASSERT_TRUE(bind_pod(f, i == 0 ? "a" : "b", i == 0 ? "n1" : "n2", &answers[i]));
        }
}

static void see_bound(Fixture *f, const char *name, const char *node) {
        see(f, pod_json(name, .mem = "8", .node = node, .labels = GANG, .spec = PROFILE,
                        .allocation = "{\\\"0\\\":{\\\"0\\\":8}}"));
}

static void expect_woken(Fixture *f) {
        for (int i = 0; i < 2000 && !fake_call(FAKE_PATCH); i++)
                ASSERT_TRUE(sd_event_run(f->event, 50 * USEC_PER_MSEC) >= 0);
        ASSERT_TRUE(fake_call(FAKE_PATCH));
        ASSERT_TEXT(fake_name(fake_call(FAKE_PATCH)), "/api/v1/namespaces/default/pods/high");
        answer_patches(f, 1);
}

/* 7 units are free without any eviction when the gang gives its cards back. */
static void a_preemption_waits_for_the_gang(void) {
        Answer answers[2] = {0};
        Fixture f;

        setup_planned(&f);
        ASSERT_TRUE(waiting(&f)->waits_for_plan);
        place_both(&f, answers);
        for (int i = 0; i < 2; i++)
                fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        see_bound(&f, "a", "n1");
        see_bound(&f, "b", "n2");
        expect_woken(&f);
        ASSERT_CONTAINS(preempt(&f, HIGH, "low"), "\"UID\":\"low\"");
        teardown(&f);
}

/* The members take cpu of a node, which kube-scheduler would free for the pod, and no cards. The
 * attempt ends well, or a member goes. */
static void a_preemption_beside_a_gang_without_cards_is_woken(void) {
        for (int fails = 0; fails < 2; fails++) {
                Answer answers[2] = {0};
                Fixture f;

                setup(&f);
                see(&f, HIGH);
                see(&f, MEMBER("a", NULL, .spec = PROFILE));
                see(&f, MEMBER("b", NULL, .spec = PROFILE));
                look(&f);
                answer_patches(&f, 2);
                ASSERT_TRUE(bind_pod(&f, "a", "n1", &answers[0]));
                ASSERT_TEXT(preempt(&f, HIGH, "uid-a"), "{\"NodeNameToMetaVictims\":{}}");
                ASSERT_TRUE(waiting(&f)->waits_for_plan);
                if (fails)
                        feed(f.view, VIEW_PODS, REFLECTOR_DELETED, MEMBER("b", NULL, .spec = PROFILE));
                else
                        ASSERT_TRUE(bind_pod(&f, "b", "n2", &answers[1]));
                for (int i = 0; i < 2 && !fails; i++)
                        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
                expect_woken(&f);
                ASSERT_CONTAINS(preempt(&f, HIGH, "uid-a"),
                                fails ? "{\"NodeNameToMetaVictims\":{}}" : "\"UID\":\"uid-a\"");
                teardown(&f);
        }
}

#define GANG_OF_ONE                                                                                          \
        "\"pod-group.scheduling.sigs.k8s.io/name\":\"one\","                                                 \
        "\"pod-group.scheduling.sigs.k8s.io/min-available\":\"1\""

/* The gang ends with its only member. */
static void a_gang_of_one_that_goes_wakes_a_preemption(void) {
        const char *only =
                pod_json("a", .phase = "Pending", .state = "waiting", .labels = GANG_OF_ONE, .spec = PROFILE);
        Fixture f;

        setup(&f);
        see(&f, HIGH);
        see(&f, only);
        look(&f);
        answer_patches(&f, 1);
        ASSERT_TEXT(preempt(&f, HIGH, "uid-a"), "{\"NodeNameToMetaVictims\":{}}");
        ASSERT_TRUE(waiting(&f)->waits_for_plan);
        feed(f.view, VIEW_PODS, REFLECTOR_DELETED, only);
        expect_woken(&f);
        teardown(&f);
}

/* It needs the cpu of a member. */
static void a_preemption_without_cards_is_woken(void) {
        Answer answers[2] = {0};
        Fixture f;

        setup(&f);
        see(&f, CPU_ONLY);
        begin(&f);
        (void) filter(&f, MEMBER("a", "8", .spec = PROFILE));
        (void) verb(&f, verb_filter, CPU_ONLY, "\"NodeNames\":[\"n1\"]");
        ASSERT_TEXT(preempt(&f, CPU_ONLY, "uid-a"), "{\"NodeNameToMetaVictims\":{}}");
        ASSERT_TRUE(waiting(&f) && waiting(&f)->waits_for_plan);
        place_both(&f, answers);
        for (int i = 0; i < 2; i++)
                fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        see_bound(&f, "a", "n1");
        see_bound(&f, "b", "n2");
        expect_woken(&f);
        ASSERT_CONTAINS(preempt(&f, CPU_ONLY, "uid-a"), "\"UID\":\"uid-a\"");
        teardown(&f);
}

/* Another node can be answered: the pod waits for nothing. */
static void a_preemption_without_cards_goes_elsewhere(void) {
        Fixture f;

        setup(&f);
        see(&f, CPU_ONLY);
        begin(&f);
        (void) filter(&f, MEMBER("a", "8", .spec = PROFILE));
        ASSERT_CONTAINS(verb(&f, verb_preempt, CPU_ONLY,
                             "\"NodeNameToMetaVictims\":{" ONE("n1", "uid-a") "," ONE("n2", "hog") "}"),
                        "\"UID\":\"hog\"");
        ASSERT_TRUE(!waiting(&f));
        teardown(&f);
}

/* Also where one gang after the other is being placed, and the pod found room in between. */
static void a_preemption_waits_once(void) {
        Fixture f;

        setup_planned(&f);
        waiting(&f)->deferred -= GANGS_ATTEMPT;
        pending_filtered(&f.context.pending, f.view, &(FilterResult){.uid = STR("uid-high"), .fits = true},
                         1);
        (void) verb(&f, verb_filter, HIGH, "\"NodeNames\":[\"n1\"]");
        ASSERT_CONTAINS(preempt(&f, HIGH, "low"), "\"UID\":\"low\"");
        teardown(&f);
}

/* It would evict the pod whose eviction was put off. */
static void the_evictor_waits_as_well(void) {
        Fixture f;

        setup_planned(&f);
        ASSERT_FALSE(pending_any(&f.context.pending));
        (void) verb(&f, verb_filter, HIGH, "\"NodeNames\":[\"n1\"]");
        ASSERT_TRUE(pending_any(&f.context.pending));
        teardown(&f);
}

#define OTHER                                                                                                \
        pod_json("other", .uid = "other", .mem = "15", .node = "n3", .priority = 1,                          \
                 .allocation = "{\\\"0\\\":{\\\"0\\\":15}}")
#define WHOLE                                                                                                \
        pod_json("high", .mem = "15", .priority = 100, .phase = "Pending", .state = "waiting",               \
                 .spec = PROFILE)
/* The plan has one node for each member, and filter has sent member a to n1. n3 has a pod that may
 * be evicted. */
static void setup_others(Fixture *f) {
        setup(f);
        feed(f->view, VIEW_NODES, REFLECTOR_ADDED, node_json("n3", "cgpu", CARD, 1, ""));
        see(f, OTHER);
        see(f, WHOLE);
        begin(f);
        ASSERT_CONTAINS(filter(f, MEMBER("a", "8", .spec = PROFILE)), "\"NodeNames\":[\"n1\"]");
}

/* kube-scheduler counts the member as placed, and proposes it. It did not ask filter, because no
 * node had enough of the sums. */
static void a_proposed_member_is_a_reason_to_wait(void) {
        Fixture f;

        setup_others(&f);
        ASSERT_TEXT(verb(&f, verb_preempt, WHOLE,
                         "\"NodeNameToMetaVictims\":{" ONE("n1", "uid-a") "," ONE("n3", "other") "}"),
                    "{\"NodeNameToMetaVictims\":{}}");
        ASSERT_TRUE(waiting(&f)->waits_for_plan);
        teardown(&f);
}

#define DEAR                                                                                                 \
        pod_json("other", .uid = "other", .mem = "15", .node = "n3", .priority = 50,                         \
                 .allocation = "{\\\"0\\\":{\\\"0\\\":15}}")

static const char *preempt_low_or_dear(Fixture *f) {
        return verb(f, verb_preempt, WHOLE,
                    "\"NodeNameToMetaVictims\":{" ONE("n1", "low") "," ONE("n3", "other") "}");
}

/* n1 has a pod of priority 1 and member a of priority 0, n3 one of priority 50. The member can be a
 * victim when the watch shows it bound. */
static void a_preemption_waits_for_the_bindings(void) {
        Answer answers[2] = {0};
        Fixture f;

        setup(&f);
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("n3", "cgpu", CARD, 1, ""));
        see(&f, LOW);
        see(&f, DEAR);
        see(&f, WHOLE);
        begin(&f);
        place_both(&f, answers);
        ASSERT_TEXT(preempt_low_or_dear(&f), "{\"NodeNameToMetaVictims\":{}}");
        for (int i = 0; i < 2; i++)
                fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        see_bound(&f, "b", "n2");
        ASSERT_TEXT(preempt_low_or_dear(&f), "{\"NodeNameToMetaVictims\":{}}");
        ASSERT_TRUE(waiting(&f)->waits_for_plan);
        see_bound(&f, "a", "n1");
        expect_woken(&f);
        ASSERT_CONTAINS(preempt_low_or_dear(&f), "\"n1\":{\"Pods\":[{\"UID\":\"low\"},{\"UID\":\"uid-a\"}]");
        teardown(&f);
}

/* The Binding of a member is refused: its card is free, and nothing has to wait any more. */
static void a_binding_that_fails_ends_the_wait(void) {
        Answer answers[2] = {0};
        Fixture f;

        setup_planned(&f);
        place_both(&f, answers);
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 403, "");
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 403, "");
        ASSERT_INT(f.view->n_from_plan, 0);
        expect_woken(&f);
        teardown(&f);
}

/* kube-scheduler may ask sooner than the watch tells of the pod. */
static void a_pod_that_the_watch_does_not_have_waits(void) {
        Fixture f;

        setup(&f);
        see(&f, LOW);
        begin(&f);
        (void) filter(&f, MEMBER("a", "8", .spec = PROFILE));
        ASSERT_TEXT(preempt(&f, HIGH, "low"), "{\"NodeNameToMetaVictims\":{}}");
        ASSERT_TRUE(waiting(&f)->waits_for_plan);
        teardown(&f);
}

/* n2 has enough of every sum, because no member was sent there so far, so kube-scheduler proposes
 * no victims there. */
static void a_node_of_the_plan_alone_is_a_reason_to_wait(void) {
        static const char *const offered[] = {"\"NodeNames\":[\"n2\",\"n3\"]", "\"NodeNames\":[\"n3\"]"};

        for (size_t i = 0; i < ELEMENTSOF(offered); i++) {
                const char *answer;
                Fixture f;

                setup_others(&f);
                ASSERT_CONTAINS(verb(&f, verb_filter, WHOLE, offered[i]), "\"NodeNames\":[]");
                answer = verb(&f, verb_preempt, WHOLE, "\"NodeNameToMetaVictims\":{" ONE("n3", "other") "}");
                if (i == 0)
                        ASSERT_TEXT(answer, "{\"NodeNameToMetaVictims\":{}}");
                else
                        ASSERT_CONTAINS(answer, "\"UID\":\"other\"");
                teardown(&f);
        }
}

/* The pod fits beside the planned cards of n2. Another sum lacks there, for which kube-scheduler
 * proposes a victim: it would have to go just the same. */
static void a_plan_that_is_not_in_the_way_is_no_reason_to_wait(void) {
        const char *pod =
                pod_json("high", .mem = "6", .priority = 100, .phase = "Pending", .state = "waiting");
        Fixture f;

        setup(&f);
        see(&f, pod_json("hog", .uid = "hog", .mem = "1", .node = "n2", .priority = 1,
                         .allocation = "{\\\"0\\\":{\\\"0\\\":1}}"));
        see(&f, pod);
        ASSERT_CONTAINS(verb(&f, verb_filter, pod, "\"NodeNames\":[\"n9\"]"), "\"NodeNames\":[]");
        begin(&f);
        /* The plan has given n2 to member a, of which filter was not asked so far. */
        ASSERT_CONTAINS(filter(&f, MEMBER("b", "8", .spec = PROFILE)), "\"NodeNames\":[\"n1\"]");
        ASSERT_CONTAINS(verb(&f, verb_preempt, pod, "\"NodeNameToMetaVictims\":{" ONE("n2", "hog") "}"),
                        "\"UID\":\"hog\"");
        teardown(&f);
}

int main(void) {
        return TEST_MAIN(
                TEST(wakes_members_with_their_uid), TEST(a_pod_that_left_its_gang_loses_the_gate),
                TEST(a_patch_that_is_refused_is_sent_again), TEST(holds_binds_and_posts_them_together),
                TEST(a_member_without_a_share_is_held_too), TEST(a_held_bind_ends_when_kube_scheduler_goes),
                TEST(a_deleted_member_ends_the_attempt), TEST(the_end_of_leadership_gives_all_back),
                TEST(a_member_that_came_late_is_woken), TEST(filter_refuses_until_its_turn),
                TEST(a_pod_that_can_never_run_keeps_its_reason),
                TEST(members_that_are_not_bound_are_no_victims), TEST(members_preempt_no_pods),
                TEST(a_held_member_has_its_slot), TEST(a_gang_may_need_two_units),
                TEST(a_refused_member_leaves_no_note), TEST(a_hold_that_ends_frees_its_slot),
                TEST(a_preemption_waits_for_the_gang),
                TEST(a_preemption_beside_a_gang_without_cards_is_woken),
                TEST(a_gang_of_one_that_goes_wakes_a_preemption), TEST(a_preemption_without_cards_is_woken),
                TEST(a_preemption_without_cards_goes_elsewhere), TEST(a_preemption_waits_once),
                TEST(a_job_of_whole_cards_goes_to_the_fewest_nodes),
                TEST(a_gang_may_have_a_whole_card_and_a_unit), TEST(a_preemption_waits_for_the_bindings),
                TEST(a_binding_that_fails_ends_the_wait), TEST(the_evictor_waits_as_well),
                TEST(a_proposed_member_is_a_reason_to_wait), TEST(a_pod_that_the_watch_does_not_have_waits),
                TEST(a_node_of_the_plan_alone_is_a_reason_to_wait),
                TEST(a_plan_that_is_not_in_the_way_is_no_reason_to_wait));
}
