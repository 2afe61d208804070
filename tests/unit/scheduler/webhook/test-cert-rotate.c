/* SPDX-License-Identifier: Apache-2.0 */

/* Certificate rotation against the local API server: a keyring of long ago is renewed,
 * and one that is edited is mended. */

#include "kube/store_fixture.h"
#include "scheduler/webhook/cert_rotate.h"

#define DAY  INT64_C(86400)
#define PATH "/api/v1/namespaces/ns/secrets"

static const char *const names[] = {"hook.ns.svc", NULL};

typedef struct Keep {
        CertRotate *rotation;
        unsigned keyrings, news, troubles, told;
        Keyring last;
        Fault fault;
        bool patched;
} Keep;

static void on_ageing(void *userdata) {
        ((Keep *) userdata)->told++;
}

static void on_keyring(void *userdata, const Keyring *k) {
        Keep *keep = userdata;

        keep->keyrings++;
        keyring_done(&keep->last);
        ASSERT_OK(keyring_copy(k, &keep->last));
}

static void on_news(void *userdata, const char *what) {
        ((Keep *) userdata)->news++;
}

static void on_trouble(void *userdata, const Fault *fault) {
        Keep *keep = userdata;

        keep->troubles++;
        keep->fault = *fault;
}

static void on_patched(void *userdata, const KubeReply *reply) {
        ASSERT_INT(reply->status, 200);
        ((Keep *) userdata)->patched = true;
}

static void keep_begin(Fixture *f, Keep *k) {
        CertRotateOptions options = {
                .client = f->client,
                .namespace_ = "ns",
                .secret = "tls",
                .names = names,
                .on_ageing = on_ageing,
                .on_keyring = on_keyring,
                .on_news = on_news,
                .on_trouble = on_trouble,
                .userdata = k,
        };

        *k = (Keep){.last = KEYRING_NULL};
        ASSERT_OK(cert_rotate_new(&options, &k->rotation));
}

static void keep_end(Keep *k) {
        k->rotation = cert_rotate_free(k->rotation);
        keyring_done(&k->last);
}

static int64_t now_sec(void) {
        return (int64_t) (clock_realtime_nsec() / UINT64_C(1000000000));
}

/* Makes a keyring as of `then`, with a certificate of `renewed`, and stores it as the Secret. */
static void apply_keyring(Fixture *f, int64_t then, int64_t renewed) {
        _cleanup_keyring_ Keyring none = KEYRING_NULL, old = KEYRING_NULL, k = KEYRING_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(keyring_step(&none, KEYRING_EMPTY, names, then, &old, &fault));
        ASSERT_OK(keyring_step(&old, KEYRING_RENEW, names, renewed, &k, &fault));
        keyring_write(&k, "ns", "tls", &text);
        if (store_apply(f->store, buf_str(&text), &fault) != 0)
                TEST_FAIL_("%s", fault.text);
}

static void turn_for_a_while(Fixture *f) {
        for (int i = 0; i < 50; i++)
                ASSERT_TRUE(sd_event_run(f->event, 2000) >= 0);
}

static void a_replica_that_finds_none_makes_one(void) {
        Fixture f;
        Keep a, b;

        fixture_begin(&f, 0);
        apply(&f, "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"other\",\"namespace\":"
                  "\"ns\"}}");
        keep_begin(&f, &a);
        keep_begin(&f, &b);
        TURN_UNTIL(&f, a.keyrings == 1 && b.keyrings == 1);
        ASSERT_TEXT(a.last.texts[KEYRING_CERT], b.last.texts[KEYRING_CERT]);
        ASSERT_INT(keyring_need(&a.last, names, now_sec()), KEYRING_GOOD);
        ASSERT_INT(a.troubles + b.troubles, 0); /* losing the race is no fault */
        keep_end(&a);
        keep_end(&b);
        fixture_end(&f);
}

static void only_the_leader_renews(void) {
        _cleanup_free_ char *before = NULL;
        Fixture f;
        Keep k;

        fixture_begin(&f, 0);
        apply_keyring(&f, now_sec() - 80 * DAY, now_sec() - 80 * DAY);
        keep_begin(&f, &k);
        TURN_UNTIL(&f, k.keyrings == 1); /* it is served nevertheless */
        turn_for_a_while(&f);
        ASSERT_INT(k.news, 0);
        before = str_dup(str_from(k.last.texts[KEYRING_AUTHORITIES]));
        cert_rotate_set_leading(k.rotation, true);
        TURN_UNTIL(&f, k.keyrings == 2);
        ASSERT_INT(keyring_need(&k.last, names, now_sec()), KEYRING_GOOD);
        ASSERT_TEXT(k.last.texts[KEYRING_AUTHORITIES], before);
        turn_for_a_while(&f);
        ASSERT_INT(k.news, 1);
        keep_end(&k);
        fixture_end(&f);
}

/* It goes on signing. */
static void an_old_authority_is_told(void) {
        _cleanup_free_ char *bundle = NULL;
        Fixture f;
        Keep k;

        fixture_begin(&f, 0);
        apply_keyring(&f, now_sec() - 2500 * DAY, now_sec());
        keep_begin(&f, &k);
        TURN_UNTIL(&f, k.keyrings == 1);
        turn_for_a_while(&f);
        ASSERT_INT(k.told, 0); /* the leader tells it */
        bundle = str_dup(str_from(k.last.texts[KEYRING_AUTHORITIES]));
        cert_rotate_set_leading(k.rotation, true);
        ASSERT_INT(k.told, 1);
        cert_rotate_set_leading(k.rotation, true);
        turn_for_a_while(&f);
        ASSERT_INT(k.told, 1); /* once a day */
        ASSERT_INT(k.news + k.troubles, 0);
        ASSERT_TEXT(k.last.texts[KEYRING_AUTHORITIES], bundle);
        keep_end(&k);
        fixture_end(&f);
}

static void a_young_authority_is_not_told(void) {
        Fixture f;
        Keep k;

        fixture_begin(&f, 0);
        apply_keyring(&f, now_sec() - 2400 * DAY, now_sec());
        keep_begin(&f, &k);
        cert_rotate_set_leading(k.rotation, true);
        TURN_UNTIL(&f, k.keyrings == 1);
        turn_for_a_while(&f);
        ASSERT_INT(k.told, 0);
        keep_end(&k);
        fixture_end(&f);
}

static void tries_again(void) {
        static const StoreFault faults[] = {
                {.kind = STORE_FAULT_STATUS,
                 .count = 2,
                 .method = "POST",
                 .path_prefix = PATH,
                 .status = 500},
                {.kind = STORE_FAULT_LOSE_ANSWER, .count = 1, .method = "POST", .path_prefix = PATH},
                {.kind = STORE_FAULT_CUT, .count = 1, .method = "POST", .path_prefix = PATH},
        };

        for (size_t i = 0; i < ELEMENTSOF(faults); i++) {
                Fixture f;
                Keep k;

                fixture_begin(&f, 0);
                ASSERT_OK(store_inject(f.store, &faults[i]));
                keep_begin(&f, &k);
                TURN_UNTIL(&f, k.keyrings == 1 && k.troubles > 0);
                ASSERT_CONTAINS(k.fault.text, "Secret ns/tls: cannot be written: POST ");
                keep_end(&k);
                fixture_end(&f);
        }
}

static void inject(Fixture *f, StoreFaultKind kind, const char *method, unsigned status, unsigned count) {
        ASSERT_OK(store_inject(f->store, &(StoreFault){.kind = kind,
                                                       .count = count,
                                                       .method = method,
                                                       .path_prefix = PATH,
                                                       .status = status}));
}

static void change(Fixture *f, const char *method, const char *path, const char *body) {
        KubeRequest request = {.method = method, .path = path, .body = str_from(body)};
        Answer a = {0};

        ASSERT_OK(kube_call(f->client, &request, on_answer, &a, NULL));
        TURN_UNTIL(f, a.n > 0);
        ASSERT_INT(a.status, 200);
}

/* Two writes, each refused once. 409 is no fault: another replica wrote first. */
static void every_second_write_fails(void) {
        static const unsigned statuses[] = {409, 429};
        Fixture f;
        Keep k;

        fixture_begin(&f, 0);
        for (size_t i = 0; i < ELEMENTSOF(statuses); i++) {
                inject(&f, STORE_FAULT_STATUS, "POST", statuses[i], 1);
                inject(&f, STORE_FAULT_DELAY, "POST", 0, 1); /* carried out */
        }
        keep_begin(&f, &k);
        TURN_UNTIL(&f, k.keyrings == 1);
        ASSERT_INT(k.news, 2);
        ASSERT_INT(k.troubles, 0);
        change(&f, "DELETE", PATH "/tls", "");
        TURN_UNTIL(&f, k.news == 4);
        turn_for_a_while(&f);
        ASSERT_INT(k.news, 4);
        ASSERT_INT(k.keyrings, 1); /* it came back as it was */
        ASSERT_INT(k.troubles, 2);
        ASSERT_CONTAINS(k.fault.text, "HTTP 429");
        keep_end(&k);
        fixture_end(&f);
}

/* Another client changes the Secret again and again, and each write is refused. */
static void no_change_shortens_a_pause(void) {
        enum { CHANGES = 20 };
        char body[128];
        Fixture f;
        Keep k;

        fixture_begin(&f, 0);
        inject(&f, STORE_FAULT_STATUS, "PATCH", 429, 1000);
        apply(&f, "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"tls\","
                  "\"namespace\":\"ns\"}}");
        keep_begin(&f, &k);
        TURN_UNTIL(&f, k.troubles > 0);
        for (unsigned i = 0; i < CHANGES; i++) {
                (void) snprintf(body, sizeof body,
                                "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":"
                                "\"tls\",\"namespace\":\"ns\",\"labels\":{\"n\":\"%u\"}}}",
                                i);
                change(&f, "PUT", PATH "/tls", body);
                for (int turn = 0; turn < 10; turn++) /* the watch brings it */
                        ASSERT_TRUE(sd_event_run(f.event, 2000) >= 0);
        }
        ASSERT_TRUE(k.troubles < CHANGES / 2);
        keep_end(&k);
        fixture_end(&f);
}

/* Whatever is written into the Secret, the served keyring stays until there is a better one. */
static void rubbish_is_not_served(void) {
        Fixture f;
        Keep k;

        fixture_begin(&f, 0);
        keep_begin(&f, &k);
        TURN_UNTIL(&f, k.keyrings == 1);
        ASSERT_OK(kube_merge_patch(
                f.client, PATH "/tls", "",
                STR("{\"data\":{\"tls.crt\":\"eA==\",\"tls.key\":\"eA==\",\"ca.crt\":\"eA==\"}}"), STR(""),
                on_patched, &k, NULL));
        TURN_UNTIL(&f, k.patched);
        turn_for_a_while(&f);
        ASSERT_INT(k.keyrings, 1);
        cert_rotate_set_leading(k.rotation, true);
        TURN_UNTIL(&f, k.keyrings == 2);
        ASSERT_INT(keyring_need(&k.last, names, now_sec()), KEYRING_GOOD);
        keep_end(&k);
        fixture_end(&f);
}

int main(void) {
        return TEST_MAIN(TEST(a_replica_that_finds_none_makes_one), TEST(only_the_leader_renews),
                         TEST(an_old_authority_is_told), TEST(a_young_authority_is_not_told),
                         TEST(tries_again), TEST(every_second_write_fails), TEST(no_change_shortens_a_pause),
                         TEST(rubbish_is_not_served));
}
