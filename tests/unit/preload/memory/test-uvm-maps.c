/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/uvm_maps.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "test.h"

enum { KEY = 77, MAP = 1 << UVM_NOTE_MAP };

static UvmMaps maps;
static Charges charges;

static void begin(void) {
        uvm_maps_after_fork(&maps);
        charges_after_fork(&charges);
}

/* A charge of which the mapping has the only reference. */
static uint32_t new_charge(void) {
        uint32_t charge = charges_new(&charges);

        ASSERT_TRUE(charge != 0);
        ASSERT_FALSE(charges_drop(&charges, charge));
        return charge;
}

static void add(uint64_t start, uint64_t end, uint32_t gpu, uint32_t charge) {
        ASSERT_OK(uvm_maps_add(&maps, &(UvmNote){.key = KEY,
                                                 .start = start,
                                                 .end = end,
                                                 .kind = UVM_NOTE_MAP,
                                                 .gpu = (uint8_t) gpu,
                                                 .client = 1,
                                                 .memory = charge,
                                                 .charge = charge}));
}

/* Ends what is within; returns how many charges lost their last holder. ended: their numbers. */
static uint32_t end_within(uint64_t start, uint64_t end, uint32_t gpus, uint32_t now, bool *ended) {
        UvmEnd what = {.key = KEY, .start = start, .end = end, .kinds = MAP, .gpus = gpus, .now = now};
        UvmNote gone[2];
        uint32_t n, last = 0;

        while ((n = uvm_maps_take(&maps, &charges, &what, gone, 2)) > 0)
                for (uint32_t i = 0; i < n; i++)
                        if (charges_drop(&charges, gone[i].charge)) {
                                last++;
                                if (ended)
                                        ended[gone[i].charge] = true;
                        }
        return last;
}

static uint32_t end_all(uint64_t start, uint64_t end) {
        return end_within(start, end, UINT32_MAX, uvm_maps_now(&maps), NULL);
}

static void a_part_holds_the_charge(void) {
        begin();
        add(100, 200, 0, new_charge());
        ASSERT_INT(end_all(0, 100), 0);
        ASSERT_INT(end_all(200, 300), 0);
        ASSERT_INT(end_all(140, 160), 0); /* two holders now */
        ASSERT_INT(maps.n, 2);
        ASSERT_INT(end_all(100, 139), 0);
        ASSERT_INT(end_all(0, 150), 0);
        ASSERT_INT(end_all(161, 1000), 0);
        ASSERT_INT(end_all(0, 1000), 1);
        ASSERT_INT(maps.n, 0);
}

static void younger_notes_and_other_cards_stay(void) {
        uint32_t now;

        begin();
        add(100, 200, 0, new_charge());
        now = uvm_maps_now(&maps);
        add(100, 200, 0, new_charge());
        add(100, 200, 3, new_charge());
        ASSERT_INT(end_within(0, 1000, 1, now, NULL), 1);
        ASSERT_INT(end_within(0, 1000, 1u << 3, now, NULL), 0);
        ASSERT_INT(end_within(0, 1000, 1u << 3, uvm_maps_now(&maps), NULL), 1);
        ASSERT_INT(maps.n, 1);
        ASSERT_INT(end_all(0, 1000), 1);
}

static void note(UvmNoteKind kind, uint64_t key, uint64_t start, uint64_t end) {
        ASSERT_OK(uvm_maps_add(&maps,
                               &(UvmNote){.key = key, .start = start, .end = end, .kind = (uint8_t) kind}));
}

static void ranges_end_where_they_begin(void) {
        UvmEnd what = {.key = KEY, .start = 100, .end = 101, .kinds = 1u << UVM_NOTE_RANGE};
        UvmNote gone[4];

        begin();
        note(UVM_NOTE_RANGE, KEY, 100, 300);
        note(UVM_NOTE_RANGE, KEY, 100, 200); /* one of the two is over; the nearer end counts */
        note(UVM_NOTE_RANGE, KEY + 1, 100, 150);
        note(UVM_NOTE_RANGE, KEY, 50, 400);
        ASSERT_INT(uvm_maps_range_end(&maps, KEY, 100), 200);
        ASSERT_INT(uvm_maps_range_end(&maps, KEY + 1, 100), 150);
        ASSERT_INT(uvm_maps_range_end(&maps, KEY, 101), 0);
        what.now = uvm_maps_now(&maps);
        ASSERT_INT(uvm_maps_take(&maps, &charges, &what, gone, 4), 2);
        ASSERT_INT(uvm_maps_range_end(&maps, KEY, 100), 0);
        ASSERT_INT(uvm_maps_range_end(&maps, KEY, 50), 400);
}

static void pools_are_exact(void) {
        begin();
        note(UVM_NOTE_POOL, KEY, 100, 200);
        ASSERT_TRUE(uvm_maps_pool(&maps, KEY, 100, 200) != 0);
        ASSERT_INT(uvm_maps_pool(&maps, KEY, 100, 199), 0);
        ASSERT_INT(uvm_maps_pool(&maps, KEY, 101, 200), 0);
        ASSERT_INT(uvm_maps_pool(&maps, KEY + 1, 100, 200), 0);
}

static void pools_are_noted_without_frees(void) {
        UvmNote pool = {.key = KEY, .start = 100, .end = 200, .kind = UVM_NOTE_POOL};
        uint32_t frees;

        begin();
        frees = uvm_maps_frees(&maps);
        ASSERT_OK(uvm_maps_add_pool(&maps, &pool, frees));
        ASSERT_TRUE(uvm_maps_begin_free(&maps));
        ASSERT_TRUE(uvm_maps_add_pool(&maps, &pool, frees) < 0);
        ASSERT_TRUE(uvm_maps_add_pool(&maps, &pool, uvm_maps_frees(&maps)) < 0);
        uvm_maps_end_free(&maps);
        ASSERT_TRUE(uvm_maps_add_pool(&maps, &pool, frees) < 0);
        ASSERT_OK(uvm_maps_add_pool(&maps, &pool, uvm_maps_frees(&maps)));
        ASSERT_TRUE(uvm_maps_begin_free(&maps)); /* by a thread that a child does not have */
        uvm_maps_after_fork(&maps);
        ASSERT_OK(uvm_maps_add_pool(&maps, &pool, uvm_maps_frees(&maps)));
}

static void files_have_a_first_process(void) {
        begin();
        ASSERT_OK(uvm_maps_add_file(&maps, &(UvmFile){.key = 10, .fd = 3}));
        ASSERT_FALSE(uvm_maps_is_sole(&maps, 10));
        uvm_maps_set_use(&maps, 10, UVM_FILE_SOLE, true);
        ASSERT_TRUE(uvm_maps_is_sole(&maps, 10));
        ASSERT_FALSE(uvm_maps_is_sole(&maps, 0));
        uvm_maps_set_use(&maps, 10, UVM_FILE_SHARED, false);
        ASSERT_FALSE(uvm_maps_is_sole(&maps, 10));
}

static void files_have_entries(void) {
        UvmFile file;

        begin();
        for (uint32_t i = 0; i < UVM_MAPS_FILES; i++)
                ASSERT_OK(uvm_maps_add_file(&maps, &(UvmFile){.key = 10 + i, .fd = (int) i}));
        ASSERT_TRUE(uvm_maps_add_file(&maps, &(UvmFile){.key = 9, .fd = 9}) < 0);
        uvm_maps_note_row(&maps, 13, 2);
        ASSERT_TRUE(uvm_maps_file_at(&maps, 3, &file));
        ASSERT_INT(file.rows, 4);
        uvm_maps_drop_file(&maps, 13);
        ASSERT_FALSE(uvm_maps_file_at(&maps, 3, &file));
        ASSERT_INT(maps.n_files, UVM_MAPS_FILES - 1);
        ASSERT_OK(uvm_maps_add_file(&maps, &(UvmFile){.key = 9, .fd = 9}));
}

/* ---- objects that were not in their table yet ---- */

static RmObjects objects;

static uint32_t leaf(uint32_t handle) {
        RmParent parent = rm_objects_parent(&objects, 1, 1);
        RmObject found = {.units = 0};
        FreedBytes freed;
        uint32_t charge;

        freed_bytes_clear(&freed);
        ASSERT_OK(rm_objects_add(&objects, &parent, handle, RM_OBJECT_LEAF, 4096, 0, &freed));
        charge = rm_objects_ref_charge(&objects, 1, handle, &found);
        ASSERT_TRUE(charge != 0);
        ASSERT_FALSE(charges_drop(&objects.charges, charge)); /* the object keeps one */
        return charge;
}

static void note_mapping(uint32_t memory, uint32_t charge) {
        ASSERT_OK(uvm_maps_add(&maps, &(UvmNote){.key = KEY,
                                                 .end = 1,
                                                 .kind = UVM_NOTE_MAP,
                                                 .client = 1,
                                                 .memory = memory,
                                                 .charge = charge}));
}

/* Mappings that are older, of nothing, right already, of an unknown object, and of one that came
 * later. As many of each as make the list grow in the middle. */
static void young_mappings_get_their_holders(void) {
        enum { RIGHT = 10, UNKNOWN, LATE, EACH = 100 };
        uint32_t since, late, right;

        begin();
        late = leaf(LATE);
        right = leaf(RIGHT);
        note_mapping(LATE, 0);
        since = uvm_maps_now(&maps);
        for (unsigned i = 0; i < EACH; i++) {
                ASSERT_TRUE(charges_ref(&objects.charges, right));
                note_mapping(RIGHT, right);
                note_mapping(UNKNOWN, 0);
                note_mapping(LATE, 0);
                note_mapping(0, 0);
        }
        uvm_maps_recheck(&maps, &objects, uvm_maps_now(&maps));
        ASSERT_INT(maps.n, 1 + 4 * EACH);
        uvm_maps_recheck(&maps, &objects, since);
        ASSERT_INT(maps.n, 1 + 5 * EACH);
        ASSERT_INT(objects.charges.list[right].refs, 1 + EACH);
        ASSERT_INT(objects.charges.list[late].refs, 1 + EACH);
        for (unsigned i = 1 + 4 * EACH; i < maps.n; i++)
                ASSERT_TRUE(maps.notes[i].charge == late && maps.notes[i].units == 1);
        rm_objects_after_fork(&objects);
}

/* ---- against a model: which charge each page has ---- */

enum { PAGES = 48, STEPS = 4000, CHARGES = STEPS + 1 };

static bool is_on(const uint32_t *pages, uint32_t charge) {
        for (unsigned i = 0; i < PAGES; i++)
                if (pages[i] == charge)
                        return true;
        return false;
}

static void ends_as_the_model(void) {
        static bool ended[CHARGES], was[CHARGES];
        uint32_t pages[PAGES] = {0};
        Random random = {5};

        begin();
        memset(ended, 0, sizeof ended);
        for (unsigned step = 0; step < STEPS; step++) {
                uint32_t start = random_below(&random, PAGES),
                         end = start + 1 + random_below(&random, PAGES - start), charge = 0;
                uint32_t now = uvm_maps_now(&maps);

                memset(was, 0, sizeof was);
                for (unsigned i = 0; i < PAGES; i++)
                        was[pages[i]] = true;
                if (random_below(&random, 2) == 0) {
                        charge = new_charge();
                        ended[charge] = false; /* numbers are used again */
                        add(start, end, 0, charge);
                }
                for (uint32_t i = start; i < end; i++)
                        pages[i] = charge;
                (void) end_within(start, end, 1, now, ended);
                for (uint32_t i = 1; i < CHARGES; i++)
                        ASSERT_TRUE(!was[i] || i == charge || ended[i] == !is_on(pages, i));
        }
        (void) end_all(0, PAGES);
        ASSERT_INT(maps.n, 0);
}

/* ---- threads ---- */

enum { THREADS = 4, TURNS = 2000 };

static void *work(void *seed) {
        Random random = {(uintptr_t) seed};

        for (unsigned i = 0; i < TURNS; i++) {
                uint32_t start = random_below(&random, PAGES), now = uvm_maps_now(&maps);

                add(start, start + 8, 0, new_charge());
                (void) end_within(start + 2, start + 4, 1, now, NULL);
        }
        return NULL;
}

static void threads_leave_nothing(void) {
        pthread_t threads[THREADS];

        begin();
        for (uintptr_t i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_create(&threads[i], NULL, work, (void *) (i + 1)));
        for (unsigned i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_join(threads[i], NULL));
        (void) end_all(0, PAGES + 8);
        ASSERT_INT(maps.n, 0);
        for (uint32_t i = 1; i <= charges.n; i++)
                ASSERT_INT(charges.list[i].exports, 0);
        ASSERT_INT(maps.lock.owner, 0);
}

int main(void) {
        return TEST_MAIN(TEST(a_part_holds_the_charge), TEST(younger_notes_and_other_cards_stay),
                         TEST(ranges_end_where_they_begin), TEST(pools_are_exact),
                         TEST(pools_are_noted_without_frees), TEST(files_have_a_first_process),
                         TEST(files_have_entries), TEST(young_mappings_get_their_holders),
                         TEST(ends_as_the_model), TEST(threads_leave_nothing));
}
