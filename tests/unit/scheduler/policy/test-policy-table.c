/* SPDX-License-Identifier: Apache-2.0 */

/* filter, bind and preempt for pods that a ResourcePolicy selects, one rule a case. */

#include "fake_api.h"
#include "fixture.h"
#include "policy_check.h"
#include "scheduler/bind/binder.h"
#include "scheduler/question/policy_bind.h"
#include "scheduler/question/policy_filter.h"
#include "scheduler/verbs/verbs.h"

typedef struct Fixture {
        View *view;
        Metrics metrics;
        SchedulerContext context;
        Binder *binder;
        uint64_t now;
        unsigned overlaps;
        char answer[8192];
} Fixture;

#define ALL "\"a1\",\"a2\",\"b1\",\"b2\",\"x1\""

static void feed_node(View *v, const char *name, const char *unit, ReflectorEvent event) {
        char text[512];

        (void) snprintf(text, sizeof text,
                        "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\",\"labels\":{\"unit\":\"%s\","
                        "\"ack.node.gpu.schedule\":\"cgpu\"}},\"status\":{\"allocatable\":{\"aliyun.com/"
                        "gpu-mem\":\"16\",\"aliyun.com/gpu-count\":\"1\"}}}",
                        name, name, unit);
        feed(v, VIEW_NODES, event, text);
}

static void list_nodes(Fixture *f) {
        static const char *const nodes[][2] = {
                {"a1", "a"}, {"a2", "a"}, {"b1", "b"}, {"b2", "b"}, {"x1", "x"}};

        view_list_begin(f->view, VIEW_NODES);
        for (size_t i = 0; i < ELEMENTSOF(nodes); i++)
                feed_node(f->view, nodes[i][0], nodes[i][1], REFLECTOR_LISTED);
        view_list_end(f->view, VIEW_NODES);
}

static void list(Fixture *f) {
        list_nodes(f);
        view_list_begin(f->view, VIEW_PODS);
        view_list_end(f->view, VIEW_PODS);
}

static void feed_policy(Fixture *f, const char *name, const char *spec) {
        _cleanup_buf_ Buf out = BUF_NULL;

        buf_appendf(&out,
                    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"u-%s\","
                    "\"creationTimestamp\":\"2026-11-21T10:00:0%zuZ\"},\"spec\":%s}",
                    name, name, strlen(name) % 10, spec);
        feed(f->view, VIEW_POLICIES, REFLECTOR_MODIFIED, out.data);
}

/* Units a and b of two nodes each; x1 is in none. more: further members of spec. */
#define SPEC(more_a, more)                                                                                   \
        "{\"selector\":{\"app\":\"web\"},\"units\":[{\"nodeSelector\":{\"unit\":\"a\"}" more_a               \
        "},{\"nodeSelector\":{\"unit\":\"b\"}}]" more "}"

static void overlap(void *userdata, const PolicyPod *pod, const Policy *second) {
        ((Fixture *) userdata)->overlaps++;
}

static void setup(Fixture *f, const char *spec) {
        *f = (Fixture){.now = clock_monotonic_usec()};
        ASSERT_OK(view_new(&f->view));
        f->context = (SchedulerContext){.client = fake_client(NULL), .view = f->view, .metrics = &f->metrics};
        f->context.choosers[f->context.n_choosers++] = policy_filter_chooser(f->view->policies);
        f->context.units = policy_bind_hooks(f->view->policies);
        ASSERT_OK(binder_new(&f->context, 0, &f->binder));
        f->view->policies->on_overlap = overlap;
        f->view->policies->userdata = f;
        feed_policy(f, "web", spec);
        list(f);
}

static void teardown(Fixture *f) {
        binder_free(f->binder);
        ASSERT_INT(fake_n_calls(), 0);
        view_free(f->view);
}

/* The text of a pod of the policy. */
static const char *pod_of(PodText p) {
        p.phase = p.phase ? p.phase : "Pending";
        p.state = "waiting";
        p.labels = p.labels ? p.labels : "\"app\":\"web\"";
        p.spec = p.spec ? p.spec : "\"schedulerName\":\"ack-co-scheduler\",";
        return pod_json_(p);
}
#define POD(...) pod_of((PodText){.name = __VA_ARGS__})

static void see(Fixture *f, const char *pod) {
        feed(f->view, VIEW_PODS, REFLECTOR_MODIFIED, pod);
}

static const char *ask(Fixture *f, const char *pod, const char *names) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf body = BUF_NULL, out = BUF_NULL;

        f->context.now = f->now;
        f->context.arena = &arena;
        buf_appendf(&body, "{\"Pod\":%s,\"NodeNames\":[%s]}", pod, names);
        ASSERT_INT(verb_filter(&f->context, buf_str(&body), &out), 200);
        (void) snprintf(f->answer, sizeof f->answer, "%.*s", (int) out.len, out.data);
        return f->answer;
}

#define ASSERT_NAMES(answer, names) ASSERT_CONTAINS(answer, "\"NodeNames\":[" names "]")

typedef struct Answer {
        unsigned n;
        char error[1024];
} Answer;

static void on_done(void *userdata, const char *error) {
        Answer *a = userdata;

        a->n++;
        (void) snprintf(a->error, sizeof a->error, "%s", error);
}

static Answer begin_bind(Fixture *f, const char *name, const char *node) {
        char uid[64];
        Answer a = {0};
        BindingArgs args = {.name = str_from(name), .namespace_ = STR("default"), .node = str_from(node)};
        Bind *bind;

        (void) snprintf(uid, sizeof uid, "uid-%s", name);
        args.uid = str_from(uid);
        binder_bind(f->binder, &args, on_done, &a, &bind);
        if (bind)
                binder_abandon(bind);
        return a;
}

static void bind(Fixture *f, const char *name, const char *node) {
        Answer a = begin_bind(f, name, node);

        if (a.n > 0)
                TEST_FAIL_("%s", a.error);
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
}

/* ---- cases ---- */

static void units_fill_in_order(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":2", ""));
        see(&f, POD("p1"));
        ASSERT_NAMES(ask(&f, POD("p1"), ALL), "\"a1\",\"a2\"");
        ASSERT_CONTAINS(f.answer, "\"b1\":\"node(s) are in another unit of policy web\"");
        ASSERT_CONTAINS(f.answer, "\"x1\":\"node(s) are in no unit of policy web\"");
        bind(&f, "p1", "a1");
        see(&f, POD("p2"));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"a1\",\"a2\"");
        bind(&f, "p2", "a1");
        see(&f, POD("p3"));
        ASSERT_NAMES(ask(&f, POD("p3"), ALL), "\"b1\",\"b2\"");
        ASSERT_CONTAINS(f.answer, "\"a1\":\"unit 1 of policy web is full: 2 of max 2 pods\"");
        ASSERT_INT(begin_bind(&f, "p3", "a1").n, 1);
        ASSERT_TEXT(begin_bind(&f, "p3", "a1").error, "unit 1 of policy web is full: 2 of max 2 pods");
        ASSERT_TEXT(begin_bind(&f, "p3", "x1").error, "node(s) are in no unit of policy web");
        bind(&f, "p3", "b2");
        teardown(&f);
}

/* The names n1 to nN, quoted. */
static const char *names_of(unsigned n, char *ret, size_t size) {
        size_t at = 0;

        ret[0] = '\0';
        for (unsigned i = 1; i <= n; i++)
                at += (size_t) snprintf(ret + at, size - at, "%s\"n%u\"", i > 1 ? "," : "", i);
        return ret;
}

/* list() has five nodes; the others are of this unit. */
static void setup_nodes(Fixture *f, unsigned nodes, const char *unit, const char *spec) {
        setup(f, spec);
        for (unsigned k = 6; k <= nodes; k++) {
                char name[16];

                (void) snprintf(name, sizeof name, "n%u", k);
                feed_node(f->view, name, unit, REFLECTOR_ADDED);
        }
}

/* Of 300 nodes kube-scheduler looks for 48 % by default, and of 150 for 100. The nodes of unit a do
 * not come, and the pod goes to unit b. */
static void a_sample_of_the_nodes_is_noticed(void) {
        static const struct {
                unsigned nodes, offered;
                bool told;
        } cases[] = {{300, 144, true},  {300, 143, false}, {300, 145, false}, {300, 150, true},
                     {300, 300, false}, {150, 100, true},  {150, 99, false},  {100, 100, false},
                     {90, 43, false},   {6000, 300, true}, {1000, 700, true}, {1000, 705, false}};
        char names[8192];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fixture f;

                setup_nodes(&f, cases[i].nodes, "b", SPEC("", ""));
                (void) ask(&f, POD("p1"), names_of(cases[i].offered, names, sizeof names));
                ASSERT_TRUE((f.view->policies->policies->told_sample > 0) == cases[i].told);
                teardown(&f);
        }
}

/* Only where another unit would have had the pod, and not with each pod. */
static void a_sample_is_told_where_it_matters(void) {
        char names[4096];
        const Policy *p;
        usec_t told;
        Fixture f;

        (void) names_of(150, names, sizeof names);
        setup_nodes(&f, 300, "a", SPEC("", ""));
        ASSERT_CONTAINS(ask(&f, POD("p1"), names), "\"n6\"");
        ASSERT_INT(f.view->policies->policies->told_sample, 0);
        teardown(&f);
        setup_nodes(&f, 300, "b", SPEC(",\"max\":0", ""));
        ASSERT_CONTAINS(ask(&f, POD("p1"), names), "\"n6\"");
        ASSERT_INT(f.view->policies->policies->told_sample, 0);
        teardown(&f);
        setup_nodes(&f, 300, "b", SPEC(",\"max\":9", ",\"whenTryNextUnits\":{\"policy\":\"ExceedMax\"}"));
        p = f.view->policies->policies;
        ASSERT_CONTAINS(ask(&f, POD("p1"), names), "waits in unit 1 of policy web");
        told = p->told_sample;
        ASSERT_INT(told, f.now);
        f.now += 59 * USEC_PER_SEC;
        (void) ask(&f, POD("p1"), names);
        ASSERT_INT(p->told_sample, told);
        f.now += USEC_PER_SEC;
        (void) ask(&f, POD("p1"), names);
        ASSERT_INT(p->told_sample, f.now);
        teardown(&f);
}

/* Shares of a card: room is what the cards have, too. */
static void cards_are_room(void) {
        Fixture f;

        setup(&f, SPEC("", ""));
        see(&f, POD("p1", .mem = "12"));
        ASSERT_NAMES(ask(&f, POD("p1", .mem = "12"), "\"a1\",\"b1\""), "\"a1\"");
        bind(&f, "p1", "a1");
        see(&f, POD("p2", .mem = "12"));
        ASSERT_NAMES(ask(&f, POD("p2", .mem = "12"), "\"a1\",\"b1\""), "\"b1\"");
        ASSERT_NAMES(ask(&f, POD("p2", .mem = "12"), ALL), "\"a2\"");
        /* Too large for every card: the cards say why, not the policy. */
        ASSERT_CONTAINS(ask(&f, POD("p2", .mem = "17"), "\"a1\""), "no card is large enough");
        teardown(&f);
}

static void the_binding_has_labels_annotations_and_cost(void) {
        Fixture f;
        const char *cost = ",\"controller.kubernetes.io/pod-deletion-cost\":\"7\"";

        setup(&f, "{\"selector\":{\"app\":\"web\"},\"units\":[{\"nodeSelector\":{\"unit\":\"a\"},\"max\":0},{"
                  "\"nodeSelector\":{\"unit\":\"b\"},\"podLabels\":{\"paid\":\"hourly\"},\"podAnnotations\":{"
                  "\"n\":\"q\\\"\"}}]}");
        see(&f, POD("p1"));
        ASSERT_INT(begin_bind(&f, "p1", "b1").n, 0);
        ASSERT_TEXT(fake_annotations(fake_call(FAKE_BIND)),
                    "{\"n\":\"q\\\"\",\"aliquot.dev/resource-policy\":\"web/-100\","
                    "\"controller.kubernetes.io/pod-deletion-cost\":\"-100\"}");
        ASSERT_TEXT(fake_labels(fake_call(FAKE_BIND)), "{\"paid\":\"hourly\"}");
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        see(&f, POD("p2", .annotations = cost, .mem = "4"));
        ASSERT_INT(begin_bind(&f, "p2", "b1").n, 0);
        ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_BIND)),
                        ",\"n\":\"q\\\"\",\"aliquot.dev/resource-policy\":\"web\"}");
        ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_BIND)), "gpushare.allocation");
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 409, "");
        fake_reply(fake_call(FAKE_GET), KUBE_DONE, 404, "");
        teardown(&f);
}

static void a_failed_binding_frees_its_place(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":1", ""));
        see(&f, POD("p1"));
        see(&f, POD("p2"));
        ASSERT_INT(begin_bind(&f, "p1", "a1").n, 0);
        ASSERT_INT(begin_bind(&f, "p2", "a1").n, 1);
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 403, "");
        bind(&f, "p2", "a1");
        teardown(&f);
}

/* A pod on its way counts for two seconds, also for itself only once. */
static void a_note_ends(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":1", ""));
        see(&f, POD("p1"));
        see(&f, POD("p2"));
        ASSERT_NAMES(ask(&f, POD("p1"), ALL), "\"a1\",\"a2\"");
        ASSERT_NAMES(ask(&f, POD("p1"), ALL), "\"a1\",\"a2\"");
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"b1\",\"b2\"");
        ASSERT_INT(f.view->policies->notes_expired, 0);
        f.now += POLICY_NOTE_LASTS + 1;
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"a1\",\"a2\"");
        ASSERT_INT(f.view->policies->notes_expired, 2);
        teardown(&f);
}

/* Any client may ask about pods that do not exist. */
static void unknown_pods_leave_no_note(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":1", ""));
        ASSERT_NAMES(ask(&f, POD("ghost"), ALL), "\"a1\",\"a2\"");
        ASSERT_NAMES(ask(&f, POD("ghost2"), ALL), "\"a1\",\"a2\"");
        teardown(&f);
}

static void groups_are_counted_apart(void) {
        Fixture f;
        const char *one = "\"app\":\"web\",\"v\":\"1\"", *two = "\"app\":\"web\",\"v\":\"2\"";

        setup(&f, SPEC(",\"max\":1", ",\"matchLabelKeys\":[\"v\"]"));
        see(&f, POD("p1", .labels = one));
        see(&f, POD("p2", .labels = two));
        bind(&f, "p1", "a1");
        ASSERT_NAMES(ask(&f, POD("p3", .labels = one), ALL), "\"b1\",\"b2\"");
        ASSERT_NAMES(ask(&f, POD("p2", .labels = two), ALL), "\"a1\",\"a2\"");
        ASSERT_CONTAINS(ask(&f, POD("p4"), ALL), "policy web needs label v, which the pod lacks");
        ASSERT_NAMES(f.answer, "");
        teardown(&f);
}

static void terminating_and_previous_pods(void) {
        Fixture f;
        const char *early = "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\","
                            "\"lastTransitionTime\":\"2026-11-20T00:00:00Z\"}],";

        setup(&f, SPEC(",\"max\":1", ""));
        see(&f, POD("p1", .node = "a1", .terminating = true));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"a1\",\"a2\"");
        see(&f, POD("p1", .node = "a1", .status = early));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"b1\",\"b2\"");
        feed_policy(&f, "web", SPEC(",\"max\":1", ",\"ignorePreviousPod\":true"));
        list(&f);
        see(&f, POD("p1", .node = "a1", .status = early));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"a1\",\"a2\"");
        feed_policy(&f, "web", SPEC(",\"max\":1", ",\"ignoreTerminatingPod\":false"));
        list(&f);
        see(&f, POD("p1", .node = "a1", .terminating = true));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"b1\",\"b2\"");
        see(&f, POD("p1", .node = "a1", .phase = "Succeeded"));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"a1\",\"a2\"");
        teardown(&f);
}

/* Pods without the unit's labels are not counted; those that the Binding marked are. */
static void labels_decide_what_counts(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":1,\"podLabels\":{\"paid\":\"yes\"}", ""));
        see(&f, POD("p1", .node = "a1"));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"a1\",\"a2\"");
        see(&f, POD("p1", .node = "a1", .labels = "\"app\":\"web\",\"paid\":\"yes\""));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"b1\",\"b2\"");
        see(&f, POD("p1", .node = "a1", .annotations = ",\"aliquot.dev/resource-policy\":\"web/0\""));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"b1\",\"b2\"");
        teardown(&f);
}

/* Texts of a pod from before its Binding, which the watch and a list may still bring, tell nothing
 * of it. */
static void an_old_object_leaves_a_bound_pod_counted(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":1,\"podLabels\":{\"paid\":\"yes\"}", ""));
        see(&f, POD("p1"));
        bind(&f, "p1", "a1");
        see(&f, POD("p1"));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"b1\",\"b2\"");
        see(&f, POD("p1", .phase = "Failed"));
        see(&f, POD("p2"));
        view_list_begin(f.view, VIEW_PODS);
        bind(&f, "p2", "a1");
        feed(f.view, VIEW_PODS, REFLECTOR_LISTED, POD("p2"));
        view_list_end(f.view, VIEW_PODS);
        ASSERT_NAMES(ask(&f, POD("p3"), ALL), "\"b1\",\"b2\"");
        /* A list that began behind the Binding knows better. */
        view_list_begin(f.view, VIEW_PODS);
        feed(f.view, VIEW_PODS, REFLECTOR_LISTED, POD("p2"));
        view_list_end(f.view, VIEW_PODS);
        ASSERT_NAMES(ask(&f, POD("p3"), ALL), "\"a1\",\"a2\"");
        teardown(&f);
}

static void amounts_limit_a_unit(void) {
        Fixture f;

        setup(&f, SPEC(",\"maxResources\":{\"cpu\":\"3\"}", ""));
        see(&f, POD("p1", .node = "a1", .requests = "\"cpu\":\"2\""));
        ASSERT_NAMES(ask(&f, POD("p2", .requests = "\"cpu\":\"1\""), ALL), "\"a1\",\"a2\"");
        ASSERT_NAMES(ask(&f, POD("p2", .requests = "\"cpu\":\"1001m\""), ALL), "\"b1\",\"b2\"");
        ASSERT_CONTAINS(f.answer, "unit 1 of policy web is full: 1 pods, and maxResources is reached");
        teardown(&f);
}

/* Two requests of which one alone has room in 64 bits. */
static void huge_amounts_open_no_unit(void) {
        Fixture f;
        const char *huge = "\"cpu\":\"9000000000000000\"";

        setup(&f, SPEC(",\"maxResources\":{\"cpu\":\"3\"}", ""));
        see(&f, POD("p1", .node = "a1", .requests = huge));
        see(&f, POD("p2", .node = "a2", .requests = huge));
        ASSERT_NAMES(ask(&f, POD("p3", .requests = "\"cpu\":\"1\""), ALL), "\"b1\",\"b2\"");
        see(&f, POD("p1", .node = "a1", .phase = "Failed"));
        ASSERT_NAMES(ask(&f, POD("p3", .requests = "\"cpu\":\"1\""), ALL), "\"b1\",\"b2\"");
        see(&f, POD("p2", .node = "a2", .phase = "Failed"));
        ASSERT_NAMES(ask(&f, POD("p3", .requests = "\"cpu\":\"1\""), ALL), "\"a1\",\"a2\"");
        teardown(&f);
}

static void a_pod_waits_with_a_reason(void) {
        Fixture f;
        PolicyPod *pod;

        setup(&f, SPEC(",\"max\":3",
                       ",\"whenTryNextUnits\":{\"policy\":\"TimeoutOrExceedMax\",\"timeout\":\"1m\"}"));
        see(&f, POD("p0", .node = "a1"));
        see(&f, POD("p1"));
        ASSERT_NAMES(ask(&f, POD("p1"), "\"b1\",\"b2\""), "");
        ASSERT_CONTAINS(strstr(f.answer, "FailedAndUnresolvableNodes"),
                        "\"b1\":\"waits in unit 1 of policy web: 1 of max 3 pods, no room\"");
        pod = policy_table_find(f.view->policies, STR("uid-p1"));
        ASSERT_TRUE(pod->waits);
        ASSERT_INT(pod->wake, f.now + 61 * USEC_PER_SEC);
        /* After the timeout, by the condition of the pod. */
        ASSERT_NAMES(
                ask(&f,
                    POD("p1", .status = "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
                                        "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}],"),
                    "\"b1\",\"b2\""),
                "\"b1\",\"b2\"");
        ASSERT_FALSE(pod->waits);
        teardown(&f);
}

#define UNSCHEDULED(reason, since)                                                                           \
        "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"" reason               \
        "\",\"lastTransitionTime\":" since "}],"

/* The condition has no time, or the time at which the pod came. The pod waits since its first
 * attempt without the gate. */
static void time_behind_a_gate_does_not_count(void) {
        static const char *const texts[][2] = {
                {UNSCHEDULED("SchedulingGated", "null"), UNSCHEDULED("Unschedulable", "null")},
                {UNSCHEDULED("SchedulingGated", "\"2026-01-01T00:00:00Z\""),
                 UNSCHEDULED("Unschedulable", "\"2026-01-01T00:00:00Z\"")},
        };
        Fixture f;
        PolicyPod *pod;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                const char *gated = texts[i][0], *tried = texts[i][1];

                setup(&f,
                      SPEC(",\"max\":3",
                           ",\"whenTryNextUnits\":{\"policy\":\"TimeoutOrExceedMax\",\"timeout\":\"1m\"}"));
                see(&f, POD("p1", .status = gated));
                pod = policy_table_find(f.view->policies, STR("uid-p1"));
                ASSERT_INT(pod->wake, 0);
                ASSERT_NAMES(ask(&f, POD("p1", .status = gated), "\"b1\""), "");
                ASSERT_INT(pod->wake, f.now + 61 * USEC_PER_SEC);
                see(&f, POD("p1", .status = tried));
                ASSERT_NAMES(ask(&f, POD("p1", .status = tried), "\"b1\""), "");
                pod->since -= 61;
                ASSERT_NAMES(ask(&f, POD("p1", .status = tried), "\"b1\""), "\"b1\"");
                teardown(&f);
        }
        /* Kube-scheduler may ask before the watch tells that the gate is off. */
        setup(&f, SPEC(",\"max\":3", ",\"whenTryNextUnits\":{\"policy\":\"TimeoutOrExceedMax\"}"));
        see(&f, POD("p1", .status = texts[1][0]));
        ASSERT_NAMES(ask(&f, POD("p1", .status = texts[1][1]), "\"b1\""), "");
        teardown(&f);
}

/* Notes of other pods of the policy may end without a Binding; those of other policies do not
 * matter. */
static void notes_of_the_policy_wake(void) {
        Fixture f;
        const char *db = "\"app\":\"db\"";
        PolicyPod *pod;

        setup(&f, SPEC(",\"max\":0", ""));
        feed_policy(&f, "other", "{\"selector\":{\"app\":\"db\"},\"units\":[{}]}");
        list(&f);
        see(&f, POD("p1"));
        see(&f, POD("p2"));
        see(&f, POD("d1", .labels = db));
        pod = policy_table_find(f.view->policies, STR("uid-p1"));
        ASSERT_NAMES(ask(&f, POD("d1", .labels = db), "\"a1\""), "\"a1\"");
        ASSERT_NAMES(ask(&f, POD("p1"), "\"a1\""), "");
        ASSERT_TRUE(pod->waits && pod->wake == 0);
        ASSERT_NAMES(ask(&f, POD("p2"), "\"b1\""), "\"b1\"");
        ASSERT_NAMES(ask(&f, POD("p1"), "\"a1\""), "");
        ASSERT_TRUE(pod->wake > f.now);
        teardown(&f);
}

/* Filter met the pod before the watch told of it, and remembers nothing. */
static void a_pod_that_filter_met_early_is_woken_once(void) {
        Fixture f;
        const char *failed = "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
                             "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}],";
        PolicyPod *pod;

        setup(&f, SPEC(",\"max\":0", ""));
        ASSERT_NAMES(ask(&f, POD("p1"), "\"a1\""), "");
        see(&f, POD("p1"));
        pod = policy_table_find(f.view->policies, STR("uid-p1"));
        ASSERT_INT(pod->wake, 0);
        see(&f, POD("p1", .status = failed));
        ASSERT_INT(pod->wake, 1);
        pod->wake = 0;
        see(&f, POD("p1", .status = failed));
        ASSERT_INT(pod->wake, 0);
        /* Filter knows of this one. */
        see(&f, POD("p2"));
        ASSERT_NAMES(ask(&f, POD("p2"), "\"a1\""), "");
        see(&f, POD("p2", .status = failed));
        ASSERT_INT(policy_table_find(f.view->policies, STR("uid-p2"))->wake, 0);
        teardown(&f);
}

static void pods_of_schedulers_that_never_asked_do_not_obey(void) {
        Fixture f;
        _cleanup_buf_ Buf patch = BUF_NULL;
        const char *other = "\"schedulerName\":\"volcano\",";
#define MARK ",\"aliquot.dev/resource-policy\":\"web/0\""

        setup(&f, SPEC(",\"max\":1", ""));
        see(&f, POD("v1", .node = "a1", .spec = other));
        see(&f, POD("v2", .node = "b1", .spec = other));
        see(&f, POD("v3", .spec = other));
        see(&f, POD("p1"));
        policy_bind_patch(policy_table_find(f.view->policies, STR("uid-v2")), &patch);
        ASSERT_INT(patch.len, 0);
        ASSERT_TRUE(policy_table_wake_ready(f.view->policies));
        ASSERT_INT(policy_table_find(f.view->policies, STR("uid-v3"))->wake, 0);
        ASSERT_INT(policy_table_find(f.view->policies, STR("uid-p1"))->wake, 1);
        ASSERT_NAMES(ask(&f, POD("p1"), ALL), "\"a1\",\"a2\"");
        f.now += POLICY_NOTE_LASTS + 1;
        /* It asks: now all of its pods count. */
        ASSERT_NAMES(ask(&f, POD("v3", .spec = other), ALL), "\"b1\",\"b2\"");
        ASSERT_TRUE(policy_table_check(f.view->policies));
        policy_bind_patch(policy_table_find(f.view->policies, STR("uid-v2")), &patch);
        ASSERT_TRUE(patch.len > 0);
        teardown(&f);
        /* The annotation alone says nothing: its user may have written it. */
        setup(&f, SPEC(",\"max\":1", ""));
        see(&f, POD("v1", .node = "a1", .spec = other, .annotations = MARK));
        see(&f, POD("v2", .spec = other, .annotations = MARK));
        ASSERT_FALSE(policy_table_find(f.view->policies, STR("uid-v1"))->obeys);
        ASSERT_NAMES(ask(&f, POD("p1"), ALL), "\"a1\",\"a2\"");
        ASSERT_NAMES(ask(&f, POD("v2", .spec = other), ALL), "\"b1\",\"b2\"");
        teardown(&f);
}

/* What has changed is not in force before pods and nodes have been listed. */
static void a_change_waits_for_the_lists(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":1", ""));
        see(&f, POD("p1"));
        feed_policy(&f, "web", SPEC(",\"max\":2", ""));
        ASSERT_CONTAINS(ask(&f, POD("p1"), ALL), "policy web has changed, its pods are being counted");
        ASSERT_FALSE(policy_table_wake_ready(f.view->policies));
        list(&f);
        see(&f, POD("p1"));
        ASSERT_TRUE(policy_table_wake_ready(f.view->policies));
        ASSERT_INT(policy_table_find(f.view->policies, STR("uid-p1"))->wake, 1);
        ASSERT_NAMES(ask(&f, POD("p1"), ALL), "\"a1\",\"a2\"");
        teardown(&f);
}

/* The table has forgotten the pods of a policy that has changed. A Binding of one of them waits. */
static void no_pod_is_bound_while_a_policy_counts(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":1", ""));
        see(&f, POD("p1"));
        ASSERT_NAMES(ask(&f, POD("p1"), ALL), "\"a1\",\"a2\"");
        feed_policy(&f, "web", SPEC(",\"max\":0", ""));
        ASSERT_TEXT(begin_bind(&f, "p1", "a1").error, "policy web has changed, its pods are being counted");
        ASSERT_INT(fake_n_calls(), 0);
        list(&f);
        see(&f, POD("p1"));
        ASSERT_TEXT(begin_bind(&f, "p1", "a1").error, "unit 1 of policy web is full: 0 of max 0 pods");
        bind(&f, "p1", "b1");
        /* One that is not in force counts no pods. */
        feed_policy(&f, "web", SPEC(",\"max\":0", ",\"strategy\":\"spread\""));
        see(&f, POD("p2"));
        bind(&f, "p2", "a1");
        teardown(&f);
}

/* A policy that is not in force, or that is gone, keeps no pod off. */
static void without_a_policy_all_nodes_are_open(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":0", ",\"strategy\":\"spread\""));
        see(&f, POD("p1"));
        ASSERT_NAMES(ask(&f, POD("p1"), ALL), ALL);
        bind(&f, "p1", "x1");
        view_list_begin(f.view, VIEW_POLICIES);
        view_list_end(f.view, VIEW_POLICIES);
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), ALL);
        ASSERT_TRUE(!f.view->policies->policies && !f.view->policies->pods);
        teardown(&f);
}

static void of_two_policies_the_older_applies(void) {
        Fixture f;

        setup(&f, SPEC("", "")); /* created in second 3, "other" in second 5 */
        feed_policy(&f, "other", "{\"units\":[{\"nodeSelector\":{\"unit\":\"x\"}}]}");
        list(&f);
        see(&f, POD("p1"));
        ASSERT_NAMES(ask(&f, POD("p1"), ALL), "\"a1\",\"a2\"");
        (void) ask(&f, POD("p1"), ALL);
        ASSERT_INT(f.overlaps, 1);
        ASSERT_NAMES(ask(&f, POD("p2", .labels = "\"app\":\"db\""), ALL), "\"x1\"");
        teardown(&f);
}

/* Each key of a label is wanted once for each selector that names it. */
static void labels_of_nodes_are_kept_while_a_policy_wants_them(void) {
        NodeLabelKeys *keys;
        Fixture f;

        setup(&f, SPEC("", ""));
        keys = &f.view->policies->keys;
        ASSERT_INT(keys->keys->n, 2);
        for (int i = 0; i < 2; i++) /* the second one changes */
                feed_policy(&f, "other",
                            i == 0 ? "{\"units\":[{\"nodeSelector\":{\"unit\":\"x\",\"zone\":\"a\"}}]}"
                                   : "{\"units\":[{\"nodeSelector\":{\"unit\":\"x\"}}]}");
        ASSERT_INT(HASH_COUNT(keys->keys), 1);
        ASSERT_INT(keys->keys->n, 3);
        feed(f.view, VIEW_POLICIES, REFLECTOR_DELETED,
             "{\"metadata\":{\"namespace\":\"default\",\"name\":\"other\",\"uid\":\"u-other\"},\"spec\":{}}");
        list(&f); /* nodes come again, and their labels are read anew */
        see(&f, POD("p1"));
        ASSERT_NAMES(ask(&f, POD("p1"), ALL), "\"a1\",\"a2\"");
        view_list_begin(f.view, VIEW_POLICIES);
        view_list_end(f.view, VIEW_POLICIES);
        ASSERT_TRUE(keys->keys == NULL);
        teardown(&f);
}

static void a_nominated_node_of_a_later_unit_is_refused_once(void) {
        Fixture f;

        setup(&f, SPEC("", ""));
        see(&f, POD("p1"));
        ASSERT_NAMES(ask(&f, POD("p1", .nominated = "b1"), "\"b1\""), "");
        ASSERT_CONTAINS(f.answer, "an earlier unit of policy web may have room");
        ASSERT_NAMES(ask(&f, POD("p1", .nominated = "b1"), "\"b1\""), "\"b1\"");
        see(&f, POD("p2"));
        ASSERT_NAMES(ask(&f, POD("p2"), "\"b1\""), "\"b1\"");
        teardown(&f);
}

static bool may_preempt(Fixture *f, const char *node) {
        return policy_filter_may_preempt(f->view->policies, STR("uid-p1"),
                                         directory_find(f->view->directory, str_from(node)));
}

static void victims_are_looked_for_in_the_right_units(void) {
        Fixture f;

        /* Its own note does not fill the unit. */
        setup(&f, SPEC(",\"max\":1", ""));
        see(&f, POD("p1", .priority = 5));
        ASSERT_NAMES(ask(&f, POD("p1", .priority = 5), ALL), "\"a1\",\"a2\"");
        ASSERT_TRUE(may_preempt(&f, "a1"));
        teardown(&f);
        /* After all units, by default: where no unit waits, in those that are not full. */
        setup(&f, SPEC(",\"max\":1", ""));
        see(&f, POD("p0", .node = "a1"));
        see(&f, POD("p1", .priority = 5));
        (void) ask(&f, POD("p1", .priority = 5), "");
        ASSERT_FALSE(may_preempt(&f, "a1"));
        ASSERT_TRUE(may_preempt(&f, "b1"));
        ASSERT_FALSE(may_preempt(&f, "x1"));
        teardown(&f);
        setup(&f, SPEC(",\"max\":1", ",\"whenTryNextUnits\":{\"policy\":\"ExceedMax\"}"));
        see(&f, POD("p1", .priority = 5));
        (void) ask(&f, POD("p1", .priority = 5), "\"b1\"");
        ASSERT_FALSE(may_preempt(&f, "a1") || may_preempt(&f, "b1"));
        teardown(&f);
        /* Before the next unit: once in unit a, then b opens. */
        setup(&f, SPEC("", ",\"preemptPolicy\":\"BeforeNextUnit\""));
        see(&f, POD("p1", .priority = 5));
        ASSERT_NAMES(ask(&f, POD("p1", .priority = 5), "\"b1\""), "");
        ASSERT_TRUE(may_preempt(&f, "a1"));
        ASSERT_FALSE(may_preempt(&f, "b1"));
        ASSERT_NAMES(ask(&f, POD("p1", .priority = 5), "\"b1\""), "\"b1\"");
        teardown(&f);
}

static void nodes_may_change_their_unit(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":1", ""));
        see(&f, POD("p1", .node = "b1"));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"a1\",\"a2\"");
        feed_node(f.view, "b1", "a", REFLECTOR_MODIFIED);
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"b2\"");
        ASSERT_INT(f.view->policies->policies->nodes[0], 3);
        teardown(&f);
}

static void bound_pods_get_what_their_binding_could_not_write(void) {
        Fixture f;
        _cleanup_buf_ Buf patch = BUF_NULL;
        const PolicyPod *pod;

        setup(&f, "{\"selector\":{\"app\":\"web\"},\"units\":[{\"nodeSelector\":{\"unit\":\"a\"}},{"
                  "\"nodeSelector\":{\"unit\":\"b\"},\"podLabels\":{\"paid\":\"hourly\"}}]}");
        see(&f, POD("p1", .node = "b1",
                    .annotations = ",\"aliquot.dev/resource-policy\":\"web/-100\",\"controller.kubernetes.io/"
                                   "pod-deletion-cost\":\"-100\""));
        pod = policy_table_find(f.view->policies, STR("uid-p1"));
        policy_bind_patch(pod, &patch);
        ASSERT_TEXT(patch.data, "{\"metadata\":{\"uid\":\"uid-p1\",\"labels\":{\"paid\":\"hourly\"}}}");
        /* Bound before the policy came: the cost alone. */
        see(&f, POD("p1", .node = "b1"));
        buf_clear(&patch);
        policy_bind_patch(pod, &patch);
        ASSERT_CONTAINS(patch.data, "\"annotations\":{\"aliquot.dev/resource-policy\":\"web/-100\"");
        ASSERT_FALSE(strstr(patch.data, "paid"));
        /* The cost is its user's; and in the first unit nothing is to be written. */
        see(&f,
            POD("p1", .node = "b1", .annotations = ",\"controller.kubernetes.io/pod-deletion-cost\":\"-5\""));
        buf_clear(&patch);
        policy_bind_patch(pod, &patch);
        ASSERT_INT(patch.len, 0);
        see(&f, POD("p1", .node = "a1"));
        policy_bind_patch(pod, &patch);
        ASSERT_INT(patch.len, 0);
        teardown(&f);
}

/* A Binding that is under way when the policy changes still counts. */
static void an_open_bind_survives_a_change(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":2", ""));
        see(&f, POD("p1"));
        ASSERT_INT(begin_bind(&f, "p1", "a1").n, 0);
        feed_policy(&f, "web", SPEC(",\"max\":1", ""));
        list(&f);
        see(&f, POD("p1"));
        see(&f, POD("p2"));
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"b1\",\"b2\"");
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"b1\",\"b2\"");
        ASSERT_TRUE(policy_table_check(f.view->policies));
        teardown(&f);
}

/* The list that the change asks for began before the Binding was written, and shows the pod unbound
 * after the Binding was answered. */
static void a_list_older_than_the_binding_opens_no_unit(void) {
        Fixture f;

        setup(&f, SPEC(",\"max\":2", ""));
        see(&f, POD("p1"));
        ASSERT_INT(begin_bind(&f, "p1", "a1").n, 0);
        feed_policy(&f, "web", SPEC(",\"max\":1", ""));
        view_list_begin(f.view, VIEW_PODS);
        fake_reply(fake_call(FAKE_BIND), KUBE_DONE, 201, "");
        feed(f.view, VIEW_PODS, REFLECTOR_LISTED, POD("p1"));
        feed(f.view, VIEW_PODS, REFLECTOR_LISTED, POD("p2"));
        view_list_end(f.view, VIEW_PODS);
        list_nodes(&f);
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"b1\",\"b2\"");
        ASSERT_TRUE(policy_table_check(f.view->policies));
        /* A list that began afterwards says what is. */
        view_list_begin(f.view, VIEW_PODS);
        feed(f.view, VIEW_PODS, REFLECTOR_LISTED, POD("p2"));
        view_list_end(f.view, VIEW_PODS);
        ASSERT_NAMES(ask(&f, POD("p2"), ALL), "\"a1\",\"a2\"");
        teardown(&f);
}

int main(void) {
        return TEST_MAIN(
                TEST(units_fill_in_order), TEST(a_sample_of_the_nodes_is_noticed),
                TEST(a_sample_is_told_where_it_matters), TEST(cards_are_room),
                TEST(the_binding_has_labels_annotations_and_cost), TEST(a_failed_binding_frees_its_place),
                TEST(a_note_ends), TEST(unknown_pods_leave_no_note), TEST(groups_are_counted_apart),
                TEST(terminating_and_previous_pods), TEST(labels_decide_what_counts),
                TEST(an_old_object_leaves_a_bound_pod_counted), TEST(amounts_limit_a_unit),
                TEST(huge_amounts_open_no_unit), TEST(a_pod_waits_with_a_reason),
                TEST(time_behind_a_gate_does_not_count),
                TEST(pods_of_schedulers_that_never_asked_do_not_obey), TEST(notes_of_the_policy_wake),
                TEST(a_pod_that_filter_met_early_is_woken_once), TEST(a_change_waits_for_the_lists),
                TEST(no_pod_is_bound_while_a_policy_counts), TEST(without_a_policy_all_nodes_are_open),
                TEST(of_two_policies_the_older_applies),
                TEST(labels_of_nodes_are_kept_while_a_policy_wants_them),
                TEST(a_nominated_node_of_a_later_unit_is_refused_once),
                TEST(victims_are_looked_for_in_the_right_units), TEST(nodes_may_change_their_unit),
                TEST(bound_pods_get_what_their_binding_could_not_write), TEST(an_open_bind_survives_a_change),
                TEST(a_list_older_than_the_binding_opens_no_unit));
}
