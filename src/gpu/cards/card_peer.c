/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/card_peer.h"

/* Bandwidth of PCIe by path, GB/s: the figures that ACK's overview of GPU topology has for Gen 3.
 * Only their order and their distance from NVLink matter. */
static const struct {
        Str word;
        uint16_t rate;
} paths[PEER_PATHS_] = {
        [PEER_PATH_INTERNAL] = {STR("INT"), 16}, [PEER_PATH_SINGLE] = {STR("PIX"), 16},
        [PEER_PATH_MULTIPLE] = {STR("PXB"), 12}, [PEER_PATH_HOST_BRIDGE] = {STR("PHB"), 10},
        [PEER_PATH_NODE] = {STR("NODE"), 8},     [PEER_PATH_SYSTEM] = {STR("SYS"), 5},
        [PEER_PATH_NO_P2P] = {STR(""), 5},
};

uint16_t card_peer_rate(CardPeer peer, unsigned link_rate) {
        if (peer.links > 0)
                return (uint16_t) (peer.links * link_rate);
        return peer.path < PEER_PATHS_ ? paths[peer.path].rate : 0;
}

static bool parse_links(Str word, uint8_t *ret) {
        uint32_t links;

        if (word.len < 3 || !str_eq((Str){word.data, 2}, STR("NV")) ||
            !str_to_u32((Str){word.data + 2, word.len - 2}, &links) || links == 0 ||
            links > CARD_PEER_LINKS_MAX)
                return false;
        *ret = (uint8_t) links;
        return true;
}

bool card_peer_parse(Str word, CardPeer *peer) {
        for (unsigned i = PEER_PATH_INTERNAL; i < PEER_PATH_NO_P2P; i++)
                if (str_eq(word, paths[i].word)) {
                        peer->path = (uint8_t) i;
                        return true;
                }
        return parse_links(word, &peer->links);
}

void card_peer_join_switch(CardPeer *peer, unsigned links, unsigned other_links) {
        unsigned both = links < other_links ? links : other_links;

        if (both > peer->links)
                peer->links = (uint8_t) both;
}
