/* SPDX-License-Identifier: Apache-2.0 */

/* The view fed by hand: what lists, watches and their failures make of the ledger. */

#include <errno.h>

#include "fixture.h"
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
        view_list_begin(v, VIEW_PODS); /* a re-list corrects, it does not blind */
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
        /* Terminating, and terminal with a container that runs: it holds what it held. */
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
        feed(v, VIEW_PODS, REFLECTOR_ADDED, bound); /* told twice, held once */
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
        /* The node chose. */
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

static void two_pods_that_claim_the_same_slice_both_count(void) {
        _cleanup_(view_freep) View *v = one_node();

        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("a", .mem = "10", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":10}}"));
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("b", .mem = "10", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":10}}"));
        ASSERT_USED(v, "n1", 0, 20); /* of 15: they run */
        feed(v, VIEW_PODS, REFLECTOR_DELETED, pod_json("a", .node = "n1"));
        ASSERT_USED(v, "n1", 0, 10);
}

static void contradicting_annotations_are_counted_as_they_are(void) {
        _cleanup_(view_freep) View *v = one_node();

        /* More than the card has, a card that does not exist, and one that does not decode: pending. */
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("a", .mem = "4", .node = "n1",
                      .allocation = "{\\\"0\\\":{\\\"0\\\":400},\\\"1\\\":{\\\"7\\\":1}}"));
        ASSERT_USED(v, "n1", 0, 400);
        ASSERT_USED(v, "n1", 2, 1);
        ASSERT_INT(card_of(v, "n1", 2)->index, 7);
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":[1]}"));
        ASSERT_INT(ledger_node_pending(ledger_node_find(v->ledger, STR("n1"))), 4);
        ASSERT_USED(v, "n1", 0, 0);
}

static void a_list_drops_what_did_not_come_by(void) {
        _cleanup_(view_freep) View *v = one_node();

        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("a", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":4}}"));
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("b", .mem = "3", .node = "n1", .allocation = "{\\\"0\\\":{\\\"1\\\":3}}"));
        feed(v, VIEW_PODS, REFLECTOR_ADDED, pod_json("c", .mem = "3"));
        /* A list that breaks off changes nothing by itself; the next one does. */
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
        ASSERT_USED(v, "n1", 0, 4); /* its pod exists still */
        feed(v, VIEW_NODES, REFLECTOR_ADDED, node_json("n1", "cgpu", 30, 2, ""));
        ASSERT_USED(v, "n1", 0, 4);
        view_list_begin(v, VIEW_NODES);
        feed(v, VIEW_NODES, REFLECTOR_LISTED, node_json("n2", "share", 8, 1, ""));
        view_list_end(v, VIEW_NODES);
        ASSERT_INT(directory_size(v->directory), 1);
        ASSERT_TRUE(directory_find(v->directory, STR("n2")));
}

static void a_node_that_contradicts_itself_stays_as_it_was(void) {
        _cleanup_(view_freep) View *v = one_node();

        feed(v, VIEW_NODES, REFLECTOR_MODIFIED,
             node_json("n1", "cgpu", 30, 2, ",\"annotations\":{\"aliquot.dev/cards\":\"[{]\"}"));
        ASSERT_INT(card_of(v, "n1", 0)->units, 15);
        ASSERT_INT(v->stats.malformed[VIEW_NODES], 1);
        /* One such node does not keep the others from being dropped. */
        view_list_begin(v, VIEW_NODES);
        feed(v, VIEW_NODES, REFLECTOR_LISTED,
             node_json("n2", "cgpu", 30, 2, ",\"annotations\":{\"aliquot.dev/cards\":\"[{]\"}"));
        view_list_end(v, VIEW_NODES);
        ASSERT_INT(directory_size(v->directory), 1);
}

static void told(void *userdata, const Node *node, ShareMode mode) {
        ++*(unsigned *) userdata;
        ASSERT_STR(node->meta.name, STR("n9"));
        ASSERT_INT(mode, SHARE_MODE_MPS);
}

static void unserved_modes_are_told_once(void) {
        _cleanup_(view_freep) View *v = one_node();
        unsigned n = 0;

        v->on_unserved_mode = told;
        v->userdata = &n;
        feed(v, VIEW_NODES, REFLECTOR_ADDED, node_json("n9", "mps", 0, 0, ""));
        feed(v, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n9", "mps", 0, 0, ""));
        ASSERT_INT(n, 1);
        view_forget_told(v);
        feed(v, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n9", "mps", 0, 0, ""));
        ASSERT_INT(n, 2);
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
        ASSERT_OK(grant_new(v->ledger, &spec, &pod->grant)); /* as the binder leaves it after a 2xx */
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED, unbound);
        ASSERT_USED(v, "n1", 0, 4);
        /* A list begun after the bind has the last word. */
        view_list_begin(v, VIEW_PODS);
        feed(v, VIEW_PODS, REFLECTOR_LISTED, unbound);
        view_list_end(v, VIEW_PODS);
        ASSERT_USED(v, "n1", 0, 0);
        ASSERT_TRUE(view_pod_find(v, STR("uid-a"))->request != NULL);
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
        /* What both fenced stays fenced when one of them goes. */
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_DELETED, CONFIGMAP("unhealthy-gpu-n1", "\"gpus\":\"0, 1\""));
        ASSERT_FALSE(card_of(v, "n1", 0)->healthy);
        ASSERT_TRUE(card_of(v, "n1", 1)->healthy);
        /* Malformed: as it was. */
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_MODIFIED, CONFIGMAP("n1-device-status", "\"devices\":\"{{\""));
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_MODIFIED,
             CONFIGMAP("n1-device-status", "\"devices\":\"- healthy: false\""));
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_MODIFIED, CONFIGMAP("n1-device-status", "\"gpus\":\"0,x\""));
        ASSERT_INT(v->stats.malformed[VIEW_CONFIGMAPS], 3);
        ASSERT_FALSE(card_of(v, "n1", 0)->healthy);
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_MODIFIED,
             CONFIGMAP("n1-device-status", "\"devices\":\"- {deviceId: 0, healthy: true}\""));
        ASSERT_TRUE(card_of(v, "n1", 0)->healthy);
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_ADDED, CONFIGMAP("unhealthy-gpu-n1", "\"gpus\":\"1\""));
        feed(v, VIEW_CONFIGMAPS, REFLECTOR_ADDED, CONFIGMAP("coredns", "\"gpus\":\"1\""));
        view_list_begin(v, VIEW_CONFIGMAPS);
        view_list_end(v, VIEW_CONFIGMAPS);
        ASSERT_TRUE(card_of(v, "n1", 1)->healthy);
}

/* Random events, and after each a second view that has seen nothing but a list of what is there now. */
typedef struct Model {
        bool exists[12];
        unsigned state[12]; /* 0 waiting, 1 bound, 2 bound and pending, 3 ended */
        unsigned card[12], mem[12];
} Model;

static const char *model_pod(const Model *m, unsigned i) {
        static char name[16], mem[16], allocation[64];

        (void) snprintf(name, sizeof name, "p%u", i);
        (void) snprintf(mem, sizeof mem, "%u", m->mem[i]);
        (void) snprintf(allocation, sizeof allocation, "{\\\"0\\\":{\\\"%u\\\":%u}}", m->card[i], m->mem[i]);
        return pod_json(name, .mem = mem, .node = m->state[i] ? i % 2 ? "n1" : "n2" : NULL,
                        .allocation = m->state[i] == 1 || m->state[i] == 3 ? allocation : NULL,
                        .phase = m->state[i] == 3 ? "Succeeded" : "Running",
                        .state = m->state[i] == 3 ? "terminated" : "running");
}

static void assert_same_as_restarted(const View *v, const Model *m) {
        _cleanup_(view_freep) View *fresh = view_with(
                (const char *[]){node_json("n1", "cgpu", 30, 2, ""), node_json("n2", "cgpu", 60, 4, "")}, 2);
        _cleanup_free_ char *ours = sums_of(v->ledger), *theirs = NULL;

        view_list_begin(fresh, VIEW_PODS);
        for (unsigned i = 0; i < ELEMENTSOF(m->exists); i++)
                if (m->exists[i])
                        feed(fresh, VIEW_PODS, REFLECTOR_LISTED, model_pod(m, i));
        view_list_end(fresh, VIEW_PODS);
        theirs = sums_of(fresh->ledger);
        ASSERT_TEXT(ours, theirs);
}

static void a_restart_arrives_at_the_same_sums(void) {
        _cleanup_(view_freep) View *v = view_with(
                (const char *[]){node_json("n1", "cgpu", 30, 2, ""), node_json("n2", "cgpu", 60, 4, "")}, 2);
        Model m = {0};

        srand(7);
        view_list_begin(v, VIEW_PODS);
        view_list_end(v, VIEW_PODS);
        for (unsigned step = 0; step < 3000; step++) {
                unsigned i = (unsigned) rand() % ELEMENTSOF(m.exists);

                if (!m.exists[i]) {
                        m.exists[i] = true;
                        m.state[i] = (unsigned) rand() % 3;
                        m.mem[i] = (unsigned) rand() % 5 + 1;
                        m.card[i] = (unsigned) rand() % 3;
                        feed(v, VIEW_PODS, REFLECTOR_ADDED, model_pod(&m, i));
                } else if (rand() % 3 == 0) {
                        m.exists[i] = false;
                        feed(v, VIEW_PODS, REFLECTOR_DELETED, model_pod(&m, i));
                } else if (m.state[i] < 3) {
                        m.state[i] = m.state[i] == 0 ? 1 + (unsigned) rand() % 2 : m.state[i] == 2 ? 1 : 3;
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

        srand(3);
        ASSERT_OK(directory_new(&d));
        for (unsigned step = 0; step < 20000; step++) {
                unsigned i = (unsigned) rand() % ELEMENTSOF(in);

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
                } else if (step % 2 == 1 && in[i] && rand() % 2) {
                        directory_remove(d, n);
                        in[i] = false;
                }
        }
        ASSERT_INT(directory_put(d, STR(""), NULL, &n), -E2BIG);
}

/* A ceiling of the installation counts like the node's own annotation, and that goes before it. */
static void settings_of_the_installation_hold(void) {
        _cleanup_(view_freep) View *v = view_with(NULL, 0);
        Request request = {.mem = 1, .cards = 1};
        Refusal refusal;

        ASSERT_OK(node_defaults_set(&v->defaults, NODE_MAX_PODS, "1", NULL));
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

int main(void) {
        return TEST_MAIN(TEST(is_in_sync_after_both_lists), TEST(follows_a_pod_through_its_life),
                         TEST(deletion_frees), TEST(a_pod_without_annotation_is_pending),
                         TEST(pods_of_others_are_not_kept),
                         TEST(two_pods_that_claim_the_same_slice_both_count),
                         TEST(contradicting_annotations_are_counted_as_they_are),
                         TEST(a_list_drops_what_did_not_come_by),
                         TEST(an_unreadable_object_in_a_list_keeps_everything), TEST(nodes_come_and_go),
                         TEST(a_node_that_contradicts_itself_stays_as_it_was),
                         TEST(unserved_modes_are_told_once), TEST(late_events_do_not_take_a_bound_pods_grant),
                         TEST(configmaps_fence_cards), TEST(a_restart_arrives_at_the_same_sums),
                         TEST(the_directory_keeps_its_names), TEST(settings_of_the_installation_hold));
}
