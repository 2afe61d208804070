/* SPDX-License-Identifier: Apache-2.0 */
#include "failing.h"
#include "node/records/roster.h"
#include "share/ledger_check.h"
#include "wire/annotation.h"
#include "wire/node.h"

static Roster roster;
static char told[256]; /* "uid+" for each pod that was added or changed, "uid-" for each deleted one */

static void on_pod(void *userdata, Str uid, RosterPod *pod) {
        size_t n = strlen(told);

        (void) snprintf(told + n, sizeof told - n, "%.*s%c", STR_ARG(uid), pod ? '+' : '-');
}

static void begin(void) {
        ASSERT_OK(roster_init(&roster, "n"));
        roster.on_pod = on_pod;
        told[0] = '\0';
}

static void end(void) {
        ASSERT_TRUE(ledger_check(roster.ledger));
        roster_done(&roster);
}

static void node(const char *mode) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Node object;
        char text[512];

        (void) snprintf(
                text, sizeof text,
                "{\"metadata\":{\"name\":\"n\",\"labels\":{\"ack.node.gpu.schedule\":\"%s\"},\"annotations\":"
                "{"
                "\"aliquot.dev/"
                "cards\":\"[{\\\"index\\\":0,\\\"units\\\":15},{\\\"index\\\":1,\\\"units\\\":15}]\"}}}",
                mode);
        ASSERT_OK(node_decode(str_from(text), &arena, &object, NULL));
        ASSERT_OK(roster_node(&roster, &object, NULL));
}

#define LIMITS(mem) "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" mem "\"}}"
#define POD(name, uid, more, annotations, containers)                                                        \
        "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"d\",\"uid\":\"" uid "\"" more                  \
        ",\"annotations\":{" annotations "}},\"spec\":{\"nodeName\":\"n\"," containers "}}"
#define MAIN(mem) "\"containers\":[{\"name\":\"c\"," LIMITS(mem) "}]"
#define ON_CARD_1 "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"1\\\":4}}\""

static void put(ReflectorEvent event, const char *pod) {
        ASSERT_OK(roster_pod(&roster, event, str_from(pod)));
}

static RosterPod *find(const char *uid) {
        return roster_find(&roster, str_from(uid));
}

static void pods_are_added_and_deleted(void) {
        CardShare shares[CARD_INDEX_MAX + 1];
        RosterPod *pod;

        begin();
        node("share");
        put(REFLECTOR_ADDED, POD("a", "u1", "", ON_CARD_1, MAIN("4")));
        pod = find("u1");
        ASSERT_TRUE(pod && pod->placed && !pod->assigned && pod->n_containers == 1);
        ASSERT_INT(roster_shares(pod, &pod->containers[0], DEVICE_MEM, shares), 1);
        ASSERT_INT(shares[0].card, 1);
        ASSERT_INT(shares[0].count, 4);
        ASSERT_INT(roster_pod_units(pod), 4);
        put(REFLECTOR_DELETED, POD("a", "u1", "", ON_CARD_1, MAIN("4")));
        ASSERT_TRUE(find("u1") == NULL);
        ASSERT_TEXT(told, "u1+u1-");
        end();
}

/* A user with the right to patch a pod can change its annotations; a Binding is made once. */
static void a_placement_is_kept(void) {
        static const char *const forged[] = {
                POD("a", "u1", "",
                    "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":4}}\"", MAIN("4")),
                POD("a", "u1", "", "\"scheduler.framework.gpushare.allocation\":\"{\"", MAIN("4")),
                POD("a", "u1", "", "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"", MAIN("4")),
                POD("a", "u1", "", "", MAIN("4")),
        };
        CardShare shares[CARD_INDEX_MAX + 1];

        begin();
        node("share");
        put(REFLECTOR_ADDED,
            POD("a", "u1", "", ON_CARD_1 ",\"scheduler.framework.gpushare.assume-time\":\"7\"", MAIN("4")));
        for (size_t i = 0; i < ELEMENTSOF(forged); i++) {
                RosterPod *pod;

                put(REFLECTOR_MODIFIED, forged[i]);
                pod = find("u1");
                ASSERT_TRUE(pod->placed);
                ASSERT_INT(roster_shares(pod, &pod->containers[0], DEVICE_MEM, shares), 1);
                ASSERT_INT(shares[0].card, 1);
                ASSERT_INT(pod->assume, 7);
        }
        ASSERT_TRUE(find("u1")->keys[0] == NULL);
        end();
}

/* The label says on how many cards a pod is placed, which it is already. */
static void a_request_is_kept(void) {
        static const char *const labels[] = {"3", "2", "many", ""};
        CardShare shares[CARD_INDEX_MAX + 1];

        begin();
        node("share");
        put(REFLECTOR_ADDED, POD("a", "u1", "", ON_CARD_1, MAIN("4")));
        for (size_t i = 0; i < ELEMENTSOF(labels); i++) {
                RosterPod *pod;
                char text[1024];

                (void) snprintf(text, sizeof text,
                                POD("a", "u1", ",\"labels\":{\"aliyun.com/gpu-count\":\"%s\"}", ON_CARD_1,
                                    MAIN("4") "},\"status\":{\"containerStatuses\":[{\"name\":\"c\","
                                              "\"containerID\":\"containerd://%zu\"}]"),
                                labels[i], i);
                put(REFLECTOR_MODIFIED, text);
                pod = find("u1");
                ASSERT_TRUE(!pod->refusal && pod->n_containers == 1);
                ASSERT_INT(pod->request.cards, 1);
                ASSERT_INT(roster_shares(pod, &pod->containers[0], DEVICE_MEM, shares), 1);
                ASSERT_INT(shares[0].count, 4);
                (void) snprintf(text, sizeof text, "%zu", i);
                ASSERT_TEXT(roster_container_name(pod, text), "c");
        }
        end();
}

/* The agent was started again after the label had changed. */
static void a_request_goes_by_the_placement(void) {
#define ON_TWO "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":2,\\\"1\\\":2}}\""
        static const struct {
                const char *label;
                bool two; /* it is placed on two cards */
        } cases[] = {{"3", false}, {"2", false}, {"many", false}, {"1", true}, {"x", true}, {"2", true}};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                CardShare shares[CARD_INDEX_MAX + 1];
                unsigned cards = cases[i].two ? 2 : 1;
                const RosterPod *pod;
                char text[1024];

                (void) snprintf(
                        text, sizeof text,
                        POD("a", "u1", ",\"labels\":{\"aliyun.com/gpu-count\":\"%s\"}", "%s", MAIN("4")),
                        cases[i].label, cases[i].two ? ON_TWO : ON_CARD_1);
                begin();
                node("share");
                put(REFLECTOR_ADDED, text);
                pod = find("u1");
                ASSERT_TRUE(pod->placed && !pod->refusal && pod->n_containers == 1);
                ASSERT_INT(pod->request.cards, cards);
                ASSERT_INT(pod->containers[0].mem, 4 / cards);
                ASSERT_INT(roster_shares(pod, &pod->containers[0], DEVICE_MEM, shares), cards);
                end();
        }
        /* without a placement the label counts */
        begin();
        node("share");
        put(REFLECTOR_ADDED,
            POD("a", "u1", ",\"labels\":{\"aliyun.com/gpu-count\":\"many\"}", "", MAIN("4")));
        ASSERT_TRUE(!find("u1")->placed && find("u1")->refusal);
        end();
}

/* A GET may be answered before a change that the watch brings sooner than that answer. */
static void an_older_object_changes_nothing(void) {
#define VERSION(version, size)                                                                               \
        POD("a", "u1", ",\"resourceVersion\":\"" version "\"",                                               \
            ON_CARD_1 ",\"aliquot.dev/gpu-mem\":\"" size "\"", MAIN("4"))
        begin();
        node("cgpu");
        put(REFLECTOR_ADDED, VERSION("7", "3"));
        put(REFLECTOR_MODIFIED, VERSION("6", "2"));
        ASSERT_TEXT(find("u1")->resize[0], "3");
        put(REFLECTOR_MODIFIED, VERSION("8", "1"));
        ASSERT_TEXT(find("u1")->resize[0], "1");
        put(REFLECTOR_MODIFIED, VERSION("x", "2"));
        ASSERT_TEXT(find("u1")->resize[0], "2");
        put(REFLECTOR_MODIFIED, VERSION("8", "3"));
        roster_list_begin(&roster);
        put(REFLECTOR_ADDED, VERSION("5", "1")); /* of a server that was restored */
        roster_list_end(&roster);
        ASSERT_TEXT(find("u1")->resize[0], "1");
        end();
}

static void pods_without_requests_are_known_by_name(void) {
        begin();
        put(REFLECTOR_ADDED, POD("web", "u2", "", "", "\"containers\":[{\"name\":\"c\"}]"));
        ASSERT_TRUE(find("u2") && find("u2")->n_containers == 0 && find("u2")->grant == NULL);
        ASSERT_TRUE(roster_find_name(&roster, STR("d"), STR("web")) == find("u2"));
        ASSERT_TRUE(roster_find_name(&roster, STR("d"), STR("x")) == NULL);
        end();
}

static void a_list_drops_missing_pods(void) {
        begin();
        roster_list_begin(&roster);
        put(REFLECTOR_LISTED, POD("a", "u1", "", "", MAIN("4")));
        put(REFLECTOR_LISTED, POD("b", "u2", "", "", MAIN("4")));
        roster_list_end(&roster);
        roster_list_begin(&roster);
        put(REFLECTOR_LISTED, POD("b", "u2", "", "", MAIN("4")));
        roster_list_end(&roster);
        ASSERT_TRUE(find("u1") == NULL && find("u2") != NULL);
        /* The unreadable object may have been u2, so no pod is dropped. */
        roster_list_begin(&roster);
        put(REFLECTOR_LISTED, "{\"metadata\":{\"name\":7}}");
        roster_list_end(&roster);
        ASSERT_TRUE(find("u2") != NULL);
        ASSERT_INT(roster.malformed, 1);
        end();
}

/* The reply to a GET may arrive after the watch has reported the deletion. */
/* A pod of the list that does not fit into memory is not gone. */
static void a_list_without_memory_drops_no_pod(void) {
        static const char pod[] = POD("a", "u1", "", ON_CARD_1, MAIN("4"));
        unsigned failed = 0;

        begin();
        node("share");
        put(REFLECTOR_ADDED, pod);
        for (unsigned n = 1;; n++) {
                int r;

                roster_list_begin(&roster);
                countdown = n;
                r = roster_pod(&roster, REFLECTOR_MODIFIED, str_from(pod));
                countdown = 0;
                roster_list_end(&roster);
                if (r == 0)
                        break;
                failed++;
                ASSERT_TRUE(find("u1") || roster.incomplete);
                put(REFLECTOR_ADDED, pod); /* the next list has it */
                ASSERT_TRUE(find("u1") && find("u1")->placed);
        }
        ASSERT_TRUE(failed > 3);
        end();
}

static void deleted_pods_stay_deleted(void) {
        static char text[512];

        begin();
        put(REFLECTOR_ADDED, POD("a", "a", "", "", MAIN("4")));
        put(REFLECTOR_DELETED, POD("a", "a", "", "", MAIN("4")));
        put(REFLECTOR_MODIFIED, POD("a", "a", "", "", MAIN("4")));
        ASSERT_TRUE(find("a") == NULL);
        put(REFLECTOR_ADDED, POD("a", "a2", "", "", MAIN("4"))); /* another pod of that name */
        ASSERT_TRUE(find("a2") != NULL);
        for (int i = 0; i < 2 * ROSTER_TOMBSTONES; i++) {
                (void) snprintf(text, sizeof text, POD("g%d", "g%d", "", "", MAIN("4")), i, i);
                put(REFLECTOR_ADDED, text);
                put(REFLECTOR_DELETED, text);
        }
        put(REFLECTOR_MODIFIED, text);
        (void) snprintf(text, sizeof text, "g%d", 2 * ROSTER_TOMBSTONES - 1);
        ASSERT_TRUE(find(text) == NULL);
        ASSERT_TRUE(find("a2") != NULL);
        end();
}

static void pods_of_other_nodes_are_ignored(void) {
        begin();
        put(REFLECTOR_ADDED, "{\"metadata\":{\"name\":\"x\",\"namespace\":\"d\",\"uid\":\"u9\"},\"spec\":{"
                             "\"nodeName\":\"m\"}}");
        ASSERT_TRUE(find("u9") == NULL);
        put(REFLECTOR_ADDED, POD("x", "../u", "", "", MAIN("1"))); /* a UID is used as a file name */
        ASSERT_INT(roster.malformed, 1);
        end();
}

static void static_pods_go_by_the_kubelets_uid(void) {
        begin();
        put(REFLECTOR_ADDED,
            POD("s-n", "mirror1", "", "\"kubernetes.io/config.mirror\":\"hash\"", MAIN("4")));
        ASSERT_TRUE(find("hash") && find("mirror1") == NULL);
        put(REFLECTOR_ADDED,
            POD("s-n", "mirror2", "", "\"kubernetes.io/config.mirror\":\"hash\"", MAIN("4")));
        /* The deletion of the old mirror arrives late: the pod still exists. */
        put(REFLECTOR_DELETED,
            POD("s-n", "mirror1", "", "\"kubernetes.io/config.mirror\":\"hash\"", MAIN("4")));
        ASSERT_TRUE(find("hash") != NULL);
        ASSERT_TEXT(find("hash")->api_uid, "mirror2");
        end();
}

static void the_nodes_placement_stays_until_an_object_shows_it(void) {
        Slice slice = {.card = 1, .mem = 4};

        begin();
        node("share");
        put(REFLECTOR_ADDED, POD("a", "u1", "", "", MAIN("4")));
        ASSERT_FALSE(find("u1")->placed);
        ASSERT_OK(roster_place(&roster, find("u1"), &slice, 1));
        put(REFLECTOR_MODIFIED, POD("a", "u1", "", "", MAIN("4"))); /* an older version of it */
        ASSERT_TRUE(find("u1")->placed);
        ASSERT_INT(grant_mem_on_card(find("u1")->grant, 1), 4);
        put(REFLECTOR_MODIFIED, POD("a", "u1", "", ON_CARD_1, MAIN("4")));
        ASSERT_INT(grant_mem_on_card(find("u1")->grant, 1), 4);
        end();
}

static void a_refused_pod_has_its_reason(void) {
        begin();
        put(REFLECTOR_ADDED, POD("a", "u1", "", "",
                                 "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/"
                                 "gpu-mem\":\"1\",\"aliyun.com/gpu-core.percentage\":\"33\"}}}]"));
        ASSERT_TRUE(find("u1")->refusal != NULL);
        ASSERT_CONTAINS(find("u1")->refusal, "33");
        end();
}

static void shares_follow_the_cards(void) {
        CardShare shares[CARD_INDEX_MAX + 1];
        RosterPod *pod;

        begin();
        node("share");
        put(REFLECTOR_ADDED,
            POD("a", "u1", ",\"labels\":{\"aliyun.com/gpu-count\":\"2\"}",
                "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"1\\\":3,\\\"0\\\":3}}\"",
                MAIN("6")));
        pod = find("u1");
        ASSERT_INT(roster_shares(pod, &pod->containers[0], DEVICE_MEM, shares), 2);
        ASSERT_INT(shares[0].card, 0);
        ASSERT_INT(shares[0].count, 3);
        ASSERT_INT(shares[1].card, 1);
        ASSERT_INT(roster_asks(pod, &pod->containers[0], DEVICE_MEM), 6);
        /* The annotation has other amounts than the limits, and the kubelet counts by the
         * limits. */
        put(REFLECTOR_ADDED,
            POD("b", "u2", "", "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"1\\\":2}}\"",
                MAIN("6")));
        pod = find("u2");
        ASSERT_INT(roster_shares(pod, &pod->containers[0], DEVICE_MEM, shares), 1);
        ASSERT_INT(shares[0].count, 6);
        end();
}

static void other_devices_are_seen(void) {
        begin();
        put(REFLECTOR_ADDED, POD("a", "u1", "", "",
                                 "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"cpu\":1,"
                                 "\"hugepages-2Mi\":\"4Mi\",\"aliyun.com/gpu-mem\":1}}}]"));
        put(REFLECTOR_ADDED, POD("b", "u2", "", "",
                                 "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"rdma/"
                                 "hca\":1,\"aliyun.com/gpu-mem\":1}}}]"));
        ASSERT_FALSE(find("u1")->other_devices);
        ASSERT_TRUE(find("u2")->other_devices);
        end();
}

static void containers_are_known_by_their_ids(void) {
        static const char status[] =
                "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"u1\"},\"spec\":{\"nodeName\":"
                "\"n\"," MAIN("4") "},\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"containerID\":"
                                   "\"containerd://0a\"},"
                                   "{\"name\":\"side\",\"containerID\":\"0b\"},{\"name\":\"late\","
                                   "\"containerID\":\"\"}],"
                                   "\"initContainerStatuses\":[{\"name\":\"ini\",\"containerID\":\"cri-o://"
                                   "0c\"}]}}";
        RosterPod *pod;

        begin();
        put(REFLECTOR_ADDED, status);
        pod = find("u1");
        ASSERT_TEXT(roster_container_name(pod, "0a"), "c");
        ASSERT_TEXT(roster_container_name(pod, "0c"), "ini");
        ASSERT_TRUE(!roster_container_name(pod, "0b")); /* without a runtime's name */
        ASSERT_TRUE(!roster_container_name(pod, "") && !roster_container_name(pod, "containerd://0a"));
        put(REFLECTOR_MODIFIED, POD("a", "u1", "", "", MAIN("4")));
        ASSERT_TRUE(!roster_container_name(find("u1"), "0a"));
        end();
}

static const char *over_gate_of(const char *uid, size_t i) {
        return find(uid)->containers[i].gate_cover;
}

static void mounts_over_the_gate_are_kept(void) {
        begin();
        node("cgpu");
        put(REFLECTOR_ADDED, POD("a", "u1", "", "",
                                 "\"initContainers\":[{\"name\":\"i\"," LIMITS(
                                         "4") ",\"volumeMounts\":[{\"mountPath\":\"/etc/config\"}]}],"
                                              "\"containers\":[{\"name\":\"c\"," LIMITS(
                                                      "4") ",\"volumeMounts\":[{\"mountPath\":\"/data\"},"
                                                           "{\"mountPath\":\"/etc/\"}]}]"));
        ASSERT_TRUE(over_gate_of("u1", 0) == NULL);
        ASSERT_TEXT(over_gate_of("u1", 1), "volumeMounts[1].mountPath: \"/etc/\" " GATE_COVER_RULE);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(pods_are_added_and_deleted), TEST(a_placement_is_kept), TEST(a_request_is_kept),
                         TEST(a_request_goes_by_the_placement), TEST(an_older_object_changes_nothing),
                         TEST(pods_without_requests_are_known_by_name), TEST(a_list_drops_missing_pods),
                         TEST(a_list_without_memory_drops_no_pod), TEST(deleted_pods_stay_deleted),
                         TEST(pods_of_other_nodes_are_ignored), TEST(static_pods_go_by_the_kubelets_uid),
                         TEST(the_nodes_placement_stays_until_an_object_shows_it),
                         TEST(a_refused_pod_has_its_reason), TEST(shares_follow_the_cards),
                         TEST(other_devices_are_seen), TEST(mounts_over_the_gate_are_kept),
                         TEST(containers_are_known_by_their_ids));
}
