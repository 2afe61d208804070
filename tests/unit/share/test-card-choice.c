/* SPDX-License-Identifier: Apache-2.0 */
#include "share/card_choice.h"
#include "test.h"

#define V100 STR("Tesla V100-SXM2-16GB")
#define A100 STR("NVIDIA A100-SXM4-80GB")
#define ONE  STR("GPU-03f69c50-207a-2038-9b45-23cac89cb67d")
#define TWO  STR("GPU-03f69c50-207a-2038-9b45-23cac89cb67e")

static CardVerdict judge(PodAnnotations keys, Str model, Str uuid) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        CardChoiceFault fault;
        const CardChoice *choice;

        if (card_choice_read(&keys, &arena, &choice, &fault) != 0)
                TEST_FAIL_("%s %s", fault.key, fault.rule);
        return choice ? card_choice_judge(choice, model, uuid) : CARD_ALLOWED;
}

#define ALLOWS(keys, model, uuid)  ASSERT_INT(judge((PodAnnotations) keys, model, uuid), CARD_ALLOWED)
#define FORBIDS(keys, model, uuid) ASSERT_INT(judge((PodAnnotations) keys, model, uuid), CARD_FORBIDDEN)
#define UNKNOWN(keys, model, uuid) ASSERT_INT(judge((PodAnnotations) keys, model, uuid), CARD_NOT_KNOWN)
#define KEYS(...)                                                                                            \
        { __VA_ARGS__ }

static void a_model_is_named_by_a_part_of_it(void) {
        ALLOWS(KEYS(.gpu_type = STR("A100")), A100, ONE);
        ALLOWS(KEYS(.gpu_type = STR("nvidia a100")), A100, ONE);
        ALLOWS(KEYS(.gpu_type = STR("NVIDIA-A100")), A100, ONE); /* as labels write it */
        ALLOWS(KEYS(.gpu_type = STR("80GB")), A100, ONE);
        ALLOWS(KEYS(.gpu_type = A100), A100, ONE);
        FORBIDS(KEYS(.gpu_type = STR("A100-SXM4-80GB-")), A100, ONE);
        FORBIDS(KEYS(.gpu_type = STR("V100")), A100, ONE);
        ALLOWS(KEYS(.gpu_type = STR("V100, A100")), A100, ONE);
        FORBIDS(KEYS(.gpu_type = STR("!a100")), A100, ONE);
        ALLOWS(KEYS(.gpu_type = STR("!a100")), V100, ONE);
        FORBIDS(KEYS(.gpu_type = STR("A100,!80GB")), A100, ONE);
        ALLOWS(KEYS(.gpu_type = STR("A100,! 40GB")), A100, ONE);
}

static void a_uuid_is_named_by_a_part_of_it(void) {
        ALLOWS(KEYS(.gpu_uuid = ONE), A100, ONE);
        FORBIDS(KEYS(.gpu_uuid = ONE), A100, TWO);
        ALLOWS(KEYS(.gpu_uuid = STR("gpu-03F69C50")), A100, TWO);
        FORBIDS(KEYS(.gpu_uuid = STR("!23cac89cb67e")), A100, TWO);
        ALLOWS(KEYS(.gpu_uuid = STR("!23cac89cb67e")), A100, ONE);
}

/* The examples of HAMi (examples/nvidia) and of vgpu-manager (README.md). */
static void the_keys_of_other_projects_mean_what_they_mean_there(void) {
        ALLOWS(KEYS(.use_gputype = STR("A100,V100")), V100, ONE);
        FORBIDS(KEYS(.use_gputype = STR("A100,V100")), STR("NVIDIA A10"), ONE);
        FORBIDS(KEYS(.nouse_gputype = STR("1080,2080")), STR("NVIDIA GeForce RTX 2080 Ti"), ONE);
        ALLOWS(KEYS(.nouse_gputype = STR("1080,2080")), A100, ONE);
        ALLOWS(KEYS(.use_gpuuuid = STR("x, GPU-03f69c50-207a-2038-9b45-23cac89cb67d")), A100, ONE);
        FORBIDS(KEYS(.nouse_gpuuuid = ONE), A100, ONE);
        ALLOWS(KEYS(.include_gpu_type = STR("A10"), .exclude_gpu_type = STR("A100")), STR("NVIDIA A10"), ONE);
        FORBIDS(KEYS(.include_gpu_type = STR("A10"), .exclude_gpu_type = STR("A100")), A100, ONE);
        ALLOWS(KEYS(.include_gpu_uuid = ONE), A100, ONE);
        FORBIDS(KEYS(.include_gpu_uuid = STR("GPU-03f6"), .exclude_gpu_uuid = ONE), A100, ONE);
}

static void every_key_must_allow_the_card(void) {
        ALLOWS(KEYS(.gpu_type = STR("A100"), .use_gputype = STR("80GB"), .gpu_uuid = ONE), A100, ONE);
        FORBIDS(KEYS(.gpu_type = STR("A100"), .use_gputype = STR("V100")), A100, ONE);
        FORBIDS(KEYS(.gpu_type = STR("A100"), .gpu_uuid = ONE), A100, TWO);
        FORBIDS(KEYS(.use_gputype = STR("A100,V100"), .nouse_gputype = STR("A100")), A100, ONE);
        ALLOWS(KEYS(.use_gputype = STR("A100,V100"), .nouse_gputype = STR("A100")), V100, ONE);
}

static void empty_entries_are_passed_over(void) {
        static const char *const empty[] = {"", " ", ",", " ,\n,"};

        for (size_t i = 0; i < ELEMENTSOF(empty); i++) {
                PodAnnotations keys = {.use_gputype = str_from(empty[i])};

                ALLOWS(KEYS(.use_gputype = str_from(empty[i]), .use_gpuuuid = str_from(empty[i])), A100, ONE);
                ALLOWS(KEYS(.nouse_gputype = str_from(empty[i]), .gpu_uuid = str_from(empty[i])), A100, ONE);
                ASSERT_INT(card_choice_has_empty_entry(&keys, 2), i > 0);
        }
        FORBIDS(KEYS(.use_gputype = STR("V100,")), A100, ONE);
        ALLOWS(KEYS(.use_gputype = STR("\n,A100,\n")), A100, ONE);
        ASSERT_FALSE(card_choice_has_empty_entry(&(PodAnnotations){.use_gputype = STR("A100,V100")}, 2));
        ASSERT_TRUE(card_choice_has_empty_entry(&(PodAnnotations){.use_gputype = STR("A100,")}, 2));
        ASSERT_FALSE(card_choice_has_empty_entry(&(PodAnnotations){.gpu_type = STR("A100,")}, 2));
}

static void a_card_that_is_not_known_is_not_allowed(void) {
        UNKNOWN(KEYS(.gpu_type = STR("A100")), STR(""), ONE);
        UNKNOWN(KEYS(.gpu_type = STR("!A100")), STR(""), ONE);
        UNKNOWN(KEYS(.gpu_uuid = STR("!GPU-1")), A100, STR(""));
        ALLOWS(KEYS(.gpu_type = STR("A100")), A100, STR(""));
        FORBIDS(KEYS(.gpu_type = STR("A100"), .gpu_uuid = ONE), STR(""), TWO);
}

static void refuses_malformed_lists(void) {
        static char long_one[CARD_ENTRY_MAX + 2], many[2 * (CARD_ENTRIES_MAX + 1)];
        const struct {
                PodAnnotations keys;
                const char *key, *rule;
        } cases[] = {
                {{.gpu_type = STR("!")}, "aliquot.dev/gpu-type", "must have a name after one \"!\""},
                {{.gpu_type = STR("A100,!!V100")},
                 "aliquot.dev/gpu-type",
                 "must have a name after one \"!\""},
                {{.nouse_gputype = STR("!A100")},
                 "nvidia.com/nouse-gputype",
                 "must not begin with \"!\" in this key"},
                {{.include_gpu_uuid = STR("a,!b")},
                 "nvidia.com/include-gpu-uuid",
                 "must not begin with \"!\" in this key"},
                {{.use_gputype = STR("A1\00100")},
                 "nvidia.com/use-gputype",
                 "has a character that is not printable ASCII"},
                {{.use_gputype = STR("A\xc3\xa9")},
                 "nvidia.com/use-gputype",
                 "has a character that is not printable ASCII"},
                {{.use_gpuuuid = (Str){long_one, CARD_ENTRY_MAX + 1}},
                 "nvidia.com/use-gpuuuid",
                 "must have at most 95 characters"},
                {{.gpu_uuid = (Str){many, sizeof many}},
                 "aliquot.dev/gpu-uuid",
                 "exceeds 64 entries, the most of all such keys of a pod"},
                {{.use_gputype = STR("A100"), .nouse_gputype = STR("a100,V100")},
                 "nvidia.com/use-gputype",
                 "wants only cards that the pod's annotations exclude"},
                {{.gpu_type = STR("A100-80GB,!A100")},
                 "aliquot.dev/gpu-type",
                 "wants only cards that the pod's annotations exclude"},
        };

        memset(long_one, 'x', sizeof long_one);
        for (size_t i = 0; i < sizeof many; i++)
                many[i] = i % 2 == 0 ? 'x' : ',';
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                CardChoiceFault fault = {0};
                const CardChoice *choice;

                ASSERT_INT(card_choice_read(&cases[i].keys, &arena, &choice, &fault),
                           CARD_CHOICE_E_MALFORMED);
                ASSERT_TEXT(fault.key, cases[i].key);
                ASSERT_TEXT(fault.rule, cases[i].rule);
        }
        ALLOWS(KEYS(.gpu_uuid = ((Str){many, sizeof many - 3})), A100, STR("GPU-x")); /* 64 entries */
        FORBIDS(KEYS(.use_gpuuuid = ((Str){long_one, CARD_ENTRY_MAX})), A100, ONE);
}

static void says_the_choice_in_words(void) {
        static const struct {
                PodAnnotations keys;
                const char *words, *few;
        } cases[] = {
                {{.gpu_type = STR("A100")}, " of type A100", " of type A100"},
                {{.gpu_type = STR("A100, V100,!A10G")},
                 " of type A100 or V100, not A10G",
                 " of type A100 or V100.."},
                {{.use_gputype = STR("A100"), .nouse_gputype = STR("80GB")},
                 " of type A100, not of type 80GB",
                 " of type A100.."},
                {{.nouse_gputype = STR("K80,M60")}, " not of type K80, not M60", " not of type K80.."},
                {{.use_gpuuuid = ONE},
                 " of UUID GPU-03f69c50-207a-2038-9b45-23cac89cb67d",
                 " of UUID GPU-03f69c50-.."},
                {{.nouse_gpuuuid = STR("GPU-1"), .gpu_type = STR("A100")},
                 " of type A100, not of UUID GPU-1",
                 " of type A100.."},
                {{.gpu_type = STR("A100,V100"), .use_gpuuuid = ONE},
                 " of type A100 or V100, of UUID GPU-03f69c50-207a-2..",
                 " of type A100 or V100.."},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                CardChoiceFault fault;
                const CardChoice *choice;
                CardWords words;

                ASSERT_OK(card_choice_read(&cases[i].keys, &arena, &choice, &fault));
                card_choice_format(choice, CARD_WORDS_MAX, &words);
                ASSERT_TEXT(words.text, cases[i].words);
                card_choice_format(choice, CARD_WORDS_MIN, &words);
                ASSERT_TEXT(words.text, cases[i].few);
                ASSERT_TRUE(words.len <= CARD_WORDS_MIN);
        }
}

int main(void) {
        return TEST_MAIN(TEST(a_model_is_named_by_a_part_of_it), TEST(a_uuid_is_named_by_a_part_of_it),
                         TEST(the_keys_of_other_projects_mean_what_they_mean_there),
                         TEST(every_key_must_allow_the_card), TEST(empty_entries_are_passed_over),
                         TEST(a_card_that_is_not_known_is_not_allowed), TEST(refuses_malformed_lists),
                         TEST(says_the_choice_in_words));
}
