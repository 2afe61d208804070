/* SPDX-License-Identifier: Apache-2.0 */
#include "share/refusal_format.h"

#include "share/card_choice.h"
#include "share/ledger-internal.h"
#include "share/ledger_card.h"
#include "wire/annotation.h"

enum { CARDS_LISTED = 16, ENTRY_SHOWN = 40 };

static void say(Buf *out, const char *text) {
        buf_append_str(out, str_from(text));
}

/* Appends `container "main": aliyun.com/gpu-mem is 8`. */
static void say_asked(const Refusal *r, const char *resource, Buf *out) {
        say(out, "container \"");
        buf_append_str(out, r->container);
        say(out, "\": ");
        say(out, resource);
        say(out, " is ");
        buf_append_str(out, r->text);
}

/* Appends " of type A100" if the pod chose its cards. */
static void say_choice(const Refusal *r, Buf *out) {
        CardWords words;

        if (!r->choice)
                return;
        card_choice_format(r->choice, CARD_WORDS_MAX, &words);
        buf_append(out, words.text, words.len);
}

/* Appends what a card must have: "8 of gpu-mem" or "2 of gpu-mem and 30 % of compute". */
static void say_need(const Refusal *r, Buf *out) {
        buf_append_u64(out, r->mem);
        say(out, " of gpu-mem");
        if (r->core > 0) {
                say(out, " and ");
                buf_append_u64(out, r->core);
                say(out, " % of compute");
        }
}

/* Longest text of one card in ": gpu0 3 of 15, gpu1 7 of 15". A filter may refuse every node of a
 * large cluster with this list, so it is written to the stack first. */
enum { CARD_TEXT_MAX = 64 };
_Static_assert(sizeof ", gpu255 4294967295 of 4294967295 and 100 % (full)" <= CARD_TEXT_MAX,
               "a card's text fits");

static char *put(char *at, Str s) {
        memcpy(at, s.data, s.len);
        return at + s.len;
}

static char *put_u32(char *at, uint32_t value) {
        char digits[10];
        size_t n = 0;

        if (value < 10) { /* most amounts have a digit or two */
                *at = (char) ('0' + value);
                return at + 1;
        }
        if (value < 100) {
                at[0] = (char) ('0' + value / 10);
                at[1] = (char) ('0' + value % 10);
                return at + 2;
        }
        do {
                digits[n++] = (char) ('0' + value % 10);
                value /= 10;
        } while (value > 0);
        while (n > 0)
                *at++ = digits[--n];
        return at;
}

static char *put_card(char *at, const Refusal *r, const LedgerCard *c) {
        at = put(at, STR(" gpu"));
        at = put_u32(at, c->index);
        if (!c->healthy)
                return put(at, ledger_card_is_cordoned(r->node, c) ? STR(" cordoned") : STR(" unhealthy"));
        *at++ = ' ';
        at = put_u32(at, ledger_card_free(r->node, c));
        at = put(at, STR(" of "));
        at = put_u32(at, c->units);
        if (r->core > 0) {
                at = put(at, STR(" and "));
                at = put_u32(at, ledger_card_core_free(r->node, c));
                at = put(at, STR(" %"));
        }
        return ledger_card_takes_pod(r->node, c) ? at : put(at, STR(" (full)"));
}

static CardVerdict judge_card(const Refusal *r, const LedgerCard *c) {
        return ledger_card_judge(r->node, c, r->choice);
}

static void say_cards(const Refusal *r, Buf *out) {
        size_t n = r->node ? r->node->n_cards : 0, listed = 0, left = 0;
        char text[CARDS_LISTED * CARD_TEXT_MAX], *at = text;

        text[0] = '\0';

        for (size_t i = 0; i < n; i++) {
                if (r->node->cards[i].units == 0 || judge_card(r, &r->node->cards[i]) != CARD_ALLOWED)
                        continue;
                if (listed == CARDS_LISTED) {
                        left++;
                        continue;
                }
                *at++ = listed++ == 0 ? ':' : ',';
                at = put_card(at, r, &r->node->cards[i]);
        }
        buf_append(out, text, (size_t) (at - text));
        if (left > 0) {
                say(out, " and ");
                buf_append_u64(out, left);
                say(out, " more");
        }
}

/* Appends `the pod wants 4 whole cards, 2 of the node are idle`. */
static void say_no_idle(const Refusal *r, Buf *out) {
        buf_appendf(out, "the pod wants %u whole card%s", r->cards, r->cards == 1 ? "" : "s");
        say_choice(r, out);
        buf_appendf(out, ", %u of the node %s idle", r->limit, r->limit == 1 ? "is" : "are");
}

static void say_no_room(const Refusal *r, Buf *out) {
        if (r->whole) {
                say_no_idle(r, out);
                return;
        }
        if (r->cards > 1) {
                say(out, "fewer than ");
                buf_append_u64(out, r->cards);
                say(out, " cards");
                say_choice(r, out);
                say(out, " have ");
        } else {
                say(out, "no card");
                say_choice(r, out);
                say(out, " has ");
        }
        say_need(r, out);
        say(out, " free");
        say_cards(r, out);
}

/* Appends the number of cards as the label or a limit has it. */
static void say_count(const Refusal *r, Buf *out) {
        if (!str_is_empty(r->container)) {
                say_asked(r, RESOURCE_GPU_COUNT, out);
                return;
        }
        say(out, "label " LABEL_POD_COUNT " is \"");
        buf_append_str(out, r->text);
        say(out, "\"");
}

/* The number is malformed, or differs between label and limits. */
static void say_bad_count(const Refusal *r, Buf *out) {
        say_count(r, out);
        if (r->cards == 0) {
                say(out, ", must be a whole number from 1 to 256");
                return;
        }
        say(out, ", must be the same everywhere in the pod, which says ");
        buf_append_u64(out, r->cards);
        say(out, " already");
}

/* Appends `; write 3, the unit is GiB here`. */
static void say_units(const Refusal *r, uint64_t units, Buf *out) {
        MemoryUnit unit = MEMORY_UNIT_GIB;

        if (r->unit_mib > 0)
                unit.mib = r->unit_mib;
        say(out, "; write ");
        buf_append_u64(out, units);
        say(out, r->unit_mib > 0 ? ", the unit is " : " where the unit is ");
        memory_unit_format(unit, out);
        say(out, r->unit_mib > 0 ? " here" : "");
}

static void say_bad_amount(const Refusal *r, const char *rule, Buf *out) {
        uint64_t units;

        say_asked(r, r->core ? RESOURCE_GPU_CORE : RESOURCE_GPU_MEM, out);
        if (refusal_is_in_bytes(r, &units))
                say_units(r, units, out);
        else
                say(out, rule);
}

static void say_out_of_range(const Refusal *r, Buf *out) {
        if (str_is_empty(r->text))
                say(out,
                    "the pod's containers ask for more " RESOURCE_GPU_MEM " together than can be counted");
        else
                say_bad_amount(r,
                               r->core ? ", must be a multiple of 5 from 5 to 100"
                                       : ", must be from 0 to 16843009",
                               out);
}

static void say_mixed_kinds(const Refusal *r, Buf *out) {
        say(out, "containers \"");
        buf_append_str(out, r->text);
        say(out, "\" and \"");
        buf_append_str(out, r->container);
        say(out, "\" ask for different kinds of GPU resources, must all ask for " RESOURCE_GPU_MEM
                 " alone or all for " RESOURCE_GPU_MEM " and " RESOURCE_GPU_CORE);
}

static void say_core_sum(const Refusal *r, Buf *out) {
        say(out, "the pod's containers ask for ");
        buf_append_u64(out, r->core);
        say(out, " of " RESOURCE_GPU_CORE " together, must be at most 100, the whole of one card");
}

static void say_uneven_count(const Refusal *r, Buf *out) {
        say_asked(r, RESOURCE_GPU_MEM, out);
        say(out, ", must be a multiple of ");
        buf_append_u64(out, r->cards);
        say(out, ", the number of cards by " LABEL_POD_COUNT);
}

static void say_count_with_core(const Refusal *r, Buf *out) {
        say(out, LABEL_POD_COUNT " is ");
        buf_append_u64(out, r->cards);
        say(out, ", must be 1 or absent together with " RESOURCE_GPU_CORE);
}

static void say_too_small(const Refusal *r, Buf *out) {
        buf_append_u64(out, r->mem);
        say(out, " of gpu-mem");
        if (r->cards == 1) {
                say(out, " is more than any card");
                say_choice(r, out);
                say(out, " of the node has, the largest has ");
        } else {
                say(out, " on each of ");
                buf_append_u64(out, r->cards);
                say(out, " cards");
                say_choice(r, out);
                say(out, " is more than the node has, the smallest of its largest has ");
        }
        buf_append_u64(out, r->limit);
}

static void say_mode(const Refusal *r, Buf *out) {
        ShareMode mode = r->node ? r->node->now.mode : SHARE_MODE_NONE;

        if (mode == SHARE_MODE_NONE)
                say(out, "the node has no label " LABEL_SCHEDULE);
        else if (mode == SHARE_MODE_UNKNOWN)
                say(out, "the node's label " LABEL_SCHEDULE " has a value that is no mode");
        else {
                say(out, "the node's mode is ");
                say(out, share_mode_to_string(mode));
        }
        say(out, ", ");
        say(out, share_mode_needed(r->whole, r->core > 0));
}

static void say_not_ready(const Refusal *r, Buf *out) {
        if (r->node && r->node->now.cards_unreadable)
                say(out, "annotation " ANNOTATION_CARDS
                         " of the node does not decode, so that none of its cards is known");
        else
                say(out, "the node has not reported its cards yet");
}

static void say_mixed_node(const Refusal *r, Buf *out) {
        say(out, r->core > 0 ? "the node runs pods with memory alone, and takes none with compute "
                               "percent beside them"
                             : "the node runs pods with compute percent, and takes none with memory "
                               "alone beside them");
}

static void say_too_few(const Refusal *r, Buf *out) {
        say(out, "the pod wants ");
        buf_append_u64(out, r->cards);
        say(out, " cards");
        say_choice(r, out);
        say(out, ", the node has ");
        buf_append_u64(out, r->limit);
        say(out, r->code == REFUSAL_NO_SUCH_CARD ? "" : r->limit == 1 ? " healthy card" : " healthy cards");
}

static void say_pods_per_card(const Refusal *r, Buf *out) {
        say(out, "the cards");
        say_choice(r, out);
        say(out, " with room have reached ");
        buf_append_u64(out, r->limit);
        say(out, " pods per card, which annotation " ANNOTATION_MAX_PODS " of the node raises; free");
        say_cards(r, out);
}

/* Appends `annotation nvidia.com/use-gputype: "!A100" must not begin with "!" in this key`. */
static void say_card_list(const Refusal *r, Buf *out) {
        buf_appendf(out, "annotation " STR_FMT, STR_ARG(r->container));
        if (!str_is_empty(r->text))
                buf_appendf(out, ": \"%.*s\"", STR_CUT(r->text, ENTRY_SHOWN));
        buf_appendf(out, " %s", r->rule);
}

static void say_no_such_card(const Refusal *r, Buf *out) {
        const char *lacks = ledger_card_lacks(r->node, r->choice);

        if (r->limit > 0) {
                say_too_few(r, out);
                return;
        }
        say(out, lacks ? "no card" : "the node has no card");
        say_choice(r, out);
        if (lacks)
                buf_appendf(out, ": the node's cards have no known %s", lacks);
}

/* No default: -Wswitch names a code that has no sentence. */
void refusal_format(const Refusal *r, Buf *out) {
        switch (r->code) {
        case REFUSAL_CORE_STEP:
                say_asked(r, RESOURCE_GPU_CORE, out);
                say(out, ", must be a multiple of 5 from 5 to 100");
                break;
        case REFUSAL_CORE_SUM:
                say_core_sum(r, out);
                break;
        case REFUSAL_MALFORMED:
                say_bad_amount(r, ", must be a whole number", out);
                break;
        case REFUSAL_RANGE:
                say_out_of_range(r, out);
                break;
        case REFUSAL_MIXED_KINDS:
                say_mixed_kinds(r, out);
                break;
        case REFUSAL_CORE_WITHOUT_MEM:
                say_asked(r, RESOURCE_GPU_CORE, out);
                say(out, ", must come together with " RESOURCE_GPU_MEM);
                break;
        case REFUSAL_COUNT_MALFORMED:
                say_bad_count(r, out);
                break;
        case REFUSAL_COUNT_UNEVEN:
                say_uneven_count(r, out);
                break;
        case REFUSAL_COUNT_WITH_CORE:
                say_count_with_core(r, out);
                break;
        case REFUSAL_COUNT_WITHOUT_MEM:
                say_count(r, out);
                say(out, ", must come together with " RESOURCE_GPU_MEM);
                break;
        case REFUSAL_TOO_MANY_CONTAINERS:
                say(out, "more than 255 containers ask for GPU resources");
                break;
        case REFUSAL_WHOLE:
                say_asked(r, RESOURCE_GPU, out);
                buf_appendf(out, ", %s", r->rule);
                break;
        case REFUSAL_CARD_LIST:
                say_card_list(r, out);
                break;
        case REFUSAL_NODE_UNKNOWN:
                say(out, "the node is not known as a GPU node");
                break;
        case REFUSAL_NODE_MODE:
                say_mode(r, out);
                break;
        case REFUSAL_NODE_CHANGING:
                say(out, "the node takes no new slice while a change waits: ");
                say(out, r->node->now.change_pending);
                break;
        case REFUSAL_NODE_NOT_READY:
                say_not_ready(r, out);
                break;
        case REFUSAL_NODE_MIXED:
                say_mixed_node(r, out);
                break;
        case REFUSAL_NO_SUCH_CARD:
                say_no_such_card(r, out);
                break;
        case REFUSAL_CARD_TOO_SMALL:
                say_too_small(r, out);
                break;
        case REFUSAL_CARDS_TOO_FEW:
                say_too_few(r, out);
                break;
        case REFUSAL_NO_ROOM:
                say_no_room(r, out);
                break;
        case REFUSAL_PODS_PER_CARD:
                say_pods_per_card(r, out);
                break;
        case REFUSAL_UNHEALTHY:
                say(out, "every card");
                say_choice(r, out);
                say(out, ledger_card_any_cordoned(r->node) ? " of the node is cordoned or unhealthy"
                                                           : " of the node is unhealthy");
                break;
        case REFUSAL_POLICY:
        case REFUSAL_GANG:
                say(out, r->rule);
                break;
        case REFUSAL_NONE:
        case REFUSAL_MAX_:
                break;
        }
}
