/* SPDX-License-Identifier: Apache-2.0 */
#include "share/compute.h"
#include "test.h"

static int want(CardCompute *t, const char *policy, const char *max_inst, const char *ratio, Fault *fault) {
        NodeAnnotations a = {
                .policy = str_from(policy), .max_inst = str_from(max_inst), .prio_ratio = str_from(ratio)};

        *fault = FAULT_NULL;
        return compute_update(t, &a, COMPUTE_NATIVE, fault);
}

static void the_annotation_goes_before_the_chart(void) {
        CardCompute t = {0};
        Fault fault;

        ASSERT_OK(want(&t, "", "", "", &fault));
        ASSERT_INT(t.policy, COMPUTE_NATIVE);
        ASSERT_TRUE(t.yields);
        ASSERT_INT(t.max_inst | t.prio_ratio, 0);
        ASSERT_OK(want(&t, "4", "8", "20", &fault));
        ASSERT_INT(t.policy, COMPUTE_SOFT);
        ASSERT_FALSE(t.yields);
        ASSERT_INT(t.max_inst, 8);
        ASSERT_INT(t.prio_ratio, 20);
        ASSERT_OK(want(&t, "", "", "", &fault));
        ASSERT_INT(t.policy, COMPUTE_NATIVE);
        ASSERT_INT(t.max_inst | t.prio_ratio, 0);
        ASSERT_OK(want(&t, "0", "100", "99", &fault));
        ASSERT_INT(t.policy, COMPUTE_FAIR);
        ASSERT_OK(want(&t, "5", "1", "", &fault));
        ASSERT_FALSE(t.yields); /* by an annotation */
        ASSERT_OK(want(&t, "1", "1", "", &fault));
        ASSERT_TRUE(t.yields);
}

/* Each by itself: a good annotation beside a malformed one is in force. */
static void of_what_is_malformed_the_value_before_stays(void) {
        static const char *const policies[] = {"6", "-1", "x", "03x", " 3", "4294967296", "1.0"},
                                 *const instances[] = {"0", "101", "ten", "-5"},
                                 *const ratios[] = {"19", "100", "80%", "0"};
        CardCompute t = {0};
        Fault fault;

        ASSERT_OK(want(&t, "2", "7", "33", &fault));
        for (size_t i = 0; i < ELEMENTSOF(policies); i++) {
                ASSERT_INT(want(&t, policies[i], "7", "33", &fault), COMPUTE_E_NODE);
                ASSERT_CONTAINS(fault.text, policies[i]);
                ASSERT_INT(t.policy, COMPUTE_WEIGHTED);
                ASSERT_FALSE(t.yields);
        }
        for (size_t i = 0; i < ELEMENTSOF(instances); i++) {
                ASSERT_INT(want(&t, "2", instances[i], "33", &fault), COMPUTE_E_NODE);
                ASSERT_INT(t.max_inst, 7);
        }
        for (size_t i = 0; i < ELEMENTSOF(ratios); i++) {
                ASSERT_INT(want(&t, "2", "7", ratios[i], &fault), COMPUTE_E_NODE);
                ASSERT_INT(t.prio_ratio, 33);
        }
        ASSERT_INT(want(&t, "9", "8", "1", &fault), COMPUTE_E_NODE);
        ASSERT_INT(t.policy, COMPUTE_WEIGHTED);
        ASSERT_INT(t.max_inst, 8);
        ASSERT_TEXT(fault.text, "annotation aliquot.dev/policy is \"9\", must be 0 to 5; annotation "
                                "aliquot.dev/prio-ratio is \"1\", must be a percentage from 20 to 99");
}

static void modes(void) {
        CardCompute t = compute_configured(COMPUTE_PREEMPTIVE), r;

        t.max_inst = 3;
        t.prio_ratio = 40;
        r = compute_for_mode(&t, SHARE_MODE_CORE_MEM);
        ASSERT_INT(r.policy, COMPUTE_FIXED); /* whatever the annotations say */
        ASSERT_FALSE(r.yields);
        ASSERT_INT(r.prio_ratio, 40);
        r = compute_for_mode(&t, SHARE_MODE_CGPU);
        ASSERT_INT(r.policy, COMPUTE_PREEMPTIVE);
        ASSERT_TRUE(r.yields);
        t = compute_configured(COMPUTE_NATIVE);
        ASSERT_TRUE(compute_for_mode(&t, SHARE_MODE_CGPU).yields);
        for (ComputePolicy policy = COMPUTE_WEIGHTED; policy <= COMPUTE_SOFT; policy++) {
                t = compute_configured(policy);
                ASSERT_FALSE(compute_for_mode(&t, SHARE_MODE_CGPU).yields);
        }
        t = compute_configured(COMPUTE_FAIR);
        ASSERT_INT(compute_for_mode(&t, SHARE_MODE_CGPU).max_inst, 20);
}

/* Other versions read pages and annotations, too. */
static void numbers_stay(void) {
        ASSERT_INT(compute_policy_from_number(0), 1);
        ASSERT_INT(COMPUTE_FAIR, 1);
        ASSERT_INT(COMPUTE_PREEMPTIVE, 2);
        ASSERT_INT(COMPUTE_WEIGHTED, 3);
        ASSERT_INT(COMPUTE_FIXED, 4);
        ASSERT_INT(COMPUTE_SOFT, 5);
        ASSERT_INT(COMPUTE_NATIVE, 6);
        ASSERT_INT(compute_policy_from_number(COMPUTE_NUMBER_MAX), COMPUTE_NATIVE);
}

#define ENV(name, rest) "{\"name\":\"" name "\"," rest "}"
#define VALUE(text)     "\"value\":\"" text "\""
#define FROM            "\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.name\"}}"
#define WEIGHT          "ALIYUN_COM_GPU_SCHD_WEIGHT"
#define HIGH            "ALIYUN_COM_GPU_HIGH_PRIO"
#define DISABLE         "CGPU_DISABLE"

static int ask(const char *env, ComputeRequest *ret, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        char text[1024];
        Pod pod;

        (void) snprintf(
                text, sizeof text,
                "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"env\":[%s]}]}"
                "}",
                env);
        ASSERT_OK(pod_decode(str_from(text), &arena, &pod, NULL));
        *fault = FAULT_NULL;
        return compute_request(&pod.containers[0], ret, fault);
}

static void containers_say_weight_and_priority(void) {
        ComputeRequest a;
        Fault fault;

        ASSERT_OK(ask("", &a, &fault));
        ASSERT_INT(a.weight, 1);
        ASSERT_FALSE(a.high_priority);
        ASSERT_OK(ask(ENV(WEIGHT, VALUE("3")) "," ENV(HIGH, VALUE("1")), &a, &fault));
        ASSERT_INT(a.weight, 3);
        ASSERT_TRUE(a.high_priority);
        ASSERT_OK(
                /* The last one. */
                ask(ENV(WEIGHT, VALUE("3")) "," ENV(WEIGHT, VALUE("10000")), &a, &fault));
        ASSERT_INT(a.weight, 10000);
        ASSERT_OK(ask(ENV(WEIGHT, FROM) "," ENV(WEIGHT, VALUE("2")), &a, &fault));
        ASSERT_INT(a.weight, 2);
        ASSERT_OK(ask(ENV(WEIGHT, VALUE("")) "," ENV(HIGH, VALUE("0")), &a, &fault));
        ASSERT_INT(a.weight, 1);
        ASSERT_FALSE(a.high_priority);
}

static void what_is_not_understood_is_named(void) {
        ComputeRequest a;
        Fault fault;

        ASSERT_INT(ask(ENV(WEIGHT, VALUE("0")), &a, &fault), COMPUTE_E_REQUEST);
        ASSERT_INT(a.weight, 1);
        ASSERT_TEXT(fault.text, "environment " WEIGHT " is \"0\", must be a whole number from 1 to 10000");
        ASSERT_INT(ask(ENV(WEIGHT, VALUE("10001")) "," ENV(HIGH, VALUE("1")), &a, &fault), COMPUTE_E_REQUEST);
        ASSERT_INT(a.weight, 1);
        ASSERT_TRUE(a.high_priority); /* the good one is in force */
        ASSERT_INT(ask(ENV(WEIGHT, VALUE("2")) "," ENV(HIGH, VALUE("true")), &a, &fault), COMPUTE_E_REQUEST);
        ASSERT_INT(a.weight, 2);
        ASSERT_FALSE(a.high_priority);
        ASSERT_TEXT(fault.text, "environment " HIGH " is \"true\", must be 0 or 1");
        ASSERT_INT(ask(ENV(WEIGHT, VALUE("2")) "," ENV(WEIGHT, FROM) "," ENV(HIGH, FROM), &a, &fault),
                   COMPUTE_E_REQUEST);
        ASSERT_INT(a.weight, 1);
        ASSERT_TEXT(fault.text, WEIGHT " comes from elsewhere (valueFrom), which is not read; " HIGH
                                       " comes from elsewhere (valueFrom), which is not read");
}

static void a_disable_that_has_no_effect_is_named(void) {
        static const char *const good[] = {"true", "1", "false", "0", ""};
        ComputeRequest a;
        Fault fault;

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                char env[64];

                (void) snprintf(env, sizeof env, ENV(DISABLE, "\"value\":\"%s\""), good[i]);
                ASSERT_OK(ask(env, &a, &fault));
        }
        ASSERT_INT(ask(ENV(DISABLE, VALUE("yes")), &a, &fault), COMPUTE_E_REQUEST);
        ASSERT_TEXT(fault.text, "environment " DISABLE " is \"yes\", must be true, 1, false or 0");
        ASSERT_INT(ask(ENV(DISABLE, FROM), &a, &fault), COMPUTE_E_REQUEST);
        ASSERT_TEXT(fault.text, DISABLE " comes from elsewhere (valueFrom), which is not read");
}

int main(void) {
        return TEST_MAIN(TEST(the_annotation_goes_before_the_chart),
                         TEST(of_what_is_malformed_the_value_before_stays), TEST(modes), TEST(numbers_stay),
                         TEST(containers_say_weight_and_priority), TEST(what_is_not_understood_is_named),
                         TEST(a_disable_that_has_no_effect_is_named));
}
