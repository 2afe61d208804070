/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/simulated_links.h"

/* One entry of the text, parsed. */
typedef struct Entry {
        Str text, kind;
        CardPeer peer; /* kind as path or links; the other field is 0 */
        uint32_t switch_links, numa;
        bool by_switch, by_numa;
        bool cards[CARD_PEERS_MAX];
} Entry;

static int refuse(const Entry *e, Fault *fault) {
        return fault_set(fault, CARDS_E_MALFORMED,
                         "\"%.*s\" must be CARDS=LINK, as 0-3=NV2 or 0+4=PHB; LINK is NV1 to NV18, SW1 to "
                         "SW18, INT, PIX, PXB, PHB, NODE, SYS or NUMA0 to NUMA31",
                         STR_CUT(e->text, 64));
}

static bool parse_number(Str kind, Str prefix, uint32_t most, uint32_t *ret) {
        return kind.len > prefix.len && str_eq((Str){kind.data, prefix.len}, prefix) &&
               str_to_u32((Str){kind.data + prefix.len, kind.len - prefix.len}, ret) && *ret <= most;
}

static bool parse_kind(Entry *e) {
        e->by_numa = parse_number(e->kind, STR("NUMA"), CARD_PEERS_MAX - 1, &e->numa);
        e->by_switch = parse_number(e->kind, STR("SW"), CARD_PEER_LINKS_MAX, &e->switch_links);
        if (e->by_switch && e->switch_links == 0)
                return false;
        return e->by_numa || e->by_switch || card_peer_parse(e->kind, &e->peer);
}

static int add_range(Entry *e, Str range, size_t n_cards, Fault *fault) {
        uint32_t first, last;
        Str rest = range;

        if (!str_to_u32(str_trim(str_split(&rest, '-')), &first))
                return refuse(e, fault);
        last = first;
        if (rest.data && !str_to_u32(str_trim(rest), &last))
                return refuse(e, fault);
        if (last < first)
                return refuse(e, fault);
        if (last >= n_cards)
                return fault_set(fault, CARDS_E_MALFORMED, "\"%.*s\" names card %u of %zu cards",
                                 STR_CUT(e->text, 64), last, n_cards);
        for (uint32_t i = first; i <= last; i++)
                e->cards[i] = true;
        return 0;
}

static int parse_entry(Entry *e, size_t n_cards, Fault *fault) {
        Str set;
        int r = 0;

        e->kind = e->text;
        set = str_split(&e->kind, '=');
        e->kind = str_trim(e->kind);
        if (!e->kind.data || !parse_kind(e))
                return refuse(e, fault);
        do
                r = add_range(e, str_trim(str_split(&set, '+')), n_cards, fault);
        while (r == 0 && set.data);
        return r;
}

static void apply_pair(const Entry *e, CardPeer *peer) {
        if (e->peer.path != PEER_PATH_UNKNOWN)
                peer->path = e->peer.path;
        if (e->peer.links > 0)
                peer->links = e->peer.links;
}

static void apply(const Entry *e, CardList *l) {
        for (uint32_t i = 0; i < l->n; i++) {
                MachineCard *c = &l->cards[i];

                if (!e->cards[i])
                        continue;
                if (e->by_numa)
                        c->numa = (int32_t) e->numa;
                if (e->by_switch)
                        c->switch_links = (uint8_t) e->switch_links;
                for (uint32_t k = 0; k < l->n; k++)
                        if (k != i && e->cards[k])
                                apply_pair(e, &c->peers[k]);
        }
}

static void finish(CardList *l) {
        for (uint32_t i = 0; i < l->n; i++) {
                MachineCard *c = &l->cards[i];

                c->link_rate = CARD_LINK_RATE;
                for (uint32_t k = 0; k < l->n; k++) {
                        if (k != i && c->peers[k].path == PEER_PATH_UNKNOWN)
                                c->peers[k].path = PEER_PATH_SYSTEM;
                        if (k != i)
                                card_peer_join_switch(&c->peers[k], c->switch_links,
                                                      l->cards[k].switch_links);
                }
        }
}

int simulated_links_read(Str text, CardList *l, Fault *fault) {
        int r = 0;

        if (l->n > CARD_PEERS_MAX)
                return fault_set(fault, CARDS_E_MALFORMED, "links need at most %d cards, not %zu",
                                 CARD_PEERS_MAX, l->n);
        do {
                Entry e = {.text = str_trim(str_split(&text, '/'))};

                r = parse_entry(&e, l->n, fault);
                if (r == 0)
                        apply(&e, l);
        } while (r == 0 && text.data);
        if (r == 0)
                finish(l);
        return r;
}
