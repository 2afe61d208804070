/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as the lists of wanted and excluded cards, one key per line, and two cards. A choice is
 * within its limits, is the same as its copy, and forbids what an excluded entry names. A fault
 * names its key and its rule. */

#include <assert.h>
#include <ctype.h>

#include "share/card_choice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Card {
        Str model, uuid;
} Card;

static PodAnnotations read_keys(Str *rest) {
        PodAnnotations k = {0};
        Str *const members[] = {&k.gpu_type,         &k.gpu_uuid,         &k.use_gputype,
                                &k.nouse_gputype,    &k.use_gpuuuid,      &k.nouse_gpuuuid,
                                &k.include_gpu_type, &k.exclude_gpu_type, &k.include_gpu_uuid,
                                &k.exclude_gpu_uuid};

        for (size_t i = 0; i < ELEMENTSOF(members); i++)
                *members[i] = str_split(rest, '\n');
        return k;
}

static void check_rules(const CardChoice *c) {
        assert(c->n_rules > 0 && c->n_rules <= CARD_ENTRIES_MAX);
        for (size_t i = 0; i < c->n_rules; i++) {
                Str text = card_choice_text(c, &c->rules[i]);

                assert(c->rules[i].key < CARD_KEYS && (i == 0 || c->rules[i - 1].key <= c->rules[i].key));
                assert(text.len > 0 && text.len <= CARD_ENTRY_MAX && text.data[0] != '!');
                assert((size_t) c->rules[i].at + text.len <= c->size);
                for (size_t k = 0; k < text.len; k++)
                        assert(isprint((unsigned char) text.data[k]) && text.data[k] != ',');
        }
}

static void check_card(const CardChoice *c, const Card *card) {
        CardVerdict verdict = card_choice_judge(c, card->model, card->uuid);

        for (size_t i = 0; i < c->n_rules; i++) {
                const CardRule *rule = &c->rules[i];
                bool names = card_choice_names(c, rule, card->model, card->uuid);

                if (names && rule->excluded)
                        assert(verdict == CARD_FORBIDDEN);
                if (str_is_empty(rule->by_uuid ? card->uuid : card->model))
                        assert(!names && verdict != CARD_ALLOWED);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str rest = {(const char *) data, size};
        Card card = {.model = str_split(&rest, '\n'), .uuid = str_split(&rest, '\n')};
        PodAnnotations keys = read_keys(&rest);
        CardChoiceFault fault = {0};
        const CardChoice *choice;
        CardChoice *copy;
        int r;

        r = card_choice_read(&keys, &arena, &choice, &fault);
        if (r != 0) {
                assert(r == CARD_CHOICE_E_MALFORMED && fault.key[0] != '\0' && fault.rule[0] != '\0');
                return 0;
        }
        if (!choice)
                return 0;
        check_rules(choice);
        check_card(choice, &card);
        copy = arena_alloc(&arena, 1, choice->size);
        assert(copy);
        memcpy(copy, choice, choice->size);
        assert(card_choice_judge(copy, card.model, card.uuid) ==
               card_choice_judge(choice, card.model, card.uuid));
        for (size_t most = CARD_WORDS_MIN; most <= CARD_WORDS_MAX; most++) {
                CardWords words;

                card_choice_format(choice, most, &words);
                assert(words.len > 0 && words.len <= most && words.len == strlen(words.text));
        }
        return 0;
}
