/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/rm_objects.h"
#include "random.h"
#include "test.h"

enum { UNIT = 4096, CARDS = 3, CLIENTS = 6, HANDLES = 400, STEPS = 60000 };

static RmObjects objects;
static uint64_t sums[CARDS]; /* bytes in the table */

static void take_back(const FreedBytes *freed) {
        for (uint32_t i = 0; i < RM_OBJECTS_CARDS * RM_OBJECTS_ROWS; i++) {
                uint32_t row = i / RM_OBJECTS_CARDS, card = i % RM_OBJECTS_CARDS;

                if (freed->cards[row] >> card & 1) {
                        ASSERT_TRUE(card < CARDS && freed->card[row][card] <= sums[card]);
                        sums[card] -= freed->card[row][card];
                }
        }
}

static void add(uint32_t client, uint32_t above, uint32_t handle, RmObjectKind kind, uint8_t card,
                uint64_t bytes) {
        RmParent parent = rm_objects_parent(&objects, client, above);
        FreedBytes freed;

        freed_bytes_clear(&freed);
        if (kind == RM_OBJECT_CLIENT)
                parent = (RmParent){.client = client, .card = RM_OBJECTS_NO_CARD};
        else if (parent.card == RM_OBJECTS_NO_CARD)
                parent.card = card;
        if (bytes > 0)
                sums[parent.card] += bytes;
        ASSERT_OK(rm_objects_add(&objects, &parent, handle, kind, bytes, 0, &freed));
        take_back(&freed);
}

static bool drop(uint32_t client, uint32_t handle) {
        FreedBytes freed;
        RmObjectMark mark;

        freed_bytes_clear(&freed);
        if (!rm_objects_find(&objects, client, handle, &mark))
                return false;
        rm_objects_remove(&objects, &mark, &freed);
        take_back(&freed);
        return true;
}

static void make_client(uint32_t client) {
        add(client, 0, client, RM_OBJECT_CLIENT, 0, 0);
        add(client, client, 2, RM_OBJECT_DEVICE, 0, 0);
        add(client, 2, 3, RM_OBJECT_SUBDEVICE, 0, 0);
        add(client, client, 4, RM_OBJECT_DEVICE, 1, 0);
}

static void begin(void) {
        objects = (RmObjects){0};
        memset(sums, 0, sizeof sums);
        make_client(100);
}

/* ---- by hand ---- */

static void frees_what_is_below(void) {
        begin();
        add(100, 2, 10, RM_OBJECT_LEAF, 0, UNIT);
        add(100, 3, 11, RM_OBJECT_LEAF, 0, 2 * UNIT);
        add(100, 4, 12, RM_OBJECT_LEAF, 1, 4 * UNIT);
        add(100, 3, 0, RM_OBJECT_LEAF, 0, 8 * UNIT); /* its handle is not known */
        ASSERT_TRUE(drop(100, 3));
        ASSERT_INT(sums[0], UNIT);
        ASSERT_FALSE(drop(100, 11));
        ASSERT_TRUE(drop(100, 2));
        ASSERT_INT(sums[0], 0);
        ASSERT_INT(sums[1], 4 * UNIT);
        ASSERT_TRUE(drop(100, 100));
        ASSERT_INT(sums[1], 0);
}

/* Between the driver's OK and the change of the table, another thread makes a new object with the
 * same handle. */
static void tells_objects_with_one_handle_apart(void) {
        FreedBytes freed;
        RmObjectMark old;

        begin();
        add(100, 2, 10, RM_OBJECT_LEAF, 0, UNIT);
        ASSERT_TRUE(rm_objects_find(&objects, 100, 10, &old));
        add(100, 2, 10, RM_OBJECT_LEAF, 0, 2 * UNIT);
        freed_bytes_clear(&freed);
        rm_objects_remove(&objects, &old, &freed);
        take_back(&freed);
        ASSERT_INT(sums[0], 2 * UNIT);
        rm_objects_remove(&objects, &old, &freed); /* twice: another thread freed the same object */
        ASSERT_INT(sums[0], 2 * UNIT);
        ASSERT_TRUE(drop(100, 10));
        ASSERT_INT(sums[0], 0);
}

/* The device is freed and made again with the same handle, while memory is made below the old
 * one. */
static void parent_freed_meanwhile(void) {
        FreedBytes freed;
        RmParent parent;

        begin();
        parent = rm_objects_parent(&objects, 100, 2);
        parent.card = 0;
        ASSERT_TRUE(drop(100, 2));
        freed_bytes_clear(&freed);
        sums[0] += UNIT;
        ASSERT_OK(rm_objects_add(&objects, &parent, 10, RM_OBJECT_LEAF, UNIT, 0, &freed));
        ASSERT_INT(sums[0], UNIT); /* below the client */
        add(100, 100, 2, RM_OBJECT_DEVICE, 0, 0);
        ASSERT_OK(rm_objects_add(&objects, &parent, 11, RM_OBJECT_LEAF, UNIT, 0, &freed));
        sums[0] += UNIT;
        ASSERT_TRUE(drop(100, 2)); /* the new one */
        ASSERT_INT(sums[0], UNIT);
        ASSERT_TRUE(drop(100, 100));
        ASSERT_INT(sums[0], 0);
}

/* The new device is of another card. */
static void parent_replaced_on_another_card(void) {
        FreedBytes freed;
        RmParent parent;
        RmObjectMark mark;

        begin();
        parent = rm_objects_parent(&objects, 100, 2);
        ASSERT_TRUE(rm_objects_is_valid(&objects, &parent));
        ASSERT_TRUE(drop(100, 2));
        ASSERT_FALSE(rm_objects_is_valid(&objects, &parent));
        add(100, 100, 2, RM_OBJECT_DEVICE, 1, 0);
        ASSERT_FALSE(rm_objects_is_valid(&objects, &parent));
        rm_objects_set_card(&objects, &parent,
                            0); /* an answer about the old device is not noted in the new one */
        ASSERT_INT(rm_objects_parent(&objects, 100, 2).card, 1);
        freed_bytes_clear(&freed);
        ASSERT_OK(rm_objects_add(&objects, &parent, 10, RM_OBJECT_LEAF, UNIT, 0,
                                 &freed)); /* its bytes are on card 0 */
        sums[0] += UNIT;
        ASSERT_OK(rm_objects_add(&objects, &parent, 3, RM_OBJECT_SUBDEVICE, 0, 0, &freed));
        ASSERT_TRUE(rm_objects_find(&objects, 100, 3, &mark));
        ASSERT_INT(mark.object.card, RM_OBJECTS_NO_CARD); /* asked again */
        ASSERT_TRUE(drop(100, 2));
        ASSERT_INT(sums[0], 0);
}

static void no_children_while_freeing(void) {
        RmParent device, below;
        RmObjectMark mark, client;

        begin();
        add(100, 2, 3, RM_OBJECT_SUBDEVICE, 0, 0);
        device = rm_objects_parent(&objects, 100, 2);
        below = rm_objects_parent(&objects, 100, 3);
        ASSERT_TRUE(rm_objects_find(&objects, 100, 2, &mark));
        client = rm_objects_mark_client(&objects, 100);
        rm_objects_begin_free(&objects, &mark);
        rm_objects_begin_free(&objects, &client);
        ASSERT_FALSE(rm_objects_is_valid(&objects, &device) || rm_objects_is_valid(&objects, &below));
        rm_objects_cancel_free(&objects, &mark);
        ASSERT_FALSE(rm_objects_is_valid(&objects, &device) || rm_objects_is_valid(&objects, &below));
        rm_objects_cancel_free(&objects, &client);
        ASSERT_TRUE(rm_objects_is_valid(&objects, &device) && rm_objects_is_valid(&objects, &below));
        rm_objects_cancel_free(&objects, &client); /* one cancel too many */
        ASSERT_TRUE(rm_objects_is_valid(&objects, &device));
}

/* A handle is an object's until a call begins to free it, or something above it. */
static void leaves_are_kept_until_freed(void) {
        RmObjectMark leaf, device;

        begin();
        add(100, 2, 9, RM_OBJECT_LEAF, 0, 4096);
        ASSERT_TRUE(rm_objects_find(&objects, 100, 9, &leaf) && rm_objects_find(&objects, 100, 2, &device));
        ASSERT_TRUE(rm_objects_is_kept(&objects, &leaf.object));
        rm_objects_begin_free(&objects, &leaf);
        ASSERT_FALSE(rm_objects_is_kept(&objects, &leaf.object));
        rm_objects_cancel_free(&objects, &leaf);
        ASSERT_TRUE(rm_objects_is_kept(&objects, &leaf.object));
        rm_objects_begin_free(&objects, &device);
        ASSERT_FALSE(rm_objects_is_kept(&objects, &leaf.object));
        rm_objects_cancel_free(&objects, &device);
        ASSERT_TRUE(drop(100, 9));
        add(100, 2, 9, RM_OBJECT_LEAF, 0, 4096);
        ASSERT_FALSE(rm_objects_is_kept(&objects, &leaf.object)); /* another one with its handle */
}

static void client_handle_is_reused(void) {
        begin();
        add(100, 2, 10, RM_OBJECT_LEAF, 0, UNIT);
        add(100, 77, 11, RM_OBJECT_LEAF, 1, UNIT); /* of an unknown parent */
        add(200, 77, 11, RM_OBJECT_LEAF, 2, UNIT); /* of an unknown client */
        make_client(100);
        ASSERT_INT(sums[0] + sums[1], 0);
        make_client(200);
        ASSERT_INT(sums[2], 0);
}

static void duplicates_share_a_charge(void) {
        FreedBytes freed;
        RmParent parent;
        RmObject source;
        uint32_t charge;

        begin();
        make_client(200);
        add(100, 2, 10, RM_OBJECT_LEAF, 0, UNIT);
        freed_bytes_clear(&freed);
        for (uint32_t i = 0; i < 3; i++) {
                charge = rm_objects_ref_charge(&objects, 100, 10, &source);
                ASSERT_TRUE(charge != 0);
                parent = rm_objects_parent(&objects, 200, 2);
                parent.card = source.card;
                ASSERT_OK(rm_objects_add(&objects, &parent, 20 + i, RM_OBJECT_LEAF, UNIT, charge, &freed));
        }
        ASSERT_TRUE(drop(100, 10));
        ASSERT_INT(sums[0], UNIT);
        ASSERT_TRUE(drop(200, 21));
        ASSERT_INT(sums[0], UNIT);
        charge = rm_objects_ref_charge(&objects, 200, 20, &source); /* the driver refuses */
        rm_objects_drop_charge(&objects, charge, &source, &freed);
        ASSERT_INT(freed.cards[0] | freed.cards[1], 0);
        ASSERT_TRUE(drop(200, 200));
        ASSERT_INT(sums[0], 0);
        ASSERT_INT(rm_objects_ref_charge(&objects, 200, 20, &source), 0);
        ASSERT_INT(rm_objects_ref_charge(&objects, 100, 2, &source), 0); /* a device has no bytes */
}

static uint8_t row_of(uint32_t client, uint32_t handle) {
        RmObjectMark mark;

        ASSERT_TRUE(rm_objects_find(&objects, client, handle, &mark));
        return mark.object.row;
}

/* The row of a client counts the bytes below it. An unknown client counts as another process's. */
static void rows_are_inherited(void) {
        RmParent parent = {.client = 400, .card = RM_OBJECTS_NO_CARD, .row = RM_OBJECTS_SHARED};
        FreedBytes freed;
        RmObjectMark mark;

        begin();
        freed_bytes_clear(&freed);
        ASSERT_OK(rm_objects_add(&objects, &parent, 400, RM_OBJECT_CLIENT, 0, 0, &freed));
        add(400, 400, 2, RM_OBJECT_DEVICE, 1, 0);
        add(400, 2, 10, RM_OBJECT_LEAF, 1, UNIT);
        add(400, 99, 11, RM_OBJECT_LEAF, 1, UNIT); /* of an unknown parent */
        add(500, 2, 10, RM_OBJECT_LEAF, 1, UNIT);
        add(100, 2, 10, RM_OBJECT_LEAF, 1, UNIT);
        ASSERT_INT(row_of(400, 10), RM_OBJECTS_SHARED);
        ASSERT_INT(row_of(400, 11), RM_OBJECTS_SHARED);
        ASSERT_INT(row_of(500, 10), RM_OBJECTS_SHARED);
        ASSERT_INT(row_of(100, 10), RM_OBJECTS_OWN);
        ASSERT_TRUE(rm_objects_find(&objects, 400, 400, &mark));
        rm_objects_remove(&objects, &mark, &freed);
        ASSERT_INT(freed.cards[RM_OBJECTS_OWN], 0);
        ASSERT_INT(freed.card[RM_OBJECTS_SHARED][1], 2 * UNIT);
        take_back(&freed);
}

/* The first file moves the bytes to its row; the last one moves them back, or frees them. */
static void files_hold_charges(void) {
        uint32_t charge, again;
        RmObject source;

        begin();
        add(100, 2, 10, RM_OBJECT_LEAF, 0, UNIT);
        charge = rm_objects_ref_charge(&objects, 100, 10, &source);
        ASSERT_FALSE(charges_is_exported(&objects.charges, charge));
        ASSERT_INT(charges_add_export(&objects.charges, charge), 1);
        ASSERT_TRUE(charges_is_exported(&objects.charges, charge));
        again = rm_objects_ref_charge(&objects, 100, 10, &source);
        ASSERT_INT(again, charge);
        ASSERT_INT(charges_add_export(&objects.charges, charge), 0);
        ASSERT_INT(charges_drop_export(&objects.charges, charge), CHARGE_STAYS);
        ASSERT_INT(charges_drop_export(&objects.charges, charge), CHARGE_MOVES_BACK);
        ASSERT_FALSE(charges_is_exported(&objects.charges, charge));
        ASSERT_INT(rm_objects_ref_charge(&objects, 100, 10, &source), charge);
        ASSERT_INT(charges_add_export(&objects.charges, charge), 1);
        ASSERT_TRUE(drop(100, 10));
        ASSERT_INT(sums[0], UNIT); /* the file has it */
        ASSERT_INT(charges_drop_export(&objects.charges, charge), CHARGE_FREED);
        sums[0] = 0;
        add(100, 2, 10, RM_OBJECT_LEAF, 0, UNIT); /* the number is used again, and no file holds it */
        ASSERT_INT(rm_objects_ref_charge(&objects, 100, 10, &source), charge);
        ASSERT_FALSE(charges_is_exported(&objects.charges, charge));
}

static void lists_clients(void) {
        uint32_t clients[64];

        begin();
        make_client(200);
        add(300, 5, 6, RM_OBJECT_LEAF, 0, UNIT);
        ASSERT_INT(rm_objects_clients(&objects, 0, clients, 64), 3);
        ASSERT_INT(rm_objects_clients(&objects, 0, clients, 2), 2);
        ASSERT_INT(clients[0], 100);
        ASSERT_INT(clients[1], 200);
        ASSERT_INT(rm_objects_clients(&objects, 200, clients, 2), 1);
        ASSERT_INT(clients[0], 300);
        ASSERT_INT(rm_objects_clients(&objects, 300, clients, 2), 0);
        for (uint32_t i = 1000; i > 900; i--)
                make_client(i);
        for (uint32_t after = 0, n = 0, sum = 0; sum < 103; sum += n, after = clients[n - 1]) {
                n = rm_objects_clients(&objects, after, clients, 10);
                ASSERT_INT(n, sum < 100 ? 10 : 3);
                for (uint32_t i = 1; i < n; i++)
                        ASSERT_TRUE(clients[i] > clients[i - 1]);
        }
}

static void learns_parents(void) {
        RmParent parent;

        begin();
        parent = rm_objects_parent(&objects, 500, 9);
        ASSERT_FALSE(parent.known);
        ASSERT_INT(parent.card, RM_OBJECTS_NO_CARD);
        rm_objects_set_card(&objects, &parent, 2);
        ASSERT_TRUE(parent.known);
        parent = rm_objects_parent(&objects, 500, 9);
        ASSERT_INT(parent.card, 2);
        ASSERT_TRUE(rm_objects_is_valid(&objects, &parent));
        add(500, 9, 10, RM_OBJECT_LEAF, 2, UNIT);
        ASSERT_TRUE(drop(500, 9));
        ASSERT_INT(sums[2], 0);
}

/* All objects are the parent's, also in a shard that another thread was changing. */
static void child_forgets_all(void) {
        RmObjectMark mark;
        RmObject source;

        begin();
        make_client(200);
        make_client(300);
        for (unsigned i = 0; i < RM_OBJECTS_SHARDS; i++)
                if (i % 2)
                        ASSERT_TRUE(spin_take(&objects.shards[i].lock));
        rm_objects_after_fork(&objects);
        for (unsigned i = 0; i < RM_OBJECTS_SHARDS; i++)
                ASSERT_INT(objects.shards[i].n, 0);
        ASSERT_INT(objects.clients, 0);
        ASSERT_FALSE(rm_objects_find(&objects, 200, 2, &mark));
        ASSERT_INT(rm_objects_ref_charge(&objects, 200, 4, &source), 0);
        make_client(200);
        ASSERT_TRUE(rm_objects_find(&objects, 200, 2, &mark));
}

/* A signal handler of the thread that holds the lock does not wait for it. */
static void signal_handler_does_not_wait(void) {
        RmObjectMark mark;

        begin();
        for (unsigned i = 0; i < RM_OBJECTS_SHARDS; i++)
                ASSERT_TRUE(spin_take(&objects.shards[i].lock));
        ASSERT_FALSE(rm_objects_find(&objects, 100, 2, &mark));
        for (unsigned i = 0; i < RM_OBJECTS_SHARDS; i++)
                spin_drop(&objects.shards[i].lock);
        ASSERT_TRUE(rm_objects_find(&objects, 100, 2, &mark));
}

/* ---- against a model ---- */

typedef struct Thing {
        bool there;
        uint32_t parent;
        uint8_t card;
        uint64_t bytes;
} Thing;

static Thing model[CLIENTS][HANDLES];
static Random random_state = {1};

static uint32_t draw(uint32_t n) {
        return random_below(&random_state, n);
}

static uint32_t client_of(uint32_t c) {
        return 1000 + c * 7919;
}

static void model_drop(uint32_t c, uint32_t handle) {
        model[c][handle].there = false;
        for (uint32_t i = 1; i < HANDLES; i++)
                if (model[c][i].there && model[c][i].parent == handle)
                        model_drop(c, i);
}

static uint64_t model_sum(uint32_t card) {
        uint64_t sum = 0;

        for (uint32_t c = 0; c < CLIENTS; c++)
                for (uint32_t i = 0; i < HANDLES; i++)
                        if (model[c][i].there && model[c][i].card == card)
                                sum += model[c][i].bytes;
        return sum;
}

/* In the model, handle 0 is the client, 1 and 2 are devices, 3 to 6 subdevices, and the rest is
 * memory. */
static void model_add(uint32_t c, uint32_t i) {
        uint32_t client = client_of(c), parent;
        Thing *t = &model[c][i];

        if (i == 0) {
                model_drop(c, 0);
                add(client, 0, client, RM_OBJECT_CLIENT, 0, 0);
                *t = (Thing){.there = true, .parent = HANDLES};
                return;
        }
        parent = i <= 2 ? 0 : i <= 6 ? 1 + i % 2 : 1 + draw(6);
        if (t->there || !model[c][parent].there)
                return;
        *t = (Thing){.there = true, .parent = parent};
        t->card = (uint8_t) (i <= 2 ? i : model[c][parent].card);
        t->bytes = i <= 6 ? 0 : (1 + draw(1000)) * (uint64_t) UNIT;
        add(client, parent == 0 ? client : parent, i,
            i <= 2   ? RM_OBJECT_DEVICE
            : i <= 6 ? RM_OBJECT_SUBDEVICE
                     : RM_OBJECT_LEAF,
            t->card, t->bytes);
}

static void agrees_with_a_model(void) {
        objects = (RmObjects){0};
        memset(sums, 0, sizeof sums);
        for (uint32_t step = 0; step < STEPS; step++) {
                uint32_t c = draw(CLIENTS), i = draw(draw(3) == 0 ? 8 : HANDLES);
                bool there = model[c][i].there;

                if (draw(8) < 5 && (i != 0 || draw(20) == 0 || !there)) {
                        model_add(c, i);
                } else if (i != 0 || draw(20) == 0) {
                        ASSERT_INT(drop(client_of(c), i == 0 ? client_of(c) : i), there);
                        if (there)
                                model_drop(c, i);
                }
                if (step % 64 == 0)
                        for (uint32_t card = 0; card < CARDS; card++)
                                ASSERT_INT(sums[card], model_sum(card));
        }
        for (uint32_t c = 0; c < CLIENTS; c++) {
                (void) drop(client_of(c), client_of(c)); /* some are there */
                model_drop(c, 0);
        }
        for (unsigned i = 0; i < RM_OBJECTS_SHARDS; i++)
                ASSERT_INT(objects.shards[i].n, 0);
        ASSERT_INT(sums[0] + sums[1] + sums[2], 0);
}

int main(void) {
        return TEST_MAIN(TEST(frees_what_is_below), TEST(tells_objects_with_one_handle_apart),
                         TEST(parent_freed_meanwhile), TEST(parent_replaced_on_another_card),
                         TEST(no_children_while_freeing), TEST(leaves_are_kept_until_freed),
                         TEST(client_handle_is_reused), TEST(duplicates_share_a_charge),
                         TEST(rows_are_inherited), TEST(files_hold_charges), TEST(lists_clients),
                         TEST(learns_parents), TEST(child_forgets_all), TEST(signal_handler_does_not_wait),
                         TEST(agrees_with_a_model));
}
