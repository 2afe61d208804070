/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/simulated_cards.h"
#include "machine.h"

#include <errno.h>

static Sim sim;

static void objects_live_in_a_tree(void) {
        SimFile *f;
        SimClient *c;

        machine_init(&sim);
        f = machine_open(&sim);
        c = machine_user(f, 7, 0, 1);
        ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_MEMORY_LOCAL, 0, 2 * MIB), RM_OK);
        ASSERT_INT(machine_new(c, 2, 4, RM_CLASS_MEMORY_LOCAL, 0, 4 * MIB), RM_OK);
        ASSERT_INT(sim.cards[1].used, 6 * MIB);
        ASSERT_INT(sim.cards[0].used, 0);
        sim_object_free(sim_object_find(c, 2)); /* and 4 with it */
        ASSERT_INT(sim.cards[1].used, 2 * MIB);
        ASSERT_TRUE(!sim_object_find(c, 4));
        sim_object_free(sim_object_find(c, 1));
        ASSERT_INT(sim.cards[1].used, 0);
        ASSERT_INT(sim.n_objects, 1);
        sim_client_free(c);
        ASSERT_INT(sim.n_objects, 0);
        sim_file_close(f);
        sim_done(&sim);
}

static void a_closed_file_leaves_nothing(void) {
        SimFile *f, *g;
        SimClient *c;

        machine_init(&sim);
        f = machine_open(&sim);
        g = machine_open(&sim);
        for (int i = 0; i < 3; i++) {
                c = machine_user(f, 7, 0, 0);
                ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_MEMORY_LOCAL, 0, 2 * MIB), RM_OK);
        }
        c = machine_user(g, 7, 0, 0);
        ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_MEMORY_LOCAL, 0, 2 * MIB), RM_OK);
        sim_file_close(f);
        ASSERT_INT(sim.cards[0].used, 2 * MIB);
        sim_file_close(g);
        ASSERT_INT(sim.cards[0].used, 0);
        sim_done(&sim);
}

static void returns_the_drivers_statuses(void) {
        SimFile *f;
        SimClient *c;

        machine_init(&sim);
        f = machine_open(&sim);
        c = machine_user(f, 7, 0, 0);
        ASSERT_INT(machine_new(c, 99, 3, RM_CLASS_MEMORY_LOCAL, 0, MIB), RM_ERR_OBJECT_NOT_FOUND);
        ASSERT_INT(machine_new(c, 0, 3, RM_CLASS_MEMORY_LOCAL, 0, MIB), RM_ERR_OBJECT_NOT_FOUND);
        ASSERT_INT(machine_new(c, c->handle, 3, RM_CLASS_MEMORY_LOCAL, 0, MIB), RM_ERR_INVALID_OBJECT_PARENT);
        ASSERT_INT(machine_new(c, 2, 3, RM_CLASS_CHANNEL_GROUP, 0, 0), RM_ERR_INVALID_OBJECT_PARENT);
        ASSERT_INT(machine_new(c, 1, 2, RM_CLASS_MEMORY_LOCAL, 0, MIB), RM_ERR_INSERT_DUPLICATE_NAME);
        ASSERT_INT(machine_new(c, 1, c->handle, RM_CLASS_MEMORY_LOCAL, 0, MIB), RM_ERR_INVALID_OBJECT_PARENT);
        ASSERT_INT(machine_new(c, c->handle, 3, RM_CLASS_DEVICE, 2, 0), RM_ERR_INVALID_STATE);
        ASSERT_INT(machine_new(c, c->handle, 3, RM_CLASS_DEVICE, 32, 0), RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_SUBDEVICE, 0, 0), RM_ERR_INSUFFICIENT_RESOURCES);
        ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_SUBDEVICE, 1, 0), RM_ERR_INVALID_CLASS);
        ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_MEMORY_LOCAL, 0, 256 * MIB + 64 * KIB), RM_ERR_NO_MEMORY);
        ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_MEMORY_LOCAL, 0, 256 * MIB), RM_OK);
        ASSERT_INT(machine_new(c, 1, 4, RM_CLASS_CHANNEL_GROUP, 0, 0), RM_ERR_NO_MEMORY);
        ASSERT_INT(sim.n_objects, 4);
        sim_file_close(f);
        sim_done(&sim);
}

static void handles_are_chosen_or_made(void) {
        SimFile *f;
        SimClient *a, *b;
        SimObject *o;

        machine_init(&sim);
        f = machine_open(&sim);
        ASSERT_INT(sim_client_new(f, 0xABCD, (SimProcess){1, 1}, &a), RM_OK);
        ASSERT_INT(a->handle, 0xABCD);
        ASSERT_INT(sim_client_new(f, 0xABCD, (SimProcess){1, 1}, &b), RM_ERR_INSERT_DUPLICATE_NAME);
        b = machine_client(f, 1, 1);
        ASSERT_INT(b->handle >> 20, 0xC1D);
        ASSERT_INT(
                sim_object_new(a, &(SimWish){.parent = 0xABCD, .handle = 0xCAF00001, .class_ = 0x1234}, &o),
                RM_OK);
        ASSERT_INT(sim_object_new(a, &(SimWish){.parent = 0xABCD, .class_ = 0x1234}, &o), RM_OK);
        ASSERT_INT(o->handle, 0xCAF00000);
        ASSERT_INT(sim_object_new(a, &(SimWish){.parent = 0xABCD, .class_ = 0x1234}, &o), RM_OK);
        ASSERT_INT(o->handle, 0xCAF00002);
        sim_file_close(f);
        sim_done(&sim);
}

static void the_tree_has_a_depth(void) {
        SimFile *f;
        SimClient *c;

        machine_init(&sim);
        f = machine_open(&sim);
        c = machine_client(f, 1, 1);
        ASSERT_INT(machine_new(c, c->handle, 1, 0x1234, 0, 0), RM_OK);
        for (uint32_t i = 2; i <= SIM_DEPTH_MAX; i++)
                ASSERT_INT(machine_new(c, i - 1, i, 0x1234, 0, 0), RM_OK);
        ASSERT_INT(machine_new(c, SIM_DEPTH_MAX, 99, 0x1234, 0, 0), RM_ERR_ILLEGAL_ACTION);
        sim_file_close(f);
        sim_done(&sim);
}

static void a_client_belongs_to_its_file(void) {
        SimFile *f, *g, *card;
        SimClient *c, *found;

        machine_init(&sim);
        f = machine_open(&sim);
        g = machine_open(&sim);
        card = sim_file_open(&sim, SIM_FILE_CARD, 0);
        c = machine_client(f, 7, 0);
        ASSERT_INT(sim_client_get(f, c->handle, (SimProcess){8, 0}, &found), RM_OK);
        ASSERT_INT(sim_client_get(g, c->handle, (SimProcess){7, 0}, &found), RM_ERR_INVALID_CLIENT);
        ASSERT_INT(sim_client_get(f, 5, (SimProcess){7, 0}, &found), RM_ERR_INVALID_OBJECT_HANDLE);
        ASSERT_INT(sim_client_get(card, c->handle, (SimProcess){7, 0}, &found), RM_ERR_INVALID_CLIENT);
        card->registered = true;
        ASSERT_INT(sim_client_get(card, c->handle, (SimProcess){7, 0}, &found), RM_OK);
        ASSERT_INT(sim_client_get(card, c->handle, (SimProcess){8, 0}, &found), RM_ERR_INVALID_CLIENT);
        sim_file_close(card);
        sim_file_close(g);
        sim_file_close(f);
        sim_done(&sim);
}

static void duplicates_share_the_memory(void) {
        SimFile *f, *g;
        SimClient *a, *b, *stranger;
        SimObject *o;

        machine_init(&sim);
        f = machine_open(&sim);
        g = machine_open(&sim);
        a = machine_user(f, 7, 1000, 0);
        b = machine_user(g, 8, 1000, 0);
        stranger = machine_user(g, 9, 1001, 0);
        ASSERT_INT(machine_new(a, 1, 3, RM_CLASS_MEMORY_LOCAL, 0, 2 * MIB), RM_OK);
        ASSERT_INT(sim_object_dup(a, 1, 4, a, 3, &o), RM_OK);
        ASSERT_INT(sim_object_dup(b, 1, 0, a, 3, &o), RM_OK);
        ASSERT_INT(sim_object_dup(stranger, 1, 3, a, 3, &o), RM_ERR_INSUFFICIENT_PERMISSIONS);
        ASSERT_INT(sim_object_dup(b, 1, 3, a, 99, &o), RM_ERR_OBJECT_NOT_FOUND);
        ASSERT_INT(sim_object_dup(b, 99, 3, a, 3, &o), RM_ERR_OBJECT_NOT_FOUND);
        ASSERT_INT(sim_object_dup(b, 2, 3, a, 3, &o), RM_ERR_INVALID_OBJECT_PARENT);
        ASSERT_INT(sim_object_dup(b, 1, 1, a, 3, &o), RM_ERR_INSERT_DUPLICATE_NAME);
        ASSERT_INT(sim_object_dup(b, b->handle, 3, a, 1, &o), RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(sim_object_dup(b, b->handle, 3, a, a->handle, &o), RM_ERR_INVALID_ARGUMENT);
        ASSERT_INT(sim.cards[0].used, 2 * MIB);
        sim_file_close(f);
        ASSERT_INT(sim.cards[0].used, 2 * MIB);
        sim_file_close(g);
        ASSERT_INT(sim.cards[0].used, 0);
        sim_done(&sim);
}

static void a_group_takes_memory_without_an_object(void) {
        SimFile *f;
        SimClient *c;

        machine_init(&sim);
        f = machine_open(&sim);
        c = machine_user(f, 7, 0, 0);
        ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_CHANNEL_GROUP, 0, 0), RM_OK);
        ASSERT_INT(machine_new(c, 3, 4, 0xC36F, 0, 0), RM_OK);
        ASSERT_INT(machine_new(c, 3, 5, 0xC36F, 0, 0), RM_OK);
        ASSERT_INT(sim.cards[0].used, SIM_GROUP_BYTES);
        ASSERT_INT(machine_new(c, 1, 6, 0xC36F, 0, 0), RM_OK); /* outside a group: gets one of its own */
        ASSERT_INT(sim.cards[0].used, 2 * SIM_GROUP_BYTES);
        sim_object_free(sim_object_find(c, 3));
        ASSERT_INT(sim.cards[0].used, SIM_GROUP_BYTES);
        sim_file_close(f);
        ASSERT_INT(sim.cards[0].used, 0);
        sim_done(&sim);
}

static void the_server_has_limits(void) {
        SimFile *f, *g;
        SimClient *c, *d;

        machine_init(&sim);
        sim.max_file_objects = 3;
        sim.max_objects = 4;
        f = machine_open(&sim);
        g = machine_open(&sim);
        c = machine_user(f, 7, 0, 0);
        ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_MEMORY_LOCAL, 0, MIB), RM_ERR_INSUFFICIENT_RESOURCES);
        ASSERT_INT(sim.cards[0].used, 0);
        d = machine_client(g, 7, 0);
        ASSERT_INT(machine_new(d, d->handle, 3, RM_CLASS_DEVICE, 0, 0), RM_ERR_INSUFFICIENT_RESOURCES);
        ASSERT_INT(sim_client_new(g, 0, (SimProcess){1, 1}, &d), RM_ERR_INSUFFICIENT_RESOURCES);
        sim_object_free(sim_object_find(c, 2));
        ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_MEMORY_LOCAL, 0, MIB), RM_OK);
        sim_file_close(g);
        sim_file_close(f);
        sim_done(&sim);
}

static void too_many_cards(void) {
        CardList cards = {0};

        ASSERT_OK(cards_simulate(STR("32xT:1GiB"), STR("n"), &cards, NULL));
        ASSERT_OK(sim_init(&sim, &cards, 0));
        sim_done(&sim);
        card_list_done(&cards);
        ASSERT_OK(cards_simulate(STR("33xT:1GiB"), STR("n"), &cards, NULL));
        ASSERT_INT(sim_init(&sim, &cards, 0), -E2BIG);
        card_list_done(&cards);
}

int main(void) {
        return TEST_MAIN(TEST(objects_live_in_a_tree), TEST(a_closed_file_leaves_nothing),
                         TEST(returns_the_drivers_statuses), TEST(handles_are_chosen_or_made),
                         TEST(the_tree_has_a_depth), TEST(a_client_belongs_to_its_file),
                         TEST(duplicates_share_the_memory), TEST(a_group_takes_memory_without_an_object),
                         TEST(the_server_has_limits), TEST(too_many_cards));
}
