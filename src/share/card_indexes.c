/* SPDX-License-Identifier: Apache-2.0 */
#include "share/card_indexes.h"

bool card_indexes_is_empty(const CardIndexes *s) {
        for (size_t i = 0; i < ELEMENTSOF(s->bits); i++)
                if (s->bits[i] != 0)
                        return false;
        return true;
}

bool card_indexes_parse(Str text, CardIndexes *ret) {
        Str rest = str_trim(text);
        CardIndexes found = {0};
        bool more = rest.len > 0;

        if (text.len > CARD_INDEXES_TEXT_MAX)
                return false;
        while (more) {
                uint32_t card;
                Str entry;

                more = rest.len > 0 && memchr(rest.data, ',', rest.len);
                entry = str_trim(str_split(&rest, ','));
                if (!str_to_u32(entry, &card) || card > CARD_INDEX_MAX)
                        return false;
                card_indexes_add(&found, card);
        }
        *ret = found;
        return true;
}

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

static void add_numbers(CardIndexes *s, Str text) {
        for (size_t at = 0, end; at < text.len; at = end + 1) {
                uint32_t card;

                for (end = at; end < text.len && is_digit(text.data[end]);)
                        end++;
                if (str_to_u32((Str){text.data + at, end - at}, &card) && card <= CARD_INDEX_MAX)
                        card_indexes_add(s, card);
        }
}

bool card_indexes_take(CardIndexes *s, Str text) {
        if (card_indexes_parse(text, s))
                return true;
        if (card_indexes_is_empty(s))
                add_numbers(s, text);
        return false;
}

CardIndexes card_indexes_without(const CardIndexes *s, const CardIndexes *other) {
        CardIndexes left = *s;

        for (size_t i = 0; i < ELEMENTSOF(left.bits); i++)
                left.bits[i] &= ~other->bits[i];
        return left;
}

void card_indexes_format(const CardIndexes *s, Buf *out) {
        bool any = false;

        for (uint32_t card = 0; card <= CARD_INDEX_MAX; card++)
                if (card_indexes_has(s, card)) {
                        buf_appendf(out, "%sgpu%u", any ? ", " : "", card);
                        any = true;
                }
}
