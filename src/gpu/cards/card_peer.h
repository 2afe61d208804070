/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How two cards of a machine are connected, and the bandwidth of that in GB/s one way. The table of
 * paths has the words of `nvidia-smi topo -m`. */

#include "base/str.h"

enum {
        CARD_PEERS_MAX = 32,      /* cards 0 to 31 can have known peers */
        CARD_PEER_LINKS_MAX = 18, /* NVML_NVLINK_MAX_LINKS */
        CARD_LINK_RATE = 25,      /* GB/s of one NVLink one way, of generations 2 to 4 */
};

/* The common ancestor of two cards (nvmlGpuTopologyLevel_t), from near to far. */
typedef enum PeerPath {
        PEER_PATH_UNKNOWN,
        PEER_PATH_INTERNAL,    /* one board */
        PEER_PATH_SINGLE,      /* one PCIe switch */
        PEER_PATH_MULTIPLE,    /* several PCIe switches, without a host bridge */
        PEER_PATH_HOST_BRIDGE, /* one PCIe host bridge */
        PEER_PATH_NODE,        /* one NUMA node */
        PEER_PATH_SYSTEM,      /* between NUMA nodes */
        PEER_PATH_NO_P2P,      /* the driver refuses peer access, so that data goes through memory */
        PEER_PATHS_,
} PeerPath;

typedef struct CardPeer {
        uint8_t path;  /* PeerPath */
        uint8_t links; /* NVLinks between the two, directly or by an NVSwitch; 0: none */
} CardPeer;

/* The bandwidth between two cards, GB/s one way. link_rate: of one NVLink of the slower card. 0:
 * nothing is known. */
uint16_t card_peer_rate(CardPeer peer, unsigned link_rate);

/* Parses a cell of `nvidia-smi topo -m`: INT, PIX, PXB, PHB, NODE or SYS sets peer->path, NV1 to
 * NV18 sets peer->links. Returns false for any other word. */
bool card_peer_parse(Str word, CardPeer *peer);

/* Raises peer->links to the NVLinks that both cards have to an NVSwitch, which joins all its cards:
 * the smaller of the two numbers. */
void card_peer_join_switch(CardPeer *peer, unsigned links, unsigned other_links);
