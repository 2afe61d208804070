/* SPDX-License-Identifier: Apache-2.0 */
#include "share/refusal_reason.h"

#include <inttypes.h>
#include <stdio.h>

#include "share/card_choice.h"
#include "share/ledger-internal.h"
#include "share/ledger_card.h"

/* Greatest length of names and values of the pod in a reason, so that the sentence around them
 * fits. */
enum { WORD_MAX = 14, VALUE_MAX = 10, KEY_MAX = 27 };

/* Greatest length of card_choice_format() in long sentences, and in the others. */
enum { CHOICE_MIN = CARD_WORDS_MIN, CHOICE_MAX = 38 };

static void put(RefusalReason *out, const char *text) {
        size_t room = REFUSAL_REASON_MAX - out->len, n = strlen(text);

        n = n < room ? n : room;
        memcpy(out->text + out->len, text, n);
        out->len += n;
        out->text[out->len] = '\0';
}

static void put_u32(RefusalReason *out, uint32_t value) {
        char digits[11];

        (void) snprintf(digits, sizeof digits, "%u", value);
        put(out, digits);
}

/* Appends a word of the pod's manifest, at most `most` bytes of it. */
static void put_word(RefusalReason *out, Str word, size_t most) {
        char text[KEY_MAX + 1];
        bool cut = word.len > most;
        size_t n = cut ? most - 2 : word.len;

        for (size_t i = 0; i < n; i++)
                text[i] =
                        word.data[i] > ' ' && word.data[i] <= '~' && word.data[i] != '%' ? word.data[i] : '?';
        text[n] = '\0';
        put(out, text);
        if (cut)
                put(out, "..");
}

/* Appends `container main: gpu-mem is 8`. */
static void put_asked(RefusalReason *out, const Refusal *r, const char *resource) {
        put(out, "container ");
        put_word(out, r->container, WORD_MAX);
        put(out, ": ");
        put(out, resource);
        put(out, " is ");
        put_word(out, r->text, VALUE_MAX);
}

/* As memory_unit_format(), without memory allocation. */
static void put_unit(RefusalReason *out, MemoryUnit unit) {
        bool gib = unit.mib % 1024 == 0;
        uint32_t number = gib ? unit.mib / 1024 : unit.mib;

        if (number != 1)
                put_u32(out, number);
        put(out, gib ? "GiB" : "MiB");
}

/* Appends `60 GiB of gpu-mem`, or `16 x 128MiB of gpu-mem`. */
static void put_memory(RefusalReason *out, const Refusal *r) {
        MemoryUnit unit = r->node ? r->node->now.unit : (MemoryUnit){0};

        put_u32(out, r->mem);
        if (unit.mib > 0) {
                put(out, unit.mib == 1 || unit.mib == 1024 ? " " : " x ");
                put_unit(out, unit);
        }
        put(out, " of gpu-mem");
}

/* Appends ` of type A100`. */
static void put_choice(RefusalReason *out, const Refusal *r, size_t most) {
        CardWords words;

        if (!r->choice)
                return;
        card_choice_format(r->choice, most, &words);
        for (size_t i = 0; i < words.len; i++)
                words.text[i] = words.text[i] != '%' ? words.text[i] : '?';
        put(out, words.text);
}

/* Appends `no card of type A100`, or `fewer than 2 cards`. */
static void put_no_card(RefusalReason *out, const Refusal *r) {
        if (r->cards > 1) {
                put(out, "fewer than ");
                put_u32(out, r->cards);
                put(out, " cards");
        } else
                put(out, "no card");
        put_choice(out, r, CHOICE_MIN);
}

/* Appends `no card has 3 GiB of gpu-mem and 30 percent of compute free`. */
static void put_no_room(RefusalReason *out, const Refusal *r) {
        if (r->whole) {
                put(out, "node(s) have fewer than ");
                put_u32(out, r->cards);
                put(out, r->cards == 1 ? " idle card" : " idle cards");
                put_choice(out, r, CHOICE_MAX);
                return;
        }
        put_no_card(out, r);
        put(out, r->cards > 1 ? " have " : " has ");
        put_memory(out, r);
        if (r->core > 0) {
                put(out, " and ");
                put_u32(out, r->core);
                put(out, " percent of compute");
        }
        put(out, " free");
}

static void put_too_small(RefusalReason *out, const Refusal *r) {
        put_no_card(out, r);
        put(out, r->cards > 1 ? " are large enough for " : " is large enough for ");
        put_memory(out, r);
}

static void put_mode(RefusalReason *out, const Refusal *r) {
        ShareMode mode = r->node ? r->node->now.mode : SHARE_MODE_NONE;

        if (mode == SHARE_MODE_NONE) {
                put(out, "node(s) have no label " LABEL_SCHEDULE);
                return;
        }
        if (mode == SHARE_MODE_UNKNOWN) {
                put(out, "node(s) have a label " LABEL_SCHEDULE " whose value is no mode");
                return;
        }
        put(out, r->whole      ? "node(s) are not in mode topology, which aliyun.com/gpu needs"
                 : r->core > 0 ? "node(s) are not in mode core_mem, which compute percent needs"
                               : "node(s) are not in mode share, cgpu or core_mem");
}

static void put_not_ready(RefusalReason *out, const Refusal *r) {
        if (r->node && r->node->now.cards_unreadable)
                put(out, "node(s) have an annotation " ANNOTATION_CARDS " that does not decode");
        else
                put(out, "node(s) have not reported their cards yet");
}

static void put_mixed_node(RefusalReason *out, const Refusal *r) {
        put(out, r->core > 0 ? "node(s) run pods without compute percent, and take none with it"
                             : "node(s) run pods with compute percent, and take none without it");
}

static void put_too_few(RefusalReason *out, const Refusal *r) {
        put(out, "node(s) have fewer than ");
        put_u32(out, r->cards);
        put(out, " healthy cards");
        put_choice(out, r, CHOICE_MAX);
}

static void put_no_such_card(RefusalReason *out, const Refusal *r) {
        const char *lacks = ledger_card_lacks(r->node, r->choice);

        if (r->cards > 1) {
                put(out, "node(s) have fewer than ");
                put_u32(out, r->cards);
                put(out, " cards");
        } else
                put(out, "node(s) have no card");
        put_choice(out, r, lacks ? CHOICE_MIN : CHOICE_MAX);
        if (lacks) {
                put(out, ", the ");
                put(out, lacks);
                put(out, "s of some are not known");
        }
}

/* KEY_MAX is the length of the longest of POD_CARD_KEYS; the rules are those of card_choice.c. */
static void put_card_list(RefusalReason *out, const Refusal *r) {
        put(out, "annotation ");
        put_word(out, r->container, KEY_MAX);
        put(out, str_is_empty(r->text) ? " " : ": an entry ");
        put(out, r->rule);
}

static void put_core_sum(RefusalReason *out, const Refusal *r) {
        put(out, "the containers ask for ");
        put_u32(out, r->core);
        put(out, " percent of compute together, a card has 100");
}

/* Appends `; write 3, the unit is GiB here`. */
static void put_units(RefusalReason *out, const Refusal *r, uint64_t units) {
        char digits[sizeof "18446744073709551615"];

        (void) snprintf(digits, sizeof digits, "%" PRIu64, units);
        put(out, "; write ");
        put(out, digits);
        if (r->unit_mib > 0) {
                put(out, ", the unit is ");
                put_unit(out, (MemoryUnit){r->unit_mib});
                put(out, " here");
        } else
                put(out, " where the unit is GiB");
}

static void put_amount(RefusalReason *out, const Refusal *r, const char *rule) {
        uint64_t units;

        put_asked(out, r, r->core ? "gpu-core.percentage" : "gpu-mem");
        if (refusal_is_in_bytes(r, &units))
                put_units(out, r, units);
        else
                put(out, rule);
}

static void put_range(RefusalReason *out, const Refusal *r) {
        if (str_is_empty(r->text))
                put(out, "the containers ask for more gpu-mem together than can be counted");
        else
                put_amount(out, r,
                           r->core ? ", must be a multiple of 5 from 5 to 100"
                                   : ", must be from 0 to 16843009");
}

static void put_mixed_kinds(RefusalReason *out, const Refusal *r) {
        put(out, "containers ");
        put_word(out, r->text, WORD_MAX);
        put(out, " and ");
        put_word(out, r->container, WORD_MAX);
        put(out, " must both ask for compute percent, or neither");
}

static void put_bad_count(RefusalReason *out, const Refusal *r) {
        put(out, "gpu-count is ");
        put_word(out, r->text, VALUE_MAX);
        if (r->cards == 0)
                put(out, ", must be a whole number from 1 to 256");
        else {
                put(out, ", but elsewhere in the pod it is ");
                put_u32(out, r->cards);
        }
}

static void put_uneven_count(RefusalReason *out, const Refusal *r) {
        put_asked(out, r, "gpu-mem");
        put(out, ", must be a multiple of gpu-count, ");
        put_u32(out, r->cards);
}

static void put_count_with_core(RefusalReason *out, const Refusal *r) {
        put(out, "gpu-count is ");
        put_u32(out, r->cards);
        put(out, ", must be 1 or absent together with gpu-core.percentage");
}

static const char *fixed_text(RefusalCode code) {
        switch (code) {
        case REFUSAL_COUNT_WITHOUT_MEM:
                return "gpu-count must come together with gpu-mem";
        case REFUSAL_TOO_MANY_CONTAINERS:
                return "more than 255 containers ask for GPU resources";
        case REFUSAL_NODE_UNKNOWN:
                return "node(s) are not known as GPU nodes";
        case REFUSAL_NODE_CHANGING:
                return "node(s) take no new slice while a change of mode or unit waits";
        default:
                return "";
        }
}

/* Appends a reason in the rule's own words. It has names of objects, which come from the API server
 * and are not trusted. */
static void put_rule(RefusalReason *out, const char *rule) {
        size_t from = out->len;

        put(out, rule);
        for (size_t i = from; i < out->len; i++)
                if (out->text[i] < ' ' || out->text[i] > '~' || out->text[i] == '%')
                        out->text[i] = '?';
}

void refusal_reason(const Refusal *r, RefusalReason *ret) {
        ret->len = 0;
        ret->text[0] = '\0';
        switch (r->code) {
        case REFUSAL_CORE_STEP:
                put_asked(ret, r, "gpu-core.percentage");
                put(ret, ", must be a multiple of 5 from 5 to 100");
                break;
        case REFUSAL_CORE_SUM:
                put_core_sum(ret, r);
                break;
        case REFUSAL_MALFORMED:
                put_amount(ret, r, ", must be a whole number");
                break;
        case REFUSAL_RANGE:
                put_range(ret, r);
                break;
        case REFUSAL_MIXED_KINDS:
                put_mixed_kinds(ret, r);
                break;
        case REFUSAL_CORE_WITHOUT_MEM:
                put_asked(ret, r, "gpu-core.percentage");
                put(ret, ", must come together with gpu-mem");
                break;
        case REFUSAL_COUNT_MALFORMED:
                put_bad_count(ret, r);
                break;
        case REFUSAL_COUNT_UNEVEN:
                put_uneven_count(ret, r);
                break;
        case REFUSAL_COUNT_WITH_CORE:
                put_count_with_core(ret, r);
                break;
        case REFUSAL_WHOLE:
                put(ret, "aliyun.com/gpu is ");
                put_word(ret, r->text, VALUE_MAX);
                put(ret, ", ");
                put(ret, r->rule);
                break;
        case REFUSAL_CARD_LIST:
                put_card_list(ret, r);
                break;
        case REFUSAL_NODE_MODE:
                put_mode(ret, r);
                break;
        case REFUSAL_NODE_NOT_READY:
                put_not_ready(ret, r);
                break;
        case REFUSAL_NODE_MIXED:
                put_mixed_node(ret, r);
                break;
        case REFUSAL_NO_SUCH_CARD:
                put_no_such_card(ret, r);
                break;
        case REFUSAL_CARD_TOO_SMALL:
                put_too_small(ret, r);
                break;
        case REFUSAL_CARDS_TOO_FEW:
                put_too_few(ret, r);
                break;
        case REFUSAL_NO_ROOM:
                put_no_room(ret, r);
                break;
        case REFUSAL_PODS_PER_CARD:
                put(ret, "the cards");
                put_choice(ret, r, CHOICE_MIN);
                put(ret, " with room hold ");
                put_u32(ret, r->limit);
                put(ret,
                    r->limit == 1 ? " pod each, " ANNOTATION_MAX_PODS : " pods each, " ANNOTATION_MAX_PODS);
                break;
        case REFUSAL_UNHEALTHY:
                put(ret, ledger_card_any_cordoned(r->node) ? "node(s) have only cordoned or unhealthy cards"
                                                           : "node(s) have no healthy card");
                put_choice(ret, r, CHOICE_MAX);
                break;
        case REFUSAL_POLICY:
        case REFUSAL_GANG:
                put_rule(ret, r->rule);
                break;
        default:
                put(ret, fixed_text(r->code));
                break;
        }
}

void refusal_reason_escape(const char *text, Buf *out) {
        for (; *text; text++)
                if (*text == '%')
                        buf_append_str(out, STR(" percent"));
                else
                        buf_append_char(out, *text);
}
