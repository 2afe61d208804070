/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/probe_report.h"
#include "test.h"

static ProbeReport card_report(void) {
        return (ProbeReport){.kind = REPORT_CARD,
                             .request = 1,
                             .position = 255,
                             .minor = 3,
                             .mib = 16160,
                             .numa = 1,
                             .uuid = "GPU-1",
                             .model = "Tesla V100",
                             .pci = "00000000:3B:00.0"};
}

static void reads_a_card(void) {
        ProbeReport sent = card_report(), got;
        MachineCard c;

        ASSERT_OK(probe_report_read(&sent, sizeof sent, &got));
        probe_report_card(&got, &c);
        ASSERT_INT(c.index, 255);
        ASSERT_INT(c.minor, 3);
        ASSERT_INT(c.mib, 16160);
        ASSERT_INT(c.numa, 1);
        ASSERT_TRUE(c.healthy);
        ASSERT_TEXT(c.uuid, "GPU-1");
        ASSERT_TEXT(c.model, "Tesla V100");
        ASSERT_TEXT(c.pci, "00000000:3B:00.0");
        (void) snprintf(sent.text, sizeof sent.text, "lost");
        ASSERT_OK(probe_report_read(&sent, sizeof sent, &got));
        probe_report_card(&got, &c);
        ASSERT_FALSE(c.healthy);
        ASSERT_TEXT(c.trouble, "lost");
}

static void reads_links(void) {
        ProbeReport sent = {.kind = REPORT_LINKS, .position = 31, .link_rate = 25, .switch_links = 18}, got;
        MachineCard c = {.index = 31};

        sent.peers[3] = (CardPeer){.path = PEER_PATH_NO_P2P, .links = 18};
        ASSERT_OK(probe_report_read(&sent, sizeof sent, &got));
        probe_report_links(&got, &c);
        ASSERT_INT(c.link_rate, 25);
        ASSERT_INT(c.switch_links, 18);
        ASSERT_INT(c.peers[3].links, 18);
}

static void cleans_what_people_will_read(void) {
        ProbeReport sent = card_report(), got;

        memcpy(sent.model, "\033[31m\xff\n\x7f~ ", 10);
        ASSERT_OK(probe_report_read(&sent, sizeof sent, &got));
        ASSERT_TEXT(got.model, "?[31m???~ ");
}

static void refuses(const ProbeReport *sent, size_t n) {
        ProbeReport got = {.kind = 77};

        ASSERT_INT(probe_report_read(sent, n, &got), REPORT_E_MALFORMED);
        ASSERT_INT(got.kind, 77);
}

static void refuses_what_is_no_report(void) {
        char bytes[sizeof(ProbeReport) + 1] = {REPORT_READY};
        ProbeReport r = card_report();

        refuses(&r, sizeof r - 1);
        refuses(&r, 0);
        refuses((const ProbeReport *) (const void *) bytes, sizeof bytes);
        r.kind = 0;
        refuses(&r, sizeof r);
        r.kind = REPORT_KINDS_;
        refuses(&r, sizeof r);
        r = card_report();
        r.position = CARDS_MAX;
        refuses(&r, sizeof r);
        r = card_report();
        r.numa = -2;
        refuses(&r, sizeof r);
        r = card_report();
        memset(r.text, 'x', sizeof r.text); /* no NUL */
        refuses(&r, sizeof r);
        r = card_report();
        (void) snprintf(r.uuid, sizeof r.uuid, "../x");
        refuses(&r, sizeof r);
        r = (ProbeReport){.kind = REPORT_LINKS, .position = CARD_PEERS_MAX};
        refuses(&r, sizeof r);
        r = (ProbeReport){.kind = REPORT_LINKS, .switch_links = 19};
        refuses(&r, sizeof r);
        r = (ProbeReport){.kind = REPORT_LINKS, .peers[31].links = 19};
        refuses(&r, sizeof r);
        r = (ProbeReport){.kind = REPORT_LINKS, .peers[0].path = PEER_PATHS_};
        refuses(&r, sizeof r);
}

int main(void) {
        return TEST_MAIN(TEST(reads_a_card), TEST(reads_links), TEST(cleans_what_people_will_read),
                         TEST(refuses_what_is_no_report));
}
