/* SPDX-License-Identifier: Apache-2.0 */

/* POST /preempt: bodies as kube-scheduler sends them. The victims free a card, and not only the sum
 * of the node. */

#include "fixture.h"
#include "scheduler/extender.h"

typedef struct Fixture {
        View *view;
        Metrics metrics;
        SchedulerContext context;
        Extender extender;
        Buf out;
} Fixture;

static Fixture setup(unsigned mem, unsigned cards) {
        Fixture f = {.out = BUF_NULL};

        ASSERT_OK(view_new(&f.view));
        view_list_begin(f.view, VIEW_NODES);
        feed(f.view, VIEW_NODES, REFLECTOR_LISTED, node_json("n1", "cgpu", mem, cards, ""));
        view_list_end(f.view, VIEW_NODES);
        view_list_begin(f.view, VIEW_PODS);
        view_list_end(f.view, VIEW_PODS);
        return f;
}

static void teardown(Fixture *f) {
        buf_done(&f->out);
        view_free(f->view);
}

/* A bound pod with mem units of one card. */
static void hold(Fixture *f, const char *name, unsigned card, unsigned mem, PodText p) {
        char allocation[64], text[16];

        (void) snprintf(allocation, sizeof allocation, "{\\\"0\\\":{\\\"%u\\\":%u}}", card, mem);
        (void) snprintf(text, sizeof text, "%u", mem);
        p.name = name;
        p.node = "n1";
        p.mem = text;
        p.allocation = allocation;
        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, pod_json_(p));
}

/* proposed: UIDs without "uid-", separated by blanks. Returns the answer for n1, "" when it was
 * left out. */
static const char *preempt(Fixture *f, PodText pod, const char *proposed) {
        static const char head[] = "{\"NodeNameToMetaVictims\":{\"n1\":";
        char body[8192], uids[1024] = "";
        HttpRequest request = {
                .method = "POST", .path = "/gpushare-scheduler/preempt", .content_type = "application/json"};
        char names[256], *before = sums_of(f->view->ledger), *after, *rest = names;
        const char *type, *allow;

        (void) snprintf(names, sizeof names, "%s", proposed);
        for (char *name; (name = strsep(&rest, " "));)
                (void) snprintf(uids + strlen(uids), sizeof uids - strlen(uids), "%s{\"UID\":\"uid-%s\"}",
                                *uids ? "," : "", name);
        (void) snprintf(
                body, sizeof body,
                "{\"Pod\":%s,\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[%s],"
                "\"NumPDBViolations\":0}}}",
                pod_json_(pod), uids);
        request.body = str_from(body);
        f->extender.context = &f->context;
        f->context.view = f->view;
        f->context.metrics = &f->metrics;
        buf_clear(&f->out);
        ASSERT_INT(extender_answer(&f->extender, &request, &f->out, &type, &allow), 200);
        after = sums_of(f->view->ledger);
        ASSERT_TEXT(before, after);
        free(before);
        free(after);
        if (strcmp(f->out.data, "{\"NodeNameToMetaVictims\":{}}") == 0)
                return "";
        ASSERT_TRUE(str_has_prefix(buf_str(&f->out), str_from(head)));
        f->out.data[f->out.len - 2] = '\0';
        return f->out.data + sizeof head - 1;
}

#define ONE(a)    "{\"Pods\":[{\"UID\":\"uid-" a "\"}],\"NumPDBViolations\":0}"
#define TWO(a, b) "{\"Pods\":[{\"UID\":\"uid-" a "\"},{\"UID\":\"uid-" b "\"}],\"NumPDBViolations\":0}"
#define POD(...)  ((PodText){__VA_ARGS__})
#define HIGH(...) POD(.name = "high", .uid = "high", .priority = 1000, __VA_ARGS__)

/* Four full cards, each with three pods of a third. kube-scheduler's two lie on different cards. */
static void two_victims_of_one_card(void) {
        Fixture f = setup(504, 4);
        char name[16];

        for (unsigned card = 0; card < 4; card++)
                for (unsigned i = 0; i < 3; i++) {
                        (void) snprintf(name, sizeof name, "p%u%u", card, i);
                        hold(&f, name, card, 42,
                             POD(.priority = 10, .start = card == 2 && i > 0 ? "2026-11-21T11:00:00Z"
                                                                             : "2026-11-21T10:00:00Z"));
                }
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "84"), "p00 p10"), TWO("p21", "p22"));
        /* Fits as it is. */
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "84"), "p00 p01"), TWO("p00", "p01"));
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "42"), "p10"), ONE("p10"));
        teardown(&f);
}

static void only_pods_of_lower_priority(void) {
        Fixture f = setup(30, 2);

        hold(&f, "same", 0, 15, POD(.priority = 1000));
        hold(&f, "above", 1, 10, POD(.priority = 2000));
        hold(&f, "low", 1, 5, POD(.priority = 5));
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "low"), "");
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "5"), "low"), ONE("low"));
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "5", .spec = "\"preemptionPolicy\":\"Never\","), "low"), "");
        teardown(&f);
}

static void the_lowest_highest_priority_goes_before_the_number(void) {
        Fixture f = setup(30, 2);

        hold(&f, "mid", 0, 15, POD(.priority = 50));
        hold(&f, "a", 1, 8, POD(.priority = 10));
        hold(&f, "b", 1, 7, POD(.priority = 20));
        hold(&f, "web", 0, 0, POD(.priority = 1));
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "a"), TWO("b", "a"));
        teardown(&f);
}

static void budgets_come_first(void) {
        Fixture f = setup(30, 2);

        hold(&f, "a", 0, 15, POD(.priority = 10, .labels = "\"app\":\"a\""));
        hold(&f, "b", 1, 8, POD(.priority = 50, .labels = "\"app\":\"b\""));
        hold(&f, "c", 1, 7, POD(.priority = 50));
        feed(f.view, VIEW_BUDGETS, REFLECTOR_ADDED,
             "{\"metadata\":{\"namespace\":\"default\",\"name\":\"a\"},\"spec\":{\"selector\":{"
             "\"matchLabels\":{"
             "\"app\":\"a\"}}},\"status\":{\"disruptionsAllowed\":0}}");
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "c"), TWO("b", "c"));
        /* With one disruption allowed the pod of the lower priority goes. */
        feed(f.view, VIEW_BUDGETS, REFLECTOR_MODIFIED,
             "{\"metadata\":{\"namespace\":\"default\",\"name\":\"a\"},\"spec\":{\"selector\":{"
             "\"matchExpressions\":["
             "{\"key\":\"app\",\"operator\":\"NotIn\",\"values\":[\"b\"]}]}},\"status\":{"
             "\"disruptionsAllowed\":1}}");
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "b"), ONE("a"));
        teardown(&f);
}

/* A proposed victim is left out only if those that are added outweigh it. */
static void proposed_victims_are_kept_unless_outweighed(void) {
        static const struct {
                PodText proposed;
                const char *answer;
        } cases[] = {
                {{.requests = "\"cpu\":\"1\",\"aliyun.com/gpu-mem\":\"8\""}, TWO("b", "a")},
                {{.requests = "\"cpu\":\"1500m\""},
                 "{\"Pods\":[{\"UID\":\"uid-x\"},{\"UID\":\"uid-b\"},{\"UID\":\"uid-a\"}],"
                 "\"NumPDBViolations\":0}"},
                {{.requests = "\"memory\":\"1\""},
                 "{\"Pods\":[{\"UID\":\"uid-x\"},{\"UID\":\"uid-b\"},{\"UID\":\"uid-a\"}],"
                 "\"NumPDBViolations\":0}"},
                {{.spec = "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"v\"}}],"},
                 "{\"Pods\":[{\"UID\":\"uid-x\"},{\"UID\":\"uid-b\"},{\"UID\":\"uid-a\"}],"
                 "\"NumPDBViolations\":0}"},
                {{.spec = "\"affinity\":{\"podAntiAffinity\":{}},"},
                 "{\"Pods\":[{\"UID\":\"uid-x\"},{\"UID\":\"uid-b\"},{\"UID\":\"uid-a\"}],"
                 "\"NumPDBViolations\":0}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                Fixture f = setup(30, 2);
                PodText x = cases[i].proposed;

                x.priority = 30;
                hold(&f, "x", 0, 8, x);
                hold(&f, "keep", 0, 7, POD(.priority = 2000));
                hold(&f, "a", 1, 8,
                     POD(.priority = 10, .requests = "\"cpu\":\"1\",\"aliyun.com/gpu-mem\":\"8\""));
                hold(&f, "b", 1, 7, POD(.priority = 20, .requests = "\"cpu\":\"400m\""));
                ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "x"), cases[i].answer);
                /* kube-scheduler may have proposed a victim because of constraints of the pod. */
                if (i == 0)
                        ASSERT_CONTAINS(
                                preempt(&f, HIGH(.mem = "15", .spec = "\"topologySpreadConstraints\":[{}],"),
                                        "x"),
                                "uid-x");
                teardown(&f);
        }
}

/* The requests of a victim without a slice are not known: it stays. */
static void victims_without_slices_stay(void) {
        Fixture f = setup(15, 1);

        hold(&f, "a", 0, 15, POD(.priority = 10));
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "web"), TWO("web", "a"));
        teardown(&f);
}

static void terminating_and_nominated_pods_count(void) {
        Fixture f = setup(30, 2);

        hold(&f, "going", 0, 15, POD(.priority = 10, .terminating = true));
        hold(&f, "a", 1, 15, POD(.priority = 20));
        /* Card 0 becomes free without eviction: the proposal is enough. */
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "web"), ONE("web"));
        /* Another pod of the same priority is nominated for the card. */
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json(.name = "first", .mem = "15", .priority = 1000, .nominated = "n1"));
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "web"), TWO("web", "a"));
        /* That pod is not nominated any more. */
        feed(f.view, VIEW_PODS, REFLECTOR_MODIFIED, pod_json(.name = "first", .mem = "15", .priority = 1000));
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "web"), ONE("web"));
        teardown(&f);
}

static void several_cards_at_once(void) {
        Fixture f = setup(45, 3);

        hold(&f, "a", 0, 10, POD(.priority = 10));
        hold(&f, "b", 1, 10, POD(.priority = 30));
        hold(&f, "c", 2, 10, POD(.priority = 20));
        ASSERT_TEXT(
                preempt(&f, HIGH(.mem = "20", .spec = "", .labels = "\"aliyun.com/gpu-count\":\"2\""), "b"),
                TWO("c", "a"));
        teardown(&f);
}

/* A victim that is named twice counts once, in the answer and in the comparison. */
static void victims_are_counted_once(void) {
        Fixture f = setup(30, 2);

        hold(&f, "x", 0, 8, POD(.priority = 30, .requests = "\"cpu\":\"2\""));
        hold(&f, "keep", 0, 7, POD(.priority = 2000));
        hold(&f, "a", 1, 15, POD(.priority = 10, .requests = "\"cpu\":\"3\""));
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "8"), "x x"), ONE("x"));
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "x x"), ONE("a"));
        ASSERT_TEXT(preempt(&f, POD(.name = "web", .uid = "web"), "x a x"), TWO("x", "a"));
        teardown(&f);
}

/* A static pod goes on running when its mirror is deleted. One that kube-scheduler proposes stays
 * in the answer. */
static void static_pods_are_not_added(void) {
        Fixture f = setup(30, 2);

        hold(&f, "static", 0, 15,
             POD(.priority = 1, .annotations = ",\"kubernetes.io/config.mirror\":\"1\""));
        hold(&f, "a", 1, 15, POD(.priority = 10));
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "a"), ONE("a"));
        hold(&f, "web", 0, 0, POD(.priority = 1));
        ASSERT_TEXT(preempt(&f, HIGH(.mem = "15"), "web"), TWO("web", "a"));
        teardown(&f);
}

int main(void) {
        return TEST_MAIN(TEST(two_victims_of_one_card), TEST(only_pods_of_lower_priority),
                         TEST(the_lowest_highest_priority_goes_before_the_number), TEST(budgets_come_first),
                         TEST(proposed_victims_are_kept_unless_outweighed), TEST(victims_without_slices_stay),
                         TEST(terminating_and_nominated_pods_count), TEST(victims_are_counted_once),
                         TEST(static_pods_are_not_added), TEST(several_cards_at_once));
}
