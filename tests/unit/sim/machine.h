/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A machine of two small cards, made for tests of the simulated driver. */

#include "gpu/cards/simulated_cards.h"
#include "gpu/rm/rm.h"
#include "sim/sim.h"
#include "test.h"

enum { KIB = 1024, MIB = 1024 * KIB };

static inline void machine_init(Sim *s) {
        CardList cards = {0};

        ASSERT_OK(cards_simulate(STR("2xT:256MiB"), STR("n"), &cards, NULL));
        ASSERT_OK(sim_init(s, &cards, 0));
        card_list_done(&cards);
}

static inline SimFile *machine_open(Sim *s) {
        SimFile *f = sim_file_open(s, SIM_FILE_CTL, SIM_CARDS_MAX);

        ASSERT_TRUE(f);
        return f;
}

static inline SimClient *machine_client(SimFile *f, uint32_t pid, uint32_t uid) {
        SimClient *c;

        ASSERT_INT(sim_client_new(f, 0, (SimProcess){pid, uid}, &c), RM_OK);
        return c;
}

static inline uint32_t machine_new(SimClient *c, uint32_t parent, uint32_t handle, uint32_t class_,
                                   uint32_t instance, uint64_t bytes) {
        SimObject *o = NULL;
        uint32_t status = sim_object_new(c,
                                         &(SimWish){.parent = parent,
                                                    .handle = handle,
                                                    .class_ = class_,
                                                    .instance = instance,
                                                    .bytes = bytes},
                                         &o);

        ASSERT_TRUE((status == RM_OK) == (o != NULL));
        return status;
}

/* Client, device `card` with handle 1, subdevice with handle 2. */
static inline SimClient *machine_user(SimFile *f, uint32_t pid, uint32_t uid, uint32_t card) {
        SimClient *c = machine_client(f, pid, uid);

        ASSERT_INT(machine_new(c, c->handle, 1, RM_CLASS_DEVICE, card, 0), RM_OK);
        ASSERT_INT(machine_new(c, 1, 2, RM_CLASS_SUBDEVICE, 0, 0), RM_OK);
        return c;
}
