/* SPDX-License-Identifier: Apache-2.0 */

/* The decoder of ResourcePolicies: what is read, what puts a policy out of force, and what is said
 * to have no effect. */

#include "base/buf.h"
#include "scheduler/policy/label_syntax.h"
#include "scheduler/policy/policy_spec.h"
#include "scheduler/policy/policy_time.h"
#include "test.h"

#define META(spec)                                                                                           \
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"nginx\",\"uid\":\"u1\",\"generation\":3,"       \
        "\"creationTimestamp\":\"2026-11-21T10:00:00Z\"},\"spec\":" spec ",\"status\":{\"x\":1}}"

static PolicySpec decode(Arena *arena, const char *text) {
        PolicySpec spec;
        Fault fault = FAULT_NULL;
        int r = policy_spec_decode(str_from(text), arena, &spec, &fault);

        if (r != 0)
                TEST_FAIL_("%s: %s", text, fault.text);
        return spec;
}

static void all_fields_are_read(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PolicySpec s = decode(
                &arena,
                META("{\"selector\":{\"app\":\"nginx\"},\"strategy\":\"prefer\",\"units\":["
                     "{\"resource\":\"ecs\",\"nodeSelector\":{\"paidtype\":\"subscription\"},\"max\":2,"
                     "\"podLabels\":{\"a\":\"b\",\"k8s.aliyun.com/resource-policy-wait-for-ecs-scaling\":"
                     "\"true\"},\"podAnnotations\":{\"c\":\"d\"}},"
                     "{\"resource\":\"eci\",\"maxResources\":{\"cpu\":\"1.5\",\"aliyun.com/gpu-mem\":8}},"
                     "{\"max\":0}],\"preemptPolicy\":\"BeforeNextUnit\",\"ignorePreviousPod\":true,"
                     "\"ignoreTerminatingPod\":false,\"matchLabelKeys\":[\"pod-template-hash\"],"
                     "\"whenTryNextUnits\":{\"policy\":\"TimeoutOrExceedMax\",\"timeout\":\"1m30s\"}}"));

        ASSERT_TEXT(s.wrong.text, "");
        ASSERT_TEXT(s.ignored.text, "");
        ASSERT_STR(s.meta.name, STR("nginx"));
        ASSERT_INT(s.generation, 3);
        ASSERT_INT(s.created, 1795255200);
        ASSERT_INT(s.selector.n, 1);
        ASSERT_INT(s.n_units, 3);
        ASSERT_TRUE(s.units[0].has_max && s.units[0].waits && !s.units[0].any_node);
        ASSERT_INT(s.units[0].max, 2);
        ASSERT_INT(s.units[0].labels.n, 1);
        ASSERT_INT(s.units[0].annotations.n, 1);
        ASSERT_FALSE(s.units[1].has_max);
        ASSERT_STR(s.units[1].selects.pairs[0].value, STR("virtual-kubelet"));
        ASSERT_INT(s.units[1].n_max_amounts, 2);
        ASSERT_INT(s.units[1].max_amounts[0].milli, 1500);
        ASSERT_INT(s.units[1].max_amounts[1].milli, 8000);
        ASSERT_TRUE(s.units[2].has_max && s.units[2].any_node);
        ASSERT_STR(s.units[2].resource, STR("ecs"));
        ASSERT_TRUE(s.preempts_before_next && s.ignores_previous && !s.ignores_terminating);
        ASSERT_INT(s.n_group_keys, 1);
        ASSERT_INT(s.next, POLICY_NEXT_TIMEOUT_OR_MAX);
        ASSERT_INT(s.timeout, 90);
}

static void defaults(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PolicySpec s = decode(&arena, META("{\"units\":[{\"resource\":\"elastic\"}]}"));

        ASSERT_TEXT(s.wrong.text, "");
        ASSERT_INT(s.selector.n, 0);
        ASSERT_TRUE(s.ignores_terminating && !s.ignores_previous && !s.preempts_before_next);
        ASSERT_INT(s.next, POLICY_NEXT_LACK_OR_MAX);
        ASSERT_INT(s.timeout, 900);
}

static void both_spellings(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        static const char *const texts[] = {
                META("{\"units\":[{}],\"whenTryNextUnits\":{\"policy\":\"LackResourceAndNoTerminating\"}}"),
                META("{\"units\":[{}],\"whenTryNextUnits\":{\"policy\":\"LackResourceAndNoterminating\"}}"),
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                ASSERT_INT(decode(&arena, texts[i]).next, POLICY_NEXT_LACK_AND_NO_TERMINATING);
}

/* A map of the unit, or the selector where field is NULL, with n keys. */
static void expect_size(const char *field, unsigned n, const char *wrong) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;

        buf_append_str(&text, STR("{\"metadata\":{\"name\":\"n\"},\"spec\":{"));
        if (field)
                buf_appendf(&text, "\"units\":[{\"%s\":{", field);
        else
                buf_append_str(&text, STR("\"units\":[{}],\"selector\":{"));
        for (unsigned i = 0; i < n; i++)
                buf_appendf(&text, "%s\"k%u\":\"%u\"", i > 0 ? "," : "", i, i);
        buf_append_str(&text, field ? STR("}}]}}") : STR("}}}"));
        ASSERT_TEXT(decode(&arena, text.data).wrong.text, wrong);
}

static void maps_have_at_most_64_keys(void) {
        static const char *const fields[] = {"nodeSelector", "maxResources", "podLabels", "podAnnotations"};
        char wrong[128];

        for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
                (void) snprintf(wrong, sizeof wrong, "spec.units[0].%s has 65 keys, must have at most 64",
                                fields[i]);
                expect_size(fields[i], 64, "");
                expect_size(fields[i], 65, wrong);
        }
        expect_size(NULL, 64, "");
        expect_size(NULL, 65, "spec.selector has 65 keys, must have at most 64");
}

static void what_breaks_a_rule_is_not_in_force(void) {
        static const struct {
                const char *object, *text;
        } cases[] = {
                {META("{}"), "spec.units is empty, must have from 1 to 32 units"},
                {META("null"), "spec.units is empty, must have from 1 to 32 units"},
                {META("{\"units\":[{}],\"strategy\":\"spread\"}"),
                 "spec.strategy is \"spread\", must be prefer"},
                {META("{\"units\":[{}],\"preemptPolicy\":\"Never\"}"),
                 "spec.preemptPolicy is \"Never\", must be AfterAllUnits or BeforeNextUnit"},
                {META("{\"units\":[{}],\"whenTryNextUnits\":{\"policy\":\"Soon\"}}"),
                 "spec.whenTryNextUnits.policy is \"Soon\", must be LackResourceOrExceedMax, ExceedMax, "
                 "LackResourceAndNoTerminating or TimeoutOrExceedMax"},
                {META("{\"units\":[{}],\"whenTryNextUnits\":{\"policy\":\"TimeoutOrExceedMax\",\"timeout\":"
                      "\"soon\"}}"),
                 "spec.whenTryNextUnits.timeout is \"soon\", must be a duration of at most a year, such as "
                 "15m"},
                {META("{\"units\":[{\"max\":-1}]}"), "spec.units[0].max is -1, must be from 0 to 2147483647"},
                {META("{\"units\":[{\"resource\":\"gpu\"}]}"),
                 "spec.units[0].resource is \"gpu\", must be ecs, eci, elastic or acs"},
                {META("{\"units\":[{},{\"maxResources\":{\"cpu\":\"much\"}}]}"),
                 "spec.units[1].maxResources[cpu] is \"much\", must be a quantity"},
                {META("{\"units\":[{\"podLabels\":{\"topology.kubernetes.io/zone\":\"a\"}}]}"),
                 "spec.units[0].podLabels has the key topology.kubernetes.io/zone, which belongs to "
                 "Kubernetes or to aliquot"},
                {META("{\"units\":[{\"podAnnotations\":{\"scheduler.framework.gpushare.allocation\":\"{}\"}}"
                      "]}"),
                 "spec.units[0].podAnnotations has the key scheduler.framework.gpushare.allocation, which "
                 "belongs to Kubernetes or to aliquot"},
                {META("{\"units\":[{}],\"selector\":{\"a b\":\"1\"}}"),
                 "spec.selector has the key \"a b\", must be 1 to 63 letters, digits, '-', '_' or '.', "
                 "with a letter or digit at both ends, and may begin with a DNS name and a slash"},
                {META("{\"units\":[{}],\"selector\":{\"app\":\"-x\"}}"),
                 "spec.selector[app] is \"-x\", must be empty or 1 to 63 letters"},
                {META("{\"units\":[{\"max\":1}],\"matchLabelKeys\":[\"hash\",\"a/b/c\"]}"),
                 "spec.matchLabelKeys has the key \"a/b/c\", must be"},
                {META("{\"units\":[{},{\"podLabels\":{\"Example.com/a\":\"1\"}}]}"),
                 "spec.units[1].podLabels has the key \"Example.com/a\", must be"},
                {META("{\"units\":[{\"podLabels\":{\"a\":\"b c\"}}]}"),
                 "spec.units[0].podLabels[a] is \"b c\", must be empty or"},
                {META("{\"units\":[{\"podAnnotations\":{\"a.\":\"any text\"}}]}"),
                 "spec.units[0].podAnnotations has the key \"a.\", must be"},
                {META("{\"units\":\"x\"}"), "spec: units: not an array"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                PolicySpec s = decode(&arena, cases[i].object);

                if (strncmp(s.wrong.text, cases[i].text, strlen(cases[i].text)) != 0)
                        TEST_FAIL_("%s: \"%s\"", cases[i].object, s.wrong.text);
        }
}

static void what_has_no_effect_is_said(void) {
        static const struct {
                const char *object, *text;
        } cases[] = {
                {META("{\"units\":[{\"nodeSelector\":{\"a\":\"1\"}},{\"nodeSelector\":{\"a\":\"1\",\"b\":"
                      "\"2\"}}]}"),
                 "spec.units[1] never gets a node: units[0] selects all of its nodes, and comes before it"},
                {META("{\"units\":[{\"nodeSelektor\":{}}],\"priority\":1,\"whenTryNextUnits\":{\"after\":1}"
                      "}"),
                 "spec.priority is not known; spec.units[0].nodeSelektor is not known; "
                 "spec.whenTryNextUnits.after is not known"},
                {META("{\"units\":[{}],\"matchLabelKeys\":[\"a\"]}"),
                 "spec.matchLabelKeys has an effect with max or maxResources alone"},
                {META("{\"units\":[{}],\"whenTryNextUnits\":{\"timeout\":\"5m\"}}"),
                 "spec.whenTryNextUnits.timeout has an effect with TimeoutOrExceedMax alone"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                PolicySpec s = decode(&arena, cases[i].object);

                ASSERT_TEXT(s.wrong.text, "");
                ASSERT_TEXT(s.ignored.text, cases[i].text);
        }
}

static void objects_without_a_name_are_malformed(void) {
        static const char *const texts[] = {"null", "{}", "[]", "{\"metadata\":{\"name\":5}}",
                                            "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"units\":[{}]"};

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                Fault fault = FAULT_NULL;
                PolicySpec spec;

                ASSERT_INT(policy_spec_decode(str_from(texts[i]), &arena, &spec, &fault), POLICY_E_MALFORMED);
                ASSERT_TRUE(fault.text[0] != '\0');
        }
}

static void identity_is_of_uid_and_spec(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        uint64_t one = decode(&arena, META("{\"units\":[{}]}")).identity;

        ASSERT_TRUE(decode(&arena, META("{\"units\":[{}]}")).identity == one);
        ASSERT_TRUE(decode(&arena, META("{\"units\":[{\"max\":1}]}")).identity != one);
}

static void reserved_keys(void) {
        static const char *const yes[] = {
                "kubernetes.io/x",     "a.b.kubernetes.io/x", "k8s.io/x",
                "aliquot.dev/x",       "x.aliquot.dev/y",     "ALIYUN_COM_GPU_MEM_IDX",
                "aliyun.com/gpu-count"};
        static const char *const no[] = {
                "app", "kubernetes.io", "mykubernetes.io/x", "k8s.aliyun.com/x", "example.com/kubernetes.io",
                ""};

        for (size_t i = 0; i < ELEMENTSOF(yes); i++)
                if (!policy_spec_key_is_reserved(str_from(yes[i])))
                        TEST_FAIL_("%s", yes[i]);
        for (size_t i = 0; i < ELEMENTSOF(no); i++)
                if (policy_spec_key_is_reserved(str_from(no[i])))
                        TEST_FAIL_("%s", no[i]);
}

static void label_syntax(void) {
        static const char long_name[] = "a123456789b123456789c123456789d123456789e123456789f123456789123";
        static const char *const keys[] = {"a",   "A.b_c-9", "example.com/a",
                                           "e/a", long_name, "x-1.y.z/A_b-c"};
        static const char *const others[] = {"",       "/a",   "e/",   "e/a/b",  "E/a",
                                             "-a",     "a_",   "a b",  "e..f/a", "e-.f/a",
                                             "e.-f/a", ".e/a", "e./a", "e_f/a",  "\xc3\xa9"};

        ASSERT_INT(strlen(long_name), 63);
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (!label_syntax_is_key(str_from(keys[i])))
                        TEST_FAIL_("%s is no key", keys[i]);
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                if (label_syntax_is_key(str_from(others[i])))
                        TEST_FAIL_("%s is a key", others[i]);
        ASSERT_FALSE(
                label_syntax_is_key(STR("a123456789b123456789c123456789d123456789e123456789f1234567891234")));
        ASSERT_TRUE(label_syntax_is_annotation_key(STR("E/a")));
        ASSERT_TRUE(label_syntax_is_value(STR("")) && label_syntax_is_value(STR("True")));
        ASSERT_FALSE(label_syntax_is_value(STR("e/a")));
}

static void durations(void) {
        static const struct {
                const char *text;
                int64_t seconds; /* -1: none */
        } cases[] = {{"15m", 900}, {"1h30m", 5400}, {"1.5h", 5400}, {"90s", 90},   {"0", 0},     {"0s", 0},
                     {"500ms", 0}, {"", -1},        {"15", -1},     {"m", -1},     {"1m ", -1},  {"-1m", -1},
                     {"1d", -1},   {".m", -1},      {"9000h", -1},  {"1..5h", -1}, {"1e3s", -1}, {"1ms", 0}};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t seconds = 0;
                bool good = policy_time_duration(str_from(cases[i].text), &seconds);

                if (good != (cases[i].seconds >= 0) || (good && (int64_t) seconds != cases[i].seconds))
                        TEST_FAIL_("%s: %d %llu", cases[i].text, good, (unsigned long long) seconds);
        }
}

int main(void) {
        return TEST_MAIN(TEST(all_fields_are_read), TEST(defaults), TEST(both_spellings),
                         TEST(maps_have_at_most_64_keys), TEST(what_breaks_a_rule_is_not_in_force),
                         TEST(what_has_no_effect_is_said), TEST(objects_without_a_name_are_malformed),
                         TEST(identity_is_of_uid_and_spec), TEST(reserved_keys), TEST(durations),
                         TEST(label_syntax));
}
