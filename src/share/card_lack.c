/* SPDX-License-Identifier: Apache-2.0 */
#include "share/card_lack.h"

#include "share/ledger_card.h"

CardLack card_lack_of(const LedgerNode *node, const LedgerCard *card, const Request *request) {
        uint32_t mem = ledger_card_free(node, card), core = ledger_card_core_free(node, card);
        bool fenced = node->fenced[card->index / 8] >> card->index % 8 & 1,
             cordoned = card->units > 0 && ledger_card_is_cordoned(node, card);

        return (CardLack){
                .mem = mem < request->mem ? request->mem - mem : 0,
                .core = core < request->core ? request->core - core : 0,
                .too_small = card->units < request->mem,
                .fenced = fenced,
                .cordoned = cordoned,
                .unhealthy = !card->healthy && !fenced && !cordoned,
                .full = !ledger_card_takes_pod(node, card),
                .not_chosen = ledger_card_judge(node, card, request->choice) != CARD_ALLOWED,
        };
}

bool card_lack_is_none(const CardLack *l) {
        return l->mem == 0 && l->core == 0 && !l->fenced && !l->cordoned && !l->unhealthy && !l->full &&
               !l->not_chosen;
}

CardState card_lack_state(const LedgerNode *node, const LedgerCard *card) {
        static const Request nothing = {.cards = 1};
        CardLack lack;

        if (card->units == 0)
                return CARD_STATE_GONE;
        if (card->healthy)
                return CARD_STATE_HEALTHY;
        lack = card_lack_of(node, card, &nothing);
        return card_state_of(lack.fenced, lack.cordoned, false);
}

static uint64_t permille_of(uint32_t part, uint32_t whole) {
        return whole > 0 ? (uint64_t) part * 1000 / whole : 0;
}

uint64_t card_lack_distance(const CardLack *l, const Request *request) {
        uint64_t amounts = permille_of(l->mem, request->mem) + permille_of(l->core, request->core);

        /* The amounts are at most 2,000. Plus 1, because a missing amount may be rounded to 0. */
        return (uint64_t) (l->fenced || l->cordoned || l->unhealthy || l->not_chosen) << 32 |
               (uint64_t) l->full << 16 | (card_lack_is_none(l) ? 0 : amounts + 1);
}

/* The order of kinds of refusals. Without default, so that -Wswitch names a new code. */
static uint64_t step_of(RefusalCode code) {
        switch (code) {
        case REFUSAL_NONE:
                return 0;
        case REFUSAL_GANG:
                return 1;
        case REFUSAL_NO_ROOM:
        case REFUSAL_PODS_PER_CARD:
                return 2;
        case REFUSAL_UNHEALTHY:
                return 3;
        case REFUSAL_NODE_MIXED:
                return 4;
        case REFUSAL_NODE_CHANGING:
        case REFUSAL_NODE_NOT_READY:
                return 5;
        case REFUSAL_CARDS_TOO_FEW:
        case REFUSAL_CARD_TOO_SMALL:
                return 6;
        case REFUSAL_NO_SUCH_CARD:
        case REFUSAL_POLICY:
                return 7;
        case REFUSAL_NODE_MODE:
                return 8;
        case REFUSAL_NODE_UNKNOWN:
        case REFUSAL_CORE_STEP:
        case REFUSAL_CORE_SUM:
        case REFUSAL_MALFORMED:
        case REFUSAL_RANGE:
        case REFUSAL_MIXED_KINDS:
        case REFUSAL_CORE_WITHOUT_MEM:
        case REFUSAL_COUNT_MALFORMED:
        case REFUSAL_COUNT_UNEVEN:
        case REFUSAL_COUNT_WITH_CORE:
        case REFUSAL_COUNT_WITHOUT_MEM:
        case REFUSAL_TOO_MANY_CONTAINERS:
        case REFUSAL_WHOLE:
        case REFUSAL_CARD_LIST:
        case REFUSAL_MAX_:
                return 9;
        }
        return 9;
}

/* The distance of the farthest of the request's nearest cards; if the node has fewer cards, of the
 * farthest of all. */
static uint64_t distance_of_cards(const LedgerNode *node, const Request *request) {
        uint64_t nearest[CARD_INDEX_MAX + 1];
        size_t n = 0, wanted = request->cards;

        if (wanted == 0 || wanted > ELEMENTSOF(nearest))
                wanted = 1; /* such a request is refused anyway */
        for (size_t i = 0; i < node->n_cards; i++) {
                CardLack lack = card_lack_of(node, &node->cards[i], request);
                uint64_t distance = card_lack_distance(&lack, request);
                size_t at;

                if (node->cards[i].units == 0 || (n == wanted && distance >= nearest[n - 1]))
                        continue;
                at = n < wanted ? n++ : n - 1;
                for (; at > 0 && nearest[at - 1] > distance; at--)
                        nearest[at] = nearest[at - 1];
                nearest[at] = distance;
        }
        return n > 0 ? nearest[n - 1] : 0;
}

uint64_t card_lack_node_distance(const LedgerNode *node, const Request *request, const Refusal *refusal) {
        uint64_t cards = node && refusal_has_cards(refusal->code) ? distance_of_cards(node, request) : 0;

        return step_of(refusal->code) << CARD_LACK_STEP_BIT | cards;
}

void card_lack_format_free(const LedgerNode *node, const LedgerCard *card, const Request *request, Buf *out) {
        buf_append_u64(out, ledger_card_free(node, card));
        buf_append_str(out, STR(" of "));
        memory_unit_format_amount(card->units, node->now.unit, out);
        if (request->core > 0)
                buf_appendf(out, " and %u of %d percent", ledger_card_core_free(node, card), CORE_PER_CARD);
        buf_append_str(out, STR(" free"));
}

/* Appends the name of one more rule. */
static void write_rule(Buf *out, size_t begin, const char *name) {
        if (out->len > begin)
                buf_append_str(out, STR("; "));
        buf_append_str(out, str_from(name));
        buf_append_str(out, STR(": "));
}

void card_lack_format(const CardLack *l, const LedgerNode *node, const LedgerCard *card, Buf *out) {
        size_t begin = out->len;

        if (l->fenced) {
                write_rule(out, begin, "fence");
                buf_append_str(out, STR("a ConfigMap takes the card out of service"));
                return;
        }
        if (l->cordoned) {
                write_rule(out, begin, "cordon");
                buf_append_str(out, STR("annotation " ANNOTATION_CORDON_CARDS
                                        " of the node keeps new slices from the card"));
                return;
        }
        if (l->unhealthy) {
                write_rule(out, begin, "health");
                buf_append_str(out, card->units > 0 ? STR("the card is unhealthy")
                                                    : STR("the node does not report the card"));
                return;
        }
        if (l->not_chosen) {
                write_rule(out, begin, "type");
                buf_append_str(out, STR("the pod's annotations do not allow the card"));
                return;
        }
        if (l->mem > 0) {
                write_rule(out, begin, "memory");
                memory_unit_format_amount(l->mem, node->now.unit, out);
                buf_append_str(out, l->too_small ? STR(" missing, the card is too small") : STR(" missing"));
        }
        if (l->core > 0) {
                write_rule(out, begin, "percent");
                buf_appendf(out, "%u missing", l->core);
        }
        if (l->full) {
                write_rule(out, begin, "max-pods-per-card");
                buf_appendf(out, "%u reached", node->now.max_pods);
        }
}
