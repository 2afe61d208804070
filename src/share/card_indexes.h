/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A set of card indexes, and its text in ANNOTATION_CORDON_CARDS: "2,3". Pure. */

#include "base/buf.h"
#include "base/str.h"
#include "wire/annotation.h"

enum { CARD_INDEXES_TEXT_MAX = 127 }; /* bytes; a longer text is not accepted */

typedef struct CardIndexes {
        uint64_t bits[(CARD_INDEX_MAX + 1) / 64];
} CardIndexes;

static inline void card_indexes_add(CardIndexes *s, uint32_t card) {
        s->bits[card / 64] |= UINT64_C(1) << card % 64;
}

static inline void card_indexes_remove(CardIndexes *s, uint32_t card) {
        s->bits[card / 64] &= ~(UINT64_C(1) << card % 64);
}

static inline bool card_indexes_has(const CardIndexes *s, uint32_t card) {
        return card <= CARD_INDEX_MAX && (s->bits[card / 64] >> card % 64 & 1) != 0;
}

static inline void card_indexes_add_all(CardIndexes *s, const CardIndexes *more) {
        for (size_t i = 0; i < sizeof s->bits / sizeof s->bits[0]; i++)
                s->bits[i] |= more->bits[i];
}

bool card_indexes_is_empty(const CardIndexes *s);

/* Reads indexes separated by commas; blanks around an index are allowed, and so is an empty text.
 * False when an entry is no index up to CARD_INDEX_MAX, or the text is too long: *ret is
 * unchanged. */
bool card_indexes_parse(Str text, CardIndexes *ret);

/* Replaces *s by the cards of the text. A malformed text leaves *s as it is; but if *s is empty, it
 * gets each number in the text that is an index. So a typing error never makes a cordon smaller,
 * and a process that starts with one cordons what the text may mean. Returns whether the text was
 * well-formed. */
bool card_indexes_take(CardIndexes *s, Str text);

/* The cards of `s` that are not in `other`. */
CardIndexes card_indexes_without(const CardIndexes *s, const CardIndexes *other);

/* Appends "gpu2, gpu3"; nothing for an empty set. */
void card_indexes_format(const CardIndexes *s, Buf *out);
