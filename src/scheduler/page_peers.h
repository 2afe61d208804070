/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many unknown tokens the page has the API server review (page_access.h). Each peer has a
 * bucket of PAGE_PEERS_BURST that fills by PAGE_PEERS_RATE a second, and all peers together have
 * one twice as large. So a peer that invents tokens takes at most half of all reviews, and a user
 * at another address still gets a first one.
 *
 * PAGE_PEERS_MAX peers (http_peer.h) are remembered. Of more, the one with the fullest bucket is
 * forgotten, and its next review finds a full one; the bucket of all peers still counts. Pure: the
 * time is an argument. */

#include "base/clock.h"
#include "net/http/http_peer.h"

enum { PAGE_PEERS_MAX = 64, PAGE_PEERS_BURST = 20, PAGE_PEERS_RATE = 10 };

typedef struct PagePeer {
        HttpPeer is;
        usec_t full; /* from this time on its bucket is full; 0: the place is free */
} PagePeer;

typedef struct PagePeers {
        usec_t full; /* the same of the bucket of all peers */
        PagePeer peers[PAGE_PEERS_MAX];
} PagePeers;

/* Takes one review for this peer. now: monotonic, not 0. Returns whether it may be made; if not,
 * nothing is taken. */
bool page_peers_take(PagePeers *p, const HttpPeer *peer, usec_t now);
