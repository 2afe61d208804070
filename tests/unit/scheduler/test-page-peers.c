/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page_peers.h"

#include "test.h"

#define BEGIN (100 * USEC_PER_SEC)

static HttpPeer v4(unsigned n) {
        return (HttpPeer){{[10] = 0xff, [11] = 0xff, 10, 0, (unsigned char) (n >> 8), (unsigned char) n}};
}

static unsigned take_all(PagePeers *p, HttpPeer peer, usec_t now) {
        unsigned n = 0;

        while (page_peers_take(p, &peer, now))
                n++;
        return n;
}

static void a_peer_has_a_bucket_of_its_own(void) {
        PagePeers p = {0};

        ASSERT_INT(take_all(&p, v4(1), BEGIN), PAGE_PEERS_BURST);
        ASSERT_INT(take_all(&p, v4(1), BEGIN + USEC_PER_SEC), PAGE_PEERS_RATE);
        ASSERT_INT(take_all(&p, v4(2), BEGIN + USEC_PER_SEC), PAGE_PEERS_BURST);
        ASSERT_INT(take_all(&p, v4(1), BEGIN + 60 * USEC_PER_SEC), PAGE_PEERS_BURST);
}

/* However long it sends. */
static void one_peer_does_not_keep_another_out(void) {
        PagePeers p = {0};

        for (unsigned i = 0; i < 100; i++) {
                HttpPeer user = v4(1000 + i);
                usec_t now = BEGIN + i * USEC_PER_SEC;

                (void) take_all(&p, v4(1), now);
                ASSERT_TRUE(page_peers_take(&p, &user, now));
        }
}

static void all_peers_together_are_bounded(void) {
        PagePeers p = {0};
        unsigned n = 0;

        for (unsigned i = 0; i < 1000; i++)
                n += take_all(&p, v4(i), BEGIN);
        ASSERT_INT(n, 2 * PAGE_PEERS_BURST);
        for (unsigned i = 0; i < 1000; i++)
                n += take_all(&p, v4(i), BEGIN + USEC_PER_SEC);
        ASSERT_INT(n, 2 * PAGE_PEERS_BURST + 2 * PAGE_PEERS_RATE);
}

/* What a refused peer had is not forgotten for a peer that is refused as well. */
static void a_refusal_changes_nothing(void) {
        PagePeers p = {0}, before;
        HttpPeer third = v4(3);

        (void) take_all(&p, v4(1), BEGIN);
        (void) take_all(&p, v4(2), BEGIN);
        before = p;
        ASSERT_FALSE(page_peers_take(&p, &third, BEGIN));
        ASSERT_TRUE(memcmp(&p, &before, sizeof p) == 0);
}

static void more_peers_than_are_remembered_are_served(void) {
        PagePeers p = {0};

        for (unsigned i = 0; i < 3 * PAGE_PEERS_MAX; i++) {
                HttpPeer one = v4(i);

                ASSERT_TRUE(page_peers_take(&p, &one, BEGIN + i * 50 * USEC_PER_MSEC));
        }
}

int main(void) {
        return TEST_MAIN(TEST(a_peer_has_a_bucket_of_its_own), TEST(one_peer_does_not_keep_another_out),
                         TEST(all_peers_together_are_bounded), TEST(a_refusal_changes_nothing),
                         TEST(more_peers_than_are_remembered_are_served));
}
