/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/slicing.h"
#include "test.h"

#define MIB (UINT64_C(1) << 20)

static uint64_t visible(uint64_t card_mib, uint64_t units) {
        return slicing_visible_bytes(card_mib * MIB, units, 1024) / MIB;
}

/* Pairs of card size and slice that cGPU's documents publish. */
static void shows_what_cgpu_shows(void) {
        ASSERT_INT(visible(16160, 2), 2154);
        ASSERT_INT(visible(16130, 4), 4301);
        ASSERT_INT(visible(16130, 3), 3226);
        ASSERT_INT(visible(15079, 3), 3231);
        ASSERT_INT(visible(15360, 3), 3072);
        ASSERT_INT(visible(23028, 8), 8373);
}

static void never_more_than_the_card(void) {
        ASSERT_INT(visible(16160, 15), 16160);
        ASSERT_INT(visible(16160, 16), 0);
        ASSERT_INT(slicing_visible_bytes(512 * MIB, 1, 1024), 0);
        ASSERT_INT(slicing_visible_bytes(16160 * MIB, 1, 0), 0);
        for (uint64_t units = 1; units < 126; units++)
                ASSERT_TRUE(slicing_visible_bytes(16160 * MIB, units, 128) +
                                    slicing_visible_bytes(16160 * MIB, 126 - units, 128) <=
                            16160 * MIB);
}

static void reads_units(void) {
        ASSERT_INT(slicing_unit("GiB"), 1024);
        ASSERT_INT(slicing_unit("MiB"), 1);
        ASSERT_INT(slicing_unit("128MiB"), 128);
        ASSERT_INT(slicing_unit("2GiB"), 2048);
        ASSERT_INT(slicing_unit("0MiB"), 0);
        ASSERT_INT(slicing_unit("128"), 0);
        ASSERT_INT(slicing_unit("128 MiB"), 0);
        ASSERT_INT(slicing_unit("-1MiB"), 0);
        ASSERT_INT(slicing_unit("99999999999999999999GiB"), 0);
        ASSERT_INT(slicing_unit(""), 0);
}

static HostCards machine(void) {
        return (HostCards){
                .n = 3,
                .cards = {{.index = 0, .bytes = 16160 * MIB, .uuid = "GPU-a"},
                          {.index = 1,
                           .bytes = 16160 * MIB,
                           .uuid = "GPU-b",
                           .taken = 6000 * MIB,
                           .core_taken = 60},
                          {.index = 3, .bytes = 16160 * MIB, .uuid = "GPU-c", .taken = 15000 * MIB}}};
}

static int choose(SliceRequest request, uint32_t *chosen, Fault *fault) {
        HostCards m = machine();

        request.unit_mib = 1024;
        if (request.cards == 0)
                request.cards = 1;
        return slicing_choose(&m, &request, chosen, fault);
}

static void takes_the_fullest_with_room(void) {
        uint32_t chosen[SLICEDIR_CARDS_MAX];
        Fault fault = FAULT_NULL;

        ASSERT_OK(choose((SliceRequest){.mem = 1}, chosen, &fault));
        ASSERT_INT(chosen[0], 2);
        ASSERT_OK(choose((SliceRequest){.mem = 2}, chosen, &fault));
        ASSERT_INT(chosen[0], 1);
        ASSERT_OK(choose((SliceRequest){.mem = 2, .core = 45}, chosen, &fault));
        ASSERT_INT(chosen[0], 0);
        ASSERT_OK(choose((SliceRequest){.mem = 2, .core = 40}, chosen, &fault));
        ASSERT_INT(chosen[0], 1);
        ASSERT_OK(choose((SliceRequest){.mem = 2, .cards = 2}, chosen, &fault));
        ASSERT_INT(chosen[0], 1);
        ASSERT_INT(chosen[1], 0);
        ASSERT_OK(choose((SliceRequest){.mem = 1, .only = "GPU-a"}, chosen, &fault));
        ASSERT_INT(chosen[0], 0);
        ASSERT_OK(choose((SliceRequest){.mem = 1, .only = "3"}, chosen, &fault));
        ASSERT_INT(chosen[0], 2);
}

static void says_what_each_card_has(void) {
        uint32_t chosen[SLICEDIR_CARDS_MAX];
        Fault fault = FAULT_NULL;

        ASSERT_INT(choose((SliceRequest){.mem = 2, .cards = 3}, chosen, &fault), SLICING_E_NO_ROOM);
        ASSERT_CONTAINS(fault.text, "gpu3 has 1160 of 16160 MiB and 100 % left");
        ASSERT_CONTAINS(fault.text, "gpu1 has 10160 of 16160 MiB and 40 % left");
        ASSERT_INT(choose((SliceRequest){.mem = 16}, chosen, &fault), SLICING_E_NO_ROOM);
        ASSERT_INT(choose((SliceRequest){.mem = 1, .core = 105}, chosen, &fault), SLICING_E_NO_ROOM);
        ASSERT_INT(choose((SliceRequest){.mem = 1, .only = "2"}, chosen, &fault), SLICING_E_NO_ROOM);
        ASSERT_CONTAINS(fault.text, "there is no such card");
}

int main(void) {
        return TEST_MAIN(TEST(shows_what_cgpu_shows), TEST(never_more_than_the_card), TEST(reads_units),
                         TEST(takes_the_fullest_with_room), TEST(says_what_each_card_has));
}
