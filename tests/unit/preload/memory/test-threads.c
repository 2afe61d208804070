/* SPDX-License-Identifier: Apache-2.0 */

/* Threads that make and free objects of the same clients, devices and handles at once: whatever is
 * taken in comes out once. */

#include <pthread.h>

#include "preload/memory/objects.h"
#include "preload/memory/uvm.h"
#include "test.h"

enum { THREADS = 6, STEPS = 8000, UNIT = 4096, CLIENT = 77 };

static Objects objects;
static Uvm uvm;
static _Atomic int64_t balance; /* bytes put in, less what came out */

static void take_back(const ObjectBytes *freed) {
        for (uint32_t i = 0; i < OBJECTS_CARDS * OBJECTS_ROWS; i++)
                if (freed->cards[i / OBJECTS_CARDS] >> i % OBJECTS_CARDS & 1)
                        balance -= (int64_t) freed->card[i / OBJECTS_CARDS][i % OBJECTS_CARDS];
}

static void make(uint32_t parent, uint32_t handle, ObjectKind kind, int64_t bytes) {
        ObjectSeat seat = objects_seat(&objects, CLIENT, parent);
        ObjectBytes freed;

        object_bytes_none(&freed);
        seat.card = 1;
        balance += bytes;
        ASSERT_OK(objects_add(&objects, &seat, handle, kind, (uint64_t) bytes, 0, &freed));
        take_back(&freed);
}

static void drop(uint32_t handle) {
        ObjectBytes freed;
        ObjectMark mark;

        object_bytes_none(&freed);
        if (objects_find(&objects, CLIENT, handle, &mark)) {
                objects_leave(&objects, &mark);
                objects_forget(&objects, &mark, &freed);
        }
        take_back(&freed);
}

/* Whose card it is, and a free that the driver refuses. */
static void look_at(uint32_t handle) {
        ObjectSeat seat = objects_seat(&objects, CLIENT, handle);
        ObjectMark mark;

        if (!objects_find(&objects, CLIENT, handle, &mark))
                return;
        objects_set_card(&objects, &seat, 1);
        objects_leave(&objects, &mark);
        ASSERT_FALSE(seat.serial == mark.object.serial && objects_still(&objects, &seat));
        objects_left(&objects, &mark);
}

/* An open file has it, for a moment; whoever was last has the bytes. */
static void export_(uint32_t handle) {
        Object source;
        uint32_t share = objects_share(&objects, CLIENT, handle, &source);

        if (share == 0)
                return;
        ASSERT_TRUE(shares_add_export(&objects.shares, share) >= 0);
        ASSERT_TRUE(shares_is_exported(&objects.shares, share));
        if (shares_drop_export(&objects.shares, share) == SHARE_FREED)
                balance -= UNIT;
}

static void duplicate(uint32_t from, uint32_t to) {
        ObjectSeat seat = objects_seat(&objects, CLIENT, 2);
        ObjectBytes freed;
        Object source;
        uint32_t share = objects_share(&objects, CLIENT, from, &source);

        object_bytes_none(&freed);
        seat.card = 1;
        if (share == 0)
                return;
        if (to % 3 != 0)
                ASSERT_OK(objects_add(&objects, &seat, to, OBJECT_LEAF, UNIT, share, &freed));
        else
                objects_drop_share(&objects, share, &source, &freed);
        take_back(&freed);
}

static void *churn(void *argument) {
        uint32_t state = (uint32_t) (uintptr_t) argument * 7919 + 1;
        UvmRange part;

        for (uint32_t i = 0; i < STEPS; i++) {
                uint32_t handle;

                state = state * 1664525 + 1013904223;
                handle = 10 + (state >> 16) % 40;
                switch ((state >> 8) % 16) {
                case 0:
                        drop(2); /* the device, with all below it */
                        break;
                case 1:
                        make(CLIENT, 2, OBJECT_DEVICE, 0);
                        look_at(2);
                        break;
                case 2:
                        ASSERT_OK(uvm_add(&uvm, i, i + 10, 1, true));
                        (void) uvm_take(&uvm, i, i + 10, uvm_now(&uvm), &part); /* mine or another's */
                        break;
                case 3:
                case 4:
                        duplicate(handle, handle + 100);
                        break;
                case 5:
                case 6:
                case 7:
                case 8:
                        drop(handle + 100 * (i % 2));
                        break;
                case 9:
                        export_(handle);
                        break;
                default:
                        make(2, handle, OBJECT_LEAF, UNIT);
                        break;
                }
        }
        return NULL;
}

static void all_that_goes_in_comes_out(void) {
        pthread_t threads[THREADS];
        ObjectSeat seat = {.client = CLIENT};
        ObjectBytes freed;
        ObjectMark mark;

        object_bytes_none(&freed);
        ASSERT_OK(objects_add(&objects, &seat, CLIENT, OBJECT_CLIENT, 0, 0, &freed));
        for (uintptr_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_create(&threads[i], NULL, churn, (void *) i));
        for (size_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_join(threads[i], NULL));
        mark = objects_client(&objects, CLIENT);
        object_bytes_none(&freed);
        objects_forget(&objects, &mark, &freed);
        take_back(&freed);
        ASSERT_INT(balance, 0);
        for (unsigned i = 0; i < OBJECTS_SHARDS; i++)
                ASSERT_INT(objects.shards[i].n, 0);
}

int main(void) {
        return TEST_MAIN(TEST(all_that_goes_in_comes_out));
}
