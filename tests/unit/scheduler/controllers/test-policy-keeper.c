/* SPDX-License-Identifier: Apache-2.0 */

/* What the keeper sends: kicks, patches and statuses, each tick by hand. */

#include "fake_api.h"
#include "fixture.h"
#include "scheduler/controllers/policy_keeper.h"

enum { PODS = 120 };

typedef struct Fixture {
        View *view;
        SchedulerContext context;
        PolicyKeeper *keeper;
        usec_t now;
        unsigned kicks[PODS]; /* of the pods p0, p1, ..., that were carried out */
        bool refuses;         /* every second write, with 409 and 429 */
        unsigned writes;
} Fixture;

static void start_keeper(Fixture *f) {
        f->keeper = policy_keeper_free(f->keeper);
        f->context = (SchedulerContext){.client = fake_client(NULL), .view = f->view, .leading = true};
        ASSERT_OK(policy_keeper_new(&f->context, &f->keeper));
}

static void feed_policy(Fixture *f, const char *name, unsigned max) {
        char text[512];

        (void) snprintf(text, sizeof text,
                        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"u-%s\"},"
                        "\"spec\":{\"selector\":{\"app\":\"%s\"},\"units\":[{\"max\":%u},{\"max\":%u}]}}",
                        name, name, name, max, max);
        feed(f->view, VIEW_POLICIES, REFLECTOR_MODIFIED, text);
}

static void list(Fixture *f) {
        view_list_begin(f->view, VIEW_NODES);
        view_list_end(f->view, VIEW_NODES);
        view_list_begin(f->view, VIEW_PODS);
        view_list_end(f->view, VIEW_PODS);
}

static void setup(Fixture *f) {
        *f = (Fixture){.now = clock_monotonic_usec()};
        ASSERT_OK(view_new(&f->view));
        feed_policy(f, "web", 1);
        list(f);
        start_keeper(f);
}

static void teardown(Fixture *f) {
        ASSERT_INT(fake_n_calls(), 0);
        policy_keeper_free(f->keeper);
        view_free(f->view);
}

static PolicyPod *see(Fixture *f, const char *name) {
        char uid[64];
        PolicyPod *pod;

        (void) snprintf(uid, sizeof uid, "uid-%s", name);
        feed(f->view, VIEW_PODS, REFLECTOR_MODIFIED,
             pod_json(.name = name, .labels = "\"app\":\"web\"", .phase = "Pending", .state = "waiting",
                      .spec = "\"schedulerName\":\"ack-co-scheduler\","));
        pod = policy_table_find(f->view->policies, str_from(uid));
        ASSERT_TRUE(pod);
        return pod;
}

static bool is_status(const KubeCall *call) {
        return strstr(fake_name(call), "/resourcepolicies/") != NULL;
}

static void note_kick(Fixture *f, const KubeCall *call) {
        const char *digits = strstr(fake_name(call), "/pods/p") + strlen("/pods/p");
        uint32_t i;

        ASSERT_TRUE(str_to_u32(str_from(digits), &i) && i < PODS);
        f->kicks[i]++;
}

/* One tick; the API server answers each status with that code, and each patch of a pod with 200,
 * if it does not refuse. Returns how many statuses were sent; *kick: the last patch of a pod. */
static unsigned tick(Fixture *f, unsigned status, char *kick, size_t size) {
        KubeCall *call;
        unsigned n = 0;

        policy_keeper_tick(f->keeper, f->now);
        while ((call = fake_call(FAKE_PATCH))) {
                bool of_policy = is_status(call);
                unsigned code = of_policy ? status : 200;

                if (f->refuses && f->writes++ % 2 == 0)
                        code = f->writes % 4 == 1 ? 409 : 429;
                n += of_policy;
                if (!of_policy && code == 200)
                        note_kick(f, call);
                if (!of_policy && kick)
                        (void) snprintf(kick, size, "%s", fake_annotations(call));
                fake_reply(call, KUBE_DONE, code, "");
        }
        f->now += USEC_PER_SEC;
        return n;
}

/* ---- cases ---- */

/* Not even the kicks of two processes are equal: a patch that changes nothing wakes no pod. */
static void no_two_kicks_are_equal(void) {
        char first[256] = "", second[256] = "";
        Fixture f;

        setup(&f);
        see(&f, "p1")->wake = 1;
        (void) tick(&f, 200, first, sizeof first);
        ASSERT_CONTAINS(first, "{\"metadata\":{\"annotations\":{\"aliquot.dev/kick\":\"");
        start_keeper(&f);
        see(&f, "p1")->wake = 1;
        (void) tick(&f, 200, second, sizeof second);
        ASSERT_TRUE(strlen(second) > 0 && strcmp(first, second) != 0);
        teardown(&f);
}

/* More pods than one tick wakes, and all are due again in each: the last one gets its turn, too. */
static void each_pod_gets_its_turn(void) {
        Fixture f;
        char name[16];

        setup(&f);
        for (unsigned i = 0; i < PODS; i++) {
                (void) snprintf(name, sizeof name, "p%u", i);
                (void) see(&f, name);
        }
        for (unsigned i = 0; i < 3; i++) {
                for (PolicyPod *pod = f.view->policies->pods; pod; pod = pod->hh.next)
                        pod->wake = 1;
                (void) tick(&f, 200, NULL, 0);
                /* A pod that goes moves the turn of no other one. */
                (void) snprintf(name, sizeof name, "uid-p%u", i * 50 + 49);
                policy_table_pod_gone(f.view->policies, str_from(name));
        }
        for (unsigned i = 0; i < PODS; i++)
                ASSERT_TRUE(f.kicks[i] > 0);
        teardown(&f);
}

/* More statuses than one tick writes: those that failed are sent again, each of them once. */
static void each_failed_status_is_sent_again(void) {
        Fixture f;
        char name[16];

        setup(&f);
        for (unsigned i = 0; i < 11; i++) {
                (void) snprintf(name, sizeof name, "more%u", i);
                feed_policy(&f, name, 1);
        }
        list(&f);
        ASSERT_INT(tick(&f, 500, NULL, 0) + tick(&f, 500, NULL, 0), 12);
        ASSERT_INT(tick(&f, 500, NULL, 0), 0);
        f.now += 60 * USEC_PER_SEC;
        ASSERT_INT(tick(&f, 200, NULL, 0) + tick(&f, 200, NULL, 0), 12);
        f.now += 60 * USEC_PER_SEC;
        ASSERT_INT(tick(&f, 200, NULL, 0), 0);
        teardown(&f);
}

/* Each pod is woken once, and the status is written; what was refused half a minute later. */
static void every_second_write_fails(void) {
        Fixture f;
        char name[16];

        setup(&f);
        for (unsigned i = 0; i < 20; i++) {
                (void) snprintf(name, sizeof name, "p%u", i);
                see(&f, name)->wake = 1;
        }
        f.refuses = true;
        for (unsigned i = 0; i < 10; i++) {
                (void) tick(&f, 200, NULL, 0);
                f.now += 60 * USEC_PER_SEC;
        }
        for (unsigned i = 0; i < 20; i++)
                ASSERT_INT(f.kicks[i], 1);
        ASSERT_TRUE(f.writes <= 2 * (20 + 1) + 1);
        teardown(&f);
}

/* The next status waits for an answer that is late, so that the older one is not the last. */
static void one_status_is_in_flight(void) {
        Fixture f;

        setup(&f);
        policy_keeper_tick(f.keeper, f.now);
        ASSERT_INT(fake_n_calls(), 1);
        feed_policy(&f, "web", 2);
        policy_keeper_tick(f.keeper, f.now + USEC_PER_SEC);
        ASSERT_INT(fake_n_calls(), 1);
        fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 200, "");
        policy_keeper_tick(f.keeper, f.now + 2 * USEC_PER_SEC);
        ASSERT_CONTAINS(fake_annotations(fake_call(FAKE_PATCH)), "\"max\":2");
        fake_reply(fake_call(FAKE_PATCH), KUBE_DONE, 200, "");
        teardown(&f);
}

int main(void) {
        return TEST_MAIN(TEST(no_two_kicks_are_equal), TEST(each_pod_gets_its_turn),
                         TEST(each_failed_status_is_sent_again), TEST(every_second_write_fails),
                         TEST(one_status_is_in_flight));
}
