/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page_peers.h"

enum { ALL = 2 /* buckets of a peer */ };

#define EACH ((usec_t) USEC_PER_SEC / PAGE_PEERS_RATE) /* until one review of a peer is back */

/* The peer's place, else the one that it may have. */
static PagePeer *find(PagePeers *p, const HttpPeer *peer) {
        PagePeer *fullest = &p->peers[0];

        for (size_t i = 0; i < PAGE_PEERS_MAX; i++) {
                PagePeer *one = &p->peers[i];

                if (one->full != 0 && http_peer_equal(&one->is, peer))
                        return one;
                if (one->full < fullest->full)
                        fullest = one;
        }
        return fullest;
}

static bool has_one(usec_t full, usec_t each, usec_t burst, usec_t now) {
        return full <= now + (burst - 1) * each;
}

static usec_t later(usec_t full, usec_t each, usec_t now) {
        return (full > now ? full : now) + each;
}

bool page_peers_take(PagePeers *p, const HttpPeer *peer, usec_t now) {
        PagePeer *place = find(p, peer);
        usec_t full = http_peer_equal(&place->is, peer) ? place->full : 0;

        if (!has_one(full, EACH, PAGE_PEERS_BURST, now) ||
            !has_one(p->full, EACH / ALL, ALL * PAGE_PEERS_BURST, now))
                return false;
        *place = (PagePeer){.is = *peer, .full = later(full, EACH, now)};
        p->full = later(p->full, EACH / ALL, now);
        return true;
}
