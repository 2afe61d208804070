/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { V6_PREFIX = 8 /* bytes */ };

static const unsigned char v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

HttpPeer http_peer_of(const struct sockaddr *address) {
        const void *bytes = address; /* sockaddr_in and sockaddr_in6 begin with the family */
        HttpPeer peer = {{0}};

        if (address && address->sa_family == AF_INET6) {
                const struct sockaddr_in6 *v6 = bytes;

                memcpy(peer.address, &v6->sin6_addr, sizeof peer.address);
                if (memcmp(peer.address, v4_mapped, sizeof v4_mapped) != 0)
                        memset(peer.address + V6_PREFIX, 0, sizeof peer.address - V6_PREFIX);
        } else if (address && address->sa_family == AF_INET) {
                const struct sockaddr_in *v4 = bytes;

                memcpy(peer.address, v4_mapped, sizeof v4_mapped);
                memcpy(peer.address + sizeof v4_mapped, &v4->sin_addr, 4);
        }
        return peer;
}

bool http_peer_equal(const HttpPeer *a, const HttpPeer *b) {
        return memcmp(a->address, b->address, sizeof a->address) == 0;
}

int http_peer_counts_init(HttpPeerCounts *c, unsigned connections, unsigned open_max) {
        *c = (HttpPeerCounts){0};
        if (open_max == 0)
                return 0;
        c->places = calloc(connections, sizeof *c->places);
        if (!c->places)
                return -ENOMEM;
        c->places_max = connections;
        c->open_max = open_max;
        return 0;
}

void http_peer_counts_done(HttpPeerCounts *c) {
        free(c->places);
        *c = (HttpPeerCounts){0};
}

/* The peer's place; without one a free place, or NULL. */
static HttpPeerCount *find(const HttpPeerCounts *c, const HttpPeer *peer) {
        HttpPeerCount *free_place = NULL;

        for (unsigned i = 0; i < c->places_max; i++) {
                HttpPeerCount *one = &c->places[i];

                if (one->open > 0 && http_peer_equal(&one->peer, peer))
                        return one;
                if (one->open == 0 && !free_place)
                        free_place = one;
        }
        return free_place;
}

bool http_peer_may_open(const HttpPeerCounts *c, const HttpPeer *peer) {
        const HttpPeerCount *one = find(c, peer);

        return c->open_max == 0 || (one && one->open < c->open_max);
}

void http_peer_opened(HttpPeerCounts *c, const HttpPeer *peer) {
        HttpPeerCount *one = find(c, peer);

        if (!one)
                return;
        one->peer = *peer;
        one->open++;
}

void http_peer_closed(HttpPeerCounts *c, const HttpPeer *peer) {
        HttpPeerCount *one = find(c, peer);

        if (one && one->open > 0)
                one->open--;
}
