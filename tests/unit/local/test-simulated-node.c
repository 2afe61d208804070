/* SPDX-License-Identifier: Apache-2.0 */
#include "local/simulated_node.h"
#include "test.h"
#include "wire/annotation.h"
#include "wire/card_info.h"

static json_t *node(const char *cards, const char *mode, const char *unit) {
        json_t *n = json_pack("{s:{s:s, s:{s:s}, s:{s:s}}}", "metadata", "name", "n1", "annotations",
                              ANNOTATION_SIMULATED_CARDS, cards, "labels", "x", "y");

        if (mode)
                ASSERT_OK(tree_set_text(tree_at(n, "metadata", "labels", NULL), LABEL_SCHEDULE, mode));
        if (unit)
                ASSERT_OK(tree_set_text(tree_at(n, "metadata", "annotations", NULL), ANNOTATION_UNIT, unit));
        return n;
}

static void has(const json_t *n, const char *mem, const char *count, const char *core) {
        static const char *const lists[] = {"capacity", "allocatable"};

        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                ASSERT_TEXT(tree_text(n, "status", lists[i], RESOURCE_GPU_MEM, NULL), mem);
                ASSERT_TEXT(tree_text(n, "status", lists[i], RESOURCE_GPU_COUNT, NULL), count);
                ASSERT_TEXT(tree_text(n, "status", lists[i], RESOURCE_GPU_CORE, NULL), core);
        }
}

static void offers_what_the_mode_offers(void) {
        _cleanup_json_ json_t *core = node("4xTesla-V100-SXM2-16GB:16160MiB", "core_mem", NULL);
        _cleanup_json_ json_t *share = node("Tesla-V100:16384MiB", "share", NULL);
        _cleanup_json_ json_t *small = node("2xA:16384MiB", "cgpu", "128MiB");
        _cleanup_json_ json_t *mixed = node("2xA:24GiB, B:16160MiB", "cgpu", NULL);
        _cleanup_json_ json_t *whole = node("2xA:24GiB", "default", NULL);

        ASSERT_OK(simulated_node_complete(core, NULL));
        has(core, "60", "4", "400");
        ASSERT_OK(simulated_node_complete(share, NULL));
        has(share, "16", "1", "0");
        ASSERT_OK(simulated_node_complete(small, NULL));
        has(small, "256", "2", "0");
        ASSERT_OK(simulated_node_complete(mixed, NULL));
        has(mixed, "63", "3", "0");
        ASSERT_OK(simulated_node_complete(whole, NULL));
        has(whole, NULL, NULL, NULL);
}

static void zeroes_what_another_mode_left(void) {
        _cleanup_json_ json_t *n = node("A:16GiB", "cgpu", NULL), *plain = node("A:16GiB", "default", NULL);

        (void) tree_set_text(tree_make(n, "status", "allocatable", NULL), RESOURCE_GPU_CORE, "100");
        ASSERT_OK(simulated_node_complete(n, NULL));
        ASSERT_TEXT(tree_text(n, "status", "allocatable", RESOURCE_GPU_CORE, NULL), "0");
        (void) tree_set_text(tree_make(plain, "status", "allocatable", NULL), RESOURCE_GPU_MEM, "16");
        ASSERT_OK(simulated_node_complete(plain, NULL));
        ASSERT_TEXT(tree_text(plain, "status", "allocatable", RESOURCE_GPU_MEM, NULL), "0");
}

static void describes_its_cards(void) {
        _cleanup_json_ json_t *n = node("2xTesla V100:16160MiB,A10:24GiB", "share", NULL);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        const char *text;
        CardInfo *cards;
        size_t n_cards;

        ASSERT_OK(simulated_node_complete(n, NULL));
        ASSERT_TEXT(tree_text(n, "metadata", "labels", LABEL_CARD_NAME, NULL), "Tesla-V100");
        ASSERT_TEXT(tree_text(n, "metadata", "labels", LABEL_CARD_MEM, NULL), "16160MiB");
        ASSERT_TEXT(tree_text(n, "metadata", "labels", LABEL_CARD_COUNT, NULL), "3");
        ASSERT_TEXT(tree_text(n, "metadata", "annotations", ANNOTATION_UNIT, NULL), "GiB");
        text = tree_text(n, "metadata", "annotations", ANNOTATION_CARDS, NULL);
        ASSERT_OK(card_info_parse(str_from(text), &arena, &cards, &n_cards, NULL));
        ASSERT_INT(n_cards, 3);
        ASSERT_INT(cards[1].units, 15);
        ASSERT_INT(cards[2].units, 24);
        ASSERT_STR(cards[2].model, STR("A10"));
        ASSERT_FALSE(str_eq(cards[0].uuid, cards[1].uuid));
        ASSERT_INT(cards[0].uuid.len, 40);
}

static void gives_other_nodes_a_kubelets_labels_and_no_more(void) {
        _cleanup_json_ json_t *n = json_pack("{s:{s:s}}", "metadata", "name", "n1");

        ASSERT_OK(simulated_node_complete(n, NULL));
        ASSERT_TEXT(tree_text(n, "metadata", "labels", "kubernetes.io/hostname", NULL), "n1");
        ASSERT_TRUE(!json_object_get(json_object_get(n, "metadata"), "annotations"));
        ASSERT_TRUE(!json_object_get(n, "status"));
}

static void names_what_is_wrong(void) {
        static const struct {
                const char *cards, *unit, *words;
        } cases[] = {
                {"", NULL, "\"\" must be COUNTxMODEL:MEMORY"},
                {"4x:16GiB", NULL, "\"4x:16GiB\" must be COUNTxMODEL:MEMORY"},
                {"0xA:16GiB", NULL, "\"0xA:16GiB\" must be"},
                {"A", NULL, "\"A\" must be"},
                {"A:", NULL, "\"A:\" must be"},
                {"A:-1GiB", NULL, "\"A:-1GiB\" must be"},
                {"A:0GiB", NULL, "must be"},
                {"A:16GiB,", NULL, "\"\" must be"},
                {"257xA:16GiB", NULL, "more than 256 cards"},
                {"4294967295xA:16GiB,2xB:1GiB", NULL, "more than 256 cards"},
                {"A:99999999999999GiB", NULL, "must be"},
                {"A:16GiB", "5 apples", ANNOTATION_UNIT " is \"5 apples\""},
                {"A:16GiB", "0MiB", ANNOTATION_UNIT " is \"0MiB\""},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_json_ json_t *n = node(cases[i].cards, "share", cases[i].unit);
                Fault fault = FAULT_NULL;

                ASSERT_INT(simulated_node_complete(n, &fault), SIMULATED_NODE_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, cases[i].words);
        }
}

static void refuses_a_node_of_the_wrong_shape(void) {
        _cleanup_json_ json_t *n = node("A:16GiB", "share", NULL), *number = node("A:16GiB", "share", NULL);
        Fault fault = FAULT_NULL;

        (void) json_object_set_new(n, "status", json_pack("{s:[]}", "capacity"));
        ASSERT_INT(simulated_node_complete(n, &fault), SIMULATED_NODE_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "status.capacity must be an object");
        (void) json_object_set_new(tree_at(number, "metadata", "annotations", NULL),
                                   ANNOTATION_SIMULATED_CARDS, json_integer(4));
        ASSERT_INT(simulated_node_complete(number, &fault), SIMULATED_NODE_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "must be a string");
}

int main(void) {
        return TEST_MAIN(TEST(offers_what_the_mode_offers), TEST(zeroes_what_another_mode_left),
                         TEST(describes_its_cards), TEST(gives_other_nodes_a_kubelets_labels_and_no_more),
                         TEST(names_what_is_wrong), TEST(refuses_a_node_of_the_wrong_shape));
}
