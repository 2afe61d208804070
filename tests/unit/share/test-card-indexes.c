/* SPDX-License-Identifier: Apache-2.0 */
#include "share/card_indexes.h"
#include "test.h"

static const struct {
        const char *text, *cards; /* cards NULL: refused */
} cases[] = {
        {"", ""},
        {"  ", ""},
        {"2", "gpu2"},
        {"3,2", "gpu2, gpu3"},
        {" 0 , 63,64 ,255,0", "gpu0, gpu63, gpu64, gpu255"},
        {"256", NULL},
        {"-1", NULL},
        {"x", NULL},
        {"gpu0", NULL},
        {"0;1", NULL},
        {"0 1", NULL},
        {",", NULL},
        {"0,", NULL},
        {",0", NULL},
        {"0,,1", NULL},
        {"1.0", NULL},
        {"[0,1]", NULL},
        {"99999999999999999999", NULL},
};

static void texts(void) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const CardIndexes before = {.bits = {7}};
                _cleanup_buf_ Buf out = BUF_NULL;
                CardIndexes found = before;

                ASSERT_INT(card_indexes_parse(str_from(cases[i].text), &found), cases[i].cards != NULL);
                if (!cases[i].cards) {
                        ASSERT_INT(memcmp(&found, &before, sizeof found), 0);
                        continue;
                }
                card_indexes_format(&found, &out);
                ASSERT_TEXT(out.len > 0 ? out.data : "", cases[i].cards);
                ASSERT_INT(card_indexes_is_empty(&found), out.len == 0);
        }
}

static void wrong_texts_keep_a_cordon(void) {
        static const struct {
                const char *text, *cards; /* taken into an empty set */
        } wrong[] = {
                {"2;3", "gpu2, gpu3"}, {"gpu0", "gpu0"},    {"-1", "gpu1"}, {"0,,255", "gpu0, gpu255"},
                {"256,7", "gpu7"},     {"99999999999", ""}, {"x", ""},
        };

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                CardIndexes none = {0}, some = {.bits = {1 << 5}};
                _cleanup_buf_ Buf out = BUF_NULL;

                ASSERT_FALSE(card_indexes_take(&none, str_from(wrong[i].text)));
                ASSERT_FALSE(card_indexes_take(&some, str_from(wrong[i].text)));
                card_indexes_format(&none, &out);
                ASSERT_TEXT(out.len > 0 ? out.data : "", wrong[i].cards);
                ASSERT_TRUE(some.bits[0] == 1 << 5 && card_indexes_take(&some, STR("3")) &&
                            some.bits[0] == 1 << 3);
                ASSERT_TRUE(card_indexes_take(&some, STR("")) && card_indexes_is_empty(&some));
        }
}

static void the_longest_text(void) {
        char text[CARD_INDEXES_TEXT_MAX + 1];
        CardIndexes found;

        for (size_t i = 0; i < sizeof text; i++)
                text[i] = i % 2 == 0 ? '1' : ',';
        ASSERT_TRUE(card_indexes_parse((Str){text, CARD_INDEXES_TEXT_MAX}, &found));
        text[CARD_INDEXES_TEXT_MAX] = '1';
        ASSERT_FALSE(card_indexes_parse((Str){text, sizeof text}, &found));
}

static void sets(void) {
        CardIndexes a = {0}, b = {0}, left;

        card_indexes_add(&a, 0);
        card_indexes_add(&a, 200);
        card_indexes_add(&b, 200);
        left = card_indexes_without(&a, &b);
        ASSERT_TRUE(card_indexes_has(&left, 0));
        ASSERT_FALSE(card_indexes_has(&left, 200));
        ASSERT_FALSE(card_indexes_has(&a, CARD_INDEX_MAX + 1));
        ASSERT_FALSE(card_indexes_has(&a, UINT32_MAX));
}

int main(void) {
        return TEST_MAIN(TEST(texts), TEST(wrong_texts_keep_a_cordon), TEST(the_longest_text), TEST(sets));
}
