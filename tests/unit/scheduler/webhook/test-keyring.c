/* SPDX-License-Identifier: Apache-2.0 */

/* A keyring in each of its states. Then the ten years of a CA, with late replicas: at no time may a
 * certificate be refused. */

#include "scheduler/webhook/keyring.h"

#include "verify.h"

#define NOW INT64_C(1800000000)
#define DAY INT64_C(86400)

static const char *const names[] = {"hook.ns.svc", "hook.ns.svc.cluster.local", "hook.ns", NULL};
static const char *const other_names[] = {"other.ns.svc", NULL};

static void step(Keyring *k, KeyringNeed need, const char *const *for_names, int64_t now) {
        Fault fault = FAULT_NULL;
        Keyring next;

        ASSERT_INT(keyring_need(k, for_names, now), need);
        if (keyring_step(k, need, for_names, now, &next, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
        keyring_done(k);
        *k = next;
}

static void replace(Keyring *k, size_t i, const char *text) {
        free(k->texts[i]);
        k->texts[i] = text ? str_dup(str_from(text)) : NULL;
}

static unsigned authorities(const Keyring *k) {
        unsigned n = 0;

        for (const char *at = k->texts[KEYRING_AUTHORITIES]; (at = strstr(at, "BEGIN")); at++)
                n++;
        return n;
}

static void assert_serves(const Keyring *k, int64_t now) {
        ASSERT_TRUE(keyring_can_serve(k));
        ASSERT_INT(verify_server(k->texts[KEYRING_CERT], k->texts[KEYRING_AUTHORITIES], names[0], now), 0);
}

static void begins_and_renews(void) {
        _cleanup_keyring_ Keyring k = KEYRING_NULL, before = KEYRING_NULL;

        ASSERT_FALSE(keyring_can_serve(&k));
        step(&k, KEYRING_EMPTY, names, NOW);
        assert_serves(&k, NOW);
        ASSERT_INT(keyring_need(&k, names, NOW), KEYRING_GOOD);
        ASSERT_INT(keyring_need(&k, names, NOW + 59 * DAY), KEYRING_GOOD);
        ASSERT_OK(keyring_copy(&k, &before));
        step(&k, KEYRING_RENEW, names, NOW + 61 * DAY);
        assert_serves(&k, NOW + 61 * DAY);
        ASSERT_INT(keyring_need(&k, names, NOW + 61 * DAY), KEYRING_GOOD);
        ASSERT_TEXT(k.texts[KEYRING_AUTHORITIES], before.texts[KEYRING_AUTHORITIES]);
        ASSERT_TRUE(strcmp(k.texts[KEYRING_CERT], before.texts[KEYRING_CERT]) != 0);
        ASSERT_INT(keyring_need(&k, other_names, NOW + 61 * DAY),
                   KEYRING_RENEW); /* the Service has a new name */
        ASSERT_INT(keyring_need(&k, names, NOW - 3650 * DAY),
                   KEYRING_GOOD); /* with a wrong clock no step helps */
}

/* A leader with a fast clock made the certificate. The next leader need not wait until it becomes
 * valid. If the clock of the next one is slow instead, no harm is done. */
static void a_certificate_of_the_future_is_replaced(void) {
        _cleanup_keyring_ Keyring k = KEYRING_NULL;

        step(&k, KEYRING_EMPTY, names, NOW + 7 * DAY);
        ASSERT_INT(keyring_need(&k, names, NOW + 7 * DAY - 1800), KEYRING_GOOD); /* clock skew */
        step(&k, KEYRING_BROKEN, names, NOW);
        assert_serves(&k, NOW);
        assert_serves(&k, NOW + 7 * DAY);
        step(&k, KEYRING_RENEW, names, NOW + 61 * DAY);
        step(&k, KEYRING_RENEW, names, NOW + 59 * DAY);
        assert_serves(&k, NOW + 59 * DAY);
        ASSERT_INT(keyring_need(&k, names, NOW + 61 * DAY), KEYRING_GOOD);
        ASSERT_INT(keyring_need(&k, names, NOW + 59 * DAY - KEYRING_CERT_LIFE / 3 - 3600), KEYRING_GOOD);
}

/* The certificate is of another CA than that of the bundle, or the bundle has none. */
static void an_untrusted_certificate_is_not_served(void) {
        _cleanup_keyring_ Keyring k = KEYRING_NULL, other = KEYRING_NULL;

        step(&k, KEYRING_EMPTY, names, NOW);
        step(&other, KEYRING_EMPTY, names, NOW);
        replace(&k, KEYRING_CERT, other.texts[KEYRING_CERT]);
        replace(&k, KEYRING_KEY, other.texts[KEYRING_KEY]);
        ASSERT_FALSE(keyring_can_serve(&k));
        replace(&other, KEYRING_AUTHORITIES, "junk");
        ASSERT_FALSE(keyring_can_serve(&other));
        step(&k, KEYRING_RENEW, names, NOW);
        step(&other, KEYRING_BROKEN, names, NOW);
        assert_serves(&k, NOW);
        assert_serves(&other, NOW);
}

/* The Secret was edited by hand. */
static void mends_what_is_broken(void) {
        static const struct {
                size_t text;
                KeyringNeed need;
        } cases[] = {
                {KEYRING_CERT, KEYRING_RENEW},
                {KEYRING_KEY, KEYRING_RENEW},
                {KEYRING_AUTHORITY_KEY, KEYRING_BROKEN},
                {KEYRING_AUTHORITIES, KEYRING_BROKEN},
        };
        _cleanup_keyring_ Keyring good = KEYRING_NULL, other = KEYRING_NULL;

        step(&good, KEYRING_EMPTY, names, NOW);
        step(&other, KEYRING_EMPTY, names, NOW);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *bad[] = {NULL, "rubbish", other.texts[cases[i].text]};

                for (size_t b = 0; b < ELEMENTSOF(bad); b++) {
                        _cleanup_keyring_ Keyring k = KEYRING_NULL;

                        ASSERT_OK(keyring_copy(&good, &k));
                        replace(&k, cases[i].text, bad[b]);
                        step(&k, cases[i].need, names, NOW);
                        assert_serves(&k, NOW);
                        ASSERT_INT(keyring_need(&k, names, NOW), KEYRING_GOOD);
                }
        }
        replace(&good, KEYRING_AUTHORITY_KEY, NULL);
        step(&other, KEYRING_GOOD, names, NOW);
        step(&good, KEYRING_BROKEN, names, NOW);
        ASSERT_INT(authorities(&good), 2); /* replicas may still serve its certificates */
}

/* A key and a matching certificate are not enough for a CA. */
static void replaces_an_authority_that_is_none(void) {
        _cleanup_keyring_ Keyring k = KEYRING_NULL, ending = KEYRING_NULL;

        step(&k, KEYRING_EMPTY, names, NOW);
        replace(&k, KEYRING_AUTHORITIES, k.texts[KEYRING_CERT]);
        replace(&k, KEYRING_AUTHORITY_KEY, k.texts[KEYRING_KEY]);
        step(&k, KEYRING_RENEW, names, NOW);
        assert_serves(&k, NOW);
        ASSERT_INT(keyring_need(&k, names, NOW), KEYRING_GOOD);

        step(&ending, KEYRING_EMPTY, names, NOW); /* nor is one that expires in a minute */
        step(&ending, KEYRING_RENEW, names, NOW + KEYRING_AUTHORITY_LIFE - 60);
        ASSERT_INT(keyring_need(&ending, names, NOW + KEYRING_AUTHORITY_LIFE - 60), KEYRING_GOOD);
        assert_serves(&ending, NOW + KEYRING_AUTHORITY_LIFE + 60);
}

/* The documented patch takes the key away. The old CA stays trusted, because replicas may still
 * serve its certificate. */
static void another_authority_is_made_by_hand(void) {
        _cleanup_keyring_ Keyring k = KEYRING_NULL, before = KEYRING_NULL;
        int64_t late = NOW + 2500 * DAY;

        step(&k, KEYRING_EMPTY, names, NOW);
        ASSERT_FALSE(keyring_authority_ages(&k, NOW + 2400 * DAY));
        step(&k, KEYRING_RENEW, names, late);
        ASSERT_TRUE(keyring_authority_ages(&k, late));
        ASSERT_INT(keyring_need(&k, names, late), KEYRING_GOOD); /* nothing is done about it */
        ASSERT_OK(keyring_copy(&k, &before));
        replace(&k, KEYRING_AUTHORITY_KEY, NULL);
        step(&k, KEYRING_BROKEN, names, late);
        assert_serves(&k, late);
        ASSERT_INT(authorities(&k), 2);
        ASSERT_FALSE(keyring_authority_ages(&k, late));
        ASSERT_INT(verify_server(before.texts[KEYRING_CERT], k.texts[KEYRING_AUTHORITIES], names[0], late),
                   0);
}

/* A replica and an API server that are one step behind are served, as long as the CA lives. */
static void ten_years(void) {
        enum { STEP_DAYS = 12, STEPS = 3640 / STEP_DAYS };
        _cleanup_keyring_ Keyring k = KEYRING_NULL, served = KEYRING_NULL;
        _cleanup_free_ char *bundle = NULL;
        unsigned renewed = 0;

        step(&k, KEYRING_EMPTY, names, NOW);
        bundle = str_dup(str_from(k.texts[KEYRING_AUTHORITIES]));
        for (int i = 0; i < STEPS; i++) {
                int64_t now = NOW + i * STEP_DAYS * DAY;
                KeyringNeed need = keyring_need(&k, names, now);

                keyring_done(&served);
                ASSERT_OK(keyring_copy(&k, &served));
                ASSERT_TRUE(need == KEYRING_GOOD || need == KEYRING_RENEW);
                step(&k, need, names, now);
                renewed += need == KEYRING_RENEW;
                ASSERT_INT(verify_server(served.texts[KEYRING_CERT], bundle, names[0], now), 0);
                ASSERT_INT(verify_server(k.texts[KEYRING_CERT], bundle, names[0], now), 0);
                ASSERT_TEXT(k.texts[KEYRING_AUTHORITIES], bundle);
        }
        ASSERT_TRUE(renewed > 50);
}

static void passes_through_a_secret(void) {
        _cleanup_keyring_ Keyring k = KEYRING_NULL, back = KEYRING_NULL;
        _cleanup_buf_ Buf object = BUF_NULL, patch = BUF_NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str name, version;

        step(&k, KEYRING_EMPTY, names, NOW);
        keyring_write(&k, "ns", "tls", &object);
        ASSERT_OK(buf_result(&object));
        ASSERT_OK(keyring_decode(buf_str(&object), &arena, &back, &name, &version, NULL));
        ASSERT_STR(name, STR("tls"));
        for (size_t i = 0; i < KEYRING_TEXTS_; i++)
                ASSERT_TEXT(back.texts[i], k.texts[i]);
        ASSERT_CONTAINS(object.data, "\"type\":\"kubernetes.io/tls\"");
        replace(&k, KEYRING_KEY, NULL);
        keyring_write(&k, NULL, NULL, &patch);
        ASSERT_CONTAINS(patch.data, "\"tls.key\":null}}");
}

static void takes_no_rubbish(void) {
        static const struct {
                const char *json;
                int result;
        } cases[] = {
                {"", KEYRING_E_MALFORMED},
                {"{\"data\":7}", KEYRING_E_MALFORMED},
                {"{\"data\":{\"tls.crt\":7}}", KEYRING_E_MALFORMED},
                {"{}", 0},
                {"{\"data\":null}", 0},
                {"{\"data\":{\"tls.crt\":\"*\",\"tls.key\":\"AA==\",\"ca.crt\":\"\",\"else\":\"eA==\"}}", 0},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_keyring_ Keyring k = KEYRING_NULL;
                _cleanup_arena_ Arena arena = ARENA_NULL;
                Fault fault = FAULT_NULL;
                Str name, version;

                ASSERT_INT(keyring_decode(str_from(cases[i].json), &arena, &k, &name, &version, &fault),
                           cases[i].result);
                ASSERT_INT(keyring_need(&k, names, NOW), KEYRING_EMPTY);
        }
}

int main(void) {
        return TEST_MAIN(TEST(begins_and_renews), TEST(a_certificate_of_the_future_is_replaced),
                         TEST(an_untrusted_certificate_is_not_served), TEST(mends_what_is_broken),
                         TEST(replaces_an_authority_that_is_none), TEST(another_authority_is_made_by_hand),
                         TEST(ten_years), TEST(passes_through_a_secret), TEST(takes_no_rubbish));
}
