/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/card_table.h"
#include "gpu/cards/xid.h"
#include "random.h"
#include "test.h"

#define MINUTE (60 * USEC_PER_SEC)
#define QUIET  (10 * MINUTE)
#define HOUR   (60 * MINUTE)

static CardTable known;
static CardScan scan;

static void begin(const CardList *old) {
        card_table_init(&known, QUIET, old);
        memset(&scan, 0, sizeof scan);
        scan.session = 1;
}

/* uuid "": a card that could not be identified. bus: 0 for none. */
static MachineCard *see(uint32_t index, const char *uuid, unsigned bus, const char *trouble) {
        MachineCard *c = &scan.seen[scan.n++];

        *c = (MachineCard){.index = index, .minor = index, .mib = 16160, .numa = -1};
        (void) snprintf(c->uuid, sizeof c->uuid, "%s", uuid);
        (void) snprintf(c->trouble, sizeof c->trouble, "%s", trouble);
        if (bus > 0)
                (void) snprintf(c->pci, sizeof c->pci, "00000000:%02X:00.0", bus);
        c->healthy = trouble[0] == '\0';
        return c;
}

static void merge(usec_t now) {
        card_table_scan(&known, &scan, now);
        scan.n = 0;
}

static const MachineCard *card(const char *uuid) {
        for (size_t i = 0; i < CARDS_MAX; i++)
                if (strcmp(known.cards[i].card.uuid, uuid) == 0)
                        return &known.cards[i].card;
        TEST_FAIL_("%s is not known", uuid);
}

static bool knows(const char *uuid) {
        for (size_t i = 0; i < CARDS_MAX; i++)
                if (strcmp(known.cards[i].card.uuid, uuid) == 0)
                        return true;
        return false;
}

/* The kernel numbers the device files anew when the driver is loaded. */
static void a_lost_card_gives_up_its_number(void) {
        begin(NULL);
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        merge(1);
        see(0, "GPU-b", 2, "");
        merge(2);
        ASSERT_INT(card("GPU-a")->minor, CARD_MINOR_UNKNOWN);
        ASSERT_INT(card("GPU-b")->minor, 0);
        see(0, "GPU-a", 1, "NVML cannot tell its minor number: x");
        see(1, "GPU-b", 2, "");
        merge(3);
        ASSERT_INT(card("GPU-a")->minor, CARD_MINOR_UNKNOWN);
        see(1, "GPU-a", 1, "");
        see(0, "GPU-b", 2, "");
        merge(4);
        ASSERT_INT(card("GPU-a")->minor, 1);
        ASSERT_INT(card("GPU-b")->minor, 0);
}

/* NVML counts the cards anew when one is missing, and its peers with them. */
static void peers_follow_their_cards(void) {
        begin(NULL);
        for (uint32_t i = 0; i < 3; i++) {
                char uuid[] = {'G', 'P', 'U', '-', (char) ('a' + i), '\0'};
                MachineCard *c = see(i, uuid, i + 1, "");

                c->link_rate = 25;
                for (uint32_t k = 0; k < 3; k++)
                        if (k != i)
                                c->peers[k].links = (uint8_t) (i + k);
        }
        merge(1);
        ASSERT_INT(card("GPU-a")->peers[2].links, 2);
        ASSERT_INT(card("GPU-b")->peers[2].links, 3);
        see(0, "GPU-b", 2, "")->peers[1].links = 4;
        see(1, "GPU-c", 3, "")->peers[0].links = 4;
        merge(2);
        ASSERT_INT(card("GPU-b")->peers[2].links, 4);
        ASSERT_INT(card("GPU-b")->peers[1].links, 0);
        ASSERT_INT(card("GPU-c")->peers[1].links, 4);
        ASSERT_INT(card("GPU-c")->peers[0].links, 0);
        see(0, "GPU-b", 2, "NVML cannot tell its name: x");
        see(1, "GPU-c", 3, "")->peers[0].links = 4;
        merge(3);
        ASSERT_INT(card("GPU-b")->peers[2].links, 4);
}

static void an_index_stays_with_its_uuid(void) {
        begin(NULL);
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        see(2, "GPU-c", 3, "");
        merge(1);
        see(0, "GPU-b", 2, "");
        see(1, "GPU-c", 3, "");
        merge(2);
        ASSERT_INT(card("GPU-a")->index, 0);
        ASSERT_INT(card("GPU-b")->index, 1);
        ASSERT_INT(card("GPU-c")->index, 2);
        ASSERT_INT(card("GPU-c")->minor, 1); /* the minor number is the kernel's and may change */
        ASSERT_FALSE(card("GPU-a")->healthy);
        ASSERT_TRUE(card("GPU-b")->healthy && card_table_has_trouble(&known));
}

static void a_card_that_was_not_identified_keeps_its_gap(void) {
        begin(NULL);
        see(0, "GPU-a", 1, "");
        see(1, "", 0, "GPU is lost");
        see(2, "GPU-c", 3, "");
        merge(1);
        ASSERT_INT(card("GPU-c")->index, 2);
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        see(2, "GPU-c", 3, "");
        merge(2);
        ASSERT_INT(card("GPU-b")->index, 1);
        ASSERT_FALSE(card_table_has_trouble(&known));
}

static void a_new_card_gets_a_free_index(void) {
        begin(NULL);
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        merge(1);
        see(0, "GPU-new", 9, ""); /* before the others, by its PCI address */
        see(1, "GPU-a", 1, "");
        see(2, "GPU-b", 2, "");
        merge(2);
        ASSERT_INT(card("GPU-a")->index, 0);
        ASSERT_INT(card("GPU-b")->index, 1);
        ASSERT_INT(card("GPU-new")->index, 2);
}

static void a_replaced_card_is_forgotten(void) {
        begin(NULL);
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        merge(1);
        card_table_xid(&known, "GPU-a", 48, 1, 1);
        see(0, "GPU-new", 1, "");
        see(1, "GPU-b", 2, "");
        merge(2);
        ASSERT_FALSE(knows("GPU-a"));
        ASSERT_INT(card("GPU-new")->index, 0);
        ASSERT_TRUE(card("GPU-new")->healthy); /* the fence belonged to the old card */
}

static void two_cards_of_one_uuid_are_one(void) {
        begin(NULL);
        see(0, "GPU-a", 1, "");
        see(1, "GPU-a", 2, "");
        merge(1);
        ASSERT_TEXT(card("GPU-a")->pci, "00000000:01:00.0");
        ASSERT_TEXT(known.cards[1].card.uuid, "");
}

static void what_was_known_outlives_an_error(void) {
        begin(NULL);
        see(0, "GPU-a", 1, "");
        merge(1);
        see(0, "GPU-a", 1, "GPU requires reset")->mib = 0;
        merge(2);
        ASSERT_INT(card("GPU-a")->mib, 16160);
        ASSERT_TEXT(card("GPU-a")->trouble, "GPU requires reset");
        see(0, "GPU-a", 1, "")->mib = 8000;
        merge(3);
        ASSERT_INT(card("GPU-a")->mib, 8000);
        ASSERT_TRUE(card("GPU-a")->healthy);
        ASSERT_TEXT(card("GPU-a")->trouble, "");
}

static void a_missing_card_gets_the_best_hint(void) {
        begin(NULL);
        see(0, "GPU-a", 1, "");
        merge(1);
        merge(2);
        ASSERT_TEXT(card("GPU-a")->trouble, "the driver does not list it any more");
        see(0, "", 0, "GPU is lost");
        merge(3);
        ASSERT_TEXT(
                card("GPU-a")->trouble,
                "the driver does not list it any more; of a card that it cannot name it says: GPU is lost");
}

/* Cards that were never seen with a UUID have no place in the list. */
static void cards_without_a_name_are_told(void) {
        begin(NULL);
        see(0, "GPU-a", 1, "");
        see(1, "", 0, "GPU is lost");
        merge(1);
        ASSERT_TEXT(known.unnamed, "card 1 of the driver: GPU is lost");
        ASSERT_TRUE(card_table_has_trouble(&known));
        see(0, "GPU-a", 1, "");
        see(1, "", 0, "Not Found");
        see(2, "", 0, "GPU is lost");
        merge(2);
        ASSERT_TEXT(known.unnamed, "2 cards of the driver, the first is card 1: Not Found");
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        merge(3);
        ASSERT_TEXT(known.unnamed, "");
        ASSERT_FALSE(card_table_has_trouble(&known));
        see(0, "GPU-a", 1, "");
        see(1, "", 0, "GPU is lost"); /* this one was known, and says so itself */
        merge(4);
        ASSERT_TEXT(known.unnamed, "");
        ASSERT_FALSE(card("GPU-b")->healthy);
}

static void a_full_house(void) {
        char uuid[16];

        begin(NULL);
        for (uint32_t i = 0; i < CARDS_MAX; i++) {
                (void) snprintf(uuid, sizeof uuid, "GPU-%u", i);
                see(i, uuid, 0, "");
        }
        merge(1);
        for (uint32_t i = 1; i < CARDS_MAX; i++) {
                (void) snprintf(uuid, sizeof uuid, "GPU-%u", i);
                see(i, uuid, 0, "");
        }
        see(0, "GPU-new", 0, "");
        merge(2);
        ASSERT_INT(card("GPU-new")->index, 0); /* it takes the index of the missing card */
        ASSERT_FALSE(knows("GPU-0"));
}

static void takes_an_earlier_runs_cards_but_no_simulated_ones(void) {
        MachineCard cards[] = {{.index = 3, .uuid = "GPU-a", .pci = "00000000:01:00.0"},
                               {.index = 5, .uuid = "GPU-s"}};
        CardList old = {cards, 2};

        begin(&old);
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        merge(1);
        ASSERT_INT(card("GPU-a")->index, 3);
        ASSERT_INT(card("GPU-b")->index, 1);
        ASSERT_FALSE(knows("GPU-s"));
}

/* --- fences ----------------------------------------------------------------------------------- */

static void scan_well(usec_t now) {
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        merge(now);
}

static void harmless_and_unknown_xids_fence_nothing(void) {
        static const uint64_t codes[] = {
                0, 1, 13, 31, 43, 45, 63, 68, 69, 92, 94, 99, 109, 154, 999, UINT32_MAX, 1ULL << 32 | 48};

        begin(NULL);
        scan_well(1);
        for (size_t i = 0; i < ELEMENTSOF(codes); i++)
                card_table_xid(&known, "GPU-a", codes[i], 1, 2);
        card_table_xid(&known, "GPU-nobody", 48, 1, 2);
        card_table_xid(&known, "", 48, 1, 2);
        ASSERT_FALSE(card_table_has_trouble(&known));
}

static void each_broken_xid_fences_its_card_only(void) {
        static const uint64_t codes[] = {46, 48, 62, 64, 74, 79, 95, 119, 120, 140, 143};

        for (size_t i = 0; i < ELEMENTSOF(codes); i++) {
                begin(NULL);
                scan_well(1);
                card_table_xid(&known, "GPU-a", codes[i], 1, 2);
                ASSERT_FALSE(card("GPU-a")->healthy);
                ASSERT_TRUE(card("GPU-b")->healthy);
                ASSERT_CONTAINS(card("GPU-a")->trouble, xid_rule(codes[i])->words);
        }
}

static void a_fence_lifts_after_quiet_time(void) {
        begin(NULL);
        scan_well(0);
        card_table_xid(&known, "GPU-a", 48, 1, MINUTE);
        card_table_xid(&known, "GPU-a", 48, 1, 2 * MINUTE);
        scan_well(2 * MINUTE + QUIET - 1);
        ASSERT_FALSE(card("GPU-a")->healthy);
        scan_well(2 * MINUTE + QUIET);
        ASSERT_TRUE(card("GPU-a")->healthy);
}

static void a_fence_does_not_lift_while_the_card_answers_with_errors(void) {
        begin(NULL);
        scan_well(0);
        card_table_xid(&known, "GPU-a", 48, 1, 0);
        see(0, "GPU-a", 1, "GPU requires reset");
        merge(HOUR);
        ASSERT_TEXT(card("GPU-a")->trouble, "GPU requires reset");
        merge(2 * HOUR); /* missing */
        ASSERT_FALSE(card("GPU-a")->healthy);
        scan_well(3 * HOUR);
        ASSERT_TRUE(card("GPU-a")->healthy);
}

static void relapses_wait_longer(void) {
        usec_t now = MINUTE, quiet = QUIET;

        begin(NULL);
        scan_well(0);
        for (int i = 0; i < 12; i++) {
                card_table_xid(&known, "GPU-a", 48, 1, now);
                scan_well(now + quiet - 1);
                ASSERT_FALSE(card("GPU-a")->healthy);
                scan_well(now + quiet);
                ASSERT_TRUE(card("GPU-a")->healthy);
                now += quiet + MINUTE;
                quiet = quiet * 2 < 24 * HOUR ? quiet * 2 : 24 * HOUR;
        }
        now += 24 * HOUR; /* a day without an XID: the relapses are forgotten */
        card_table_xid(&known, "GPU-a", 48, 1, now);
        scan_well(now + QUIET);
        ASSERT_TRUE(card("GPU-a")->healthy);
}

static void a_card_off_the_bus_must_be_found_anew(void) {
        begin(NULL);
        scan_well(0);
        card_table_xid(&known, "GPU-a", 79, 1, 1);
        scan_well(HOUR);
        /* the session that lost the card still lists it, which proves nothing */
        ASSERT_FALSE(card("GPU-a")->healthy);
        scan.session = 2;
        scan_well(HOUR + 1);
        ASSERT_TRUE(card("GPU-a")->healthy);
}

static void a_later_xid_does_not_soften_a_loss(void) {
        begin(NULL);
        scan_well(0);
        card_table_xid(&known, "GPU-a", 79, 1, 1);
        card_table_xid(&known, "GPU-a", 74, 1, 2);
        scan_well(HOUR);
        ASSERT_FALSE(card("GPU-a")->healthy);
}

/* --- any sequence ----------------------------------------------------------------------------- */

static Random random_state = {1};

static void check(const char (*owner)[16]) {
        _cleanup_(card_list_done) CardList l = {0};

        ASSERT_OK(card_table_list(&known, &l));
        for (size_t i = 0; i < l.n; i++) {
                const MachineCard *c = &l.cards[i];

                ASSERT_TRUE(c->index < CARDS_MAX && (i == 0 || l.cards[i - 1].index < c->index));
                ASSERT_TRUE(c->healthy == (c->trouble[0] == '\0'));
                for (size_t k = 0; k < i; k++)
                        ASSERT_TRUE(strcmp(l.cards[k].uuid, c->uuid) != 0);
                /* The card of an index keeps it or is replaced; no card ever moves to another
                 * index. */
                for (size_t k = 0; k < CARDS_MAX; k++)
                        ASSERT_TRUE(strcmp(owner[k], c->uuid) != 0 || k == c->index);
        }
}

static void whatever_happens_no_card_moves(void) {
        static const uint32_t xids[] = {13, 48, 79, 94, 119};
        char owner[CARDS_MAX][16] = {{0}};
        char uuid[16];

        begin(NULL);
        for (usec_t now = 1; now < 5000; now++) {
                for (uint32_t i = 0; i < 8; i++) {
                        (void) snprintf(uuid, sizeof uuid, "GPU-%u",
                                        (unsigned) random_below(&random_state, 12));
                        if (random_below(&random_state, 4) > 0)
                                see(i, random_below(&random_state, 9) > 0 ? uuid : "", 0,
                                    random_below(&random_state, 5) > 0 ? "" : "Some Error");
                }
                scan.session += random_below(&random_state, 10) == 0;
                merge(now * MINUTE);
                (void) snprintf(uuid, sizeof uuid, "GPU-%u", (unsigned) random_below(&random_state, 12));
                card_table_xid(&known, uuid, xids[random_below(&random_state, ELEMENTSOF(xids))],
                               scan.session, now * MINUTE);
                check(owner);
                for (size_t i = 0; i < CARDS_MAX; i++)
                        (void) snprintf(owner[i], sizeof owner[i], "%.15s", known.cards[i].card.uuid);
        }
}

#define XID_CODE(code, verdict, words) code,

static void each_xid_is_listed_once(void) {
        static const uint32_t codes[] = {XID_LIST(XID_CODE)};

        for (size_t i = 0; i < ELEMENTSOF(codes); i++) {
                ASSERT_INT(xid_rule(codes[i])->xid, codes[i]);
                for (size_t k = 0; k < i; k++)
                        ASSERT_TRUE(codes[i] != codes[k]);
        }
        ASSERT_TRUE(!xid_rule(0) && !xid_rule(UINT64_MAX));
}

static uint64_t wall_of(usec_t now) {
        return UINT64_C(1700000000000) + now / USEC_PER_MSEC;
}

/* An agent that starts at `now`, by its own clock (`offset` less), with the fences that the last
 * agent stored. */
static void restart(usec_t now, usec_t offset, CardFences *fences) {
        CardList old;

        card_table_fences(&known, now, wall_of(now), fences);
        ASSERT_OK(card_table_list(&known, &old));
        card_table_init(&known, QUIET, &old);
        card_list_done(&old);
        card_table_restore(&known, fences, now - offset, wall_of(now));
}

static void fences_outlive_a_restart(void) {
        static CardFences fences;

        begin(NULL);
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        merge(1 * HOUR);
        ASSERT_TRUE(card_table_xid(&known, "GPU-a", 48, 1, 1 * HOUR));
        restart(1 * HOUR + 4 * MINUTE, 1 * HOUR, &fences);
        ASSERT_INT(fences.n, 1);
        ASSERT_FALSE(card("GPU-a")->healthy);
        ASSERT_TRUE(card("GPU-b")->healthy);
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        merge(10 * MINUTE - 1); /* by the new clock 10 min after the XID, less 1 us */
        ASSERT_FALSE(card("GPU-a")->healthy);
        ASSERT_TRUE(strncmp(card("GPU-a")->trouble, "XID 48", 6) == 0);
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        merge(10 * MINUTE);
        ASSERT_TRUE(card("GPU-a")->healthy);
        /* The fence was lifted: a relapse within a day counts, also after another restart. */
        restart(20 * MINUTE, 0, &fences);
        ASSERT_INT(fences.n, 1);
        ASSERT_INT(fences.list[0].xid, 0);
        ASSERT_TRUE(card_table_xid(&known, "GPU-a", 48, 1, 21 * MINUTE));
        ASSERT_INT(known.cards[0].relapses, 1);
        ASSERT_INT(known.cards[0].fenced_until, 41 * MINUTE);
}

/* A new run has a new session of the library. */
static void a_lost_card_is_found_by_a_new_run(void) {
        static CardFences fences;

        begin(NULL);
        see(0, "GPU-a", 1, "");
        merge(1);
        ASSERT_TRUE(card_table_xid(&known, "GPU-a", 79, 1, 2));
        see(0, "GPU-a", 1, "");
        merge(HOUR);
        ASSERT_FALSE(card("GPU-a")->healthy);
        restart(HOUR, 0, &fences);
        ASSERT_FALSE(card("GPU-a")->healthy);
        see(0, "GPU-a", 1, "");
        merge(HOUR + 1);
        ASSERT_TRUE(card("GPU-a")->healthy);
}

static void bad_fences_do_no_harm(void) {
        static CardFences fences = {.n = 4,
                                    .list = {{"GPU-a", 48, 0, UINT64_MAX, 0},
                                             /* fences nothing */
                                             {"GPU-b", 13, 0, UINT64_MAX, UINT64_MAX},
                                             {"GPU-c", 12345, 1000, 0, 1},
                                             {"GPU-nobody", 48, 0, 0, 0}}};

        begin(NULL);
        see(0, "GPU-a", 1, "");
        see(1, "GPU-b", 2, "");
        see(2, "GPU-c", 3, "");
        merge(1);
        card_table_restore(&known, &fences, HOUR, wall_of(HOUR));
        ASSERT_FALSE(card("GPU-a")->healthy);
        ASSERT_INT(known.cards[0].fenced_until, HOUR + QUIET); /* whatever the clock says */
        ASSERT_TRUE(card("GPU-b")->healthy && card("GPU-c")->healthy);
}

static void fences_as_text(void) {
        static const char *const bad[] = {"",
                                          "[]",
                                          "{\"fences\":[{}]}",
                                          "{\"fences\":[{\"uuid\":\"GPU-a\",\"xid\":-1}]}",
                                          "{\"fences\":[{\"uuid\":\"GPU-a\"},{\"uuid\":\"GPU-a\"}]}",
                                          "{\"fences\":[{\"uuid\":\"a/b\"}]}",
                                          "{\"fences\":[{\"uuid\":\"GPU-a\",\"relapses\":1001}]}"};
        static CardFences fences, again;
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ASSERT_INT(card_fences_read(str_from(bad[i]), &fences, &fault), CARDS_E_MALFORMED);
        ASSERT_INT(fences.n, 0);
        ASSERT_OK(card_fences_read(STR("{}"), &fences, &fault));
        ASSERT_OK(card_fences_read(
                STR("{\"more\":1,\"fences\":[{\"uuid\":\"GPU-a\",\"xid\":48,\"until\":1700000000000}]}"),
                &fences, &fault));
        ASSERT_INT(fences.list[0].until, 1700000000000);
        card_fences_write(&fences, &text);
        ASSERT_OK(card_fences_read(buf_str(&text), &again, &fault));
        ASSERT_TRUE(card_fences_near(&fences, &again));
        again.list[0].until += 29999;
        ASSERT_TRUE(card_fences_near(&fences, &again));
        again.list[0].until++;
        ASSERT_FALSE(card_fences_near(&fences, &again));
}

int main(void) {
        return TEST_MAIN(
                TEST(a_lost_card_gives_up_its_number), TEST(peers_follow_their_cards),
                TEST(an_index_stays_with_its_uuid), TEST(a_card_that_was_not_identified_keeps_its_gap),
                TEST(a_new_card_gets_a_free_index), TEST(a_replaced_card_is_forgotten),
                TEST(two_cards_of_one_uuid_are_one), TEST(what_was_known_outlives_an_error),
                TEST(a_missing_card_gets_the_best_hint), TEST(cards_without_a_name_are_told),
                TEST(a_full_house), TEST(takes_an_earlier_runs_cards_but_no_simulated_ones),
                TEST(harmless_and_unknown_xids_fence_nothing), TEST(each_broken_xid_fences_its_card_only),
                TEST(a_fence_lifts_after_quiet_time),
                TEST(a_fence_does_not_lift_while_the_card_answers_with_errors), TEST(relapses_wait_longer),
                TEST(a_card_off_the_bus_must_be_found_anew), TEST(a_later_xid_does_not_soften_a_loss),
                TEST(whatever_happens_no_card_moves), TEST(each_xid_is_listed_once),
                TEST(fences_outlive_a_restart), TEST(a_lost_card_is_found_by_a_new_run),
                TEST(bad_fences_do_no_harm), TEST(fences_as_text));
}
