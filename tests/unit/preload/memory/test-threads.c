/* SPDX-License-Identifier: Apache-2.0 */

/* Threads make and free objects of the same clients, devices and handles at once: all bytes that
 * are added are freed once. */

#include <pthread.h>

#include "preload/memory/rm_objects.h"
#include "preload/memory/uvm.h"
#include "random.h"
#include "test.h"

enum { THREADS = 6, STEPS = 8000, UNIT = 4096, CLIENT = 77 };

static RmObjects objects;
static Uvm uvm;
static _Atomic int64_t balance; /* bytes added, less those freed */

static void take_back(const FreedBytes *freed) {
        for (uint32_t i = 0; i < RM_OBJECTS_CARDS * RM_OBJECTS_ROWS; i++)
                if (freed->cards[i / RM_OBJECTS_CARDS] >> i % RM_OBJECTS_CARDS & 1)
                        balance -= (int64_t) freed->card[i / RM_OBJECTS_CARDS][i % RM_OBJECTS_CARDS];
}

static void make(uint32_t above, uint32_t handle, RmObjectKind kind, int64_t bytes) {
        RmParent parent = rm_objects_parent(&objects, CLIENT, above);
        FreedBytes freed;

        freed_bytes_clear(&freed);
        parent.card = 1;
        balance += bytes;
        ASSERT_OK(rm_objects_add(&objects, &parent, handle, kind, (uint64_t) bytes, 0, &freed));
        take_back(&freed);
}

static void drop(uint32_t handle) {
        FreedBytes freed;
        RmObjectMark mark;

        freed_bytes_clear(&freed);
        if (rm_objects_find(&objects, CLIENT, handle, &mark)) {
                rm_objects_begin_free(&objects, &mark);
                rm_objects_remove(&objects, &mark, &freed);
        }
        take_back(&freed);
}

/* Notes the card of a device, and cancels a free that the driver refused. */
static void discover_at(uint32_t handle) {
        RmParent parent = rm_objects_parent(&objects, CLIENT, handle);
        RmObjectMark mark;

        if (!rm_objects_find(&objects, CLIENT, handle, &mark))
                return;
        rm_objects_set_card(&objects, &parent, 1);
        rm_objects_begin_free(&objects, &mark);
        ASSERT_FALSE(parent.serial == mark.object.serial && rm_objects_is_valid(&objects, &parent));
        rm_objects_cancel_free(&objects, &mark);
}

/* An open file holds it for a short time; the last holder frees the bytes. */
static void export_(uint32_t handle) {
        RmObject source;
        uint32_t charge = rm_objects_ref_charge(&objects, CLIENT, handle, &source);

        if (charge == 0)
                return;
        ASSERT_TRUE(charges_add_export(&objects.charges, charge) >= 0);
        ASSERT_TRUE(charges_is_exported(&objects.charges, charge));
        if (charges_drop_export(&objects.charges, charge) == CHARGE_FREED)
                balance -= UNIT;
}

static void duplicate(uint32_t from, uint32_t to) {
        RmParent parent = rm_objects_parent(&objects, CLIENT, 2);
        FreedBytes freed;
        RmObject source;
        uint32_t charge = rm_objects_ref_charge(&objects, CLIENT, from, &source);

        freed_bytes_clear(&freed);
        parent.card = 1;
        if (charge == 0)
                return;
        if (to % 3 != 0)
                ASSERT_OK(rm_objects_add(&objects, &parent, to, RM_OBJECT_LEAF, UNIT, charge, &freed));
        else
                rm_objects_drop_charge(&objects, charge, &source, &freed);
        take_back(&freed);
}

static void *churn(void *argument) {
        Random random = {(uintptr_t) argument};
        UvmRange part;

        for (uint32_t i = 0; i < STEPS; i++) {
                uint32_t handle = 10 + random_below(&random, 40);

                switch (random_below(&random, 16)) {
                case 0:
                        drop(2); /* frees the device with all below it */
                        break;
                case 1:
                        make(CLIENT, 2, RM_OBJECT_DEVICE, 0);
                        discover_at(2);
                        break;
                case 2:
                        ASSERT_OK(uvm_add(&uvm, i, i + 10, 1, true));
                        (void) uvm_take(&uvm, i, i + 10, uvm_now(&uvm),
                                        &part); /* of this thread or of another one */
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
                        make(2, handle, RM_OBJECT_LEAF, UNIT);
                        break;
                }
        }
        return NULL;
}

static void all_added_bytes_are_freed_once(void) {
        pthread_t threads[THREADS];
        RmParent parent = {.client = CLIENT};
        FreedBytes freed;
        RmObjectMark mark;

        freed_bytes_clear(&freed);
        ASSERT_OK(rm_objects_add(&objects, &parent, CLIENT, RM_OBJECT_CLIENT, 0, 0, &freed));
        for (uintptr_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_create(&threads[i], NULL, churn, (void *) i));
        for (size_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_join(threads[i], NULL));
        mark = rm_objects_mark_client(&objects, CLIENT);
        freed_bytes_clear(&freed);
        rm_objects_remove(&objects, &mark, &freed);
        take_back(&freed);
        ASSERT_INT(balance, 0);
        for (unsigned i = 0; i < RM_OBJECTS_SHARDS; i++)
                ASSERT_INT(objects.shards[i].n, 0);
}

int main(void) {
        return TEST_MAIN(TEST(all_added_bytes_are_freed_once));
}
