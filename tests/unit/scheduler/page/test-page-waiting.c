/* SPDX-License-Identifier: Apache-2.0 */

/* The pods that the page names as waiting, and their resizes, fed by hand and without a viewer. */

#include "scheduler/page/page_waiting.h"

#include "fixture.h"
#include "scheduler/page/page_resizes.h"

static PageWaiting waiting;
static PageResizes resizes;

static void on_pod(void *userdata, const Pod *pod, Str object, ReflectorEvent event) {
        ASSERT_OK(page_waiting_pod(&waiting, *(View **) userdata, pod));
        ASSERT_OK(page_resizes_pod(&resizes, *(View **) userdata, pod));
}

static View *followed(View **v) {
        ASSERT_OK(view_new(v));
        (*v)->on_pod = on_pod;
        (*v)->userdata = v;
        view_list_begin(*v, VIEW_NODES);
        feed(*v, VIEW_NODES, REFLECTOR_LISTED, node_json("n1", "cgpu", 30, 2, ""));
        view_list_end(*v, VIEW_NODES);
        view_list_begin(*v, VIEW_PODS);
        view_list_end(*v, VIEW_PODS);
        return *v;
}

static const char *waiting_pod(const char *name) {
        return pod_json_((PodText){.name = name, .mem = "4", .phase = "Pending", .state = "waiting"});
}

static const char *bound_pod(const char *name, const char *annotations) {
        return pod_json_((PodText){.name = name,
                                   .mem = "4",
                                   .node = "n1",
                                   .allocation = "{\\\"0\\\":{\\\"1\\\":4}}",
                                   .annotations = annotations});
}

static void forgets_pods_without_a_viewer(void) {
        _cleanup_(view_freep) View *v = NULL;

        (void) followed(&v);
        feed(v, VIEW_PODS, REFLECTOR_ADDED, waiting_pod("a"));
        feed(v, VIEW_PODS, REFLECTOR_ADDED, waiting_pod("b"));
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED, waiting_pod("b"));
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED, bound_pod("a", ""));
        ASSERT_TRUE(waiting.pods);
        feed(v, VIEW_PODS, REFLECTOR_DELETED, waiting_pod("b"));
        ASSERT_FALSE(waiting.pods);
}

static void forgets_what_a_list_does_not_have(void) {
        _cleanup_(view_freep) View *v = NULL;

        (void) followed(&v);
        feed(v, VIEW_PODS, REFLECTOR_ADDED, waiting_pod("a"));
        view_list_begin(v, VIEW_PODS);
        view_list_end(v, VIEW_PODS);
        page_waiting_sweep(&waiting, v);
        ASSERT_FALSE(waiting.pods);
}

static void keeps_a_pod_while_its_binding_is_under_way(void) {
        _cleanup_(view_freep) View *v = NULL;
        const Slice slice = {.card = 1, .mem = 4};
        ViewPod *pod;

        (void) followed(&v);
        feed(v, VIEW_PODS, REFLECTOR_ADDED, waiting_pod("a"));
        pod = view_pod_find(v, STR("uid-a"));
        ASSERT_OK(grant_new(v->ledger,
                            &(GrantSpec){.namespace_ = STR("default"),
                                         .name = STR("a"),
                                         .uid = STR("uid-a"),
                                         .node = STR("n1"),
                                         .slices = &slice,
                                         .n_slices = 1},
                            &pod->grant));
        pod->reserved = true;
        page_waiting_begin(&waiting, v);
        ASSERT_INT(waiting.n_waiting, 0);
        pod->grant = grant_free(pod->grant); /* the Binding was refused */
        pod->reserved = false;
        page_waiting_begin(&waiting, v);
        ASSERT_INT(waiting.n_waiting, 1);
        page_waiting_done(&waiting);
}

#define STATUS(text) ",\"aliquot.dev/resize-status\":\"" text "\""

#define WISH(mem) ",\"aliquot.dev/gpu-mem\":\"" mem "\""

/* expected: NULL: the page says nothing of a resize. */
static void assert_resize(View *v, const char *annotations, const char *expected, bool open) {
        const PageResize *one;

        feed(v, VIEW_PODS, REFLECTOR_MODIFIED, bound_pod("a", annotations));
        one = page_resizes_find(&resizes, STR("uid-a"));
        ASSERT_TRUE(!one == !expected);
        if (!one || !expected)
                return;
        ASSERT_STR(one->text, str_from(expected));
        ASSERT_TRUE(one->open == open);
}

static void keeps_the_resizes_of_pods_that_hold_something(void) {
        _cleanup_(view_freep) View *v = NULL;

        (void) followed(&v);
        feed(v, VIEW_PODS, REFLECTOR_ADDED, bound_pod("a", ""));
        ASSERT_TRUE(!page_resizes_find(&resizes, STR("uid-a")));
        assert_resize(v, WISH("2"), "asked for, and the agent of the node has not answered", true);
        assert_resize(v, WISH("9") STATUS("refused: too much; in force: container 0: gpu-mem 4 of 4"),
                      "refused: too much; in force: container 0: gpu-mem 4 of 4", true);
        assert_resize(v, WISH("2") STATUS("in force: container 0: gpu-mem 2 of 4"),
                      "in force: container 0: gpu-mem 2 of 4", false);
        assert_resize(v, WISH("4") STATUS("in force: container 0: gpu-mem 4 of 4"), NULL, false);
        assert_resize(v, WISH("2") STATUS("what an agent of another release says"),
                      "what an agent of another release says", false);
        feed(v, VIEW_PODS, REFLECTOR_DELETED, bound_pod("a", ""));
        ASSERT_TRUE(!resizes.pods);
}

/* A size that is not in force yet needs attention, although the agent has written a status. */
static void resizes_that_wait_are_open(void) {
        _cleanup_(view_freep) View *v = NULL;

        (void) followed(&v);
        feed(v, VIEW_PODS, REFLECTOR_ADDED, bound_pod("a", ""));
        assert_resize(v, WISH("2") STATUS("waits: the page is leased"), "waits: the page is leased", true);
        assert_resize(v, WISH("2") STATUS("waits: no space; in force: container 0: gpu-mem 4 of 4"),
                      "waits: no space; in force: container 0: gpu-mem 4 of 4", true);
        /* the annotation was changed, or removed, after this status */
        assert_resize(v, WISH("3") STATUS("in force: container 0: gpu-mem 2 of 4"),
                      "asked for, and the agent of the node has not answered; in force: container 0: "
                      "gpu-mem 2 of 4",
                      true);
        assert_resize(v, STATUS("in force: container 0: gpu-mem 2 of 4"),
                      "asked for, and the agent of the node has not answered; in force: container 0: "
                      "gpu-mem 2 of 4",
                      true);
        assert_resize(v, WISH("2") STATUS("in force: container 0: gpu-mem 2 of 4"),
                      "in force: container 0: gpu-mem 2 of 4", false);
        feed(v, VIEW_PODS, REFLECTOR_DELETED, bound_pod("a", ""));
        ASSERT_TRUE(!resizes.pods);
}

int main(void) {
        return TEST_MAIN(TEST(forgets_pods_without_a_viewer), TEST(forgets_what_a_list_does_not_have),
                         TEST(keeps_a_pod_while_its_binding_is_under_way),
                         TEST(keeps_the_resizes_of_pods_that_hold_something),
                         TEST(resizes_that_wait_are_open));
}
