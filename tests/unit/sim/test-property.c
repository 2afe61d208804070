/* SPDX-License-Identifier: Apache-2.0 */

/* Random allocations, duplicates, frees of subtrees and closed files, against a model that only
 * adds up. After every step the memory in use is the sum of the referenced blocks, and at the end
 * it is 0. */

#include "machine.h"
#include "random.h"

enum { FILES = 6, STEPS = 60000, HANDLES = 40, CLIENTS = 16, MODEL = 512 };

typedef struct Piece { /* one allocation, and the number of objects that refer to it */
        SimBlock *block;
        uint64_t bytes;
        unsigned refs;
        uint32_t card;
} Piece;

static Sim sim;
static SimFile *files[FILES];
static Random random_state;
static unsigned n_dups, n_full;

static uint64_t below(uint64_t n) {
        return random_below(&random_state, n);
}

/* Counts the references again, from every object of every client. */
static void check(void) {
        static Piece pieces[MODEL];
        uint64_t used[2] = {0};
        size_t n = 0, objects = 0;

        for (const SimClient *c = sim.clients; c; c = c->hh.next)
                for (const SimObject *o = c->objects; o; o = o->hh.next) {
                        size_t i = 0;

                        objects++;
                        while (o->block && i < n && pieces[i].block != o->block)
                                i++;
                        if (!o->block)
                                continue;
                        if (i == n) {
                                ASSERT_TRUE(n < MODEL);
                                pieces[n++] = (Piece){.block = o->block,
                                                      .bytes = o->block->bytes,
                                                      .card = (uint32_t) (o->block->card - sim.cards)};
                                used[pieces[i].card] += pieces[i].bytes;
                        }
                        pieces[i].refs++;
                }
        for (size_t i = 0; i < n; i++)
                ASSERT_INT(pieces[i].block->refs, pieces[i].refs);
        for (int i = 0; i < 2; i++) {
                ASSERT_INT(sim.cards[i].used, used[i]);
                ASSERT_INT(sim_card_free(&sim.cards[i]), 256 * MIB - used[i]);
        }
        ASSERT_INT(sim.n_objects, objects);
}

static SimClient *some_client(void) {
        SimClient *c = sim.clients;

        for (uint64_t skip = below(8); c && skip > 0; skip--)
                c = c->hh.next ? c->hh.next : sim.clients;
        return c;
}

static uint32_t some_class(void) {
        static const uint32_t classes[] = {RM_CLASS_DEVICE,
                                           RM_CLASS_SUBDEVICE,
                                           RM_CLASS_MEMORY_LOCAL,
                                           RM_CLASS_MEMORY_LOCAL,
                                           RM_CLASS_MEMORY_LOCAL,
                                           RM_CLASS_CHANNEL_GROUP,
                                           RM_CLASS_VASPACE,
                                           RM_CLASS_MEMORY_SYSTEM,
                                           0xC36F,
                                           0x1234};

        return classes[below(sizeof classes / sizeof *classes)];
}

/* 1 to 4 are often devices and their subdevices */
static uint32_t some_parent(const SimClient *c) {
        return below(4) > 0    ? (uint32_t) below(4) + 1
               : below(8) == 0 ? c->handle
                               : (uint32_t) below(HANDLES) + 1;
}

static uint32_t some_handle(void) {
        return (uint32_t) below(HANDLES + 1); /* 0: the driver makes a handle */
}

static void new_client(SimFile *f) {
        SimClient *c;

        if (!f || HASH_COUNT(sim.clients) >= CLIENTS ||
            sim_client_new(f, 0, (SimProcess){(uint32_t) below(3), (uint32_t) below(2)}, &c) != RM_OK)
                return;
        for (uint32_t card = 0; card < 2; card++) {
                ASSERT_INT(machine_new(c, c->handle, 2 * card + 1, RM_CLASS_DEVICE, card, 0), RM_OK);
                ASSERT_INT(machine_new(c, 2 * card + 1, 2 * card + 2, RM_CLASS_SUBDEVICE, 0, 0), RM_OK);
        }
}

static void free_something(SimClient *c) {
        SimObject *o = sim_object_find(c, some_handle());

        if (o && o->parent && (o->handle > 4 || below(100) == 0))
                sim_object_free(o);
}

static void step(void) {
        SimFile **f = &files[below(FILES)];
        SimClient *c = some_client(), *d = some_client();
        uint64_t what = below(400);
        SimObject *o;
        uint32_t status;

        if (what == 0 && *f) {
                sim_file_close(*f);
                *f = NULL;
        } else if (what < 10) {
                *f = *f ? *f : machine_open(&sim);
                new_client(*f);
        } else if (what < 12 && c) {
                sim_client_free(c);
        } else if (what < 100 && c) {
                free_something(c);
        } else if (what < 200 && c) {
                status = sim_object_dup(c, some_parent(c), some_handle(), d, some_handle(), &o);
                n_dups += status == RM_OK;
        } else if (c) {
                status = machine_new(c, some_parent(c), some_handle(), some_class(), (uint32_t) below(3),
                                     (below(256) + 1) * 64 * KIB);
                n_full += status == RM_ERR_NO_MEMORY;
        }
}

static void sums_hold_for_random_steps(void) {
        random_state = (Random){1};
        printf("seed %" PRIu64 "\n", random_state.state);
        machine_init(&sim);
        for (int i = 0; i < STEPS; i++) {
                step();
                check();
        }
        for (int i = 0; i < FILES; i++)
                if (files[i])
                        sim_file_close(files[i]);
        printf("%u duplicates, %u times full\n", n_dups, n_full);
        ASSERT_TRUE(n_dups > STEPS / 100 &&
                    n_full > STEPS / 100); /* otherwise few interesting steps were made */
        ASSERT_INT(sim.n_objects, 0);
        ASSERT_INT(sim.cards[0].used + sim.cards[1].used, 0);
        ASSERT_INT(sim_card_largest(&sim.cards[0]).bytes, 256 * MIB);
        sim_done(&sim);
}

int main(void) {
        return TEST_MAIN(TEST(sums_hold_for_random_steps));
}
