/* SPDX-License-Identifier: Apache-2.0 */

/* The sums of one card of 16 units, where slices have grown beyond their limits. */

#include "node/allocate/card_in_use.h"

#include "gpu/cards/simulated_cards.h"
#include "scratch.h"

static char directory[64];
static Records records;
static Inventory inventory;
static const NodeContext node = {.records = &records, .inventory = &inventory};

static void begin(void) {
        CardList cards = {0};
        Fault fault = FAULT_NULL;
        char path[96];

        (void) snprintf(directory, sizeof directory, "/tmp/aliquot-card-XXXXXX");
        scratch_make(directory);
        (void) snprintf(path, sizeof path, "%s/pods", directory);
        ASSERT_OK(records_open(&records, path, &fault));
        ASSERT_OK(cards_simulate(STR("1xTesla-V100-SXM2-16GB:16384MiB"), STR("n"), &cards, &fault));
        ASSERT_OK(inventory_set(&inventory, &cards, SHARE_MODE_CORE_MEM, MEMORY_UNIT_GIB));
        card_list_done(&cards);
        ASSERT_INT(card_in_use_capacity(&node, DEVICE_MEM, 0), 16);
}

static void end(void) {
        inventory_done(&inventory);
        records_done(&records);
        scratch_remove(directory);
}

/* Devices of card 0. */
static DeviceSet devices(uint32_t first, uint32_t n) {
        static DeviceId ids[128];

        for (uint32_t i = 0; i < n; i++)
                ids[i] = device_id(0, first + i);
        return (DeviceSet){ids, n};
}

static Record *give(const char *pod, const char *container, DeviceKind kind, uint32_t first, uint32_t n) {
        const DeviceSet set = devices(first, n);

        ASSERT_OK(records_give(&records, str_from(pod), STR("d"), str_from(pod), str_from(container), false,
                               kind, &set));
        return records_find(&records, str_from(pod));
}

static bool starts(const char *pod, DeviceKind kind, uint32_t first, uint32_t n) {
        const DeviceSet set = devices(first, n);
        uint32_t card = 7;
        bool may = card_in_use_lets_start(&node, kind, str_from(pod), &set, &card);

        ASSERT_INT(card, 0);
        return may;
}

/* Container "two" of pod a pulls its image while its growth is permitted and put in its record.
 * Another scheduler places pod b beside it. */
static void a_size_counts_before_its_container_starts(void) {
        Record *a, *b;

        begin();
        a = give("a", "one", DEVICE_MEM, 0, 2);
        (void) give("a", "two", DEVICE_MEM, 2, 2);
        record_set_started(a, STR("one"), true);
        record_set_size(a, STR("two"), 10, 0);
        ASSERT_INT(card_in_use(&node, DEVICE_MEM, 0, STR(""), NULL, NULL).devices, 2);
        ASSERT_INT(card_in_use(&node, DEVICE_MEM, 0, STR(""), NULL, NULL).above, 8);
        ASSERT_TRUE(starts("b", DEVICE_MEM, 4, 6));
        ASSERT_FALSE(starts("b", DEVICE_MEM, 4, 7));
        b = give("b", "main", DEVICE_MEM, 4, 6);
        record_set_started(b, STR("main"), true);
        ASSERT_FALSE(starts("a", DEVICE_MEM, 2, 2)); /* 2 + 6 + 2 devices, and 8 above them */
        record_set_size(a, STR("two"), 8, 0);
        ASSERT_TRUE(starts("a", DEVICE_MEM, 2, 2));
        record_set_started(a, STR("two"), true);
        ASSERT_TRUE(starts("a", DEVICE_MEM, 2, 2)); /* again: its devices count once */
        end();
}

/* Without growth, the kubelet and the ledger have counted. */
static void devices_alone_start_always(void) {
        Record *a;

        begin();
        a = give("a", "one", DEVICE_MEM, 0, 10);
        record_set_started(a, STR("one"), true);
        record_set_size(a, STR("one"), 4, 0);
        ASSERT_TRUE(starts("b", DEVICE_MEM, 4, 12));
        end();
}

/* Pod a was shrunk from 8 to 4, and pod b has grown from 8 to 12. */
static void a_shrunk_slice_leaves_the_rest_to_slices_that_have_grown(void) {
        CardInUse use;
        Record *a, *b;

        begin();
        a = give("a", "main", DEVICE_MEM, 0, 8);
        b = give("b", "main", DEVICE_MEM, 8, 8);
        record_set_started(a, STR("main"), true);
        record_set_started(b, STR("main"), true);
        record_set_size(a, STR("main"), 4, 0);
        record_set_size(b, STR("main"), 12, 0);
        use = card_in_use(&node, DEVICE_MEM, 0, STR(""), NULL, NULL);
        ASSERT_INT(use.below, 4);
        ASSERT_INT(card_in_use_sum(use), 16);
        use = card_in_use(&node, DEVICE_MEM, 0, STR(""), NULL,
                          &(CardSize){record_container(a, STR("main")), 6});
        ASSERT_INT(card_in_use_sum(use), 18);
        use = card_in_use(&node, DEVICE_MEM, 0, STR(""), NULL,
                          &(CardSize){record_container(a, STR("main")), 0});
        ASSERT_INT(card_in_use_sum(use), 20);
        ASSERT_TRUE(starts("a", DEVICE_MEM, 0, 8)); /* again, with its size */
        ASSERT_TRUE(starts("b", DEVICE_MEM, 8, 8));
        ASSERT_FALSE(starts("c", DEVICE_MEM, 0, 1));
        record_set_started(a, STR("main"), false); /* its page will have the size */
        ASSERT_INT(card_in_use_sum(card_in_use(&node, DEVICE_MEM, 0, STR(""), NULL, NULL)), 12);
        ASSERT_TRUE(starts("a", DEVICE_MEM, 0, 8));
        record_set_size(a, STR("main"), 5, 0);
        ASSERT_FALSE(starts("a", DEVICE_MEM, 0, 8));
        end();
}

/* It may start again with all of the limit. */
static void an_init_container_leaves_nothing(void) {
        const DeviceSet set = devices(0, 2);
        Record *a;

        begin();
        ASSERT_OK(records_give(&records, STR("a"), STR("d"), STR("a"), STR("init"), true, DEVICE_MEM, &set));
        a = give("a", "main", DEVICE_MEM, 0, 8);
        record_set_started(a, STR("main"), true);
        record_set_size(a, STR("main"), 4, 0);
        ASSERT_INT(card_in_use(&node, DEVICE_MEM, 0, STR(""), NULL, NULL).below, 0);
        ASSERT_INT(card_in_use(&node, DEVICE_MEM, 0, STR(""), NULL, NULL).devices, 8);
        end();
}

static void compute_counts_like_memory(void) {
        Record *a;

        begin();
        (void) give("a", "one", DEVICE_MEM, 0, 2);
        a = give("a", "one", DEVICE_CORE, 0, 30);
        record_set_size(a, STR("one"), 0, 60);
        ASSERT_INT(card_in_use(&node, DEVICE_CORE, 0, STR(""), NULL, NULL).devices, 0);
        record_set_started(a, STR("one"), true);
        ASSERT_INT(card_in_use(&node, DEVICE_CORE, 0, STR(""), NULL, NULL).devices, 30);
        ASSERT_INT(card_in_use(&node, DEVICE_CORE, 0, STR(""), NULL, NULL).above, 30);
        ASSERT_TRUE(starts("b", DEVICE_CORE, 30, 40));
        ASSERT_FALSE(starts("b", DEVICE_CORE, 30, 41));
        ASSERT_TRUE(starts("b", DEVICE_MEM, 2, 14));
        record_set_size(a, STR("one"), 0, 10);
        ASSERT_INT(card_in_use_sum(card_in_use(&node, DEVICE_CORE, 0, STR(""), NULL, NULL)), 10);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(compute_counts_like_memory), TEST(a_size_counts_before_its_container_starts),
                         TEST(devices_alone_start_always),
                         TEST(a_shrunk_slice_leaves_the_rest_to_slices_that_have_grown),
                         TEST(an_init_container_leaves_nothing));
}
