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

/* Limits leave room on both; processes outside of slices leave the memory of one free. */
static void prefers_cards_with_free_memory(void) {
        HostCards m = {.n = 2,
                       .cards = {{.bytes = 16160 * MIB, .used = 12316 * MIB, .taken = 2154 * MIB},
                                 {.index = 1, .bytes = 16160 * MIB}}};
        SliceRequest request = {.mem = 8, .unit_mib = 1024, .cards = 1};
        uint32_t chosen = 9;

        ASSERT_INT(host_cards_outside(&m.cards[0]), 12316 * MIB);
        ASSERT_OK(slicing_choose(&m, &request, &chosen, NULL));
        ASSERT_INT(chosen, 1);
        request.mem = 1; /* there is enough for that: the fuller card */
        ASSERT_OK(slicing_choose(&m, &request, &chosen, NULL));
        ASSERT_INT(chosen, 0);
        request.mem = 8;
        m.cards[0].held = 12300 * MIB; /* by slices */
        ASSERT_INT(host_cards_outside(&m.cards[0]), 0);
        ASSERT_OK(slicing_choose(&m, &request, &chosen, NULL));
        ASSERT_INT(chosen, 0);
        /* no card has it, and one is taken all the same */
        m.cards[0].held = 0;
        m.cards[1].used = 16000 * MIB;
        ASSERT_OK(slicing_choose(&m, &request, &chosen, NULL));
        ASSERT_INT(chosen, 0);
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

static void reads_amounts(void) {
        static const struct {
                const char *text;
                uint64_t mib; /* 0: none */
                bool in_gib;
        } cases[] = {
                {"2GiB", 2048, true},  {"2Gi", 2048, true},      {"512MiB", 512, false},
                {"512Mi", 512, false}, {"1.5GiB", 1536, true},   {"2", 0, false},
                {"2GB", 0, false},     {"2G", 0, false},         {"0GiB", 0, false},
                {"GiB", 0, false},     {"-1GiB", 0, false},      {"1.0001GiB", 0, false},
                {"512KiB", 0, false},  {"2 GiB", 0, false},      {"2GiBB", 0, false},
                {"40%", 0, false},     {"8388608GiB", 0, false}, {"", 0, false},
                {"B", 0, false},       {"iB", 0, false},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t mib = 0;
                bool in_gib = false;

                ASSERT_INT(slicing_amount(cases[i].text, &mib, &in_gib), cases[i].mib > 0);
                ASSERT_INT(mib, cases[i].mib);
                ASSERT_INT(in_gib, cases[i].in_gib);
        }
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
        ASSERT_TEXT(fault.text,
                    "--gpu 2: there is no such card; there are gpu0 (GPU-a), gpu1 (GPU-b), gpu3 (GPU-c)");
        ASSERT_INT(choose((SliceRequest){.mem = 16, .core = 5, .in_gib = true, .only = "0"}, chosen, &fault),
                   SLICING_E_NO_ROOM);
        ASSERT_TEXT(
                fault.text,
                "no room for 16 GiB and 5 % of compute on 1 card: gpu0 has 15.7 of 15.7 GiB and 100 % left");
}

/* A part that does not grow is not checked, also where the other slices exceed the card. */
static void growth_needs_room(void) {
        HostCard card = {.index = 3, .bytes = 16160 * MIB, .taken = 8618 * MIB, .core_taken = 60};
        SliceRequest request = {.mem = 7, .unit_mib = 1024, .core = 40, .in_gib = true};
        Fault fault = FAULT_NULL;

        ASSERT_OK(slicing_check_growth(&card, &request, 2154 * MIB, 0, &fault));
        request.core = 45;
        ASSERT_INT(slicing_check_growth(&card, &request, 2154 * MIB, 40, &fault), SLICING_E_NO_ROOM);
        ASSERT_TEXT(fault.text,
                    "gpu3 lacks 5 % of compute: the other slices leave 40 %, and 45 % are wanted");
        ASSERT_OK(slicing_check_growth(&card, &request, 2154 * MIB, 45, &fault));
        request.mem = 8;
        ASSERT_INT(slicing_check_growth(&card, &request, 2154 * MIB, 45, &fault), SLICING_E_NO_ROOM);
        ASSERT_CONTAINS(fault.text, "gpu3 lacks 1076 MiB");
        card.taken = 20000 * MIB;
        card.core_taken = 110;
        ASSERT_OK(slicing_check_growth(&card, &request, 8618 * MIB, 45, &fault));
        ASSERT_INT(slicing_check_growth(&card, &request, 8617 * MIB, 45, &fault), SLICING_E_NO_ROOM);
        request.mem = 16;
        ASSERT_INT(slicing_check_growth(&card, &request, 16160 * MIB, 45, &fault), SLICING_E_NO_ROOM);
        ASSERT_TEXT(fault.text, "gpu3 has only 15.7 GiB");
}

int main(void) {
        return TEST_MAIN(TEST(shows_what_cgpu_shows), TEST(never_more_than_the_card),
                         TEST(prefers_cards_with_free_memory), TEST(reads_units), TEST(reads_amounts),
                         TEST(takes_the_fullest_with_room), TEST(says_what_each_card_has),
                         TEST(growth_needs_room));
}
