/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/elector.h"
#include "store_fixture.h"

/* Times a hundredth of the real ones. Nothing here asserts how long anything took: only what never was true. */
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
        ASSERT_FALSE(*a && *b); /* never two */
}

static void one_leads_and_the_other_takes_over_when_it_dies(void) {
        bool a_leads = false, b_leads = false;
        Elector *a, *b;
        ElectorOptions oa = options("a"), ob = options("b");
        Fixture f;

        fixture_begin(&f, 0);
        ASSERT_OK(elector_new(f.client, &oa, on_change, &a_leads, &a));
        TURN_UNTIL(&f, a_leads);
        ASSERT_OK(elector_new(f.client, &ob, on_change, &b_leads, &b));
        for (int i = 0; i < 50; i++)
                turn(&f, &a_leads, &b_leads);
        ASSERT_TRUE(a_leads && elector_is_leading(a) && !elector_is_leading(b));
        a = elector_free(a); /* dies without a word */
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
        /* Every update fails: a must stop by itself, and b cannot have it either. */
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

        oa.lease = ob.lease = 3600 * USEC_PER_SEC; /* waiting it out would fail the test */
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

int main(void) {
        return TEST_MAIN(TEST(one_leads_and_the_other_takes_over_when_it_dies),
                         TEST(a_leader_that_cannot_renew_stops), TEST(a_release_hands_over_at_once));
}
