/* SPDX-License-Identifier: Apache-2.0 */
#include "devices.h"
#include "node/limits/pod_limit.h"

/* Two cards of 16160 MiB, in units of GiB: 15 of each. */

#define MIB (UINT64_C(1) << 20)

static Inventory inventory;

static void begin(void) {
        CardList cards = {0};

        ASSERT_OK(card_list_copy(
                &(CardList){.cards = (MachineCard[]){{.index = 0, .mib = 16160, .uuid = "GPU-a"},
                                                     {.index = 1, .mib = 16160, .uuid = "GPU-b"}},
                            .n = 2},
                &cards));
        ASSERT_OK(inventory_set(&inventory, &cards, SHARE_MODE_CGPU, (MemoryUnit){.mib = 1024}));
        card_list_done(&cards);
}

static uint64_t want(const RecordContainer *containers, size_t n, bool lifted, size_t card) {
        Record record = {.containers = (RecordContainer *) containers, .n_containers = n};
        PodLimit p = {.n = 0};

        ASSERT_TRUE(pod_limit_want(&p, &inventory, &record, lifted));
        ASSERT_TRUE(card < p.n);
        return p.cards[card].wanted / MIB;
}

static void adds_up_slices(void) {
        SET(two, "0-0", "0-1");
        SET(three, "0-2", "0-3", "0-4");
        SET(both, "0-5", "1-0", "1-1", "1-2");
        const RecordContainer c[] = {{.given = {[DEVICE_MEM] = two}},
                                     {.given = {[DEVICE_MEM] = three}},
                                     {.given = {[DEVICE_MEM] = both}}};
        const RecordContainer grown = {.given = {[DEVICE_MEM] = two}, .size_mem = 4};

        ASSERT_INT(want(c, 1, false, 0), 2154);
        ASSERT_INT(want(c, 2, false, 0), 2154 + 3232);
        ASSERT_INT(want(c, 3, false, 0), 2154 + 3232 + 1077);
        ASSERT_INT(want(c, 3, false, 1), 3232);
        ASSERT_INT(want(&grown, 1, false, 0), 4309); /* the size in force, not the devices */
        ASSERT_TRUE(want(c, 2, true, 0) == CARD_LIMIT_NONE / MIB);
}

static void counts_devices_of_init_containers_once(void) {
        SET(two, "0-0", "0-1");
        SET(three, "0-0", "0-1", "0-2");
        SET(one, "0-5");
        const RecordContainer within[] = {{.init = true, .given = {[DEVICE_MEM] = two}},
                                          {.given = {[DEVICE_MEM] = three}}};
        const RecordContainer beyond[] = {{.init = true, .given = {[DEVICE_MEM] = three}},
                                          {.init = true, .given = {[DEVICE_MEM] = one}},
                                          {.given = {[DEVICE_MEM] = two}}};

        ASSERT_INT(want(within, 2, false, 0), 3232);
        ASSERT_INT(want(beyond, 3, false, 0), 3232); /* as the first one shows; 2154 and 1077 are less */
}

static void refuses_unknown_cards(void) {
        SET(other, "7-0");
        RecordContainer c = {.given = {[DEVICE_MEM] = other}};
        Record record = {.containers = &c, .n_containers = 1};
        PodLimit p = {.n = 0};

        ASSERT_FALSE(pod_limit_want(&p, &inventory, &record, false));
}

/* What is set follows the use down, and is met only when it is what is wanted. */
static void follows_the_use_down(void) {
        static const struct {
                uint64_t wanted, used, next;
        } rows[] = {{2, 0, 2},
                    {2, 2, 2},
                    {2, 3, 3},
                    {CARD_LIMIT_NONE, 3, CARD_LIMIT_NONE},
                    {2, UINT64_MAX, UINT64_MAX}};
        PodLimit p = {.n = 1, .cards = {{.known = true, .wanted = 2, .hard = 3}}};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                ASSERT_TRUE(pod_limit_next(&(PodLimitCard){.wanted = rows[i].wanted, .used = rows[i].used}) ==
                            rows[i].next);
        ASSERT_FALSE(pod_limit_is_met(&p));
        p.cards[0].hard = 2;
        ASSERT_TRUE(pod_limit_is_met(&p));
        p.cards[0].known = false;
        ASSERT_FALSE(pod_limit_is_met(&p));
}

/* A pod without isolation has been set to no limit, and does not count. */
static void knows_whether_there_is_a_limit(void) {
        static const struct {
                uint64_t wanted, hard;
                bool ends, any;
        } rows[] = {{2, 0, false, true},
                    {2, CARD_LIMIT_NONE, false, true},
                    {CARD_LIMIT_NONE, 0, false, false},
                    {CARD_LIMIT_NONE, 0, true, true},
                    {CARD_LIMIT_NONE, 2, false, true},
                    {CARD_LIMIT_NONE, CARD_LIMIT_NONE, true, false}};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                PodLimit p = {.n = 2,
                              .ends = rows[i].ends,
                              .cards = {{.wanted = CARD_LIMIT_NONE, .hard = CARD_LIMIT_NONE},
                                        {.wanted = rows[i].wanted, .hard = rows[i].hard}}};

                ASSERT_TRUE(pod_limit_is_any(&p) == rows[i].any);
        }
}

int main(void) {
        begin();
        adds_up_slices();
        counts_devices_of_init_containers_once();
        refuses_unknown_cards();
        follows_the_use_down();
        knows_whether_there_is_a_limit();
        inventory_done(&inventory);
        return 0;
}
