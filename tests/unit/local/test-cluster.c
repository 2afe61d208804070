/* SPDX-License-Identifier: Apache-2.0 */
/* From manifests to shared cards, while the API server fails in various ways. In every case each
 * pod that fits is placed once, with the same sums as without faults. */

#include "base/log.h"
#include "local/cluster.h"
#include "test.h"

static char path[] = "/tmp/aliquot-cluster-XXXXXX";

enum { N_PODS = 8 };

static void write_manifests(void) {
        FILE *f = fopen(path, "we");

        ASSERT_TRUE(f);
        for (int i = 1; i <= 2; i++)
                (void) fprintf(f,
                               "apiVersion: v1\nkind: Node\nmetadata:\n  name: n%d\n  labels: "
                               "{ack.node.gpu.schedule: "
                               "cgpu}\n  annotations: {aliquot.dev/simulated-cards: '2xA:15GiB'}\n---\n",
                               i);
        for (int i = 0; i < N_PODS; i++)
                (void) fprintf(f,
                               "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec:\n  containers:\n  - "
                               "name: m\n    image: x\n"
                               "    resources: {limits: {aliyun.com/gpu-mem: 7}}\n---\n",
                               i);
        (void) fputs(
                "apiVersion: v1\nkind: Pod\nmetadata: {name: plain}\nspec: {containers: [{name: m, image: "
                "x}]}\n---\n"
                "apiVersion: v1\nkind: Pod\nmetadata: {name: one-too-many}\nspec:\n  containers:\n  - name: "
                "m\n    image: x\n"
                "    resources: {limits: {aliyun.com/gpu-mem: 7}}\n",
                f);
        ASSERT_OK(fclose(f));
}

/* Two pods of 7 on each card of 15; the ninth has no place. */
static void runs_through(const StoreFault *faults, size_t n) {
        _cleanup_(manifests_done) Manifests manifests = MANIFESTS_NULL;
        _cleanup_(cluster_freep) Cluster *c = NULL;
        _cleanup_buf_ Buf out = BUF_NULL, notes = BUF_NULL;
        Fault fault = FAULT_NULL;
        int r;

        ASSERT_OK(manifests_load(&manifests, path, &fault));
        ASSERT_OK(cluster_new(&c, &fault));
        ASSERT_OK(cluster_apply(c, &manifests, &notes, &fault));
        for (size_t i = 0; i < n; i++)
                ASSERT_OK(store_inject(cluster_store(c), &faults[i]));
        r = cluster_schedule(c, &fault);
        if (r != 0)
                TEST_FAIL_("%d: %s", r, fault.text);
        ASSERT_OK(cluster_print_summary(c, NULL, &out, &notes));
        cluster_print_refused(c, &notes);
        if (cluster_n_refused(c) != 1)
                TEST_FAIL_("%zu pods were refused: %s", cluster_n_refused(c), notes.data);
        ASSERT_CONTAINS(out.data, "n1    unknown    14/15                  14/15                  28/30");
        ASSERT_CONTAINS(out.data, "n2    unknown    14/15                  14/15                  28/30");
        ASSERT_CONTAINS(notes.data, "default/one-too-many: 0/2 nodes are available");
}

#define RUNS_THROUGH(...)                                                                                    \
        runs_through((const StoreFault[]){__VA_ARGS__},                                                      \
                     sizeof((const StoreFault[]){__VA_ARGS__}) / sizeof(StoreFault))

static void places_pods_on_a_good_day(void) {
        runs_through(NULL, 0);
}

static void survives_refused_bindings(void) {
        static const unsigned statuses[] = {409, 429, 500, 503};

        for (size_t i = 0; i < ELEMENTSOF(statuses); i++)
                RUNS_THROUGH({.kind = STORE_FAULT_STATUS,
                              .method = "POST",
                              .path_prefix = "/api/v1/namespaces/default/pods/p3/binding",
                              .count = 1,
                              .status = statuses[i]},
                             {.kind = STORE_FAULT_STATUS,
                              .method = "POST",
                              .path_prefix = "/api/v1/namespaces/default/pods/plain/binding",
                              .count = 1,
                              .status = statuses[i]});
}

static void survives_lost_answers_to_bindings(void) {
        RUNS_THROUGH({.kind = STORE_FAULT_LOSE_ANSWER,
                      .method = "POST",
                      .path_prefix = "/api/v1/namespaces/default/pods/p",
                      .count = 3});
        RUNS_THROUGH({.kind = STORE_FAULT_LOSE_ANSWER,
                      .method = "POST",
                      .path_prefix = "/api/v1/namespaces/default/pods/plain",
                      .count = 1});
        RUNS_THROUGH({.kind = STORE_FAULT_CUT,
                      .method = "POST",
                      .path_prefix = "/api/v1/namespaces/default/pods/p",
                      .count = 3});
}

static void survives_trouble_with_patches(void) {
        RUNS_THROUGH({.kind = STORE_FAULT_STATUS, .method = "PATCH", .count = 3, .status = 500},
                     {.kind = STORE_FAULT_LOSE_ANSWER, .method = "PATCH", .count = 2},
                     {.kind = STORE_FAULT_CUT, .method = "PATCH", .count = 2});
}

static void survives_trouble_with_lists_and_watches(void) {
        RUNS_THROUGH({.kind = STORE_FAULT_STATUS,
                      .method = "GET",
                      .path_prefix = "/api/v1/pods",
                      .count = 1,
                      .status = 410},
                     {.kind = STORE_FAULT_STATUS,
                      .method = "GET",
                      .path_prefix = "/api/v1/nodes",
                      .count = 1,
                      .status = 500},
                     {.kind = STORE_FAULT_CUT_WATCH, .count = 2});
}

int main(void) {
        int fd = mkstemp(path), r;

        ASSERT_TRUE(fd >= 0);
        (void) close(fd);
        log_set_level(LOG_LEVEL_ERROR);
        write_manifests();
        r = TEST_MAIN(TEST(places_pods_on_a_good_day), TEST(survives_refused_bindings),
                      TEST(survives_lost_answers_to_bindings), TEST(survives_trouble_with_patches),
                      TEST(survives_trouble_with_lists_and_watches));
        (void) unlink(path);
        return r;
}
