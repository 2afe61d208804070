/* SPDX-License-Identifier: Apache-2.0 */

/* The follower against a server that answers the list of pods when the test says so. */

#include "../kube/fixture.h"
#include "scheduler/view/follower.h"

typedef struct Server {
        HttpExchange *pods; /* a list of pods that is not answered yet */
        unsigned policies;  /* the status of the group of ResourcePolicies; 0: 404 */
        unsigned n_lists;   /* pages of lists of pods */
} Server;

static void on_gone(void *userdata) {
        Server *s = userdata;

        s->pods = NULL;
}

#define EMPTY "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}"

static void handle(void *userdata, HttpExchange *x, const HttpRequest *r) {
        Server *s = userdata;

        if (http_query(x, "watch"))
                return; /* stays open */
        if (strstr(r->path, "alibabacloud")) {
                http_respond(x, s->policies > 0 ? s->policies : 404, "application/json", STR("{}"));
                return;
        }
        if (strcmp(r->path, "/api/v1/pods") != 0) {
                http_respond(x, 200, "application/json", STR(EMPTY));
                return;
        }
        ASSERT_TRUE(!s->pods);
        s->n_lists++;
        s->pods = x;
        http_exchange_on_close(x, on_gone, s);
}

static void answer_pods(Server *s, unsigned status, const char *text) {
        HttpExchange *x = TAKE_PTR(s->pods);

        http_exchange_on_close(x, NULL, NULL);
        http_respond(x, status, "application/json", str_from(text));
}

/* Policies that change all the time do not cut the list that is under way. */
static void a_list_under_way_ends_first(void) {
        _cleanup_(view_freep) View *v = NULL;
        Follower *follower;
        Server s = {0};
        Fixture f;

        fixture_begin(&f, handle, &s);
        ASSERT_OK(view_new(&v));
        ASSERT_OK(follower_new(f.client, v, &follower));
        turn_until(&f, s.pods);
        for (usec_t end = clock_monotonic_usec() + 700 * USEC_PER_MSEC; clock_monotonic_usec() < end;) {
                follower_list_soon(follower);
                ASSERT_TRUE(sd_event_run(f.event, 10000) >= 0);
        }
        ASSERT_INT(s.n_lists, 1);
        ASSERT_TRUE(s.pods);
        answer_pods(&s, 200, EMPTY);
        turn_until(&f, s.pods); /* the list that was wanted meanwhile */
        ASSERT_INT(s.n_lists, 2);
        answer_pods(&s, 200, EMPTY);
        turn_until(&f, view_in_sync(v) && !v->kinds[VIEW_PODS].listing);
        follower_free(follower);
        fixture_end(&f);
}

#define PAGE(continue_, items)                                                                               \
        "{\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"" continue_ "\"},\"items\":[" items "]}"
#define BOUND                                                                                                \
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"uid-a\",\"annotations\":{"        \
        "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":4}}\"}},"                       \
        "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{"       \
        "\"aliyun.com/gpu-mem\":\"4\"}}}]},\"status\":{\"phase\":\"Running\"}}"

/* A pod that went while the watch was broken is dropped, also where a page was asked for twice. */
static void a_list_with_a_page_asked_for_twice_is_complete(void) {
        _cleanup_(view_freep) View *v = NULL;
        Follower *follower;
        Server s = {0};
        Fixture f;

        fixture_begin(&f, handle, &s);
        ASSERT_OK(view_new(&v));
        ASSERT_OK(follower_new(f.client, v, &follower));
        turn_until(&f, s.pods);
        answer_pods(&s, 200, PAGE("", BOUND));
        turn_until(&f, view_in_sync(v));
        ASSERT_INT(HASH_COUNT(v->pods), 1);
        ASSERT_OK(follower_list_again(follower));
        turn_until(&f, s.pods);
        answer_pods(&s, 200, PAGE("2", ""));
        turn_until(&f, s.pods);
        answer_pods(&s, 503, "{}");
        turn_until(&f, s.pods);
        answer_pods(&s, 200, PAGE("", ""));
        turn_until(&f, *follower_fresh(follower));
        ASSERT_INT(s.n_lists, 4);
        ASSERT_INT(HASH_COUNT(v->pods), 0);
        follower_free(follower);
        fixture_end(&f);
}

/* An APIService that nothing serves, and that is never repaired. */
static void a_group_of_policies_that_fails_counts_as_not_served(void) {
        _cleanup_(view_freep) View *v = NULL;
        Server s = {.policies = 503};
        Follower *follower;
        Fixture f;

        fixture_begin(&f, handle, &s);
        ASSERT_OK(view_new(&v));
        ASSERT_OK(follower_new(f.client, v, &follower));
        turn_until(&f, s.pods);
        answer_pods(&s, 200, EMPTY);
        turn_until(&f, view_in_sync(v));
        follower_free(follower);
        fixture_end(&f);
}

int main(void) {
        return TEST_MAIN(TEST(a_list_under_way_ends_first),
                         TEST(a_list_with_a_page_asked_for_twice_is_complete),
                         TEST(a_group_of_policies_that_fails_counts_as_not_served));
}
