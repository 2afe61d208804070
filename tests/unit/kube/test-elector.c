/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/elector.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "store_fixture.h"

/* Times are a hundredth of the real ones. No test asserts how long a step took, only that two never
 * lead. */
static ElectorOptions options(const char *identity) {
        return (ElectorOptions){.namespace_ = "kube-system",
                                .name = "aliquot",
                                .identity = identity,
                                .lease = 1500000,
                                .renew_deadline = 1000000,
                                .retry = 100000};
}

static void on_change(void *userdata, bool leading) {
        *(bool *) userdata = leading;
}

static void on_flag(void *userdata) {
        *(bool *) userdata = true;
}

static void turn(Fixture *f, const bool *a, const bool *b) {
        ASSERT_TRUE(sd_event_run(f->event, 100000) >= 0);
        ASSERT_FALSE(*a && *b); /* never two leaders */
}

static void one_leads_and_the_other_takes_over_when_it_dies(void) {
        bool a_leads = false, b_leads = false;
        Elector *a, *b;
        ElectorOptions oa = options("a"), ob = options("b");
        Fixture f;

        oa.lease = ob.lease = 6 * USEC_PER_SEC; /* a machine may stand still for a second or two */
        oa.renew_deadline = ob.renew_deadline = 5 * USEC_PER_SEC;
        fixture_begin(&f, 0);
        ASSERT_OK(elector_new(f.client, &oa, on_change, &a_leads, &a));
        TURN_UNTIL(&f, a_leads);
        ASSERT_OK(elector_new(f.client, &ob, on_change, &b_leads, &b));
        for (int i = 0; i < 50; i++)
                turn(&f, &a_leads, &b_leads);
        ASSERT_TRUE(a_leads && elector_is_leading(a) && !elector_is_leading(b));
        a = elector_free(a); /* ends without releasing */
        a_leads = false;
        TURN_UNTIL(&f, b_leads);
        (void) elector_free(b);
        fixture_end(&f);
}

static void a_leader_that_cannot_renew_stops(void) {
        bool a_leads = false, b_leads = false;
        Elector *a, *b;
        ElectorOptions oa = options("a"), ob = options("b");
        KubeClient *other;
        Fixture f;

        fixture_begin(&f, 0);
        ASSERT_OK(elector_new(f.client, &oa, on_change, &a_leads, &a));
        TURN_UNTIL(&f, a_leads);
        ASSERT_OK(kube_client_new(f.event, f.config, &other));
        /* Every update fails: a must stop by itself, and b cannot lead either. */
        ASSERT_OK(store_inject(
                f.store,
                &(StoreFault){.kind = STORE_FAULT_STATUS, .method = "PUT", .count = 100000, .status = 500}));
        ASSERT_OK(elector_new(other, &ob, on_change, &b_leads, &b));
        TURN_UNTIL(&f, !a_leads);
        ASSERT_FALSE(b_leads);
        (void) elector_free(a);
        (void) elector_free(b);
        (void) kube_client_free(other);
        fixture_end(&f);
}

static void a_release_hands_over_at_once(void) {
        bool a_leads = false, b_leads = false, released = false;
        Elector *a, *b;
        ElectorOptions oa = options("a"), ob = options("b");
        Fixture f;

        oa.lease = ob.lease = 3600 * USEC_PER_SEC; /* waiting for its end would fail the test */
        oa.renew_deadline = ob.renew_deadline = 1800 * USEC_PER_SEC;
        fixture_begin(&f, 0);
        ASSERT_OK(elector_new(f.client, &oa, on_change, &a_leads, &a));
        TURN_UNTIL(&f, a_leads);
        ASSERT_OK(elector_new(f.client, &ob, on_change, &b_leads, &b));
        ASSERT_OK(elector_release(a, on_flag, &released));
        ASSERT_FALSE(a_leads);
        TURN_UNTIL(&f, released && b_leads);
        ASSERT_FALSE(a_leads);
        (void) elector_free(a);
        (void) elector_free(b);
        fixture_end(&f);
}

static const char lease_path[] = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/aliquot";

static void get_lease(Fixture *f, Answer *a) {
        unsigned before = a->n;

        ASSERT_OK(kube_call(f->client, &(KubeRequest){.method = "GET", .path = lease_path}, on_answer, a,
                            NULL));
        TURN_UNTIL(f, a->n > before);
        ASSERT_INT(a->status, 200);
}

/* A candidate whose take-over is in flight leaves nothing behind either. */
static void a_release_at_any_moment_leaves_it_free(void) {
        bool led = false;

        for (unsigned turns = 0; !led; turns++) {
                bool leads = false, released = false;
                ElectorOptions o = options("a");
                Answer a = {0};
                Elector *e;
                Fixture f;

                ASSERT_TRUE(turns < 1000);
                fixture_begin(&f, 0);
                apply(&f,
                      "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":"
                      "\"aliquot\",\"namespace\":\"kube-system\"},\"spec\":{\"holderIdentity\":\"\"}}");
                ASSERT_OK(elector_new(f.client, &o, on_change, &leads, &e));
                for (unsigned i = 0; i < turns; i++)
                        ASSERT_TRUE(sd_event_run(f.event, 100000) >= 0);
                led = leads;
                if (elector_release(e, on_flag, &released) == 0)
                        TURN_UNTIL(&f, released);
                get_lease(&f, &a);
                ASSERT_CONTAINS(a.body, "\"holderIdentity\":\"\"");
                (void) elector_free(e);
                fixture_end(&f);
        }
}

static void times_must_be_in_order(void) {
        bool leads = false;
        Elector *e = NULL;
        ElectorOptions o = options("a");
        Fixture f;

        fixture_begin(&f, 0);
        o.lease = o.renew_deadline;
        ASSERT_INT(elector_new(f.client, &o, on_change, &leads, &e), -EINVAL);
        o = options("a");
        o.retry = o.renew_deadline;
        ASSERT_INT(elector_new(f.client, &o, on_change, &leads, &e), -EINVAL);
        fixture_end(&f);
}

/* Members written by others stay; ours are those of client-go. */
static void takes_over_what_was_released(void) {
        bool leads = false, released = false;
        ElectorOptions o = options("a");
        Answer a = {0};
        Elector *e;
        Fixture f;

        o.lease = 3600 * USEC_PER_SEC - 1; /* does not expire even on a slow machine */
        o.renew_deadline = 1800 * USEC_PER_SEC;
        fixture_begin(&f, 0);
        apply(&f,
              "{\"apiVersion\":\"coordination.k8s.io/"
              "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"aliquot\","
              "\"namespace\":\"kube-system\",\"labels\":{\"mine\":\"1\"}},\"spec\":{\"holderIdentity\":\"\","
              "\"leaseTransitions\":4}}");
        ASSERT_OK(elector_new(f.client, &o, on_change, &leads, &e));
        TURN_UNTIL(&f, leads);
        ASSERT_TRUE(elector_is_leading(e));
        get_lease(&f, &a);
        ASSERT_CONTAINS(a.body, "\"mine\":\"1\"");
        ASSERT_CONTAINS(a.body, "\"holderIdentity\":\"a\"");
        ASSERT_CONTAINS(a.body, "\"leaseDurationSeconds\":3600");
        ASSERT_CONTAINS(a.body, "\"leaseTransitions\":5");
        ASSERT_INT(elector_release(e, on_flag, &released), 0);
        ASSERT_INT(elector_release(e, on_flag, &released), 1); /* once is enough */
        TURN_UNTIL(&f, released);
        get_lease(&f, &a);
        ASSERT_CONTAINS(a.body, "\"holderIdentity\":\"\"");
        ASSERT_CONTAINS(a.body, "\"leaseTransitions\":5");
        ASSERT_FALSE(leads || elector_is_leading(e));
        (void) elector_free(e);
        fixture_end(&f);
}

/* The Lease of another instance is not expired at first sight, however old its times are. */
static void an_old_lease_is_watched_for_a_whole_lease(void) {
        bool leads = false;
        ElectorOptions o = options("a");
        usec_t seen;
        Elector *e;
        Fixture f;

        fixture_begin(&f, 0);
        apply(&f,
              "{\"apiVersion\":\"coordination.k8s.io/"
              "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"aliquot\","
              "\"namespace\":\"kube-system\"},\"spec\":{\"holderIdentity\":\"b\",\"leaseDurationSeconds\":1,"
              "\"renewTime\":\"2001-01-01T00:00:00.000000Z\"}}");
        seen = clock_monotonic_usec();
        ASSERT_OK(elector_new(f.client, &o, on_change, &leads, &e));
        TURN_UNTIL(&f, leads);
        /* the promised minimum */
        ASSERT_TRUE(clock_monotonic_usec() - seen >= o.lease);
        (void) elector_free(e);
        fixture_end(&f);
}

/* Lost answers, conflicts and refusals within the deadline cost nothing. */
static void bears_what_the_server_does_meanwhile(void) {
        static const StoreFault faults[] = {
                {.kind = STORE_FAULT_LOSE_ANSWER, .method = "PUT", .count = 1},
                {.kind = STORE_FAULT_STATUS, .method = "PUT", .count = 1, .status = 409},
                {.kind = STORE_FAULT_STATUS, .method = "PUT", .count = 1, .status = 500},
                {.kind = STORE_FAULT_CUT, .method = "PUT", .count = 1},
        };
        bool leads = false;
        ElectorOptions o = options("a");
        char before[sizeof((Answer *) NULL)->body];
        Elector *e;
        Fixture f;
        Answer a = {0};

        o.lease = 3600 * USEC_PER_SEC; /* does not expire even on a slow machine */
        o.renew_deadline = 1800 * USEC_PER_SEC;
        fixture_begin(&f, 0);
        ASSERT_OK(elector_new(f.client, &o, on_change, &leads, &e));
        TURN_UNTIL(&f, leads);
        for (size_t i = 0; i < ELEMENTSOF(faults); i++)
                ASSERT_OK(store_inject(f.store, &faults[i]));
        /* A successful renewal changes the Lease: three of them follow all faults. */
        for (unsigned changes = 0; changes < 3;) {
                (void) snprintf(before, sizeof before, "%s", a.body);
                get_lease(&f, &a);
                changes += strcmp(before, a.body) != 0;
                ASSERT_TRUE(leads && elector_is_leading(e));
        }
        get_lease(&f, &a);
        ASSERT_CONTAINS(a.body, "\"leaseTransitions\":0");
        (void) elector_free(e);
        fixture_end(&f);
}

typedef struct Owner {
        Fixture *f;
        Elector *elector;
        unsigned n;
        bool free_at;
} Owner;

static void on_change_free(void *userdata, bool leading) {
        Owner *o = userdata;

        o->n++;
        if (leading != o->free_at)
                return;
        o->elector = elector_free(o->elector);
        o->f->client = kube_client_free(o->f->client);
}

static void on_never(void *userdata) {
        TEST_FAIL_("released by the dead");
}

static void an_elector_can_be_freed_in_its_callback(void) {
        for (unsigned leading = 0; leading < 2; leading++) {
                ElectorOptions options_ = options("a");
                Fixture f;
                Owner o = {.f = &f, .free_at = leading == 1};

                fixture_begin(&f, 0);
                ASSERT_OK(elector_new(f.client, &options_, on_change_free, &o, &o.elector));
                TURN_UNTIL(&f, o.n == 1);
                if (o.elector)
                        (void) elector_release(o.elector, on_never, NULL); /* freed below */
                ASSERT_TRUE(!o.elector);
                ASSERT_TRUE(sd_event_run(f.event, 1000) >= 0);
                fixture_end(&f);
        }
}

enum { OTHERS = 32 };

static int on_other(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        ASSERT_FALSE(*(bool *) userdata);
        return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

/* A process that was stopped wakes up with its deadline passed and requests pending: the deadline
 * is handled first. */
static void a_leader_that_slept_too_long_stops_before_it_serves(void) {
        sd_event_source *others[OTHERS];
        bool leads = false;
        ElectorOptions o = options("a");
        int fds[2];
        Elector *e;
        usec_t end;
        Fixture f;

        fixture_begin(&f, 0);
        o.renew_deadline = 100000;
        o.retry = 90000;
        ASSERT_OK(elector_new(f.client, &o, on_change, &leads, &e));
        TURN_UNTIL(&f, leads);
        end = clock_monotonic_usec() + 2 * o.renew_deadline;
        ASSERT_OK(pipe2(fds, O_CLOEXEC));
        ASSERT_INT(write(fds[1], "x", 1), 1);
        for (size_t i = 0; i < OTHERS; i++) {
                int fd = dup(fds[0]); /* epoll takes a descriptor once */

                ASSERT_TRUE(sd_event_add_io(f.event, &others[i], fd, EPOLLIN, on_other, &leads) >= 0);
                ASSERT_OK(sd_event_source_set_io_fd_own(others[i], true));
        }
        while (clock_monotonic_usec() < end) /* to the loop this looks like being stopped */
                ;
        TURN_UNTIL(&f, !leads);
        for (size_t i = 0; i < OTHERS; i++)
                sd_event_source_disable_unref(others[i]);
        (void) close(fds[0]);
        (void) close(fds[1]);
        (void) elector_free(e);
        fixture_end(&f);
}

int main(void) {
        return TEST_MAIN(TEST(one_leads_and_the_other_takes_over_when_it_dies),
                         TEST(a_leader_that_cannot_renew_stops), TEST(a_release_hands_over_at_once),
                         TEST(a_release_at_any_moment_leaves_it_free), TEST(times_must_be_in_order),
                         TEST(takes_over_what_was_released), TEST(an_old_lease_is_watched_for_a_whole_lease),
                         TEST(bears_what_the_server_does_meanwhile),
                         TEST(an_elector_can_be_freed_in_its_callback),
                         TEST(a_leader_that_slept_too_long_stops_before_it_serves));
}
