/* SPDX-License-Identifier: Apache-2.0 */
#include "share/cluster_cards.h"

#include "share/ledger-internal.h"
#include "wire/annotation.h"

static void look_at_node(ClusterCards *c, const LedgerNode *node, const Request *request) {
        const LedgerCard *cards = ledger_node_cards(node);
        ShareMode mode = ledger_node_mode(node);
        bool offers = request && (request->whole      ? share_mode_has_whole(mode)
                                  : request->core > 0 ? share_mode_has_core(mode)
                                                      : share_mode_has_memory(mode));
        uint32_t enough = 0, unit = ledger_node_unit(node).mib;

        for (size_t i = 0; i < ledger_node_n_cards(node); i++) {
                if (cards[i].units == 0)
                        continue;
                c->unit_mib = c->n_cards == 0 || c->unit_mib == unit ? unit : 0;
                c->n_cards++;
                if (!offers)
                        continue;
                c->n_offered++;
                c->largest = cards[i].units > c->largest ? cards[i].units : c->largest;
                enough += cards[i].units >= request->mem;
        }
        c->fits |= offers && enough >= request->cards;
}

ClusterCards cluster_cards_of(const Ledger *ledger, const Request *request) {
        ClusterCards c = {0};

        for (size_t i = 0; i < ledger_n_nodes(ledger); i++)
                if (share_mode_is_served(ledger_node_mode(ledger_node_at(ledger, i))))
                        look_at_node(&c, ledger_node_at(ledger, i), request);
        return c;
}

void cluster_cards_warn(const Ledger *ledger, const Request *request, Buf *out) {
        ClusterCards c = cluster_cards_of(ledger, request);

        if (c.fits || c.n_cards == 0)
                return;
        if (request->whole)
                buf_appendf(
                        out,
                        "no node of this cluster in mode topology has %u cards today: the pod waits for one",
                        request->cards);
        else if (c.n_offered == 0)
                buf_append_str(
                        out, STR("no node of this cluster is in mode core_mem today, which " RESOURCE_GPU_CORE
                                 " needs: the pod waits for such a node"));
        else if (request->cards > 1)
                buf_appendf(
                        out,
                        "no node of this cluster has %u cards of %u units today: the pod waits for such a "
                        "node",
                        request->cards, request->mem);
        else
                buf_appendf(
                        out,
                        "no card in this cluster has %u units today, the largest has %u: the pod waits for a "
                        "larger card",
                        request->mem, c.largest);
}

static bool names_a_card(const Ledger *ledger, const CardChoice *choice, const CardRule *rule) {
        for (size_t i = 0; i < ledger->n_nodes; i++) {
                const NodeDescription *node = &ledger->nodes[i]->now;

                for (size_t k = 0; k < node->n_cards; k++)
                        if (card_choice_names(choice, rule, node->cards[k].model, node->cards[k].uuid))
                                return true;
        }
        return false;
}

void cluster_cards_warn_choice(const Ledger *ledger, const CardChoice *choice, Buf *out) {
        if (cluster_cards_of(ledger, NULL).n_cards == 0)
                return;
        for (size_t i = 0; i < choice->n_rules && i < CLUSTER_ENTRIES_MAX; i++) {
                const CardRule *rule = &choice->rules[i];

                if (names_a_card(ledger, choice, rule))
                        continue;
                buf_appendf(out, "annotation %s: no card in this cluster has \"" STR_FMT "\" in its %s today",
                            card_choice_key_name(rule->key), STR_ARG(card_choice_text(choice, rule)),
                            rule->by_uuid ? "UUID" : "model");
                return;
        }
}
