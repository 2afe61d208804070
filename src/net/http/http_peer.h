/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which peer a connection belongs to, and how many connections each peer has. A peer is an IPv4
 * address, or the first 64 bits of an IPv6 address: a host may have every address of its prefix. */

#include <stdbool.h>

struct sockaddr;

/* An IPv4 address as ::ffff:a.b.c.d, a prefix with zeros behind it; all 0: not known. */
typedef struct HttpPeer {
        unsigned char address[16];
} HttpPeer;

/* address: NULL where it is not known, as one of another family is. */
HttpPeer http_peer_of(const struct sockaddr *address);
bool http_peer_equal(const HttpPeer *a, const HttpPeer *b);

typedef struct HttpPeerCount {
        HttpPeer peer;
        unsigned open; /* 0: the place is free */
} HttpPeerCount;

typedef struct HttpPeerCounts {
        HttpPeerCount *places; /* one for each connection that the server may have */
        unsigned places_max, open_max;
} HttpPeerCounts;

/* connections: of all peers together. open_max: of one peer; 0: without a limit, and nothing is
 * counted. Returns 0 or -ENOMEM. */
int http_peer_counts_init(HttpPeerCounts *c, unsigned connections, unsigned open_max);
void http_peer_counts_done(HttpPeerCounts *c);

/* Whether this peer may open one more connection. */
bool http_peer_may_open(const HttpPeerCounts *c, const HttpPeer *peer);
void http_peer_opened(HttpPeerCounts *c, const HttpPeer *peer);
/* Once for each http_peer_opened() of the same peer. */
void http_peer_closed(HttpPeerCounts *c, const HttpPeer *peer);
