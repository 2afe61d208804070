/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page_peers.h"

#include <string.h>

enum { ALL = 2 /* buckets of a peer */, V6_PREFIX = 8 /* bytes */ };

#define EACH ((usec_t) USEC_PER_SEC / PAGE_PEERS_RATE) /* until one review of a peer is back */

static const unsigned char v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

/* A host may have every address of its IPv6 prefix. */
static HttpPeer shorten(const HttpPeer *peer) {
        HttpPeer prefix = *peer;

        if (memcmp(prefix.address, v4_mapped, sizeof v4_mapped) != 0)
                memset(prefix.address + V6_PREFIX, 0, sizeof prefix.address - V6_PREFIX);
        return prefix;
}

/* The peer's place, else the one that it may have. */
static PagePeer *find(PagePeers *p, const HttpPeer *peer) {
        PagePeer *fullest = &p->peers[0];

        for (size_t i = 0; i < PAGE_PEERS_MAX; i++) {
                PagePeer *one = &p->peers[i];

                if (one->full != 0 && memcmp(&one->is, peer, sizeof *peer) == 0)
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
        HttpPeer is = shorten(peer);
        PagePeer *place = find(p, &is);
        usec_t full = memcmp(&place->is, &is, sizeof is) == 0 ? place->full : 0;

        if (!has_one(full, EACH, PAGE_PEERS_BURST, now) ||
            !has_one(p->full, EACH / ALL, ALL * PAGE_PEERS_BURST, now))
                return false;
        *place = (PagePeer){.is = is, .full = later(full, EACH, now)};
        p->full = later(p->full, EACH / ALL, now);
        return true;
}
