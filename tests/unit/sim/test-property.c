/* SPDX-License-Identifier: Apache-2.0 */

/* Random allocations, duplicates, frees of subtrees and closed files, against a model that only adds up: memory in use is the
 * sum of the sizes of what somebody still refers to, after every step, and nothing at the end. */

#include "machine.h"

enum { FILES = 6, STEPS = 60000, HANDLES = 24, MODEL = 512 };

typedef struct Piece { /* one allocation, and by how many objects it is referred to */
        SimBlock *block;
        uint64_t bytes;
        unsigned refs;
        uint32_t card;
} Piece;

static Sim sim;
static SimFile *files[FILES];
static uint64_t state;

static uint64_t below(uint64_t n) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (state >> 11) % n;
}

/* Counts the references anew: what every object of every client points to. */
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

static uint32_t some_handle(const SimClient *c) {
        uint64_t n = below(HANDLES + 2);

        return n == HANDLES ? c->handle : n == HANDLES + 1 ? 0 : (uint32_t) n + 1;
}

static void step(void) {
        SimFile **f = &files[below(FILES)];
        SimClient *c = some_client(), *d = some_client();
        SimObject *o;

        switch (below(20)) {
        case 0:
                if (*f)
                        sim_file_close(*f);
                *f = machine_open(&sim);
                return;
        case 1:
        case 2:
                if (*f && HASH_COUNT(sim.clients) < 16)
                        (void) sim_client_new(*f, 0, (SimProcess){(uint32_t) below(3), (uint32_t) below(2)},
                                              &c);
                return;
        case 3:
        case 4:
        case 5:
                o = c ? sim_object_find(c, some_handle(c)) : NULL;
                if (o && o->parent)
                        sim_object_free(o);
                return;
        case 6:
                if (c && below(4) == 0)
                        sim_client_free(c);
                return;
        case 7:
        case 8:
        case 9:
                if (c && d)
                        (void) sim_object_dup(c, some_handle(c), some_handle(c), d, some_handle(d),
                                              &o); /* or refused */
                return;
        default:
                if (c)
                        (void) machine_new(c, some_handle(c), some_handle(c), some_class(),
                                           (uint32_t) below(3), (below(64) + 1) * 64 * KIB); /* or refused */
        }
}

static void sums_hold_whatever_comes(void) {
        state = 0x9E3779B97F4A7C15ull;
        printf("seed %" PRIx64 "\n", state);
        machine_init(&sim);
        for (int i = 0; i < STEPS; i++) {
                step();
                check();
        }
        for (int i = 0; i < FILES; i++)
                if (files[i])
                        sim_file_close(files[i]);
        ASSERT_INT(sim.n_objects, 0);
        ASSERT_INT(sim.cards[0].used + sim.cards[1].used, 0);
        ASSERT_INT(sim_card_largest(&sim.cards[0]).bytes, 256 * MIB);
        sim_done(&sim);
}

int main(void) {
        return TEST_MAIN(TEST(sums_hold_whatever_comes));
}
