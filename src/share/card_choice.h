/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which cards a pod may use, by the annotations POD_CARD_KEYS of its user: by model (NVML's name of
 * the card) and by UUID.
 *
 * The value of a key is a list with commas. An entry names each card whose model, or UUID, has the
 * entry as a part; letter case is ignored, and a blank equals a dash. That is the rule of
 * vgpu-manager, and HAMi's rule for models. HAMi compares UUIDs as a whole, which is the same for
 * whole UUIDs.
 *
 * A card may be used when every key allows it. A key with wanted entries allows the cards that one
 * of them names, and excluded entries forbid the cards that they name. In a key of ours an entry
 * that begins with "!" is excluded. Empty entries are passed over. A key that has no other entry
 * counts as absent. A card whose model is not known is allowed by no key about models. */

#include "base/arena.h"
#include "wire/pod.h"

enum {
        /* Longest entry: NVML_DEVICE_NAME_V2_BUFFER_SIZE and NVML_DEVICE_UUID_V2_BUFFER_SIZE
         * without the NUL. A longer one could name no card. */
        CARD_ENTRY_MAX = 95,
        CARD_ENTRIES_MAX = 64, /* entries in all keys of a pod together */
        CARD_KEYS = 10,        /* number of POD_CARD_KEYS */
};

/* One entry of a list. */
typedef struct CardRule {
        uint8_t key; /* index of its key in POD_CARD_KEYS */
        bool by_uuid, excluded;
        uint16_t at, len; /* offset of its text in the CardChoice, and length; without "!" */
} CardRule;

/* All entries of a pod, in the order of the keys. It has no pointers, so a copy of `size` bytes is
 * complete. */
typedef struct CardChoice {
        uint32_t size; /* bytes of this struct with its rules and their texts */
        uint32_t n_rules;
        CardRule rules[];
} CardChoice;

/* Which entry is wrong, and why. key and rule are static texts; entry points into the pod. */
typedef struct CardChoiceFault {
        const char *key, *rule;
        Str entry; /* empty when it cannot be shown, or when the rule is about several entries */
} CardChoiceFault;

enum { CARD_CHOICE_E_MALFORMED = 1 };

/* Reads the keys. *ret is in the arena, or NULL when there is no entry. Returns 0,
 * CARD_CHOICE_E_MALFORMED with *ret_fault, or -ENOMEM. */
int card_choice_read(const PodAnnotations *from, Arena *arena, const CardChoice **ret,
                     CardChoiceFault *ret_fault);

typedef enum CardVerdict {
        CARD_ALLOWED,
        CARD_FORBIDDEN,
        CARD_NOT_KNOWN, /* a rule asks for its model or its UUID, and that is not known */
} CardVerdict;

/* Judges a card with this model and UUID; empty: not known. */
CardVerdict card_choice_judge(const CardChoice *choice, Str model, Str uuid);

/* Whether the entry, wanted or excluded, names a card with this model and UUID. */
bool card_choice_names(const CardChoice *choice, const CardRule *rule, Str model, Str uuid);
/* The entry's text, without "!"; and the name of a key by its index. */
Str card_choice_text(const CardChoice *choice, const CardRule *rule);
const char *card_choice_key_name(size_t key);

/* Whether a key has an entry that is passed over because it is empty. False for an absent key. */
bool card_choice_has_empty_entry(const PodAnnotations *from, size_t key);

/* The choice in words, with a blank before it: " of type A100 or V100, not A10G". It has at most
 * `most` bytes, from CARD_WORDS_MIN to CARD_WORDS_MAX; ".." stands for what was left out. */
enum { CARD_WORDS_MIN = 24, CARD_WORDS_MAX = 52 };

typedef struct CardWords {
        size_t len;
        char text[CARD_WORDS_MAX + 1]; /* NUL-terminated */
} CardWords;

void card_choice_format(const CardChoice *choice, size_t most, CardWords *ret);
