/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/nearest.h"

static bool is_nearer(const NearestCard *a, const NearestCard *b) {
        int order;

        if (a->distance != b->distance)
                return a->distance < b->distance;
        order = a->node == b->node ? 0 : str_compare(ledger_node_name(a->node), ledger_node_name(b->node));
        return order != 0 ? order < 0 : a->card->index < b->card->index;
}

static void insert(Nearest *n, const NearestCard *c) {
        size_t at = n->n < NEAREST_MAX ? n->n++ : NEAREST_MAX - 1;

        while (at > 0 && is_nearer(c, &n->cards[at - 1])) {
                n->cards[at] = n->cards[at - 1];
                at--;
        }
        n->cards[at] = *c;
}

static void add_cards(Nearest *n, const LedgerNode *node, const Request *request, uint64_t distance) {
        const LedgerCard *cards = ledger_node_cards(node);

        for (size_t i = 0; i < ledger_node_n_cards(node); i++) {
                NearestCard c = {
                        .node = node, .card = &cards[i], .lack = card_lack_of(node, &cards[i], request)};
                uint64_t step = distance >> CARD_LACK_STEP_BIT << CARD_LACK_STEP_BIT;

                if (cards[i].units == 0)
                        continue;
                c.distance = step | card_lack_distance(&c.lack, request);
                c.distance = c.distance > distance ? c.distance : distance;
                if (n->n < NEAREST_MAX || is_nearer(&c, &n->cards[NEAREST_MAX - 1]))
                        insert(n, &c);
        }
}

bool nearest_add(Nearest *n, Str name, const LedgerNode *node, const Request *request,
                 const Refusal *refusal) {
        uint64_t distance = card_lack_node_distance(node, request, refusal);

        /* A card of the node has at least the node's distance. */
        if (node && refusal_has_cards(refusal->code) &&
            (n->n < NEAREST_MAX || distance <= n->cards[NEAREST_MAX - 1].distance))
                add_cards(n, node, request, distance);
        if (!str_is_empty(n->node) &&
            (distance > n->distance || (distance == n->distance && str_compare(name, n->node) >= 0)))
                return false;
        n->node = name;
        n->distance = distance;
        refusal_reason(refusal, &n->reason);
        return true;
}

/* `nearest node n1: no card has ... free; nearest cards: gpu0 of n1: 9 of 15 GiB free (memory:
 * 1 GiB missing), ...` */
void nearest_format(const Nearest *n, const Request *request, Str namespace_, Str name, Buf *out) {
        buf_appendf(out, "nearest node " STR_FMT ": %s; nearest cards: ", STR_ARG(n->node), n->reason.text);
        for (size_t i = 0; i < n->n; i++) {
                const NearestCard *c = &n->cards[i];

                buf_appendf(out, "%sgpu%u of " STR_FMT ": ", i > 0 ? ", " : "", c->card->index,
                            STR_ARG(ledger_node_name(c->node)));
                card_lack_format_free(c->node, c->card, request, out);
                if (card_lack_is_none(&c->lack))
                        continue;
                buf_append_str(out, STR(" ("));
                card_lack_format(&c->lack, c->node, c->card, out);
                buf_append_char(out, ')');
        }
        buf_appendf(out, ". All cards: kubectl inspect cgpu --why " STR_FMT "/" STR_FMT, STR_ARG(namespace_),
                    STR_ARG(name));
}
