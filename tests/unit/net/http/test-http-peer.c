/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "test.h"

static HttpPeer v6(const char *text) {
        struct sockaddr_in6 address = {.sin6_family = AF_INET6};

        ASSERT_INT(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
        return http_peer_of((const struct sockaddr *) &address);
}

static HttpPeer v4(const char *text) {
        struct sockaddr_in address = {.sin_family = AF_INET};

        ASSERT_INT(inet_pton(AF_INET, text, &address.sin_addr), 1);
        return http_peer_of((const struct sockaddr *) &address);
}

static bool same(HttpPeer a, HttpPeer b) {
        return http_peer_equal(&a, &b);
}

static void a_prefix_of_ipv6_is_one_peer(void) {
        ASSERT_TRUE(same(v6("2001:db8:1:2::1"), v6("2001:db8:1:2:ffff::9")));
        ASSERT_FALSE(same(v6("2001:db8:1:2::1"), v6("2001:db8:1:3::1")));
}

static void an_address_of_ipv4_is_one_peer(void) {
        ASSERT_TRUE(same(v4("10.0.0.1"), v6("::ffff:10.0.0.1")));
        ASSERT_FALSE(same(v4("10.0.0.1"), v4("10.0.0.2")));
        ASSERT_FALSE(same(v6("::ffff:10.0.0.1"), v6("::ffff:10.0.0.2")));
}

static void another_family_is_not_known(void) {
        struct sockaddr local = {.sa_family = AF_UNIX};

        ASSERT_TRUE(same(http_peer_of(NULL), (HttpPeer){{0}}));
        ASSERT_TRUE(same(http_peer_of(&local), (HttpPeer){{0}}));
}

static unsigned open_all(HttpPeerCounts *c, HttpPeer peer) {
        unsigned n = 0;

        for (; http_peer_may_open(c, &peer); n++)
                http_peer_opened(c, &peer);
        return n;
}

static void counts_a_prefix_as_one(void) {
        HttpPeer a = v6("2001:db8:1:2::1"), b = v6("2001:db8:1:2::2"), other = v6("2001:db8:1:3::1");
        HttpPeerCounts c;

        ASSERT_OK(http_peer_counts_init(&c, 8, 5));
        ASSERT_INT(open_all(&c, a), 5);
        ASSERT_INT(open_all(&c, b), 0);
        http_peer_closed(&c, &a);
        http_peer_closed(&c, &b);
        ASSERT_INT(open_all(&c, b), 2);
        ASSERT_INT(open_all(&c, other), 5);
        http_peer_counts_done(&c);
}

/* A place whose connections have all ended is for another peer. */
static void forgets_peers_that_left(void) {
        HttpPeerCounts c;

        ASSERT_OK(http_peer_counts_init(&c, 2, 1));
        for (unsigned i = 1; i < 100; i++) {
                struct sockaddr_in one = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(i)};
                HttpPeer peer = http_peer_of((const struct sockaddr *) &one);

                ASSERT_INT(open_all(&c, peer), 1);
                http_peer_closed(&c, &peer);
        }
        ASSERT_INT(open_all(&c, v4("10.0.0.1")), 1);
        ASSERT_INT(open_all(&c, v4("10.0.0.2")), 1);
        ASSERT_INT(open_all(&c, v4("10.0.0.3")), 0);
        http_peer_counts_done(&c);
}

static void without_a_limit_all_may_open(void) {
        HttpPeer peer = v4("10.0.0.1");
        HttpPeerCounts c;

        ASSERT_OK(http_peer_counts_init(&c, 8, 0));
        for (unsigned i = 0; i < 100; i++) {
                ASSERT_TRUE(http_peer_may_open(&c, &peer));
                http_peer_opened(&c, &peer);
        }
        http_peer_closed(&c, &peer);
        http_peer_counts_done(&c);
}

int main(void) {
        return TEST_MAIN(TEST(a_prefix_of_ipv6_is_one_peer), TEST(an_address_of_ipv4_is_one_peer),
                         TEST(another_family_is_not_known), TEST(counts_a_prefix_as_one),
                         TEST(forgets_peers_that_left), TEST(without_a_limit_all_may_open));
}
