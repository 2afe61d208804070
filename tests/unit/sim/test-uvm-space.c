/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"
#include "sim/uvm_space.h"

#define AT UINT64_C(0x700000000000)

static Sim sim;
static SimFile *ctl, *uvm;
static SimClient *user;

static SimUvmPart part(uint64_t at, uint64_t length) {
        return (SimUvmPart){AT + at, length};
}

static void begin(void) {
        machine_init(&sim);
        ctl = machine_open(&sim);
        uvm = sim_file_open(&sim, SIM_FILE_UVM, SIM_CARDS_MAX);
        user = machine_user(ctl, 7, 0, 0);
        ASSERT_INT(sim_uvm_register(uvm, 0), RM_OK);
        ASSERT_INT(sim_uvm_add_space(uvm, 0), RM_OK);
        ASSERT_INT(sim_uvm_create(uvm, SIM_UVM_EXTERNAL, part(0, 64 * MIB)), RM_OK);
}

static void end(void) {
        sim_file_close(uvm);
        sim_file_close(ctl);
        ASSERT_INT(sim.cards[0].used, 0);
        sim_done(&sim);
}

static const SimObject *object(uint32_t handle, uint64_t bytes) {
        ASSERT_INT(machine_new(user, 1, handle, RM_CLASS_MEMORY_LOCAL, 0, bytes), RM_OK);
        return sim_object_find(user, handle);
}

static void a_part_keeps_the_whole_object(void) {
        const SimObject *o;

        begin();
        o = object(5, 16 * MIB);
        ASSERT_INT(sim_uvm_map(uvm, 0, part(0, 4 * MIB), 12 * MIB, o), RM_OK);
        ASSERT_INT(sim_uvm_map(uvm, 0, part(8 * MIB, 4 * MIB), 13 * MIB, o), RM_ERR_INVALID_OFFSET);
        sim_object_free(sim_object_find(user, 5));
        ASSERT_INT(sim.cards[0].used, 16 * MIB);
        ASSERT_INT(sim_uvm_unmap(uvm, 0, part(MIB, MIB)), RM_OK); /* from the middle */
        ASSERT_INT(sim_uvm_unmap(uvm, 0, part(0, MIB)), RM_OK);
        ASSERT_INT(sim.cards[0].used, 16 * MIB);
        ASSERT_INT(sim_uvm_unmap(uvm, 0, part(2 * MIB, 2 * MIB)), RM_OK);
        ASSERT_INT(sim.cards[0].used, 0);
        end();
}

/* The machine's memory and the program's own (class 0x71) need no memory of a card. */
static void memory_of_the_machine(void) {
        begin();
        ASSERT_INT(machine_new(user, 1, 5, RM_CLASS_MEMORY_SYSTEM, 0, 0), RM_OK);
        ASSERT_INT(machine_new(user, 1, 6, RM_CLASS_OS_DESCRIPTOR, 0, 0), RM_OK);
        ASSERT_INT(machine_new(user, 1, 7, RM_CLASS_MEMORY_DYNAMIC, 0, 0), RM_OK);
        ASSERT_INT(sim_uvm_map(uvm, 0, part(0, MIB), 0, sim_object_find(user, 5)), RM_OK);
        ASSERT_INT(sim_uvm_map(uvm, 0, part(MIB, MIB), 0, sim_object_find(user, 6)), RM_OK);
        ASSERT_INT(sim_uvm_map(uvm, 0, part(2 * MIB, MIB), 0, sim_object_find(user, 7)),
                   RM_ERR_INVALID_OBJECT);
        end();
}

static void a_mapping_replaces_another(void) {
        begin();
        ASSERT_INT(sim_uvm_map(uvm, 0, part(0, 4 * MIB), 0, object(5, 4 * MIB)), RM_OK);
        sim_object_free(sim_object_find(user, 5));
        ASSERT_INT(sim_uvm_map(uvm, 0, part(0, 2 * MIB), 0, object(6, 2 * MIB)), RM_OK);
        sim_object_free(sim_object_find(user, 6));
        ASSERT_INT(sim.cards[0].used, 6 * MIB);
        ASSERT_INT(sim_uvm_map(uvm, 0, part(2 * MIB, 2 * MIB), 0, NULL), RM_OK); /* sparse */
        ASSERT_INT(sim.cards[0].used, 2 * MIB);
        ASSERT_INT(sim_uvm_free(uvm, part(0, 32 * MIB)), RM_ERR_INVALID_ADDRESS);
        ASSERT_INT(sim_uvm_free(uvm, part(0, 64 * MIB)), RM_OK);
        ASSERT_INT(sim.cards[0].used, 0);
        end();
}

static void a_card_that_goes_takes_its_mappings(void) {
        begin();
        ASSERT_INT(sim_uvm_map(uvm, 1, part(0, MIB), 0, object(4, MIB)), RM_ERR_INVALID_DEVICE);
        ASSERT_INT(sim_uvm_map(uvm, 0, part(0, 4 * MIB), 0, object(5, 4 * MIB)), RM_OK);
        ASSERT_INT(sim_uvm_map_p2p(uvm, 0, part(64 * MIB, MIB), 0, object(6, 2 * MIB)), RM_OK);
        sim_object_free(sim_object_find(user, 4));
        sim_object_free(sim_object_find(user, 5));
        sim_object_free(sim_object_find(user, 6));
        ASSERT_INT(sim.cards[0].used, 6 * MIB);
        ASSERT_INT(sim_uvm_remove_space(uvm, 0), RM_OK);
        ASSERT_INT(sim.cards[0].used, 0);
        ASSERT_INT(sim_uvm_register(uvm, 0), RM_ERR_INVALID_DEVICE);
        ASSERT_INT(sim_uvm_unregister(uvm, 0), RM_OK);
        ASSERT_INT(sim_uvm_unmap(uvm, 0, part(0, MIB)), RM_ERR_INVALID_DEVICE);
        end();
}

static void ranges_do_not_overlap(void) {
        begin();
        ASSERT_INT(sim_uvm_create(uvm, SIM_UVM_POOL, part(63 * MIB, 2 * MIB)), RM_ERR_UVM_ADDRESS_IN_USE);
        ASSERT_INT(sim_uvm_create(uvm, SIM_UVM_POOL, part(64 * MIB, 2 * MIB)), RM_OK);
        ASSERT_INT(sim_uvm_map(uvm, 0, part(64 * MIB, MIB), 0, object(5, MIB)), RM_ERR_INVALID_ADDRESS);
        ASSERT_INT(sim_uvm_create(uvm, SIM_UVM_EXTERNAL, part(128 * MIB, 0)), RM_ERR_INVALID_ADDRESS);
        ASSERT_INT(sim_uvm_create(uvm, SIM_UVM_EXTERNAL, part(128 * MIB, 5)), RM_ERR_INVALID_ADDRESS);
        ASSERT_INT(sim_uvm_free(uvm, part(64 * MIB, 0)), RM_OK);
        end();
}

/* Managed memory: the whole range, on one card, held by no object. */
static void managed_memory_moves_to_a_card(void) {
        begin();
        ASSERT_INT(sim_uvm_migrate(uvm, 1, part(128 * MIB, 6 * MIB)), RM_ERR_INVALID_DEVICE);
        ASSERT_INT(sim_uvm_migrate(uvm, 0, part(63 * MIB, 2 * MIB)), RM_ERR_INVALID_ADDRESS);
        ASSERT_INT(sim_uvm_migrate(uvm, 0, part(128 * MIB, 6 * MIB)), RM_OK);
        ASSERT_INT(sim_uvm_migrate(uvm, 0, part(128 * MIB, 6 * MIB)), RM_OK);
        ASSERT_INT(sim.cards[0].used, 6 * MIB);
        ASSERT_INT(sim_uvm_migrate(uvm, 0, part(192 * MIB, sim.cards[0].bytes)), RM_ERR_NO_MEMORY);
        ASSERT_INT(sim_uvm_register(uvm, 1), RM_OK);
        ASSERT_INT(sim_uvm_add_space(uvm, 1), RM_OK);
        ASSERT_INT(sim_uvm_migrate(uvm, 1, part(128 * MIB, 6 * MIB)), RM_OK);
        ASSERT_INT(sim.cards[0].used, 0);
        ASSERT_INT(sim.cards[1].used, 6 * MIB);
        ASSERT_INT(sim_uvm_free(uvm, part(128 * MIB, 6 * MIB)), RM_OK);
        ASSERT_INT(sim.cards[1].used, 0);
        ASSERT_INT(sim_uvm_migrate(uvm, 0, part(128 * MIB, 6 * MIB)), RM_OK);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(a_part_keeps_the_whole_object), TEST(memory_of_the_machine),
                         TEST(a_mapping_replaces_another), TEST(a_card_that_goes_takes_its_mappings),
                         TEST(ranges_do_not_overlap), TEST(managed_memory_moves_to_a_card));
}
