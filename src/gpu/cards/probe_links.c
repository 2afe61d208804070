/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/probe_links.h"

/* Returns whether the call succeeded. After an error that is not about this call alone no further
 * call is made about the card, because each could hang. */
static bool succeeded(LinkedCard *c, int r) {
        if (r != NVML_SUCCESS && r != NVML_ERROR_INVALID_ARGUMENT && r != NVML_ERROR_NOT_SUPPORTED)
                c->lost = true;
        return r == NVML_SUCCESS;
}

/* NVLink 1 has 20 GB/s one way, 2 to 4 have 25, 5 has 50. Hopper reports version 5 for its links of
 * generation 4, so that the architecture decides. */
static uint8_t rate_of_version(const Nvml *nvml, LinkedCard *c, unsigned link) {
        unsigned version = 0, architecture = 0;

        if (!nvml->link_version || !succeeded(c, nvml->link_version(c->device, link, &version)))
                return CARD_LINK_RATE;
        if (version == NVML_NVLINK_VERSION_1)
                return 20;
        if (version < NVML_NVLINK_VERSION_5 || !nvml->architecture ||
            !succeeded(c, nvml->architecture(c->device, &architecture)))
                return CARD_LINK_RATE;
        return architecture >= NVML_ARCHITECTURE_BLACKWELL ? 50 : CARD_LINK_RATE;
}

static bool is_at(const LinkedCard *c, const NvmlPci *pci) {
        return c->domain == pci->domain && c->bus == pci->bus && c->slot == pci->device;
}

static void count_link(const Nvml *nvml, LinkedCard *cards, size_t n, LinkedCard *c, unsigned link) {
        unsigned type = NVML_NVLINK_TYPE_GPU;
        NvmlPci pci = {0};

        if (nvml->link_remote_type && !succeeded(c, nvml->link_remote_type(c->device, link, &type)))
                return;
        if (type == NVML_NVLINK_TYPE_SWITCH) {
                c->switch_links++;
                return;
        }
        if (type != NVML_NVLINK_TYPE_GPU || !nvml->link_remote ||
            !succeeded(c, nvml->link_remote(c->device, link, &pci)))
                return;
        for (size_t i = 0; i < n; i++)
                if (&cards[i] != c && is_at(&cards[i], &pci))
                        c->peers[i].links++;
}

static void query_nvlinks(const Nvml *nvml, LinkedCard *cards, size_t n, LinkedCard *c) {
        for (unsigned link = 0; nvml->link_state && link < CARD_PEER_LINKS_MAX && !c->lost; link++) {
                unsigned active = 0;

                if (!succeeded(c, nvml->link_state(c->device, link, &active)) || active != 1)
                        continue;
                if (c->link_rate == 0)
                        c->link_rate = rate_of_version(nvml, c, link);
                count_link(nvml, cards, n, c, link);
        }
}

static PeerPath path_of(unsigned level) {
        switch (level) {
        case NVML_TOPOLOGY_INTERNAL:
                return PEER_PATH_INTERNAL;
        case NVML_TOPOLOGY_SINGLE:
                return PEER_PATH_SINGLE;
        case NVML_TOPOLOGY_MULTIPLE:
                return PEER_PATH_MULTIPLE;
        case NVML_TOPOLOGY_HOSTBRIDGE:
                return PEER_PATH_HOST_BRIDGE;
        case NVML_TOPOLOGY_NODE:
                return PEER_PATH_NODE;
        case NVML_TOPOLOGY_SYSTEM:
                return PEER_PATH_SYSTEM;
        default:
                return PEER_PATH_UNKNOWN;
        }
}

/* Whether the driver says that the two cannot read each other's memory. */
static bool lacks_p2p(const Nvml *nvml, LinkedCard *a, LinkedCard *b) {
        unsigned status = NVML_P2P_STATUS_UNKNOWN;

        return nvml->p2p && succeeded(a, nvml->p2p(a->device, b->device, NVML_P2P_READ, &status)) &&
               status != NVML_P2P_STATUS_OK && status != NVML_P2P_STATUS_UNKNOWN;
}

static CardPeer query_pair(const Nvml *nvml, LinkedCard *a, LinkedCard *b, CardPeer peer) {
        unsigned level = 0;

        card_peer_join_switch(&peer, a->switch_links, b->switch_links);
        if (nvml->ancestor && !a->lost && !b->lost &&
            succeeded(a, nvml->ancestor(a->device, b->device, &level)))
                peer.path = (uint8_t) path_of(level);
        if (!a->lost && !b->lost && lacks_p2p(nvml, a, b))
                peer = (CardPeer){.path = PEER_PATH_NO_P2P};
        return peer;
}

void probe_links_query(const Nvml *nvml, LinkedCard *cards, size_t n) {
        n = n < CARD_PEERS_MAX ? n : CARD_PEERS_MAX;
        for (size_t i = 0; i < n; i++)
                query_nvlinks(nvml, cards, n, &cards[i]);
        for (size_t i = 0; i < n; i++)
                for (size_t k = i + 1; k < n; k++)
                        cards[i].peers[k] = cards[k].peers[i] =
                                query_pair(nvml, &cards[i], &cards[k], cards[i].peers[k]);
}
