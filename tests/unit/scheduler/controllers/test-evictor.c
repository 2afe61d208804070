/* SPDX-License-Identifier: Apache-2.0 */

/* The evictor against an API server that answers as the test says, at times that the test passes
 * in. The pod comes in by filter calls, as kube-scheduler sends them. */

#include "fake_api.h"
#include "fixture.h"
#include "scheduler/controllers/evictor.h"
#include "scheduler/extender.h"
#include "scheduler/gang/gangs.h"
#include "scheduler/question/policy_bind.h"
#include "scheduler/question/policy_filter.h"

typedef struct Fixture {
        sd_event *event;
        View *view;
        Metrics metrics;
        Binder *binder;
        Evictor *evictor;
        SchedulerContext context;
        usec_t now;
        bool deposed;
} Fixture;

static const char *may_not_act(void *userdata) {
        return ((Fixture *) userdata)->deposed ? "this replica is not the leader" : NULL;
}

static void on_pod(void *userdata, const Pod *pod, Str object, ReflectorEvent event) {
        Fixture *f = userdata;

        pending_pod(&f->context.pending, f->view, pod, event);
}

static const char *held(const char *name, unsigned card, unsigned mem, PodText p) {
        static char allocation[64], text[16];

        (void) snprintf(allocation, sizeof allocation, "{\\\"0\\\":{\\\"%u\\\":%u}}", card, mem);
        (void) snprintf(text, sizeof text, "%u", mem);
        p.name = name;
        p.node = p.node ? p.node : "n1";
        p.mem = text;
        p.allocation = allocation;
        return pod_json_(p);
}

#define POD(...) ((PodText){__VA_ARGS__})

/* Fragmentation: four cards, each with 4 of 15 free, so that the node has 16; all pods of priority
 * 10. Those of card 2 have started last. */
static void list_all(Fixture *f) {
        view_list_begin(f->view, VIEW_NODES);
        feed(f->view, VIEW_NODES, REFLECTOR_LISTED, node_json("n1", "cgpu", 60, 4, ""));
        view_list_end(f->view, VIEW_NODES);
        view_list_begin(f->view, VIEW_PODS);
        for (unsigned card = 0; card < 4; card++) {
                char name[16];

                (void) snprintf(name, sizeof name, "p%u", card);
                feed(f->view, VIEW_PODS, REFLECTOR_LISTED,
                     held(name, card, 11,
                          POD(.priority = 10, .labels = "\"app\":\"p\"",
                              .start = card == 2 ? "2026-11-21T11:00:00Z" : "2026-11-21T10:00:00Z")));
        }
        view_list_end(f->view, VIEW_PODS);
}

static Fixture *setup(void) {
        Fixture *f = calloc(1, sizeof *f);

        fake_back_off();
        ASSERT_TRUE(sd_event_new(&f->event) >= 0);
        ASSERT_OK(view_new(&f->view));
        list_all(f);
        f->now = 1000 * USEC_PER_SEC;
        f->context = (SchedulerContext){.client = fake_client(f->event),
                                        .view = f->view,
                                        .metrics = &f->metrics,
                                        /* Only passed on. */
                                        .recorder = (KubeEventRecorder *) f,
                                        .leading = true,
                                        .may_not_act = may_not_act,
                                        .userdata = f};
        ASSERT_OK(binder_new(&f->context, 0, &f->binder));
        f->view->on_pod = on_pod;
        f->view->userdata = f;
        ASSERT_OK(evictor_new(&f->context, &f->evictor));
        return f;
}

static void teardown(Fixture *f) {
        evictor_free(f->evictor);
        pending_done(&f->context.pending);
        binder_free(f->binder);
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_TRUE(f->view->hold.grant == NULL);
        ASSERT_TRUE(ledger_check(f->view->ledger));
        view_free(f->view);
        sd_event_unref(f->event);
        free(f);
}

/* Whether the node is in the answer. */
static bool filter_body(Fixture *f, PodText pod, const char *nodes) {
        _cleanup_buf_ Buf out = BUF_NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        char body[4096];

        (void) snprintf(body, sizeof body, "{\"Pod\":%s,\"NodeNames\":[%s]}", pod_json_(pod), nodes);
        f->context.now = f->now;
        f->context.arena = &arena;
        f->context.recorder = NULL; /* no Events about the nearest cards */
        ASSERT_INT(verb_filter(&f->context, str_from(body), &out), 200);
        f->context.recorder = (KubeEventRecorder *) f;
        return !strstr(out.data, "\"NodeNames\":[]");
}

/* The pod is in the watch as well. */
static bool filter(Fixture *f, PodText pod, const char *nodes) {
        feed(f->view, VIEW_PODS, REFLECTOR_MODIFIED, pod_json_(pod));
        return filter_body(f, pod, nodes);
}

static void step(Fixture *f, usec_t later) {
        f->now += later;
        (void) evictor_step(f->evictor, f->now);
        ASSERT_TRUE(ledger_check(f->view->ledger));
}

#define HIGH(...)          POD(.name = "high", .mem = "6", .priority = 100000, __VA_ARGS__)
#define ASSERT_STATE(f, s) ASSERT_TEXT(evictor_state((f)->evictor), s)

static void reply(FakeKind kind, unsigned status, const char *body) {
        KubeCall *call = fake_call(kind);

        ASSERT_TRUE(call != NULL);
        fake_reply(call, KUBE_DONE, status, body);
}

static void gone(Fixture *f, const char *name) {
        feed(f->view, VIEW_PODS, REFLECTOR_DELETED, held(name, 0, 11, POD(.priority = 10)));
}

static void on_bound(void *userdata, const char *error) {
        (void) snprintf(userdata, 256, "%s", error);
}

static void bind(Fixture *f, const char *name, char error[static 256]) {
        char uid[64];
        BindingArgs args = {.name = str_from(name), .namespace_ = STR("default"), .node = STR("n1")};
        Bind *open;

        (void) snprintf(uid, sizeof uid, "uid-%s", name);
        args.uid = str_from(uid);
        *error = '\0';
        binder_bind(f->binder, &args, on_bound, error, &open);
}

static void a_card_is_freed_and_kept_for_its_pod(void) {
        Fixture *f = setup();
        unsigned events = fake_n_events();
        char error[256];

        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY - 1);
        ASSERT_STATE(f, "idle"); /* kube-scheduler may preempt by itself */
        step(f, 1);
        ASSERT_STATE(f, "evicting");
        ASSERT_TEXT(fake_name(fake_call(FAKE_EVICT)), "p2"); /* the latest start */
        ASSERT_TEXT(fake_uid(fake_call(FAKE_EVICT)), "uid-p2");
        reply(FAKE_EVICT, 201, "");
        ASSERT_STATE(f, "draining");
        ASSERT_INT(fake_n_events(), events + 2); /* Events of the pod and of the victim */
        ASSERT_CONTAINS(fake_last_note(),
                        "Preempted by pod default/high of priority 100000, which gets gpu2 of node n1");
        ASSERT_INT(f->metrics.evictions[METRICS_EVICTION_DONE], 1);
        gone(f, "p2");
        ASSERT_USED(f->view, "n1", 2, 6); /* the hold for the pod */
        step(f, USEC_PER_SEC);
        ASSERT_STATE(f, "keeping");

        /* Other pods find 9 free, not 15 or 10. The pod itself sees its card. */
        ASSERT_FALSE(filter(f, POD(.name = "other", .mem = "10", .priority = 100000), "\"n1\""));
        ASSERT_TRUE(filter(f, POD(.name = "other", .mem = "9"), "\"n1\""));
        bind(f, "other", error); /* asks for 9 by now, which are free beside the hold */
        feed(f->view, VIEW_PODS, REFLECTOR_MODIFIED, pod_json(.name = "more", .mem = "10"));
        bind(f, "more", error);
        ASSERT_CONTAINS(error, "no card has 10 GiB of gpu-mem free");
        ASSERT_TRUE(filter(f, HIGH(), "\"n1\""));
        bind(f, "high", error);
        ASSERT_TEXT(error, "");
        ASSERT_USED(f->view, "n1", 2, 15);
        reply(FAKE_BIND, 201, "{}"); /* of the other pod */
        reply(FAKE_BIND, 201, "{}");
        step(f, USEC_PER_SEC);
        ASSERT_STATE(f, "idle");
        ASSERT_USED(f->view, "n1", 2, 15);
        teardown(f);
}

/* Several victims are evicted one after another; the second eviction is refused. */
static void an_eviction_refused_by_a_budget_ends_the_try(void) {
        Fixture *f = setup();

        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, held("q2", 2, 4, POD(.priority = 5)));
        for (unsigned card = 0; card < 4; card++)
                if (card != 2)
                        feed(f->view, VIEW_PODS, REFLECTOR_ADDED,
                             held(card == 0   ? "q0"
                                  : card == 1 ? "q1"
                                              : "q3",
                                  card, 4, POD(.priority = 200000)));
        ASSERT_FALSE(filter(f, POD(.name = "high", .mem = "15", .priority = 100000), "\"n1\""));
        step(f, PENDING_DELAY);
        ASSERT_TEXT(fake_name(fake_call(FAKE_EVICT)), "p2");
        reply(FAKE_EVICT, 201, "");
        ASSERT_TEXT(fake_name(fake_call(FAKE_EVICT)), "q2");
        ASSERT_INT(fake_n_calls(), 1); /* one after the other */
        reply(FAKE_EVICT, 429, "");
        ASSERT_STATE(f, "idle");
        ASSERT_CONTAINS(fake_last_note(), "eviction of pod default/q2");
        ASSERT_INT(f->metrics.evictions[METRICS_EVICTION_REFUSED], 1);
        ASSERT_TRUE(f->view->hold.grant == NULL);
        step(f, 0);
        ASSERT_STATE(f, "idle"); /* backs off */
        step(f, 10 * USEC_PER_SEC);
        ASSERT_STATE(f, "evicting");
        reply(FAKE_EVICT, 201, "{\"kind\":\"Status\",\"code\":500}"); /* in several budgets */
        ASSERT_STATE(f, "idle");
        ASSERT_INT(f->metrics.evictions[METRICS_EVICTION_FAILED], 1);
        teardown(f);
}

static void a_known_budget_is_not_tried(void) {
        Fixture *f = setup();

        feed(f->view, VIEW_BUDGETS, REFLECTOR_ADDED,
             "{\"metadata\":{\"namespace\":\"default\",\"name\":\"p\"},\"spec\":{\"selector\":{"
             "\"matchLabels\":{\"app\":\"p\"}}},"
             "\"status\":{\"disruptionsAllowed\":0}}");
        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY);
        ASSERT_STATE(f, "idle");
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_CONTAINS(fake_last_note(), "PodDisruptionBudget");
        teardown(f);
}

typedef struct Refused {
        const char *why;
        PodText pod;
        const char *nodes;
        bool nominated, deposed, gone, preempted;
} Refused;

static void tell_preempt(Fixture *f, PodText pod) {
        _cleanup_buf_ Buf out = BUF_NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        char body[4096];

        (void) snprintf(body, sizeof body,
                        "{\"Pod\":%s,\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[{\"UID\":\"uid-p1\"}]}}}",
                        pod_json_(pod));
        f->context.arena = &arena;
        ASSERT_INT(verb_preempt(&f->context, str_from(body), &out), 200);
        ASSERT_CONTAINS(out.data, "uid-p1");
}

static void no_pod_is_evicted_without_all_conditions(void) {
        static const Refused cases[] = {
                {.why = "never", .pod = HIGH(.spec = "\"preemptionPolicy\":\"Never\","), .nodes = "\"n1\""},
                {.why = "no lower priority",
                 .pod = POD(.name = "high", .mem = "6", .priority = 10),
                 .nodes = "\"n1\""},
                {.why = "larger than a card",
                 .pod = POD(.name = "high", .mem = "16", .priority = 11),
                 .nodes = "\"n1\""},
                {.why = "node not offered", .pod = HIGH(), .nodes = ""},
                {.why = "another node takes it", .pod = HIGH(), .nodes = "\"n1\",\"n2\""},
                {.why = "it is nominated", .pod = HIGH(.nominated = "n3"), .nodes = "\"n1\""},
                {.why = "a pod is nominated there", .pod = HIGH(), .nodes = "\"n1\"", .nominated = true},
                {.why = "not the leader", .pod = HIGH(), .nodes = "\"n1\"", .deposed = true},
                {.why = "gone", .pod = HIGH(), .nodes = "\"n1\"", .gone = true},
                {.why = "kube-scheduler preempts", .pod = HIGH(), .nodes = "\"n1\"", .preempted = true},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                Fixture *f = setup();

                if (strstr(cases[i].nodes, "n2"))
                        feed(f->view, VIEW_NODES, REFLECTOR_ADDED, node_json("n2", "cgpu", 15, 1, ""));
                if (cases[i].nominated)
                        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, pod_json(.name = "web", .nominated = "n1"));
                (void) filter(f, cases[i].pod, cases[i].nodes);
                f->deposed = cases[i].deposed;
                if (cases[i].gone)
                        feed(f->view, VIEW_PODS, REFLECTOR_DELETED, pod_json_(cases[i].pod));
                if (cases[i].preempted)
                        tell_preempt(f, cases[i].pod);
                step(f, PENDING_DELAY);
                if (fake_n_calls() > 0)
                        TEST_FAIL_("%s: evicted", cases[i].why);
                ASSERT_STATE(f, "idle");
                teardown(f);
        }
}

static void on_room(void *userdata, Str node) {
        char *said = userdata;

        (void) snprintf(said, 8, STR_FMT, STR_ARG(node));
}

/* At each end of a try the hold is gone, and the waker hears on which node there is room. */
static void every_try_ends(void) {
        static const char *const ends[] = {"time", "gone", "elsewhere", "deposed", "drain", "failed bind"};

        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
                Fixture *f = setup();
                char error[256], said[8] = "";

                f->view->hold.on_room = on_room;
                f->view->hold.userdata = said;
                ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
                step(f, PENDING_DELAY);
                reply(FAKE_EVICT, 201, "");
                if (i == 4) {
                        step(f, EVICTOR_DRAIN - 1);
                        ASSERT_STATE(f, "draining");
                        step(f, 1);
                        ASSERT_STATE(f, "idle");
                        teardown(f);
                        continue;
                }
                gone(f, "p2");
                step(f, 1);
                ASSERT_STATE(f, "keeping");
                if (i == 0) {
                        step(f, EVICTOR_KEEP - 1);
                        ASSERT_STATE(f, "keeping");
                } else if (i == 1)
                        feed(f->view, VIEW_PODS, REFLECTOR_DELETED, pod_json_(HIGH()));
                else if (i == 2)
                        feed(f->view, VIEW_PODS, REFLECTOR_MODIFIED, pod_json_(HIGH(.node = "n9")));
                else if (i == 3)
                        f->deposed = true;
                else {
                        bind(f, "high", error);
                        ASSERT_TRUE(f->view->hold.grant == NULL);
                        reply(FAKE_BIND, 403, "{}");
                        step(f, 1);
                        ASSERT_STATE(f, "keeping"); /* held again, until the time is up */
                        ASSERT_USED(f->view, "n1", 2, 6);
                        f->now += EVICTOR_KEEP;
                }
                step(f, 1);
                ASSERT_STATE(f, "idle");
                ASSERT_USED(f->view, "n1", 2, 0);
                ASSERT_TEXT(said, "n1");
                f->view->hold.on_room = NULL;
                teardown(f);
        }
}

/* Two pods: the one of the higher priority gets the first try, the other the next. */
static void one_at_a_time_the_highest_first(void) {
        Fixture *f = setup();

        ASSERT_FALSE(filter(f, POD(.name = "mid", .mem = "6", .priority = 500), "\"n1\""));
        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY);
        ASSERT_CONTAINS(fake_last_note(), "gpu2 of node n1 is freed by evicting default/p2");
        ASSERT_INT(fake_n_calls(), 1);
        reply(FAKE_EVICT, 404, ""); /* gone already */
        gone(f, "p2");
        step(f, 1);
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_STATE(f, "keeping");
        feed(f->view, VIEW_PODS, REFLECTOR_MODIFIED, held("high", 2, 6, POD(.priority = 100000)));
        step(f, 1);
        /* Card 2 has 9 free, which is enough for the other pod: no pod has to go. */
        ASSERT_STATE(f, "idle");
        ASSERT_INT(fake_n_calls(), 0);
        teardown(f);
}

#define WHOLE POD(.name = "high", .mem = "15", .priority = 100000)

/* Card 2 has a pod p2 of 11 and a pod q2 of 4; the other cards have pods that stay. */
static void add_second_victim(Fixture *f, PodText q2) {
        q2.priority = 5;
        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, held("q2", 2, 4, q2));
        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, held("q0", 0, 4, POD(.priority = 200000)));
        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, held("q1", 1, 4, POD(.priority = 200000)));
        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, held("q3", 3, 4, POD(.priority = 200000)));
}

static void add_budget(Fixture *f, const char *name, const char *app, unsigned allowed) {
        char text[256];

        (void) snprintf(text, sizeof text,
                        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\"},\"spec\":{\"selector\":{"
                        "\"matchLabels\":{\"app\":\"%s\"}}},\"status\":{\"disruptionsAllowed\":%u}}",
                        name, app, allowed);
        feed(f->view, VIEW_BUDGETS, REFLECTOR_ADDED, text);
}

static void evictions_end_with_the_pod(void) {
        static const char *const ends[] = {"deleted", "bound elsewhere"};

        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
                Fixture *f = setup();
                PodText pod = WHOLE;

                add_second_victim(f, POD());
                ASSERT_FALSE(filter(f, pod, "\"n1\""));
                step(f, PENDING_DELAY);
                ASSERT_TEXT(fake_name(fake_call(FAKE_EVICT)), "p2");
                pod.node = i == 1 ? "n9" : NULL;
                feed(f->view, VIEW_PODS, i == 0 ? REFLECTOR_DELETED : REFLECTOR_MODIFIED, pod_json_(pod));
                reply(FAKE_EVICT, 201, "");
                if (fake_n_calls() > 0)
                        TEST_FAIL_("%s: q2 is evicted for no pod", ends[i]);
                ASSERT_STATE(f, "idle");
                teardown(f);
        }
}

static void pods_of_two_budgets_are_no_victims(void) {
        Fixture *f = setup();

        add_second_victim(f, POD(.labels = "\"app\":\"q\""));
        add_budget(f, "a", "q", 5);
        add_budget(f, "b", "q", 5);
        ASSERT_FALSE(filter(f, WHOLE, "\"n1\""));
        step(f, PENDING_DELAY);
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_CONTAINS(fake_last_note(), "PodDisruptionBudget");
        teardown(f);
}

/* The eviction that may be refused comes first. */
static void pods_with_a_budget_go_first(void) {
        Fixture *f = setup();

        add_second_victim(f, POD(.labels = "\"app\":\"q\""));
        add_budget(f, "a", "q", 5);
        ASSERT_FALSE(filter(f, WHOLE, "\"n1\""));
        step(f, PENDING_DELAY);
        ASSERT_TEXT(fake_name(fake_call(FAKE_EVICT)), "q2");
        reply(FAKE_EVICT, 429, "");
        ASSERT_STATE(f, "idle");
        ASSERT_INT(fake_n_calls(), 0);
        teardown(f);
}

static void static_pods_are_no_victims(void) {
        Fixture *f = setup();

        for (unsigned card = 0; card < 4; card++) {
                char name[16];

                (void) snprintf(name, sizeof name, "p%u", card);
                feed(f->view, VIEW_PODS, REFLECTOR_MODIFIED,
                     held(name, card, 11, POD(.annotations = ",\"kubernetes.io/config.mirror\":\"1\"")));
        }
        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY);
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_STATE(f, "idle");
        teardown(f);
}

/* A filter call from another client than kube-scheduler changes nothing: the watch does not have
 * the pod. */
static void the_watch_says_the_priority(void) {
        static const char *const never = "\"preemptionPolicy\":\"Never\",";
        const PodText watched[] = {POD(.name = "high", .mem = "6", .priority = 1),
                                   POD(.name = "high", .mem = "6", .priority = 100000, .spec = never)};

        for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
                Fixture *f = setup();

                /* The watch does not have the pod yet. */
                ASSERT_FALSE(filter_body(f, HIGH(), "\"n1\""));
                step(f, PENDING_DELAY);
                ASSERT_FALSE(pending_any(&f->context.pending));
                feed(f->view, VIEW_PODS, REFLECTOR_ADDED, pod_json_(watched[i]));
                ASSERT_FALSE(filter_body(f, HIGH(), "\"n1\""));
                step(f, PENDING_DELAY);
                ASSERT_INT(fake_n_calls(), 0);
                teardown(f);
        }
}

#define HELD_P2                                                                                              \
        ",\"annotations\":{\"aliquot.dev/held-slices\":\"[{\\\"pod\\\":\\\"default/"                         \
        "p2\\\",\\\"uid\\\":\\\"uid-"                                                                        \
        "p2\\\",\\\"allocation\\\":{\\\"0\\\":{\\\"2\\\":11}}}]\"}"

/* The victim is deleted, and its processes still run. */
static void held_slices_are_waited_for(void) {
        static const bool late[] = {false, true};

        for (size_t i = 0; i < sizeof late; i++) {
                Fixture *f = setup();

                ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
                step(f, PENDING_DELAY);
                reply(FAKE_EVICT, 201, "");
                if (late[i]) {
                        gone(f, "p2");
                        step(f, USEC_PER_SEC);
                        ASSERT_STATE(f, "keeping");
                }
                feed(f->view, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n1", "cgpu", 60, 4, HELD_P2));
                if (!late[i])
                        gone(f, "p2");
                step(f, USEC_PER_SEC);
                step(f, 2 * EVICTOR_KEEP);
                ASSERT_STATE(f, "draining");
                feed(f->view, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n1", "cgpu", 60, 4, ""));
                step(f, 1);
                ASSERT_STATE(f, "keeping");
                teardown(f);
        }
}

/* kube-scheduler finds the card and cannot bind the pod, for another reason. */
static void tries_are_counted_until_the_pod_is_bound(void) {
        Fixture *f = setup();
        Pending *p = &f->context.pending;

        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY);
        reply(FAKE_EVICT, 201, "");
        gone(f, "p2");
        step(f, USEC_PER_SEC);
        ASSERT_STATE(f, "keeping");
        ASSERT_TRUE(filter(f, HIGH(), "\"n1\""));
        step(f, EVICTOR_KEEP);
        ASSERT_STATE(f, "idle");
        ASSERT_INT(pending_find(p, STR("uid-high"))->attempt, 1);
        ASSERT_FALSE(pending_any(p));

        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, held("r2", 2, 11, POD(.priority = 10)));
        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY);
        ASSERT_STATE(f, "idle"); /* 1 s and half of 10 s from the end of the try on */
        step(f, 4 * USEC_PER_SEC);
        ASSERT_STATE(f, "evicting");
        reply(FAKE_EVICT, 500, "");
        ASSERT_INT(pending_find(p, STR("uid-high"))->attempt, 2);
        feed(f->view, VIEW_PODS, REFLECTOR_MODIFIED, pod_json_(HIGH(.node = "n9")));
        step(f, 1);
        ASSERT_TRUE(pending_find(p, STR("uid-high")) == NULL);
        teardown(f);
}

/* n1 may have been cordoned since its filter call, because the evictor was busy with another
 * pod. */
static void old_filter_calls_evict_no_pod(void) {
        Fixture *f = setup();
        PodText top = POD(.name = "top", .mem = "15", .priority = 200000);

        feed(f->view, VIEW_NODES, REFLECTOR_ADDED, node_json("n2", "cgpu", 15, 1, ""));
        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, held("long", 0, 15, POD(.priority = 10, .node = "n2")));
        ASSERT_FALSE(filter(f, top, "\"n2\""));
        ASSERT_FALSE(filter(f, HIGH(), "\"n1\",\"n9\""));
        step(f, PENDING_DELAY);
        ASSERT_TEXT(fake_name(fake_call(FAKE_EVICT)), "long");
        reply(FAKE_EVICT, 201, "");
        step(f, 300 * USEC_PER_SEC);
        feed(f->view, VIEW_PODS, REFLECTOR_DELETED, pod_json_(top));
        step(f, USEC_PER_SEC);
        step(f, USEC_PER_SEC);
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY);
        ASSERT_STATE(f, "evicting");
        teardown(f);
}

static void one_pod_in_one_step(void) {
        Fixture *f = setup();
        unsigned events;

        add_budget(f, "p", "p", 0);
        ASSERT_FALSE(filter(f, POD(.name = "mid", .mem = "6", .priority = 500), "\"n1\""));
        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        events = fake_n_events();
        step(f, PENDING_DELAY);
        ASSERT_INT(fake_n_events(), events + 1);
        step(f, 1);
        ASSERT_INT(fake_n_events(), events + 2);
        step(f, 1);
        ASSERT_INT(fake_n_events(), events + 2);
        teardown(f);
}

static void a_higher_priority_takes_the_cards(void) {
        Fixture *f = setup();
        PodText above = POD(.name = "above", .mem = "15", .priority = 100001);
        char error[256];

        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY);
        reply(FAKE_EVICT, 201, "");
        gone(f, "p2");
        ASSERT_FALSE(filter(f, POD(.name = "same", .mem = "15", .priority = 100000), "\"n1\""));
        above.mem = "4"; /* fits beside the hold, which stays */
        ASSERT_TRUE(filter(f, above, "\"n1\""));
        ASSERT_TRUE(f->view->hold.grant != NULL);
        above.mem = "15";
        ASSERT_TRUE(filter(f, above, "\"n1\""));
        bind(f, "above", error);
        ASSERT_TEXT(error, "");
        ASSERT_USED(f->view, "n1", 2, 15);
        ASSERT_TRUE(f->view->hold.grant == NULL);
        reply(FAKE_BIND, 201, "{}");
        step(f, 1);
        ASSERT_STATE(f, "idle");
        ASSERT_INT(pending_find(&f->context.pending, STR("uid-high"))->attempt, 1);
        teardown(f);
}

static void a_conflict_is_not_always_gone(void) {
        Fixture *f = setup();

        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY);
        reply(FAKE_EVICT, 409, ""); /* the pod is still in the watch */
        ASSERT_STATE(f, "idle");
        ASSERT_INT(f->metrics.evictions[METRICS_EVICTION_FAILED], 1);
        step(f, 10 * USEC_PER_SEC);
        ASSERT_STATE(f, "evicting");
        gone(f, "p2");
        reply(FAKE_EVICT, 409, "");
        ASSERT_STATE(f, "draining");
        teardown(f);
}

/* A place of a gang's plan (gang/gang_plan.h): 11 units of one card. */
static Grant *plan(Fixture *f, const char *node, unsigned card) {
        Slice slice = {.card = card, .mem = 11};
        Grant *made;

        ASSERT_OK(grant_new(f->view->ledger,
                            &(GrantSpec){.namespace_ = STR("default"),
                                         .name = STR("member"),
                                         .node = str_from(node),
                                         .slices = &slice,
                                         .n_slices = 1},
                            &made));
        return made;
}

/* Card 0 of n1 is planned for a gang, and may be free again within seconds. */
static Fixture *setup_planned(Grant **ret_place) {
        Fixture *f = setup();

        gone(f, "p0");
        *ret_place = plan(f, "n1", 0);
        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY);
        return f;
}

static void no_pod_is_evicted_for_what_a_gang_may_give_back(void) {
        Grant *place;
        Fixture *f = setup_planned(&place);

        ASSERT_STATE(f, "idle");
        ASSERT_INT(fake_n_calls(), 0);
        grant_free(place);
        step(f, USEC_PER_SEC); /* it fits */
        ASSERT_STATE(f, "idle");
        ASSERT_INT(fake_n_calls(), 0);
        teardown(f);
}

static void a_pod_is_evicted_when_the_gang_has_its_cards(void) {
        Grant *place;
        Fixture *f = setup_planned(&place);

        grant_free(place);
        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, held("member", 0, 11, POD(.priority = 10)));
        step(f, USEC_PER_SEC);
        ASSERT_STATE(f, "evicting");
        teardown(f);
}

/* The Binding of a member of priority 1 is under way on card 0; the others have priority 10. */
static void a_member_goes_when_it_is_seen_bound(void) {
        Slice slice = {.card = 0, .mem = 11};
        Fixture *f = setup();
        ViewPod *member = view_pod_ensure(f->view, STR("uid-member"));

        gone(f, "p0");
        member->priority = 1;
        ASSERT_OK(grant_new(f->view->ledger,
                            &(GrantSpec){.namespace_ = STR("default"),
                                         .name = STR("member"),
                                         .uid = STR("uid-member"),
                                         .node = STR("n1"),
                                         .slices = &slice,
                                         .n_slices = 1},
                            &member->grant));
        member->reserved = true;
        view_pod_take_plan(f->view, member);
        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY);
        ASSERT_INT(fake_n_calls(), 0);
        feed(f->view, VIEW_PODS, REFLECTOR_MODIFIED, held("member", 0, 11, POD(.priority = 1)));
        step(f, USEC_PER_SEC);
        ASSERT_TEXT(fake_name(fake_call(FAKE_EVICT)), "member");
        teardown(f);
}

/* One gang after the other may be placed, and take the same cards. */
static void the_wait_for_gangs_ends(void) {
        Grant *place;
        Fixture *f = setup_planned(&place);

        for (usec_t waited = 0; waited < GANGS_ATTEMPT - USEC_PER_SEC; waited += USEC_PER_SEC) {
                step(f, USEC_PER_SEC);
                ASSERT_STATE(f, "idle");
        }
        step(f, USEC_PER_SEC);
        ASSERT_STATE(f, "evicting");
        ASSERT_TEXT(fake_name(fake_call(FAKE_EVICT)), "p2");
        grant_free(place);
        teardown(f);
}

/* A time, not a number of looks: tries of other pods may lie between them. */
static void the_wait_for_gangs_is_a_time(void) {
        Grant *place;
        Fixture *f = setup_planned(&place);

        step(f, GANGS_ATTEMPT);
        ASSERT_STATE(f, "evicting");
        grant_free(place);
        teardown(f);
}

/* Its eviction could go to a pod that the first one needs. */
static void no_lower_pod_is_tried_while_one_waits_for_a_gang(void) {
        Grant *place;
        Fixture *f = setup_planned(&place);

        feed(f->view, VIEW_NODES, REFLECTOR_ADDED, node_json("n2", "cgpu", 15, 1, ""));
        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, held("q", 0, 15, POD(.node = "n2", .priority = 20)));
        ASSERT_FALSE(filter(f, POD(.name = "mid", .mem = "6", .priority = 500), "\"n2\""));
        for (usec_t waited = 0; waited < GANGS_ATTEMPT - USEC_PER_SEC; waited += USEC_PER_SEC / 4) {
                step(f, USEC_PER_SEC / 4);
                ASSERT_INT(fake_n_calls(), 0);
        }
        grant_free(place); /* high fits */
        step(f, USEC_PER_SEC);
        ASSERT_FALSE(filter(f, POD(.name = "mid", .mem = "6", .priority = 500), "\"n2\""));
        step(f, 0);
        ASSERT_TEXT(fake_name(fake_call(FAKE_EVICT)), "q");
        teardown(f);
}

/* A plan on cards where the same pods had to go changes nothing. */
static void other_plans_are_no_reason_to_wait(void) {
        Fixture *f = setup();
        Grant *place;

        feed(f->view, VIEW_NODES, REFLECTOR_ADDED, node_json("n2", "cgpu", 15, 1, ""));
        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, held("q", 0, 4, POD(.node = "n2", .priority = 20)));
        place = plan(f, "n2", 0);
        ASSERT_FALSE(filter(f, POD(.name = "high", .mem = "15", .priority = 100000), "\"n1\",\"n2\""));
        step(f, PENDING_DELAY);
        ASSERT_STATE(f, "evicting");
        grant_free(place);
        teardown(f);
}

/* kube-scheduler saw the victim go, and asked about the pod, before the watch showed it. Nothing
 * but the waker makes it ask again while the card is kept. */
static void the_pod_is_woken_when_its_card_is_free(void) {
        Fixture *f = setup();
        char said[8] = "";

        f->view->hold.on_room = on_room;
        f->view->hold.userdata = said;
        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        step(f, PENDING_DELAY);
        reply(FAKE_EVICT, 201, "");
        ASSERT_FALSE(filter(f, HIGH(), "\"n1\""));
        gone(f, "p2");
        ASSERT_TEXT(said, "");
        step(f, USEC_PER_SEC);
        ASSERT_STATE(f, "keeping");
        ASSERT_TEXT(said, "n1");
        teardown(f);
}

/* The unit takes one pod. Another pod of the policy waits for the same cards, and finds the unit
 * full when it is its turn. */
static void no_pod_is_evicted_for_a_unit_that_is_full(void) {
        Fixture *f = setup();
        char error[256];

        f->context.choosers[f->context.n_choosers++] = policy_filter_chooser(f->view->policies);
        f->context.units = policy_bind_hooks(f->view->policies);
        feed(f->view, VIEW_POLICIES, REFLECTOR_ADDED,
             "{\"metadata\":{\"namespace\":\"default\",\"name\":\"web\",\"uid\":\"u-web\"},\"spec\":{"
             "\"selector\":{\"app\":\"web\"},\"units\":[{\"max\":1}]}}");
        list_all(f);
#define WEB(pod)                                                                                             \
        POD(.name = pod, .mem = "8", .priority = 100000, .labels = "\"app\":\"web\"",                        \
            .spec = "\"schedulerName\":\"ack-co-scheduler\",")
        ASSERT_FALSE(filter(f, WEB("high"), "\"n1\""));
        ASSERT_FALSE(filter(f, WEB("second"), "\"n1\""));
        step(f, PENDING_DELAY);
        reply(FAKE_EVICT, 201, "");
        gone(f, "p2");
        step(f, USEC_PER_SEC);
        ASSERT_STATE(f, "keeping");
        ASSERT_FALSE(filter(f, WEB("second"), "\"n1\"")); /* the card is kept for the other one */
        ASSERT_TRUE(filter(f, WEB("high"), "\"n1\""));
        bind(f, "high", error);
        reply(FAKE_BIND, 201, "{}");
        step(f, USEC_PER_SEC);
        ASSERT_STATE(f, "idle");
        step(f, USEC_PER_SEC);
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_STATE(f, "idle");
        teardown(f);
}

int main(void) {
        return TEST_MAIN(
                TEST(a_card_is_freed_and_kept_for_its_pod),
                TEST(an_eviction_refused_by_a_budget_ends_the_try), TEST(a_known_budget_is_not_tried),
                TEST(no_pod_is_evicted_without_all_conditions), TEST(every_try_ends),
                TEST(one_at_a_time_the_highest_first), TEST(evictions_end_with_the_pod),
                TEST(pods_of_two_budgets_are_no_victims), TEST(pods_with_a_budget_go_first),
                TEST(static_pods_are_no_victims), TEST(the_watch_says_the_priority),
                TEST(held_slices_are_waited_for), TEST(tries_are_counted_until_the_pod_is_bound),
                TEST(old_filter_calls_evict_no_pod), TEST(one_pod_in_one_step),
                TEST(a_higher_priority_takes_the_cards), TEST(a_conflict_is_not_always_gone),
                TEST(no_pod_is_evicted_for_what_a_gang_may_give_back),
                TEST(a_pod_is_evicted_when_the_gang_has_its_cards), TEST(the_wait_for_gangs_ends),
                TEST(a_member_goes_when_it_is_seen_bound), TEST(the_wait_for_gangs_is_a_time),
                TEST(no_lower_pod_is_tried_while_one_waits_for_a_gang),
                TEST(other_plans_are_no_reason_to_wait), TEST(the_pod_is_woken_when_its_card_is_free),
                TEST(no_pod_is_evicted_for_a_unit_that_is_full));
}
