/* SPDX-License-Identifier: Apache-2.0 */

/* The view, fed by hand: the ledger after lists, watches and their failures. */

#include <errno.h>

#include "failing.h"
#include "fixture.h"
#include "random.h"
#include "share/placement.h"

static View *view_with(const char *const nodes[], size_t n) {
        View *v;

        ASSERT_OK(view_new(&v));
        view_list_begin(v, VIEW_NODES);
        for (size_t i = 0; i < n; i++)
                feed(v, VIEW_NODES, REFLECTOR_LISTED, nodes[i]);
        view_list_end(v, VIEW_NODES);
        return v;
}

static View *one_node(void) {
        View *v = view_with((const char *[]){node_json("n1", "cgpu", 30, 2, "")}, 1);

        view_list_begin(v, VIEW_PODS);
        view_list_end(v, VIEW_PODS);
        return v;
}

static void is_in_sync_after_both_lists(void) {
        _cleanup_(view_freep) View *v = view_with(NULL, 0);

        ASSERT_FALSE(view_in_sync(v));
        view_list_begin(v, VIEW_PODS);
        ASSERT_FALSE(view_in_sync(v));
        view_list_end(v, VIEW_PODS);
        ASSERT_TRUE(view_in_sync(v));
        view_list_begin(v, VIEW_PODS); /* during a list the view stays in sync */
        ASSERT_TRUE(view_in_sync(v));
}

static void follows_a_pod_through_its_life(void) {
        _cleanup_(view_freep) View *v = one_node();

        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("a", .mem = "4", .phase = "Pending", .state = "waiting"));
        ASSERT_TRUE(view_pod_find(v, STR("uid-a"))->request->mem == 4);
        ASSERT_USED(v, "n1", 0, 0);
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"1\\\":4}}"));
        ASSERT_USED(v, "n1", 1, 4);
        ASSERT_FALSE(view_pod_find(v, STR("uid-a"))->request);
        /* A pod that terminates, or is terminal with a running container, still holds its
         * slices. */
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"1\\\":4}}",
                      .terminating = true));
        ASSERT_USED(v, "n1", 1, 4);
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"1\\\":4}}",
                      .phase = "Failed"));
        ASSERT_USED(v, "n1", 1, 4);
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"1\\\":4}}",
                      .phase = "Failed", .state = "terminated"));
        ASSERT_USED(v, "n1", 1, 0);
        ASSERT_FALSE(view_pod_find(v, STR("uid-a")));
        feed(v, VIEW_PODS, REFLECTOR_DELETED, pod_json("a", .mem = "4", .node = "n1", .phase = "Failed"));
        ASSERT_USED(v, "n1", 1, 0);
}

static void deletion_frees(void) {
        _cleanup_(view_freep) View *v = one_node();
        const char *bound =
                pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":4}}");

        feed(v, VIEW_PODS, REFLECTOR_ADDED, bound);
        /* The event comes twice, the grant counts once. */
        feed(v, VIEW_PODS, REFLECTOR_ADDED, bound);
        ASSERT_USED(v, "n1", 0, 4);
        feed(v, VIEW_PODS, REFLECTOR_DELETED, bound);
        ASSERT_USED(v, "n1", 0, 0);
        feed(v, VIEW_PODS, REFLECTOR_DELETED, bound);
        ASSERT_USED(v, "n1", 0, 0);
}

static void a_pod_without_annotation_is_pending(void) {
        _cleanup_(view_freep) View *v = one_node();

        feed(v, VIEW_PODS, REFLECTOR_ADDED, pod_json("static", .mem = "5", .node = "n1"));
        ASSERT_INT(ledger_node_pending(ledger_node_find(v->ledger, STR("n1"))), 5);
        /* The node has chosen the card. */
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("static", .mem = "5", .node = "n1", .allocation = "{\\\"0\\\":{\\\"1\\\":5}}"));
        ASSERT_INT(ledger_node_pending(ledger_node_find(v->ledger, STR("n1"))), 0);
        ASSERT_USED(v, "n1", 1, 5);
}

static void pods_of_others_are_not_kept(void) {
        _cleanup_(view_freep) View *v = one_node();

        feed(v, VIEW_PODS, REFLECTOR_ADDED, pod_json("web", .node = "n1"));
        feed(v, VIEW_PODS, REFLECTOR_ADDED, pod_json("web2"));
        feed(v, VIEW_PODS, REFLECTOR_ADDED, pod_json("bad", .mem = "1.5"));
        ASSERT_INT(HASH_COUNT(v->pods), 0);
}

#define ASSERT_CPU(v, node, milli)                                                                           \
        ASSERT_INT(ledger_node_cpu(ledger_node_find((v)->ledger, STR(node))), milli)

/* With the order by fragment the cpu of every bound pod counts, once and where it is. */
static void cpu_of_all_bound_pods_counts(void) {
        _cleanup_(view_freep) View *v = one_node();
        static const char share[] = "{\\\"0\\\":{\\\"0\\\":4}}";

        ledger_set_order(v->ledger, NODE_ORDER_FRAGMENTATION);
        feed(v, VIEW_PODS, REFLECTOR_ADDED, pod_json("web", .requests = "\"cpu\":\"1500m\""));
        feed(v, VIEW_PODS, REFLECTOR_ADDED, pod_json("idle", .node = "n1"));
        ASSERT_INT(HASH_COUNT(v->pods), 0);
        for (int again = 0; again < 2; again++)
                feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
                     pod_json("web", .node = "n1", .requests = "\"cpu\":\"1500m\""));
        ASSERT_CPU(v, "n1", 1500);
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = share, .requests = "\"cpu\":\"8\""));
        ASSERT_CPU(v, "n1", 9500);
        /* Both are resized in place. */
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED, pod_json("web", .node = "n1", .requests = "\"cpu\":\"2\""));
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = share, .requests = "\"cpu\":\"4\""));
        ASSERT_CPU(v, "n1", 6000);
        /* On a node that is not known yet, and that ends. */
        feed(v, VIEW_PODS, REFLECTOR_ADDED, pod_json("early", .node = "n2", .requests = "\"cpu\":\"3\""));
        feed(v, VIEW_NODES, REFLECTOR_ADDED, node_json("n2", "cgpu", 30, 2, ""));
        feed(v, VIEW_NODES, REFLECTOR_DELETED, node_json("n2", "cgpu", 30, 2, ""));
        ASSERT_CPU(v, "n2", 3000);
        feed(v, VIEW_PODS, REFLECTOR_DELETED, pod_json("early", .node = "n2"));
        ASSERT_TRUE(!ledger_node_find(v->ledger, STR("n2")));
        /* kube-scheduler gives back the cpu of a pod that has ended. */
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = share, .requests = "\"cpu\":\"4\"",
                      .phase = "Failed"));
        ASSERT_USED(v, "n1", 0, 4);
        ASSERT_CPU(v, "n1", 2000);
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("web", .node = "n1", .requests = "\"cpu\":\"2\"", .phase = "Succeeded"));
        ASSERT_CPU(v, "n1", 0);
}

static void a_list_finds_the_cpu_of_pods_that_are_gone(void) {
        _cleanup_(view_freep) View *v = one_node();

        ledger_set_order(v->ledger, NODE_ORDER_FRAGMENTATION);
        for (int list = 0; list < 3; list++) {
                view_list_begin(v, VIEW_PODS);
                feed(v, VIEW_PODS, REFLECTOR_LISTED,
                     pod_json("web", .node = "n1", .requests = "\"cpu\":\"2\""));
                if (list == 0)
                        feed(v, VIEW_PODS, REFLECTOR_LISTED,
                             pod_json("gone", .node = "n1", .requests = "\"cpu\":\"1\""));
                view_list_end(v, VIEW_PODS);
                ASSERT_CPU(v, "n1", list == 0 ? 3000 : 2000);
                ASSERT_INT(v->stats.differences[VIEW_PODS], list > 0);
        }
}

static void two_pods_that_claim_the_same_slice_both_count(void) {
        _cleanup_(view_freep) View *v = one_node();

        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("a", .mem = "10", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":10}}"));
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("b", .mem = "10", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":10}}"));
        ASSERT_USED(v, "n1", 0, 20); /* of 15: the containers run all the same */
        feed(v, VIEW_PODS, REFLECTOR_DELETED, pod_json("a", .node = "n1"));
        ASSERT_USED(v, "n1", 0, 10);
}

static void annotations_say_where_and_limits_how_much(void) {
        _cleanup_(view_freep) View *v = one_node();

        /* More units than the card has; and a container and a card that do not exist. */
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("a", .mem = "4", .node = "n1",
                      .allocation = "{\\\"0\\\":{\\\"0\\\":400},\\\"1\\\":{\\\"7\\\":1}}"));
        ASSERT_USED(v, "n1", 0, 4);
        ASSERT_INT(ledger_node_n_cards(ledger_node_find(v->ledger, STR("n1"))), 2);
        /* Editing the annotation of a running pod frees nothing. */
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":1}}"));
        ASSERT_USED(v, "n1", 0, 4);
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":[1]}"));
        ASSERT_INT(ledger_node_pending(ledger_node_find(v->ledger, STR("n1"))), 4);
        ASSERT_USED(v, "n1", 0, 0);
        /* A pod without a share holds nothing, and is no obstacle to pods of either kind. */
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json(
                     "dos", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":15,\\\"1\\\":15}}",
                     .annotations =
                             ",\"gpushare.alibabacloud.com/core-percentage\":\"{\\\"0\\\":{\\\"0\\\":100}}\","
                             "\"aliquot.dev/init-allocation\":\"{\\\"0\\\":{\\\"1\\\":15}}\""));
        ASSERT_USED(v, "n1", 0, 0);
        ASSERT_USED(v, "n1", 1, 0);
        ASSERT_INT(card_of(v, "n1", 0)->core_used, 0);
}

typedef struct Told {
        unsigned n;
        char name[64], text[1024];
} Told;

static void on_report(void *userdata, const ViewReport *report) {
        Told *t = userdata;

        t->n++;
        (void) snprintf(t->name, sizeof t->name, STR_FMT, STR_ARG(report->about->name));
        (void) snprintf(t->text, sizeof t->text, "%s %s: %s", report->kind, report->reason, report->note);
}

static void what_differs_is_told_once_and_again_when_it_changes(void) {
        _cleanup_(view_freep) View *v = one_node();
        Told t = {0};

        v->on_report = on_report;
        v->userdata = &t;
        for (int i = 0; i < 3; i++)
                feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
                     pod_json("a", .mem = "5", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":2}}"));
        ASSERT_INT(t.n, 1);
        ASSERT_TEXT(t.name, "a");
        ASSERT_CONTAINS(t.text, " 2 of aliyun.com/gpu-mem, its limit is 5");
        ASSERT_USED(v, "n1", 0, 5);
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("a", .mem = "5", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":3}}"));
        ASSERT_INT(t.n, 2);
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("a", .mem = "5", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":5}}"));
        ASSERT_INT(t.n, 2);
        /* A pod that holds nothing is reported as well, and forgotten when it is gone. */
        for (int i = 0; i < 2; i++)
                feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
                     pod_json("dos", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":15}}"));
        ASSERT_INT(t.n, 3);
        ASSERT_TEXT(t.name, "dos");
        view_forget_reports(v); /* a new leader */
        feed(v, VIEW_PODS, REFLECTOR_LISTED,
             pod_json("dos", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":15}}"));
        ASSERT_INT(t.n, 4);
        feed(v, VIEW_PODS, REFLECTOR_DELETED,
             pod_json("dos", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":15}}"));
        ASSERT_FALSE(view_pod_find(v, STR("uid-dos")));
        /* Annotations that do not decode are reported, too. */
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("b", .mem = "1", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":-1}}"));
        ASSERT_INT(t.n, 5);
        ASSERT_CONTAINS(t.text, "annotation scheduler.framework.gpushare.allocation: ");
}

/* Keys of ACK without effect: once for each pod that asks for a resource of ours. */
static void unserved_keys_are_told_once(void) {
        static const char *const keys[] = {
                "\"labels\":{\"gpu-topology\":\"job\"}",
                "\"annotations\":{\"cpuset-scheduler\":\"required\"}",
                "\"annotations\":{\"scheduling.alibabacloud.com/numa-topology-spec\":\"{}\"}"};
        _cleanup_(view_freep) View *v = one_node();
        Told t = {0};

        v->on_report = on_report;
        v->userdata = &t;
        for (size_t i = 0; i < 2 * ELEMENTSOF(keys) + 1; i++) {
                char text[512];

                /* the last one asks for nothing */
                (void) snprintf(text, sizeof text,
                                "{\"metadata\":{\"name\":\"p%zu\",\"namespace\":\"default\",\"uid\":\"u%zu\","
                                "%s},\"spec\":{"
                                "\"schedulerName\":\"ack-co-scheduler\",\"containers\":[{\"name\":\"main\","
                                "\"resources\":{"
                                "\"limits\":{\"%s\":\"2\"}}}]},\"status\":{\"phase\":\"Pending\"}}",
                                i / 2, i / 2, keys[i / 2 % ELEMENTSOF(keys)],
                                i < 2 * ELEMENTSOF(keys) ? "aliyun.com/gpu" : "cpu");
                feed(v, VIEW_PODS, REFLECTOR_MODIFIED, text);
                ASSERT_INT(t.n, i / 2 + 1 < ELEMENTSOF(keys) ? i / 2 + 1 : ELEMENTSOF(keys));
        }
        ASSERT_CONTAINS(t.text, "annotation scheduling.alibabacloud.com/numa-topology-spec has no effect");
        ASSERT_TRUE(view_pod_find(v, STR("u0"))->request->whole);
}

/* Keys of gangs without effect, on pods with and without a share. NULL: all that the pod says has
 * an effect. */
static void unserved_keys_of_gangs_are_told(void) {
#define NAME "\"pod-group.scheduling.sigs.k8s.io/name\":\"g\""
#define MIN  ",\"pod-group.scheduling.sigs.k8s.io/min-available\":\"2\""
        static const struct {
                const char *keys, *text;
                bool off;
                const char *spec;
        } cases[] = {
                {"\"labels\":{" NAME MIN "}", NULL, false},
                {"\"labels\":{" NAME MIN "}", "the pod's gang has no effect: gangs are off", true},
                {"\"labels\":{" NAME "}", "has no label pod-group.scheduling.sigs.k8s.io/min-available",
                 false},
                {"\"labels\":{\"pod-group.scheduling.sigs.k8s.io\":\"g\"}", "PodGroup objects are not read",
                 false},
                {"\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"g\"}",
                 "label scheduling.x-k8s.io/pod-group has no effect", false},
                {"\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"g\"," NAME MIN "}", NULL, false},
                {"\"labels\":{" NAME MIN "},\"annotations\":{\"pod-group.scheduling.sigs.k8s.io/groups\":"
                 "\"[]\"}",
                 "the groups of the pod's gang have no effect", false},
                {"\"annotations\":{\"gang.scheduling.koordinator.sh/name\":\"g\","
                 "\"gang.scheduling.koordinator.sh/min-available\":\"2\"}",
                 NULL, false},
                {"\"annotations\":{\"gang.scheduling.koordinator.sh/name\":\"g\","
                 "\"gang.scheduling.koordinator.sh/min-available\":\"2\","
                 "\"gang.scheduling.koordinator.sh/groups\":\"[]\"}",
                 "the groups of the pod's gang have no effect", false},
                {"\"labels\":{" NAME MIN ",\"pod-group.scheduling.sigs.k8s.io/match-policy\":"
                 "\"waiting-and-running\"}",
                 "the match-policy of the pod's gang has no effect", false},
                {"\"labels\":{" NAME MIN ",\"pod-group.scheduling.sigs.k8s.io/match-policy\":"
                 "\"once-satisfied\"}",
                 NULL, false},
                {"\"labels\":{}", "spec.schedulingGroup has no effect", false,
                 "\"schedulingGroup\":{\"podGroupName\":\"g\"},"},
                {"\"labels\":{}", "spec.schedulingGroup has no effect", true,
                 "\"workloadRef\":{\"name\":\"w\",\"podGroup\":\"g\"},"},
        };

        for (size_t i = 0; i < 2 * ELEMENTSOF(cases); i++) {
                _cleanup_(view_freep) View *v = one_node();
                Told t = {0};
                char text[1024];

                v->on_report = on_report;
                v->userdata = &t;
                v->groups_pods = !cases[i / 2].off;
                (void) snprintf(
                        text, sizeof text,
                        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"uid\":\"u\",%s},"
                        "\"spec\":{%s\"schedulerName\":\"ack-co-scheduler\",\"containers\":[{\"name\":"
                        "\"main\",\"resources\":{\"limits\":{\"%s\":\"2\"}}}]},\"status\":{"
                        "\"phase\":\"Pending\"}}",
                        cases[i / 2].keys, cases[i / 2].spec ? cases[i / 2].spec : "",
                        i % 2 == 0 ? "aliyun.com/gpu-mem" : "cpu");
                for (int k = 0; k < 2; k++) /* told once */
                        feed(v, VIEW_PODS, REFLECTOR_MODIFIED, text);
                ASSERT_INT(t.n, cases[i / 2].text ? 1 : 0);
                if (cases[i / 2].text)
                        ASSERT_CONTAINS(t.text, cases[i / 2].text);
        }
#undef NAME
#undef MIN
}

/* With gangs the label of a job has an effect, on pods of whole cards. */
static void jobs_are_told_where_they_have_no_effect(void) {
        static const char *const resources[] = {"aliyun.com/gpu", "aliyun.com/gpu-mem"};
        _cleanup_(view_freep) View *v = one_node();
        Told t = {0};

        v->on_report = on_report;
        v->userdata = &t;
        v->groups_pods = true;
        for (unsigned i = 0; i < 2; i++) {
                char text[512];

                (void) snprintf(text, sizeof text,
                                "{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"default\",\"uid\":\"u%u\","
                                "\"labels\":{\"gpu-topology\":\"job\"}},\"spec\":{\"containers\":[{\"name\":"
                                "\"main\",\"resources\":{\"limits\":{\"%s\":\"2\"}}}]},\"status\":{\"phase\":"
                                "\"Pending\"}}",
                                i, i, resources[i]);
                feed(v, VIEW_PODS, REFLECTOR_MODIFIED, text);
                ASSERT_INT(t.n, i);
        }
        ASSERT_CONTAINS(t.text, "label gpu-topology has no effect: the pod asks for no aliyun.com/gpu");
}

static void a_list_drops_what_did_not_come_by(void) {
        _cleanup_(view_freep) View *v = one_node();

        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":4}}"));
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("b", .mem = "3", .node = "n1", .allocation = "{\\\"0\\\":{\\\"1\\\":3}}"));
        feed(v, VIEW_PODS, REFLECTOR_ADDED, pod_json("c", .mem = "3"));
        /* A list that breaks off changes nothing. The next list does. */
        view_list_begin(v, VIEW_PODS);
        view_list_begin(v, VIEW_PODS);
        feed(v, VIEW_PODS, REFLECTOR_LISTED,
             pod_json("b", .mem = "3", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":3}}"));
        ASSERT_USED(v, "n1", 0, 7);
        view_list_end(v, VIEW_PODS);
        ASSERT_USED(v, "n1", 0, 3);
        ASSERT_USED(v, "n1", 1, 0);
        ASSERT_INT(HASH_COUNT(v->pods), 1);
        ASSERT_INT(v->stats.differences[VIEW_PODS], 3); /* b moved, a and c went */
}

static void an_unreadable_object_in_a_list_keeps_everything(void) {
        _cleanup_(view_freep) View *v = one_node();
        Fault fault = {.text = "object of 9 MiB"};

        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":4}}"));
        view_list_begin(v, VIEW_PODS);
        feed(v, VIEW_PODS, REFLECTOR_LISTED, "{\"metadata\":{\"name\":7}}");
        view_list_end(v, VIEW_PODS);
        ASSERT_USED(v, "n1", 0, 4);
        ASSERT_INT(v->stats.malformed[VIEW_PODS], 1);
        view_list_begin(v, VIEW_PODS);
        view_passed_over(v, VIEW_PODS);
        view_trouble(v, VIEW_PODS, &fault);
        view_list_end(v, VIEW_PODS);
        ASSERT_USED(v, "n1", 0, 4);
        view_list_begin(v, VIEW_PODS);
        view_list_end(v, VIEW_PODS);
        ASSERT_USED(v, "n1", 0, 0);
}

static void nodes_come_and_go(void) {
        _cleanup_(view_freep) View *v = one_node();

        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":4}}"));
        feed(v, VIEW_NODES, REFLECTOR_DELETED, node_json("n1", "cgpu", 30, 2, ""));
        ASSERT_FALSE(directory_find(v->directory, STR("n1")));
        ASSERT_USED(v, "n1", 0, 4); /* its pod still exists */
        feed(v, VIEW_NODES, REFLECTOR_ADDED, node_json("n1", "cgpu", 30, 2, ""));
        ASSERT_USED(v, "n1", 0, 4);
        view_list_begin(v, VIEW_NODES);
        feed(v, VIEW_NODES, REFLECTOR_LISTED, node_json("n2", "share", 8, 1, ""));
        view_list_end(v, VIEW_NODES);
        ASSERT_INT(directory_size(v->directory), 1);
        ASSERT_TRUE(directory_find(v->directory, STR("n2")));
}

/* One annotation does not decode: the other keys of the node must count all the same. */
static void one_wrong_key_leaves_the_others_in_force(void) {
        static const char wrong[] = ",\"annotations\":{\"aliquot.dev/max-pods-per-card\":\"20 \"";
        _cleanup_(view_freep) View *v = one_node();
        char members[256];
        Told t = {0};

        v->on_report = on_report;
        v->userdata = &t;
        (void) snprintf(members, sizeof members, "%s}", wrong);
        for (int i = 0; i < 2; i++)
                feed(v, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n1", "default", 30, 2, members));
        ASSERT_INT(ledger_node_mode(ledger_node_find(v->ledger, STR("n1"))), SHARE_MODE_DEFAULT);
        ASSERT_INT(t.n, 1);
        ASSERT_TEXT(t.name, "n1");
        ASSERT_CONTAINS(t.text, "aliquot.dev/max-pods-per-card is \"20 \"");
        (void) snprintf(
                members, sizeof members,
                "%s,\"aliquot.dev/cards\":\"[{\\\"index\\\":0,\\\"units\\\":15,\\\"healthy\\\":false}]\"}",
                wrong);
        feed(v, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n1", "cgpu", 30, 2, members));
        ASSERT_FALSE(card_of(v, "n1", 0)->healthy);
        (void) snprintf(
                members, sizeof members,
                "%s,\"aliquot.dev/"
                "held-slices\":\"[{\\\"uid\\\":\\\"u\\\",\\\"allocation\\\":{\\\"0\\\":{\\\"1\\\":10}}}]\"}",
                wrong);
        feed(v, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n1", "cgpu", 30, 2, members));
        ASSERT_USED(v, "n1", 1, 10);
        /* A view that starts now has the same. */
        {
                _cleanup_(view_freep) View *fresh =
                        view_with((const char *[]){node_json("n1", "cgpu", 30, 2, members)}, 1);

                ASSERT_INT(ledger_node_mode(ledger_node_find(fresh->ledger, STR("n1"))), SHARE_MODE_CGPU);
                ASSERT_USED(fresh, "n1", 1, 10);
        }
        ASSERT_INT(v->stats.malformed[VIEW_NODES], 0);
}

/* The agent of a node reports its wrong keys. Without an agent the view reports the mode. */
static void wrong_keys_are_told_where_no_agent_reports_them(void) {
        _cleanup_(view_freep) View *v = one_node();
        Told t = {0};

        v->on_report = on_report;
        v->userdata = &t;
        for (int i = 0; i < 2; i++)
                feed(v, VIEW_NODES, REFLECTOR_ADDED, node_json("n9", "core-mem", 0, 0, ""));
        ASSERT_INT(t.n, 1);
        ASSERT_CONTAINS(t.text, "label ack.node.gpu.schedule is \"core-mem\", must be share, cgpu, core_mem");
        view_forget_reports(v);
        feed(v, VIEW_NODES, REFLECTOR_LISTED, node_json("n9", "core-mem", 0, 0, ""));
        ASSERT_INT(t.n, 2);
        feed(v, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n9", "cgpu", 0, 0, ""));
        feed(v, VIEW_NODES, REFLECTOR_MODIFIED,
             node_json("n9", "core-mem", 0, 0, ",\"annotations\":{\"aliquot.dev/mode-in-force\":\"cgpu\"}"));
        ASSERT_INT(t.n, 2);
        ASSERT_INT(ledger_node_mode(ledger_node_find(v->ledger, STR("n9"))), SHARE_MODE_CGPU);
}

static void unserved_modes_are_told_once(void) {
        _cleanup_(view_freep) View *v = one_node();
        Told t = {0};

        v->on_report = on_report;
        v->userdata = &t;
        feed(v, VIEW_NODES, REFLECTOR_ADDED, node_json("n9", "mps", 0, 0, ""));
        feed(v, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n9", "mps", 0, 0, ""));
        ASSERT_INT(t.n, 1);
        ASSERT_TEXT(t.name, "n9");
        ASSERT_CONTAINS(t.text, "Node GPUShareModeNotServed: label ack.node.gpu.schedule is \"mps\", a mode");
        view_forget_reports(v);
        feed(v, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n9", "mps", 0, 0, ""));
        ASSERT_INT(t.n, 2);
}

static void late_events_do_not_take_a_bound_pods_grant(void) {
        _cleanup_(view_freep) View *v = one_node();
        const char *unbound = pod_json("a", .mem = "4", .phase = "Pending", .state = "waiting");
        Slice slice = {.card = 0, .mem = 4};
        GrantSpec spec = {
                .name = STR("a"), .uid = STR("uid-a"), .node = STR("n1"), .slices = &slice, .n_slices = 1};
        ViewPod *pod;

        feed(v, VIEW_PODS, REFLECTOR_ADDED, unbound);
        pod = view_pod_find(v, STR("uid-a"));
        /* As the binder leaves the pod after a 2xx. */
        ASSERT_OK(grant_new(v->ledger, &spec, &pod->grant));
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED, unbound);
        ASSERT_USED(v, "n1", 0, 4);
        /* A list that began after the bind decides. */
        view_list_begin(v, VIEW_PODS);
        feed(v, VIEW_PODS, REFLECTOR_LISTED, unbound);
        view_list_end(v, VIEW_PODS);
        ASSERT_USED(v, "n1", 0, 0);
        ASSERT_TRUE(view_pod_find(v, STR("uid-a"))->request != NULL);
}

/* A list that was asked for after the pod came has it, or the pod is gone, whatever its bind
 * says. */
static void a_list_ends_a_pod_that_is_being_bound(void) {
        static char bind;
        _cleanup_(view_freep) View *v = one_node();
        const char *unbound = pod_json("a", .mem = "4", .phase = "Pending", .state = "waiting");
        ViewPod *pod;

        for (unsigned listed = 0; listed < 2; listed++) {
                feed(v, VIEW_PODS, REFLECTOR_ADDED,
                     pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":4}}"));
                pod = view_pod_find(v, STR("uid-a"));
                pod->bind = (struct Bind *) (void *) &bind; /* it is never looked into */
                view_list_begin(v, VIEW_PODS);
                if (listed)
                        feed(v, VIEW_PODS, REFLECTOR_LISTED, unbound);
                view_list_end(v, VIEW_PODS);
                ASSERT_USED(v, "n1", 0, listed ? 4 : 0);
                ASSERT_INT(pod->gone, !listed);
                pod->bind = NULL;
                view_pod_drop_if_unused(v, pod);
        }
        /* Bound while a list is under way, which may show it unbound, or not have it any more. */
        for (unsigned listed = 1; listed < 2; listed--) {
                view_list_begin(v, VIEW_PODS);
                view_pod_find(v, STR("uid-a"))->bound_in = v->kinds[VIEW_PODS].generation;
                if (listed)
                        feed(v, VIEW_PODS, REFLECTOR_LISTED, unbound);
                view_list_end(v, VIEW_PODS);
                ASSERT_USED(v, "n1", 0, listed ? 4 : 0);
        }
}

#define CONFIGMAP(name, data)                                                                                \
        "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"kube-system\"},\"data\":{" data "}}"

static void configmaps_fence_cards(void) {
        _cleanup_(view_freep) View *v = one_node();

        feed(v, VIEW_CONFIGMAPS, REFLECTOR_ADDED,
             CONFIGMAP("n1-device-status",
                       "\"devices\":\"- deviceId: 0\\n  deviceType: gpu\\n  healthy: false\\n\""));
        ASSERT_FALSE(card_of(v, "n1", 0)->healthy);
        ASSERT_TRUE(card_of(v, "n1", 1)->healthy);
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_ADDED, CONFIGMAP("unhealthy-gpu-n1", "\"gpus\":\"0, 1\""));
        ASSERT_FALSE(card_of(v, "n1", 1)->healthy);
        /* A card that both ConfigMaps fenced stays fenced when one of them goes. */
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_DELETED, CONFIGMAP("unhealthy-gpu-n1", "\"gpus\":\"0, 1\""));
        ASSERT_FALSE(card_of(v, "n1", 0)->healthy);
        ASSERT_TRUE(card_of(v, "n1", 1)->healthy);
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_MODIFIED,
             CONFIGMAP("n1-device-status", "\"devices\":\"- {deviceId: 0, healthy: true}\""));
        ASSERT_TRUE(card_of(v, "n1", 0)->healthy);
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_ADDED, CONFIGMAP("unhealthy-gpu-n1", "\"gpus\":\"1\""));
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_ADDED, CONFIGMAP("coredns", "\"gpus\":\"1\""));
        view_list_begin(v, VIEW_CONFIGMAPS);
        view_list_end(v, VIEW_CONFIGMAPS);
        ASSERT_TRUE(card_of(v, "n1", 1)->healthy);
}

typedef struct Judged {
        unsigned n;
        char node[64], text[1024];
} Judged;

static void on_judged(void *userdata, Str node, const char *text) {
        Judged *j = userdata;

        j->n++;
        (void) snprintf(j->node, sizeof j->node, STR_FMT, STR_ARG(node));
        (void) snprintf(j->text, sizeof j->text, "%s", text);
}

static void fence(View *v, const char *data) {
        char text[1024];

        (void) snprintf(
                text, sizeof text,
                "{\"metadata\":{\"name\":\"n1-device-status\",\"namespace\":\"kube-system\"},\"data\":{%s}}",
                data);
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_MODIFIED, text);
}

/* A ConfigMap that fenced gpu1 becomes this: which of the two cards is fenced then, and the
 * report. */
static void each_entry_of_a_fence_is_judged_by_itself(void) {
        static const struct {
                const char *data;
                bool healthy[2];
                const char *words; /* "": no fault */
        } cases[] = {
                {"\"devices\":\"- {deviceId: \\\"0\\\", healthy: false}\"",
                 {false, true},
                 ""}, /* digits in quotes */
                {"\"devices\":\"- {deviceId: 0, healthy: \\\"false\\\"}\"", {false, true}, ""},
                {"\"devices\":\"- {deviceId: 0, deviceType: nic, healthy: false}\"", {true, true}, ""},
                {"\"devices\":\"- {deviceId: x, healthy: false}\\n- {deviceId: 0, healthy: false}\"",
                 {false, false},
                 "configmap kube-system/n1-device-status: data.devices[0] is "
                 "{\"deviceId\":\"x\",\"healthy\":false}, "
                 "deviceId must be a card index from 0 to 255: gpu0, gpu1 fenced by it"},
                {"\"devices\":\"- {deviceId: -1, healthy: false}\"", {true, false}, ": gpu1 fenced by it"},
                {"\"devices\":\"- {deviceId: 256, healthy: false}\"", {true, false}, "from 0 to 255"},
                {"\"devices\":\"- healthy: false\"", {true, false}, "deviceId must be a card index"},
                {"\"devices\":\"- {deviceId: 0, healthy: maybe}\"",
                 {true, false},
                 "healthy must be true or false"},
                {"\"devices\":\"- {deviceId: 1, healthy: true}\\n- 7\"",
                 {true, true},
                 "data.devices[1] is 7, an entry must have deviceId and healthy: no card is fenced by it"},
                {"\"devices\":\"deviceId: 0\"",
                 {true, false},
                 "data.devices is {\"deviceId\":0}, must be a list"},
                {"\"devices\":\"{{\"", {true, false}, "data.devices is \"{{\", must be a YAML list: "},
                {"\"devices\":\"- {deviceId: 1, healthy: false}\",\"gpus\":\"0,x\"",
                 {false, false},
                 "data.gpus is \"0,x\", in which \"x\" must be a card index from 0 to 255: gpu0, gpu1 fenced "
                 "by it"},
                {"", {true, true}, ""},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(view_freep) View *v = one_node();
                Judged j = {0};

                v->fences.on_judged = on_judged;
                v->fences.userdata = &j;
                fence(v, "\"devices\":\"- {deviceId: 1, healthy: false}\"");
                ASSERT_FALSE(card_of(v, "n1", 1)->healthy);
                ASSERT_TEXT(j.node, "n1");
                ASSERT_TEXT(j.text, "");
                fence(v, cases[i].data);
                for (size_t card = 0; card < 2; card++)
                        ASSERT_INT(card_of(v, "n1", card)->healthy, cases[i].healthy[card]);
                ASSERT_CONTAINS(j.text, cases[i].words);
                ASSERT_INT(j.text[0] == '\0', cases[i].words[0] == '\0');
                ASSERT_INT(v->stats.malformed[VIEW_CONFIGMAPS], cases[i].words[0] != '\0');
                fence(v, "\"devices\":\"[]\"");
                ASSERT_TRUE(card_of(v, "n1", 0)->healthy && card_of(v, "n1", 1)->healthy);
                ASSERT_TEXT(j.text, "");
        }
}

/* The mark of a pending pod of our profile that asks for nothing. */
static void a_mark_for_pods_that_ask_for_nothing(void) {
        static const struct {
                const char *mem, *scheduler, *node;
                bool terminating, marked;
        } cases[] = {
                {.scheduler = "ack-co-scheduler", .marked = true},
                {.scheduler = "default-scheduler"},
                {.scheduler = "ack-co-scheduler", .mem = "4"},
                {.scheduler = "ack-co-scheduler", .mem = "x"},
                {.scheduler = "ack-co-scheduler", .node = "n1"},
                {.scheduler = "ack-co-scheduler", .terminating = true},
        };
        _cleanup_(view_freep) View *v = NULL;
        const ViewPod *pod;
        char spec[64];

        ASSERT_OK(view_new(&v));
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (int before = 0; before < 2; before++) {
                        feed(v, VIEW_PODS, REFLECTOR_DELETED, pod_json("a"));
                        if (before > 0) /* what the mark ends with */
                                feed(v, VIEW_PODS, REFLECTOR_ADDED,
                                     pod_json("a", .phase = "Pending",
                                              .spec = "\"schedulerName\":\"ack-co-scheduler\","));
                        (void) snprintf(spec, sizeof spec, "\"schedulerName\":\"%s\",", cases[i].scheduler);
                        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
                             pod_json("a", .mem = cases[i].mem, .node = cases[i].node, .spec = spec,
                                      .terminating = cases[i].terminating, .phase = "Pending"));
                        pod = view_pod_find(v, STR("uid-a"));
                        ASSERT_INT(pod && pod->asks_nothing, cases[i].marked);
                        ASSERT_INT(pod != NULL, cases[i].marked || (cases[i].mem && *cases[i].mem == '4'));
                }
        /* A list without the pod forgets the mark. */
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("b", .phase = "Pending", .spec = "\"schedulerName\":\"ack-co-scheduler\","));
        view_list_begin(v, VIEW_PODS);
        view_list_end(v, VIEW_PODS);
        ASSERT_FALSE(view_pod_find(v, STR("uid-b")));
}

static void a_fence_that_was_never_good_fences_nothing(void) {
        _cleanup_(view_freep) View *v = one_node();
        Judged j = {0};

        v->fences.on_judged = on_judged;
        v->fences.userdata = &j;
        fence(v, "\"devices\":\"- {deviceId: x, healthy: false}\"");
        ASSERT_TRUE(card_of(v, "n1", 0)->healthy && card_of(v, "n1", 1)->healthy);
        ASSERT_CONTAINS(j.text, ": no card is fenced by it");
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_DELETED, CONFIGMAP("n1-device-status", ""));
        ASSERT_TEXT(j.text, "");
}

/* Random events. After each one, a second view that gets only a list must have the same sums. */
typedef struct Model {
        bool exists[12];
        unsigned state[12];         /* 0 waiting, 1 bound, 2 bound and pending, 3 ended */
        unsigned card[12], mem[12]; /* 0 units: without a share */
} Model;

static const char *model_pod(const Model *m, unsigned i) {
        static char name[16], mem[16], allocation[64];

        (void) snprintf(name, sizeof name, "p%u", i);
        (void) snprintf(mem, sizeof mem, "%u", m->mem[i]);
        (void) snprintf(allocation, sizeof allocation, "{\\\"0\\\":{\\\"%u\\\":%u}}", m->card[i], m->mem[i]);
        return pod_json(name, .mem = m->mem[i] ? mem : NULL, .requests = "\"cpu\":\"100m\"",
                        .node = m->state[i] ? i % 2 ? "n1" : "n2" : NULL,
                        .allocation = m->state[i] == 1 || m->state[i] == 3 ? allocation : NULL,
                        .phase = m->state[i] == 3 ? "Succeeded" : "Running",
                        .state = m->state[i] == 3 ? "terminated" : "running");
}

static void assert_same_as_restarted(const View *v, const Model *m) {
        _cleanup_(view_freep) View *fresh = view_with(
                (const char *[]){node_json("n1", "cgpu", 30, 2, ""), node_json("n2", "cgpu", 60, 4, "")}, 2);
        _cleanup_free_ char *ours = sums_of(v->ledger), *theirs = NULL;

        ledger_set_order(fresh->ledger, NODE_ORDER_FRAGMENTATION);
        view_list_begin(fresh, VIEW_PODS);
        for (unsigned i = 0; i < ELEMENTSOF(m->exists); i++)
                if (m->exists[i])
                        feed(fresh, VIEW_PODS, REFLECTOR_LISTED, model_pod(m, i));
        view_list_end(fresh, VIEW_PODS);
        theirs = sums_of(fresh->ledger);
        ASSERT_TEXT(ours, theirs);
}

static Random random_state;

static void a_restart_arrives_at_the_same_sums(void) {
        _cleanup_(view_freep) View *v = view_with(
                (const char *[]){node_json("n1", "cgpu", 30, 2, ""), node_json("n2", "cgpu", 60, 4, "")}, 2);
        Model m = {0};

        random_state = (Random){7};
        ledger_set_order(v->ledger, NODE_ORDER_FRAGMENTATION);
        view_list_begin(v, VIEW_PODS);
        view_list_end(v, VIEW_PODS);
        for (unsigned step = 0; step < 3000; step++) {
                unsigned i = random_below(&random_state, ELEMENTSOF(m.exists));

                if (!m.exists[i]) {
                        m.exists[i] = true;
                        m.state[i] = random_below(&random_state, 3);
                        m.mem[i] = random_below(&random_state, 6);
                        m.card[i] = random_below(&random_state, 3);
                        feed(v, VIEW_PODS, REFLECTOR_ADDED, model_pod(&m, i));
                } else if (random_below(&random_state, 3) == 0) {
                        m.exists[i] = false;
                        feed(v, VIEW_PODS, REFLECTOR_DELETED, model_pod(&m, i));
                } else if (m.state[i] < 3) {
                        m.state[i] = m.state[i] == 0   ? 1 + random_below(&random_state, 2)
                                     : m.state[i] == 2 ? 1
                                                       : 3;
                        feed(v, VIEW_PODS, REFLECTOR_MODIFIED, model_pod(&m, i));
                }
                assert_same_as_restarted(v, &m);
        }
}

static void the_directory_keeps_its_names(void) {
        _cleanup_(directory_freep) Directory *d = NULL;
        DirectoryNode *n, *batch[DIRECTORY_BATCH];
        Str names[DIRECTORY_BATCH];
        bool in[300] = {0};
        char name[32];

        random_state = (Random){3};
        ASSERT_OK(directory_new(&d));
        for (unsigned step = 0; step < 20000; step++) {
                unsigned i = random_below(&random_state, ELEMENTSOF(in));

                (void) snprintf(name, sizeof name, i % 3 ? "node-%u.example.org" : "n%u", i);
                n = directory_find(d, str_from(name));
                for (size_t k = 0; k < DIRECTORY_BATCH; k++)
                        names[k] = k == step % DIRECTORY_BATCH ? str_from(name) : STR("nobody");
                directory_find_batch(d, names, DIRECTORY_BATCH, batch);
                for (size_t k = 0; k < DIRECTORY_BATCH; k++)
                        ASSERT_TRUE(batch[k] == (k == step % DIRECTORY_BATCH ? n : NULL));
                ASSERT_INT(n != NULL, in[i]);
                if (n)
                        ASSERT_STR(directory_name(n), str_from(name));
                if (step % 2 == 0 && !in[i]) {
                        ASSERT_OK(directory_put(d, str_from(name), NULL, &n));
                        in[i] = true;
                } else if (step % 2 == 1 && in[i] && random_below(&random_state, 2)) {
                        directory_remove(d, n);
                        in[i] = false;
                }
        }
        ASSERT_INT(directory_put(d, STR(""), NULL, &n), -E2BIG);
}

/* A ceiling of the installation counts like the node's own annotation, which overrides it. */
static void settings_of_the_installation_hold(void) {
        _cleanup_(view_freep) View *v = view_with(NULL, 0);
        Request request = {.mem = 1, .cards = 1};
        Refusal refusal;

        ASSERT_OK(node_defaults_set(&v->defaults, NODE_KEY_MAX_PODS, "1", NULL));
        feed(v, VIEW_NODES, REFLECTOR_ADDED, node_json("n1", "cgpu", 30, 1, ""));
        feed(v, VIEW_NODES, REFLECTOR_ADDED,
             node_json("n2", "cgpu", 30, 1, ",\"annotations\":{\"aliquot.dev/max-pods-per-card\":\"2\"}"));
        for (unsigned i = 1; i <= 2; i++) {
                char name[8], node[8];

                (void) snprintf(name, sizeof name, "p%u", i);
                (void) snprintf(node, sizeof node, "n%u", i);
                feed(v, VIEW_PODS, REFLECTOR_ADDED,
                     pod_json(name, .mem = "4", .node = node, .allocation = "{\\\"0\\\":{\\\"0\\\":4}}"));
        }
        ASSERT_INT(placement_check(directory_find(v->directory, STR("n1"))->ledger_node, &request, &refusal),
                   PLACEMENT_E_REFUSED);
        ASSERT_INT(refusal.code, REFUSAL_PODS_PER_CARD);
        ASSERT_INT(placement_check(directory_find(v->directory, STR("n2"))->ledger_node, &request, &refusal),
                   0);
}

/* The node has a pod without a share so far. Each allocation fails once; a node that is then not
 * known must not be found after the pod has gone. */
static void without_memory_a_node_is_not_half_known(void) {
        const char *pod = pod_json("web", .node = "n1", .requests = "\"cpu\":\"1\"");
        bool failed = true;

        for (unsigned n = 1; failed; n++) {
                _cleanup_(view_freep) View *v = NULL;
                int r;

                ASSERT_OK(view_new(&v));
                ledger_set_order(v->ledger, NODE_ORDER_FRAGMENTATION);
                feed(v, VIEW_PODS, REFLECTOR_ADDED, pod);
                countdown = n;
                r = view_object(v, VIEW_NODES, REFLECTOR_ADDED, str_from(node_json("n1", "cgpu", 30, 2, "")));
                failed = countdown == 0;
                countdown = 0;
                ASSERT_INT(r, failed ? -ENOMEM : 0);
                feed(v, VIEW_PODS, REFLECTOR_DELETED, pod);
                for (size_t i = 0; i < directory_size(v->directory); i++)
                        ASSERT_TRUE(directory_at(v->directory, i)->ledger_node ==
                                    ledger_node_find(v->ledger, STR("n1")));
        }
}

/* A pod of a list that does not fit into memory keeps its cards until the next list. */
static void a_list_without_memory_drops_no_pod(void) {
        const char *pod =
                pod_json("web", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":4}}");
        bool failed = true;

        for (unsigned n = 1; failed; n++) {
                _cleanup_(view_freep) View *v = NULL;

                ASSERT_OK(view_new(&v));
                feed(v, VIEW_NODES, REFLECTOR_ADDED, node_json("n1", "cgpu", 30, 2, ""));
                view_list_begin(v, VIEW_PODS);
                feed(v, VIEW_PODS, REFLECTOR_LISTED, pod);
                view_list_end(v, VIEW_PODS);
                view_list_begin(v, VIEW_PODS);
                arena_done(&v->arena); /* what was allocated for the list before */
                countdown = n;
                (void) view_object(v, VIEW_PODS, REFLECTOR_LISTED, str_from(pod));
                failed = countdown == 0;
                countdown = 0;
                view_list_end(v, VIEW_PODS);
                ASSERT_INT(v->stats.malformed[VIEW_PODS], 0);
                ASSERT_TRUE(view_pod_find(v, STR("uid-web")) || v->kinds[VIEW_PODS].incomplete);
        }
}

int main(void) {
        return TEST_MAIN(
                TEST(a_list_without_memory_drops_no_pod), TEST(is_in_sync_after_both_lists),
                TEST(follows_a_pod_through_its_life), TEST(deletion_frees),
                TEST(a_pod_without_annotation_is_pending), TEST(pods_of_others_are_not_kept),
                TEST(cpu_of_all_bound_pods_counts), TEST(a_list_finds_the_cpu_of_pods_that_are_gone),
                TEST(two_pods_that_claim_the_same_slice_both_count),
                TEST(annotations_say_where_and_limits_how_much),
                TEST(what_differs_is_told_once_and_again_when_it_changes), TEST(unserved_keys_are_told_once),
                TEST(unserved_keys_of_gangs_are_told), TEST(jobs_are_told_where_they_have_no_effect),
                TEST(a_list_drops_what_did_not_come_by),
                TEST(an_unreadable_object_in_a_list_keeps_everything), TEST(nodes_come_and_go),
                TEST(one_wrong_key_leaves_the_others_in_force),
                TEST(wrong_keys_are_told_where_no_agent_reports_them), TEST(unserved_modes_are_told_once),
                TEST(late_events_do_not_take_a_bound_pods_grant), TEST(a_list_ends_a_pod_that_is_being_bound),
                TEST(configmaps_fence_cards), TEST(each_entry_of_a_fence_is_judged_by_itself),
                TEST(a_fence_that_was_never_good_fences_nothing), TEST(a_mark_for_pods_that_ask_for_nothing),
                TEST(a_restart_arrives_at_the_same_sums), TEST(the_directory_keeps_its_names),
                TEST(settings_of_the_installation_hold), TEST(without_memory_a_node_is_not_half_known));
}
