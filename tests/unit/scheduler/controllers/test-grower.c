/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/controllers/grower.h"

#include "fake_api.h"
#include "fixture.h"
#include "scheduler/controllers/growth_wish.h"
#include "share/ledger-internal.h"
#include "share/ledger_growth.h"

#define NO_QUOTAS "{\"kind\":\"ResourceQuotaList\",\"items\":[]}"
#define TEAM_QUOTA                                                                                           \
        "{\"items\":[{\"metadata\":{\"name\":\"cpu\"},\"spec\":{\"hard\":{\"requests.cpu\":\"4\"}}},"        \
        "{\"metadata\":{\"name\":\"team\"},\"spec\":{\"hard\":{\"requests.aliyun.com/gpu-mem\":\"40\"}}}]}"
#define EMPTY "{\\\"serial\\\":1,\\\"slices\\\":[]}"
/* 4 units of card 0 for the pod "a". */
#define PERMIT                                                                                               \
        "{\\\"serial\\\":2,\\\"slices\\\":[{\\\"uid\\\":\\\"uid-a\\\",\\\"container\\\":0,\\\"card\\\":0,"   \
        "\\\"mem\\\":4,\\\"core\\\":0}]}"

static const char *forbidden;

static const char *may_not_act(void *userdata) {
        return forbidden;
}

typedef struct Lab {
        sd_event *event;
        View *view;
        Grower *grower;
} Lab;

static void on_pod(void *userdata, const Pod *pod, Str object, ReflectorEvent event) {
        grower_pod(userdata, pod);
}

static void on_node(void *userdata, const Node *node) {
        grower_node(userdata, node->meta.name);
}

/* As the watch and a GET have it. version: its resourceVersion. */
static const char *node_with(const char *growth, const char *version) {
        static char members[1024];

        (void) snprintf(members, sizeof members,
                        ",\"resourceVersion\":\"%s\",\"annotations\":{\"aliquot.dev/grown-slices\":\"%s\"}",
                        version, growth);
        return node_json("n", "cgpu", 32, 2, members);
}

static void see_node(Lab *lab, const char *growth, const char *version) {
        feed(lab->view, VIEW_NODES, REFLECTOR_ADDED, node_with(growth, version));
}

static void see_pod(Lab *lab, const char *name, const char *mem, const char *wish) {
        char allocation[64], annotations[64];

        (void) snprintf(allocation, sizeof allocation, "{\\\"0\\\":{\\\"0\\\":%s}}", mem);
        (void) snprintf(annotations, sizeof annotations, ",\"aliquot.dev/gpu-mem\":\"%s\"", wish);
        feed(lab->view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json(.name = name, .node = "n", .mem = mem, .allocation = allocation,
                      .annotations = annotations));
}

/* As in GrowerOptions. */
static Lab lab_with(usec_t tick, usec_t again) {
        static SchedulerContext context;
        Lab lab = {.event = NULL};

        forbidden = NULL;
        ASSERT_OK(sd_event_new(&lab.event) < 0);
        ASSERT_OK(view_new(&lab.view));
        context = (SchedulerContext){
                .client = fake_client(lab.event), .view = lab.view, .may_not_act = may_not_act};
        ASSERT_OK(
                grower_new(&(GrowerOptions){.context = &context, .tick = tick, .again = again}, &lab.grower));
        lab.view->on_pod = on_pod;
        lab.view->on_node = on_node;
        lab.view->userdata = lab.grower;
        see_node(&lab, EMPTY, "10");
        return lab;
}

static Lab lab_new(void) {
        return lab_with(1, 0);
}

static void lab_done(Lab *lab) {
        grower_free(lab->grower);
        view_free(lab->view);
        sd_event_unref(lab->event);
}

/* Timers run until there is a call of this kind. */
static KubeCall *await(Lab *lab, FakeKind kind, const char *path) {
        for (int i = 0; !fake_call(kind) && i < 100; i++)
                ASSERT_TRUE(sd_event_run(lab->event, 10 * USEC_PER_SEC) >= 0);
        ASSERT_TRUE(fake_call(kind) != NULL);
        ASSERT_TEXT(fake_name(fake_call(kind)), path);
        return fake_call(kind);
}

#define QUOTAS "/api/v1/namespaces/default/resourcequotas"
#define NODE   "/api/v1/nodes/n"

static void to_the_patch(Lab *lab) {
        see_pod(lab, "a", "8", "12");
        fake_reply(await(lab, FAKE_GET, QUOTAS), KUBE_DONE, 200, NO_QUOTAS);
        fake_reply(await(lab, FAKE_GET, NODE), KUBE_DONE, 200, node_with(EMPTY, "11"));
}

static void a_permit_is_charged_before_and_after_the_watch_shows_it(void) {
        Lab lab = lab_new();

        to_the_patch(&lab);
        ASSERT_USED(lab.view, "n", 0, 12);
        ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_PATCH)), "\"resourceVersion\":\"11\"");
        ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_PATCH)), PERMIT);
        see_node(&lab, EMPTY, "11"); /* the watch lags */
        ASSERT_USED(lab.view, "n", 0, 12);
        fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 200, "{}");
        see_node(&lab, EMPTY, "11");
        ASSERT_USED(lab.view, "n", 0, 12);
        see_node(&lab, PERMIT, "12");
        ASSERT_USED(lab.view, "n", 0, 12);
        see_node(&lab, "{\\\"serial\\\":3,\\\"slices\\\":[]}", "13"); /* the agent gives it back */
        ASSERT_USED(lab.view, "n", 0, 8);
        ASSERT_TRUE(sd_event_run(lab.event, 10 * USEC_PER_SEC) > 0); /* all wishes are looked at */
        ASSERT_INT(fake_n_calls(), 0);                               /* this one has to wait */
        lab_done(&lab);
}

/* The agent had not seen the pod's newest wish. The pause is shorter than 30 seconds. */
static void a_permit_that_was_given_back_is_tried_again(void) {
        Lab lab = lab_with(USEC_PER_SEC / 10, 0);

        to_the_patch(&lab);
        fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 200, "{}");
        see_node(&lab, PERMIT, "12");
        see_node(&lab, "{\\\"serial\\\":3,\\\"slices\\\":[]}", "13");
        (void) await(&lab, FAKE_GET, QUOTAS);
        lab_done(&lab);
}

/* The annotation was lost and written again before the permit; the watch shows it object by
 * object. */
/* The agent has given the entry of container 0 back, and the watch has not shown it yet. */
static void a_permit_raises_nothing_else_of_the_pod(void) {
        static const char pod[] =
                "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"uid-a\",\"annotations\":{"
                "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":2},\\\"1\\\":{\\\"0\\\":"
                "2}}\","
                "\"aliquot.dev/gpu-mem\":\"{\\\"1\\\":5}\"}},\"spec\":{\"nodeName\":\"n\",\"containers\":["
                "{\"name\":\"x\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"2\"}}},"
                "{\"name\":\"y\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"2\"}}}]},"
                "\"status\":{\"phase\":\"Running\"}}";
        Lab lab = lab_new();

        see_node(&lab, PERMIT, "11");
        feed(lab.view, VIEW_PODS, REFLECTOR_ADDED, pod);
        ASSERT_USED(lab.view, "n", 0, 11); /* 4, the stale entry of 4, and the reservation of 3 */
        fake_reply(await(&lab, FAKE_GET, QUOTAS), KUBE_DONE, 200, NO_QUOTAS);
        fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 200,
                   node_with("{\\\"serial\\\":3,\\\"slices\\\":[]}", "12"));
        ASSERT_CONTAINS(fake_annotations(await(&lab, FAKE_PATCH, NODE)),
                        "\\\"slices\\\":[{\\\"uid\\\":\\\"uid-a\\\",\\\"container\\\":1,\\\"card\\\":0,"
                        "\\\"mem\\\":3,\\\"core\\\":0}]}");
        lab_done(&lab);
}

static void a_reservation_outlives_a_lost_annotation(void) {
        Lab lab = lab_new();

        to_the_patch(&lab);
        fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 200, "{}");
        feed(lab.view, VIEW_NODES, REFLECTOR_ADDED, node_json("n", "cgpu", 32, 2, ""));
        ASSERT_USED(lab.view, "n", 0, 12);
        see_node(&lab, EMPTY, "11");
        ASSERT_USED(lab.view, "n", 0, 12);
        see_node(&lab, PERMIT, "12");
        ASSERT_USED(lab.view, "n", 0, 12);
        feed(lab.view, VIEW_NODES, REFLECTOR_ADDED, node_json("n", "cgpu", 32, 2, ""));
        ASSERT_USED(lab.view, "n", 0, 8); /* lost after the permit */
        lab_done(&lab);
}

/* An annotation of a later time ends it as well, and so does the end of the node. */
static void a_reservation_ends_with_a_later_serial(void) {
        for (int i = 0; i < 2; i++) {
                Lab lab = lab_new();

                to_the_patch(&lab);
                fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 200, "{}");
                if (i == 0)
                        see_node(&lab, "{\\\"serial\\\":1700000000000000,\\\"slices\\\":[]}", "13");
                else {
                        feed(lab.view, VIEW_NODES, REFLECTOR_DELETED, node_with(EMPTY, "13"));
                        see_node(&lab, EMPTY, "14");
                }
                ASSERT_USED(lab.view, "n", 0, 8);
                lab_done(&lab);
        }
}

/* Every second write is refused. Each further one is made of the node as it is then, and the last
 * one ends the growth. */
static void a_conflict_reads_the_node_again(void) {
        static const unsigned statuses[] = {409, 429, 409, 200};
        Lab lab = lab_new();

        to_the_patch(&lab);
        for (unsigned i = 0; i < ELEMENTSOF(statuses); i++) {
                char node[64], serial[32], version[8];

                fake_reply(await(&lab, FAKE_PATCH, NODE), KUBE_DONE, statuses[i], "");
                ASSERT_USED(lab.view, "n", 0, 12);
                if (statuses[i] == 200)
                        break;
                (void) snprintf(node, sizeof node, "{\\\"serial\\\":%u,\\\"slices\\\":[]}", 8 + i);
                (void) snprintf(serial, sizeof serial, "{\\\"serial\\\":%u,", 9 + i);
                (void) snprintf(version, sizeof version, "%u", 20 + i);
                fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 200, node_with(node, version));
                ASSERT_CONTAINS(fake_annotations(await(&lab, FAKE_PATCH, NODE)), serial);
                (void) snprintf(serial, sizeof serial, "\"resourceVersion\":\"%s\"", version);
                ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_PATCH)), serial);
        }
        ASSERT_TRUE(sd_event_run(lab.event, 10 * USEC_PER_SEC) > 0);
        ASSERT_INT(fake_n_calls(), 0);
        lab_done(&lab);
}

static void after_a_lost_answer_the_node_tells(void) {
        Lab lab = lab_new();

        to_the_patch(&lab);
        fake_reply(await(&lab, FAKE_PATCH, NODE), KUBE_UNKNOWN, 0, "");
        ASSERT_USED(lab.view, "n", 0, 12);
        fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 200, node_with(PERMIT, "12"));
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_USED(lab.view, "n", 0, 12);
        see_node(&lab, PERMIT, "12");
        see_node(&lab, "{\\\"serial\\\":3,\\\"slices\\\":[]}", "13");
        ASSERT_USED(lab.view, "n", 0, 8);
        lab_done(&lab);
}

/* A patch with an unknown outcome fails on a node that has changed since. */
static void a_refusal_after_a_lost_answer(void) {
        Lab lab = lab_new();

        to_the_patch(&lab);
        fake_reply(await(&lab, FAKE_PATCH, NODE), KUBE_UNKNOWN, 0, "");
        fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 200, node_with(EMPTY, "11"));
        fake_reply(await(&lab, FAKE_PATCH, NODE), KUBE_DONE, 403, "");
        ASSERT_USED(lab.view, "n", 0, 12); /* the first one may be carried out yet */
        fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 200, node_with(EMPTY, "12"));
        fake_reply(await(&lab, FAKE_PATCH, NODE), KUBE_DONE, 403, "");
        ASSERT_USED(lab.view, "n", 0, 8);
        lab_done(&lab);
}

static void a_static_pod_does_not_grow(void) {
        Lab lab = lab_new();

        feed(lab.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json(.name = "a", .node = "n", .mem = "8", .allocation = "{\\\"0\\\":{\\\"0\\\":8}}",
                      .annotations =
                              ",\"aliquot.dev/gpu-mem\":\"12\",\"kubernetes.io/config.mirror\":\"h\""));
        ASSERT_TEXT(fake_last_note(), "a static pod does not grow beyond its limit");
        ASSERT_USED(lab.view, "n", 0, 8);
        lab_done(&lab);
}

static void what_cannot_be_read_is_no_wish(void) {
        static const char *const values[] = {"0", "-1", "x", "18446744073709551616", "8", "4", "[12]"};

        for (size_t i = 0; i < ELEMENTSOF(values); i++) {
                Lab lab = lab_new();

                see_pod(&lab, "a", "8", values[i]);
                ASSERT_INT(fake_n_calls(), 0);
                ASSERT_USED(lab.view, "n", 0, 8);
                lab_done(&lab);
        }
}

static void a_refused_patch_charges_nothing(void) {
        Lab lab = lab_new();

        to_the_patch(&lab);
        fake_reply(await(&lab, FAKE_PATCH, NODE), KUBE_DONE, 403, "");
        ASSERT_USED(lab.view, "n", 0, 8);
        ASSERT_CONTAINS(fake_last_note(), "the API server said 403");
        lab_done(&lab);
}

static void a_quota_that_names_the_resource_refuses(void) {
        Lab lab = lab_new();

        see_pod(&lab, "a", "8", "12");
        ASSERT_USED(lab.view, "n", 0, 12); /* reserved while the quotas are read */
        fake_reply(await(&lab, FAKE_GET, QUOTAS), KUBE_DONE, 200, TEAM_QUOTA);
        ASSERT_CONTAINS(fake_last_note(), "quota \"team\" of the namespace names the resource");
        ASSERT_USED(lab.view, "n", 0, 8);
        ASSERT_INT(fake_n_calls(), 0);
        lab_done(&lab);
}

static void quotas_that_cannot_be_read_refuse(void) {
        static const struct {
                unsigned status;
                const char *body, *text;
        } cases[] = {{403, "", "cannot be read: the API server said 403"},
                     {200, "{\"items\":[", "cannot be read: "}};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Lab lab = lab_new();
                const char *at;

                see_pod(&lab, "a", "8", "12");
                fake_reply(await(&lab, FAKE_GET, QUOTAS), KUBE_DONE, cases[i].status, cases[i].body);
                at = strstr(fake_last_note(), cases[i].text);
                ASSERT_TRUE(at && strlen(at) > strlen("cannot be read: ")); /* it has the reason */
                ASSERT_USED(lab.view, "n", 0, 8);
                lab_done(&lab);
        }
}

static void a_wish_that_changes_hides_no_quota(void) {
        Lab lab = lab_new();

        see_pod(&lab, "a", "8", "12");
        see_pod(&lab, "a", "8", "8"); /* while the quotas are read */
        fake_reply(await(&lab, FAKE_GET, QUOTAS), KUBE_DONE, 200, TEAM_QUOTA);
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_USED(lab.view, "n", 0, 8);
        see_pod(&lab, "a", "8", "12");
        see_pod(&lab, "a", "8", "16");
        fake_reply(await(&lab, FAKE_GET, QUOTAS), KUBE_DONE, 200, NO_QUOTAS); /* those for 12 */
        fake_reply(await(&lab, FAKE_GET, QUOTAS), KUBE_DONE, 200, NO_QUOTAS);
        ASSERT_USED(lab.view, "n", 0, 16);
        see_pod(&lab, "a", "8", "8"); /* while the node is read */
        fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 200, node_with(EMPTY, "11"));
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_USED(lab.view, "n", 0, 8);
        lab_done(&lab);
}

/* The first patch may be carried out yet, so the reservation stays until the node tells. */
static void a_wish_that_changes_after_a_lost_answer(void) {
        Lab lab = lab_new();

        to_the_patch(&lab);
        see_pod(&lab, "a", "8", "8");
        fake_reply(await(&lab, FAKE_PATCH, NODE), KUBE_UNKNOWN, 0, "");
        fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 200, node_with(EMPTY, "11"));
        fake_reply(await(&lab, FAKE_PATCH, NODE), KUBE_DONE, 409, "");
        ASSERT_USED(lab.view, "n", 0, 12);
        fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 200, node_with(PERMIT, "12"));
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_USED(lab.view, "n", 0, 12);
        see_node(&lab, "{\\\"serial\\\":3,\\\"slices\\\":[]}", "13");
        ASSERT_USED(lab.view, "n", 0, 8);
        lab_done(&lab);
}

/* The two have a namespace each, of which the quota refuses. */
static void each_wish_has_its_turn(void) {
        static const char *const paths[] = {QUOTAS, "/api/v1/namespaces/another/resourcequotas"};
        Lab lab = lab_with(0, 1);
        char other[4096], *at;

        (void) snprintf(other, sizeof other, "%s",
                        pod_json(.name = "b", .node = "n", .mem = "2",
                                 .allocation = "{\\\"0\\\":{\\\"0\\\":2}}",
                                 .annotations = ",\"aliquot.dev/gpu-mem\":\"3\""));
        at = strstr(other, "default");
        ASSERT_TRUE(at != NULL);
        memcpy(at, "another", strlen("another"));
        forbidden = "not leading"; /* until there are both */
        see_pod(&lab, "a", "8", "12");
        feed(lab.view, VIEW_PODS, REFLECTOR_ADDED, other);
        forbidden = NULL;
        for (size_t i = 0; i < 6; i++) {
                fake_reply(await(&lab, FAKE_GET, paths[i % 2]), KUBE_DONE, 200, TEAM_QUOTA);
                if (i == 0) { /* the next one does not wait for a second to pass */
                        ASSERT_TRUE(sd_event_run(lab.event, 0) > 0);
                        ASSERT_INT(fake_n_calls(), 1);
                }
        }
        lab_done(&lab);
}

static void a_node_that_cannot_be_read_refuses(void) {
        static const struct {
                unsigned status;
                const char *body, *note;
        } answers[] = {{403, "", "the API server said 403"}, {200, "[", ""}};

        for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
                Lab lab = lab_new();
                unsigned before = fake_n_events();

                see_pod(&lab, "a", "8", "12");
                fake_reply(await(&lab, FAKE_GET, QUOTAS), KUBE_DONE, 200, NO_QUOTAS);
                fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 503, "");
                ASSERT_USED(lab.view, "n", 0, 12);
                ASSERT_INT(fake_n_events(), before);
                fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, answers[i].status, answers[i].body);
                ASSERT_USED(lab.view, "n", 0, 8);
                ASSERT_INT(fake_n_events(), before + 1);
                ASSERT_CONTAINS(fake_last_note(), answers[i].note);
                lab_done(&lab);
        }
}

static void a_node_that_cannot_be_read_after_a_lost_answer(void) {
        Lab lab = lab_new();

        to_the_patch(&lab);
        fake_reply(await(&lab, FAKE_PATCH, NODE), KUBE_UNKNOWN, 0, "");
        fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 403, "");
        ASSERT_USED(lab.view, "n", 0, 12); /* the patch may be carried out yet */
        (void) await(&lab, FAKE_GET, NODE);
        lab_done(&lab);
}

/* A reservation without room changes nothing, so what the ledger has computed of the node stays. */
static void a_wish_without_room_keeps_the_rank(void) {
        Lab lab = lab_new();
        const Request request = {.mem = 2, .cards = 1};
        LedgerNode *n = ledger_node_find(lab.view->ledger, STR("n"));
        uint64_t *ranks;

        ASSERT_TRUE(n != NULL);
        see_pod(&lab, "a", "8", "8");
        ranks = rank_cache_row(&lab.view->ledger->ranks, &request, 1, lab.view->ledger->room);
        ASSERT_TRUE(ranks != NULL);
        ranks[n->slot] = 77;
        for (int i = 0; i < 2; i++) {
                const GrowthEntry entry = {STR("uid-a"), 0, 0, {i == 0 ? 20 : 4, 0}};
                Fault fault = FAULT_NULL;

                ASSERT_INT(growth_wish_reserve(n, &entry, 1, &fault), i == 0 ? LEDGER_GROWTH_E_ROOM : 0);
                ASSERT_INT(ranks[n->slot], i == 0 ? 77 : 0);
        }
        ledger_growth_release(n, STR("uid-a"));
        ASSERT_USED(lab.view, "n", 0, 8);
        lab_done(&lab);
}

static void an_event_names_what_is_missing(void) {
        Lab lab = lab_new();

        see_pod(&lab, "b", "6", "6");
        see_pod(&lab, "a", "8", "12");
        ASSERT_TEXT(fake_last_note(),
                    "gpu0 of node n has 2 of gpu-mem free, 4 more are needed: 2 are missing");
        ASSERT_USED(lab.view, "n", 0, 14);
        ASSERT_INT(fake_n_calls(), 0);
        feed(lab.view, VIEW_PODS, REFLECTOR_DELETED, pod_json(.name = "b", .node = "n", .mem = "6"));
        (void) await(&lab, FAKE_GET, QUOTAS);
        ASSERT_USED(lab.view, "n", 0, 12);
        lab_done(&lab);
}

static void a_replica_that_does_not_lead_permits_nothing(void) {
        Lab lab = lab_new();

        forbidden = "not leading";
        see_pod(&lab, "a", "8", "12");
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_USED(lab.view, "n", 0, 8);
        forbidden = NULL;
        fake_reply(await(&lab, FAKE_GET, QUOTAS), KUBE_DONE, 200, NO_QUOTAS);
        forbidden = "not leading"; /* any more */
        fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 200, node_with(EMPTY, "11"));
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_USED(lab.view, "n", 0, 12); /* it stays reserved: it was not decided */
        lab_done(&lab);
}

static void a_pod_that_ends_gives_its_reservation_back(void) {
        Lab lab = lab_new();

        to_the_patch(&lab);
        feed(lab.view, VIEW_PODS, REFLECTOR_DELETED, pod_json(.name = "a", .node = "n", .mem = "8"));
        ASSERT_USED(lab.view, "n", 0, 4); /* the patch may be carried out */
        fake_reply(await(&lab, FAKE_PATCH, NODE), KUBE_DONE, 409, "");
        fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 200, node_with(EMPTY, "20"));
        ASSERT_USED(lab.view, "n", 0, 0);
        lab_done(&lab);
}

static void without_an_agent_that_agrees_nothing_grows(void) {
        Lab lab = lab_new();

        feed(lab.view, VIEW_NODES, REFLECTOR_ADDED, node_json("n", "cgpu", 32, 2, ""));
        see_pod(&lab, "a", "8", "12");
        ASSERT_INT(fake_n_calls(), 0);
        ASSERT_TEXT(fake_last_note(), "the agent of node n lets no slice grow beyond its limit");
        lab_done(&lab);
}

/* ---- returns to the limit ---- */

/* Of 16 units, pod "a" has given up 4 of its 8. */
#define GIVEN_UP                                                                                             \
        "{\\\"serial\\\":2,\\\"slices\\\":[{\\\"uid\\\":\\\"uid-a\\\",\\\"container\\\":0,\\\"card\\\":0,"   \
        "\\\"lessMem\\\":4}]}"
#define RETURNED "{\\\"serial\\\":3,\\\"slices\\\":[]}"

/* It asks for its limit: the pod has no annotation any more, whichever object comes first. No quota
 * is asked, because its limit was counted. */
static void a_slice_has_its_limit_again(void) {
        for (int i = 0; i < 2; i++) {
                Lab lab = lab_new();

                if (i == 0)
                        see_node(&lab, GIVEN_UP, "11");
                see_pod(&lab, "a", "8", "");
                if (i == 1)
                        see_node(&lab, GIVEN_UP, "11");
                fake_reply(await(&lab, FAKE_GET, NODE), KUBE_DONE, 200, node_with(GIVEN_UP, "11"));
                ASSERT_CONTAINS(fake_annotations(await(&lab, FAKE_PATCH, NODE)), RETURNED);
                fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 200, "{}");
                see_node(&lab, RETURNED, "12");
                ASSERT_USED(lab.view, "n", 0, 8);
                for (int k = 0; k < 3; k++)
                        ASSERT_TRUE(sd_event_run(lab.event, USEC_PER_SEC / 100) >= 0);
                ASSERT_INT(fake_n_calls(), 0);
                lab_done(&lab);
        }
}

/* An object of the pod without change does not end what is under way. */
static void a_return_under_way_outlives_the_pods_object(void) {
        Lab lab = lab_new();

        see_node(&lab, GIVEN_UP, "11");
        see_pod(&lab, "a", "8", "");
        (void) await(&lab, FAKE_GET, NODE);
        see_pod(&lab, "a", "8", "");
        fake_reply(fake_call(FAKE_GET), KUBE_DONE, 200, node_with(GIVEN_UP, "11"));
        (void) await(&lab, FAKE_PATCH, NODE);
        lab_done(&lab);
}

static void what_stays_given_up_is_no_wish(void) {
        Lab lab = lab_new();

        see_node(&lab, GIVEN_UP, "11");
        see_pod(&lab, "a", "8", "4");
        see_pod(&lab, "b", "8", "12"); /* may have it */
        fake_reply(await(&lab, FAKE_GET, QUOTAS), KUBE_DONE, 200, TEAM_QUOTA);
        ASSERT_USED(lab.view, "n", 0, 16);
        lab_done(&lab);
}

/* Whichever object comes first. */
static void a_pod_that_is_ending_returns_to_nothing(void) {
        static const char deletion[] = "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",";
        char text[4096], *at;

        (void) snprintf(
                text, sizeof text, "%s",
                pod_json(.name = "a", .node = "n", .mem = "8", .allocation = "{\\\"0\\\":{\\\"0\\\":8}}"));
        at = strstr(text, "\"name\"");
        ASSERT_TRUE(at != NULL);
        memmove(at + strlen(deletion), at, strlen(at) + 1);
        memcpy(at, deletion, strlen(deletion));
        for (int first = 0; first < 2; first++) {
                Lab lab = lab_new();

                if (first == 0)
                        see_node(&lab, GIVEN_UP, "11");
                feed(lab.view, VIEW_PODS, REFLECTOR_ADDED, text);
                see_node(&lab, GIVEN_UP, "12");
                for (int i = 0; i < 3; i++)
                        ASSERT_TRUE(sd_event_run(lab.event, USEC_PER_SEC / 100) >= 0);
                ASSERT_INT(fake_n_calls(), 0);
                lab_done(&lab);
        }
}

/* Kubernetes has counted the limit of the one that waits. */
static void a_return_comes_before_growth(void) {
        Lab lab = lab_new();

        see_node(&lab, GIVEN_UP, "11");
        see_pod(&lab, "c", "4", "4");
        see_pod(&lab, "b", "6", "6");
        see_pod(&lab, "a", "8", "");
        ASSERT_TEXT(fake_last_note(), "gpu0 of node n has 2 of gpu-mem free, 4 more are needed to return to "
                                      "the limit: 2 are missing");
        see_pod(&lab, "b", "6", "8");
        ASSERT_TEXT(fake_last_note(),
                    "pod default/a waits to have its limit again on a card of node n: no slice of the card "
                    "grows beyond a limit before it");
        ASSERT_INT(fake_n_calls(), 0);
        see_pod(&lab, "a", "8", "4"); /* it wants no more */
        (void) await(&lab, FAKE_GET, QUOTAS);
        ASSERT_USED(lab.view, "n", 0, 20);
        lab_done(&lab);
}

int main(void) {
        return TEST_MAIN(
                TEST(a_slice_has_its_limit_again), TEST(a_return_under_way_outlives_the_pods_object),
                TEST(what_stays_given_up_is_no_wish), TEST(a_pod_that_is_ending_returns_to_nothing),
                TEST(a_return_comes_before_growth),
                TEST(a_permit_is_charged_before_and_after_the_watch_shows_it),
                TEST(a_permit_raises_nothing_else_of_the_pod), TEST(a_reservation_outlives_a_lost_annotation),
                TEST(a_reservation_ends_with_a_later_serial), TEST(a_conflict_reads_the_node_again),
                TEST(a_permit_that_was_given_back_is_tried_again), TEST(after_a_lost_answer_the_node_tells),
                TEST(a_refusal_after_a_lost_answer), TEST(a_static_pod_does_not_grow),
                TEST(what_cannot_be_read_is_no_wish), TEST(a_refused_patch_charges_nothing),
                TEST(a_quota_that_names_the_resource_refuses), TEST(quotas_that_cannot_be_read_refuse),
                TEST(an_event_names_what_is_missing), TEST(a_wish_that_changes_hides_no_quota),
                TEST(a_wish_that_changes_after_a_lost_answer), TEST(each_wish_has_its_turn),
                TEST(a_node_that_cannot_be_read_refuses),
                TEST(a_node_that_cannot_be_read_after_a_lost_answer),
                TEST(a_wish_without_room_keeps_the_rank), TEST(a_replica_that_does_not_lead_permits_nothing),
                TEST(a_pod_that_ends_gives_its_reservation_back),
                TEST(without_an_agent_that_agrees_nothing_grows));
}
