/* SPDX-License-Identifier: Apache-2.0 */
#include "share/refusal.h"

#include "share/ledger-internal.h"

enum { CARDS_LISTED = 16 };

const char *refusal_label(RefusalCode code) {
        static const char *const labels[] = {[REFUSAL_NONE] = "none",
#define X(name, label) [REFUSAL_##name] = label,
                                             REFUSAL_LIST(X)
#undef X
        };

        return code < REFUSAL_MAX_ ? labels[code] : "none";
}

bool refusal_is_final(RefusalCode code) {
        return code != REFUSAL_NONE && code < REFUSAL_NODE_UNKNOWN;
}

static void say(Buf *out, const char *text) {
        buf_append_str(out, str_from(text));
}

/* `container "main": aliyun.com/gpu-mem is 8` */
static void say_asked(const Refusal *r, const char *resource, Buf *out) {
        say(out, "container \"");
        buf_append_str(out, r->container);
        say(out, "\": ");
        say(out, resource);
        say(out, " is ");
        buf_append_str(out, r->text);
}

/* What a card must have: "8 of gpu-mem" or "2 of gpu-mem and 30 % of compute". */
static void say_need(const Refusal *r, Buf *out) {
        buf_append_u64(out, r->mem);
        say(out, " of gpu-mem");
        if (r->core > 0) {
                say(out, " and ");
                buf_append_u64(out, r->core);
                say(out, " % of compute");
        }
}

static void say_card(const Refusal *r, const LedgerCard *c, Buf *out) {
        say(out, " gpu");
        buf_append_u64(out, c->index);
        if (!c->healthy) {
                say(out, " unhealthy");
                return;
        }
        buf_append_char(out, ' ');
        buf_append_u64(out, ledger_card_free(r->node, c));
        say(out, " of ");
        buf_append_u64(out, c->units);
        if (r->core > 0) {
                say(out, " and ");
                buf_append_u64(out, ledger_card_core_free(c));
                say(out, " %");
        }
        if (r->code == REFUSAL_PODS_PER_CARD && !ledger_card_has_seat(r->node, c))
                say(out, " (full)");
}

/* ": gpu0 3 of 15, gpu1 7 of 15". Written by hand: a filter may refuse every node of a large cluster this
 * way. */
static void say_cards(const Refusal *r, Buf *out) {
        size_t n = r->node ? r->node->n_cards : 0, listed = 0, left = 0;

        for (size_t i = 0; i < n; i++) {
                if (r->node->cards[i].units == 0)
                        continue;
                if (listed == CARDS_LISTED) {
                        left++;
                        continue;
                }
                buf_append_char(out, listed++ == 0 ? ':' : ',');
                say_card(r, &r->node->cards[i], out);
        }
        if (left > 0) {
                say(out, " and ");
                buf_append_u64(out, left);
                say(out, " more");
        }
}

static void say_no_room(const Refusal *r, Buf *out) {
        if (r->cards > 1) {
                say(out, "fewer than ");
                buf_append_u64(out, r->cards);
                say(out, " cards have ");
        } else
                say(out, "no card has ");
        say_need(r, out);
        say(out, " free");
        say_cards(r, out);
}

static void say_about_pod(const Refusal *r, Buf *out) {
        switch (r->code) {
        case REFUSAL_CORE_STEP:
                say_asked(r, RESOURCE_GPU_CORE, out);
                say(out, ", must be a multiple of 5 from 5 to 100");
                break;
        case REFUSAL_CORE_SUM:
                say(out, "the pod's containers ask for ");
                buf_append_u64(out, r->core);
                say(out, " of " RESOURCE_GPU_CORE " together, must be at most 100, the whole of one card");
                break;
        case REFUSAL_MALFORMED:
                say_asked(r, r->core ? RESOURCE_GPU_CORE : RESOURCE_GPU_MEM, out);
                say(out, ", must be a whole number");
                break;
        case REFUSAL_RANGE:
                if (str_is_empty(r->text)) {
                        say(out, "the pod's containers ask for more " RESOURCE_GPU_MEM
                                 " together than can be counted");
                        break;
                }
                say_asked(r, r->core ? RESOURCE_GPU_CORE : RESOURCE_GPU_MEM, out);
                say(out,
                    r->core ? ", must be a multiple of 5 from 5 to 100" : ", must be from 0 to 16843009");
                break;
        case REFUSAL_MIXED_KINDS:
                say(out, "containers \"");
                buf_append_str(out, r->text);
                say(out, "\" and \"");
                buf_append_str(out, r->container);
                say(out, "\" ask for different kinds of GPU resources, must all ask for " RESOURCE_GPU_MEM
                         " alone or all for " RESOURCE_GPU_MEM " and " RESOURCE_GPU_CORE);
                break;
        case REFUSAL_CORE_WITHOUT_MEM:
                say_asked(r, RESOURCE_GPU_CORE, out);
                say(out, ", must come together with " RESOURCE_GPU_MEM);
                break;
        case REFUSAL_COUNT_MALFORMED:
                say(out, "label " LABEL_POD_COUNT " is \"");
                buf_append_str(out, r->text);
                say(out, "\", must be a whole number from 1 to 256");
                break;
        case REFUSAL_COUNT_UNEVEN:
                say_asked(r, RESOURCE_GPU_MEM, out);
                say(out, ", must be a multiple of ");
                buf_append_u64(out, r->cards);
                say(out, ", the number of cards in label " LABEL_POD_COUNT);
                break;
        case REFUSAL_COUNT_WITH_CORE:
                say(out, "label " LABEL_POD_COUNT " is ");
                buf_append_str(out, r->text);
                say(out, ", must be 1 or absent together with " RESOURCE_GPU_CORE);
                break;
        default:
                say(out, "more than 255 containers ask for GPU resources");
                break;
        }
}

void refusal_format(const Refusal *r, Buf *out) {
        if (refusal_is_final(r->code)) {
                say_about_pod(r, out);
                return;
        }
        switch (r->code) {
        case REFUSAL_NODE_UNKNOWN:
                say(out, "the node is not known as a GPU node");
                break;
        case REFUSAL_NODE_MODE:
                say(out, "the node's mode is ");
                say(out, r->node ? share_mode_to_string(r->node->now.mode) : "none");
                say(out, r->core > 0 ? ", compute percent needs core_mem"
                                     : ", gpu-mem needs share, cgpu or core_mem");
                break;
        case REFUSAL_NODE_NOT_READY:
                say(out, "the node has not reported its cards yet");
                break;
        case REFUSAL_NODE_MIXED:
                say(out, r->core > 0 ? "the node runs pods with memory alone, and takes none with compute "
                                       "percent beside them"
                                     : "the node runs pods with compute percent, and takes none with memory "
                                       "alone beside them");
                break;
        case REFUSAL_CARD_TOO_SMALL:
                say_need(r, out);
                say(out, " is more than any card of the node has, the largest has ");
                buf_append_u64(out, r->limit);
                break;
        case REFUSAL_CARDS_TOO_FEW:
                say(out, "the pod wants ");
                buf_append_u64(out, r->cards);
                say(out, " cards, the node has ");
                buf_append_u64(out, r->limit);
                break;
        case REFUSAL_NO_ROOM:
                say_no_room(r, out);
                break;
        case REFUSAL_PODS_PER_CARD:
                say(out, "the cards with room have reached ");
                buf_append_u64(out, r->limit);
                say(out, " pods per card");
                say_cards(r, out);
                break;
        case REFUSAL_UNHEALTHY:
                say(out, "every card of the node is unhealthy");
                break;
        default:
                break;
        }
}
