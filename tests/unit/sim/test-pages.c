/* SPDX-License-Identifier: Apache-2.0 */

/* The server's part of a card's mapping, the slots of channel groups, and the thread that makes the
 * calls. */

#include <pthread.h>

#include "gpu/cards/simulated_cards.h"
#include "machine.h"
#include "sim/pages.h"
#include "sim/worker.h"

static void read_row(SimPages *p, unsigned slot, EngineRow *ret) {
        sim_pages_read(p, offsetof(EngineShared, rows) + slot * sizeof *ret, ret, sizeof *ret);
}

static void writes_keep_the_servers_part(void) {
        const SimPace pace = {.slice_nsec = 5, .change_nsec = 6, .up = 7, .down = 8, .memory = 9};
        SimPages *p = sim_pages_new(&pace);
        uint8_t bytes[2 * ENGINE_PAGE];
        EngineSettings s;

        ASSERT_TRUE(p != NULL);
        memset(bytes, 0xEE, sizeof bytes);
        sim_pages_write(p, 0, bytes, sizeof bytes);
        sim_pages_write(p, ENGINE_SERVERS - 8, bytes, 16);
        sim_pages_read(p, 0, &s, sizeof s);
        ASSERT_INT(s.slice, 5);
        ASSERT_INT(s.memory, 9);
        sim_pages_read(p, ENGINE_SERVERS - 8, bytes, 24);
        for (unsigned i = 0; i < 24; i++)
                ASSERT_INT(bytes[i], i >= 8 && i < 16 ? 0xEE : 0);
        sim_pages_write(p, SIM_PAGES_SIZE - 1, "x", 1);
        sim_pages_read(p, SIM_PAGES_SIZE - 1, bytes, 1);
        ASSERT_INT(bytes[0], 'x');
        sim_pages_free(p);
}

/* A row's life is stored last: a reader that sees it sees the rest. */
static void rows_come_and_go(void) {
        SimPages *p = sim_pages_new(&SIM_PACE_DEFAULT);
        SimStores s;
        EngineRow row;

        ASSERT_TRUE(p != NULL);
        sim_pages_enter(p, 3, 0xC1, 0xA0, 77, &s);
        ASSERT_INT(s.n, 3);
        ASSERT_INT(s.list[0].at, offsetof(EngineShared, rows[3].client));
        ASSERT_INT(s.list[1].at, offsetof(EngineShared, rows[3].life));
        ASSERT_INT(s.list[2].at, offsetof(EngineShared, settings.groups));
        read_row(p, 3, &row);
        ASSERT_INT(row.life, 1 << 1 | 1);
        ASSERT_INT(row.client, 0xC1);
        ASSERT_INT(row.group, 0xA0);
        ASSERT_INT(row.pid, 77);
        sim_pages_leave(p, 3, 12345, &s);
        ASSERT_INT(s.n, 2);
        ASSERT_INT(s.list[0].at, offsetof(EngineShared, rows[3].cut));
        read_row(p, 3, &row);
        ASSERT_INT(row.life, 1 << 1);
        ASSERT_INT(row.cut, 12345);
        sim_pages_enter(p, 3, 0xC2, 0xA0, 78, &s);
        ASSERT_INT(s.n, 2); /* the number is unchanged */
        read_row(p, 3, &row);
        ASSERT_INT(row.life, 2 << 1 | 1);
        sim_pages_free(p);
}

static int there, last_place;

static void on_enter(void *data, uint32_t card, uint32_t slot, const SimObject *group) {
        ASSERT_INT(group->class_, RM_CLASS_CHANNEL_GROUP);
        ASSERT_INT(group->client->pid, 7);
        last_place = (int) slot;
        there++;
}

static void on_leave(void *data, uint32_t card, uint32_t slot) {
        last_place = (int) slot;
        there--;
}

static void groups_have_slots(void) {
        CardList cards = {0};
        Sim sim;
        SimFile *f;
        SimClient *c;

        ASSERT_OK(cards_simulate(STR("1xT:8GiB"), STR("n"), &cards, NULL));
        ASSERT_OK(sim_init(&sim, &cards, 0));
        card_list_done(&cards);
        sim.listener = (SimListener){on_enter, on_leave, NULL};
        f = machine_open(&sim);
        c = machine_user(f, 7, 0, 0);
        for (uint32_t i = 0; i < ENGINE_GROUPS; i++) {
                ASSERT_INT(machine_new(c, 1, 100 + i, RM_CLASS_CHANNEL_GROUP, 0, 0), RM_OK);
                ASSERT_INT(last_place, i);
        }
        ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_CHANNEL_GROUP, 0, 0), RM_ERR_INSUFFICIENT_RESOURCES);
        ASSERT_INT(there, ENGINE_GROUPS);
        ASSERT_INT(sim.cards[0].used,
                   (uint64_t) ENGINE_GROUPS * SIM_GROUP_BYTES); /* a refused group holds nothing */
        sim_object_free(sim_object_find(c, 105));
        ASSERT_INT(last_place, 5);
        ASSERT_INT(machine_new(c, 1, 3, RM_CLASS_CHANNEL_GROUP, 0, 0), RM_OK);
        ASSERT_INT(last_place, 5);
        sim_file_close(f);
        ASSERT_INT(there, 0);
        sim_done(&sim);
}

typedef struct Heard {
        pthread_t by;
        uint32_t n;
        bool in_order;
} Heard;

static void hear(void *data, void *request, size_t n) {
        Heard *h = data;
        uint32_t number;

        ASSERT_INT(n, sizeof number);
        memcpy(&number, request, n);
        h->in_order = h->in_order && number == h->n && !pthread_equal(h->by, pthread_self());
        h->n++;
}

static void a_worker_keeps_the_order(void) {
        Heard h = {.by = pthread_self(), .in_order = true};
        Worker *w = worker_new(hear, &h);

        ASSERT_TRUE(w != NULL);
        for (uint32_t i = 0; i < 10000; i++)
                ASSERT_OK(worker_give(w, &i, sizeof i));
        worker_free(w); /* returns when all requests are done */
        ASSERT_INT(h.n, 10000);
        ASSERT_TRUE(h.in_order);
}

int main(void) {
        return TEST_MAIN(TEST(writes_keep_the_servers_part), TEST(rows_come_and_go), TEST(groups_have_slots),
                         TEST(a_worker_keeps_the_order));
}
