/* SPDX-License-Identifier: Apache-2.0 */
#include "devices.h"
#include "node/allocate/device_choice.h"
#include "test.h"

static bool holds_odd(void *userdata, DeviceKind kind, DeviceId id) {
        return id % 2 == 1;
}

static int choose(const DeviceSet *available, const DeviceSet *must, const CardShare *shares, size_t n,
                  DeviceSet *ret, Fault *fault) {
        DeviceChoice ask = {.kind = DEVICE_MEM,
                            .available = available,
                            .must_include = must,
                            .shares = shares,
                            .n_shares = n,
                            .is_held = holds_odd};

        return device_choice_make(&ask, ret, fault);
}

static void devices_are_of_the_asked_cards(void) {
        CardShare shares[] = {{0, 1}, {2, 2}};
        DeviceSet none = DEVICE_SET_NULL;
        _cleanup_devices_ DeviceSet chosen = DEVICE_SET_NULL;

        SET(available, "0-0", "0-2", "1-0", "1-2", "2-0", "2-2", "2-4");
        SET(expected, "0-0", "2-0", "2-2");
        ASSERT_OK(choose(&available, &none, shares, 2, &chosen, NULL));
        ASSERT_TRUE(device_set_eq(&chosen, &expected));
}

static void included_first_and_held_last(void) {
        CardShare share = {0, 3};
        _cleanup_devices_ DeviceSet chosen = DEVICE_SET_NULL, all = DEVICE_SET_NULL;

        SET(available, "0-0", "0-1", "0-2", "0-3", "0-5");
        SET(must, "0-3");
        SET(expected, "0-0", "0-2", "0-3");
        ASSERT_OK(choose(&available, &must, &share, 1, &chosen, NULL));
        ASSERT_TRUE(device_set_eq(&chosen, &expected));
        share.count = 5; /* the container waits for the holder, which is better than a pod that fails */
        ASSERT_OK(choose(&available, &must, &share, 1, &all, NULL));
        ASSERT_TRUE(device_set_eq(&all, &available));
}

static unsigned asked;

static bool count_and_hold_none(void *userdata, DeviceKind kind, DeviceId id) {
        asked++;
        return false;
}

/* With a unit of MiB a card has more than a hundred thousand devices, and the kubelet waits. */
static void holders_are_looked_up_only_as_needed(void) {
        static DeviceId ids[140000];
        DeviceSet available = {ids, ELEMENTSOF(ids)}, none = DEVICE_SET_NULL;
        _cleanup_devices_ DeviceSet chosen = DEVICE_SET_NULL;
        CardShare share = {3, 7};
        DeviceChoice ask = {.available = &available,
                            .must_include = &none,
                            .shares = &share,
                            .n_shares = 1,
                            .is_held = count_and_hold_none};

        for (uint32_t i = 0; i < ELEMENTSOF(ids); i++)
                ids[i] = device_id(3, i);
        ASSERT_OK(device_choice_make(&ask, &chosen, NULL));
        ASSERT_INT(asked, 7);
}

static void short_card_is_named(void) {
        CardShare share = {1, 3};
        DeviceSet none = DEVICE_SET_NULL, chosen = DEVICE_SET_NULL;
        Fault fault = FAULT_NULL;

        SET(available, "0-0", "0-2", "0-4", "1-0", "1-2");
        ASSERT_INT(choose(&available, &none, &share, 1, &chosen, &fault), DEVICE_CHOICE_E_SHORT);
        ASSERT_CONTAINS(fault.text, "gpu1 has 2");
        ASSERT_TRUE(chosen.ids == NULL);
}

int main(void) {
        return TEST_MAIN(TEST(devices_are_of_the_asked_cards), TEST(included_first_and_held_last),
                         TEST(holders_are_looked_up_only_as_needed), TEST(short_card_is_named));
}
