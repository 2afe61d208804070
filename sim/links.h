/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How the simulated libnvidia-ml.so.1 learns of the links between cards: a control of a subdevice
 * that the real driver does not have. Its own controls for that differ from release to release. */

#include "gpu/cards/card_peer.h"

enum { SIM_CTRL_LINKS = 0x20808001 };

typedef struct SimLinks {
        uint8_t switch_links;
        CardPeer peers[CARD_PEERS_MAX]; /* by the instance of the other card; links: without a switch's */
} SimLinks;
