/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/inject/loaded.h"

#include <dlfcn.h>
#include <pthread.h>

#include "image-slots.h"

/* ---- lists that are made by hand ---- */

static uint64_t find(uint64_t head, uint64_t after) {
        return loaded_find_after(image_read, head, after, "first");
}

static void after_this_library(void) {
        uint64_t head;

        image_gnu_hash();
        head = image_map(0, IMAGE_BASE + 1, IMAGE_BASE,
                         1); /* a definition before this object does not count */
        (void) image_map(1, 0, 0x1234, 2);
        (void) image_map(2, IMAGE_BASE, IMAGE_BASE, -1);
        ASSERT_INT(find(head, 0x1234), IMAGE_BASE + 0x10);
        ASSERT_INT(find(head, 0x9999), 0);
        ASSERT_INT(find(0, 0x1234), 0);
}

static void up_to_a_defining_object(void) {
        uint64_t head;

        image_gnu_hash();
        head = image_map(0, 0, 0x1234, 1);
        (void) image_map(1, IMAGE_BASE, IMAGE_BASE, -1);
        ASSERT_INT(loaded_find_between(image_read, head, 0x1234, "first", "nobody", "none"), 0);
        ASSERT_INT(loaded_find_between(image_read, head, 0x1234, "first", "second", "none"),
                   0);                                  /* it is the last object */
        (void) image_map(1, IMAGE_BASE, IMAGE_BASE, 0); /* before it, and in a ring */
        ASSERT_INT(loaded_find_between(image_read, IMAGE_BASE + IMAGE_MAPS + 32, 0x1234, "first", "second",
                                       "none"),
                   0);
        (void) image_map(1, IMAGE_BASE, IMAGE_BASE, 100000);
        ASSERT_INT(loaded_find_between(image_read, head, 0x1234, "first", "nobody", "none"), 0);
        ASSERT_INT(loaded_find_between(image_read, head, 0x1234, "first", "second", "first"), 0);
        ASSERT_INT(loaded_find_between(image_read, 0, 0x1234, "first", "second", "none"), 0);
}

static void before_this_library(void) {
        uint64_t head;

        image_gnu_hash();
        head = image_map(0, IMAGE_BASE, IMAGE_BASE, 1);
        (void) image_map(1, 0, 0x1234, 2);
        (void) image_map(2, IMAGE_BASE, IMAGE_BASE, -1);
        ASSERT_INT(loaded_find_before(image_read, head, 0x1234, "first"), IMAGE_BASE + 0x10);
        ASSERT_INT(loaded_find_before(image_read, head, 0x1234, "nobody"), 0);
        ASSERT_INT(loaded_find_before(image_read, IMAGE_BASE + IMAGE_MAPS + 32, 0x1234, "first"), 0);
        ASSERT_INT(loaded_find_before(image_read, 0, 0x1234, "first"), 0);
}

static void finds_the_holder(void) {
        uint64_t head;
        ElfObject o;

        image_gnu_hash();
        image_headers();
        head = image_map(0, IMAGE_BASE + 0x10000, 0x1234, 1); /* an unfinished object */
        (void) image_map(1, IMAGE_BASE, IMAGE_BASE + IMAGE_MOVED, -1);
        ASSERT_TRUE(loaded_find_holder(image_read, head, IMAGE_BASE + 0x4FFF, &o));
        ASSERT_INT(o.base, IMAGE_BASE);
        ASSERT_FALSE(loaded_find_holder(image_read, head, IMAGE_BASE + 0x5000, &o));
        ASSERT_FALSE(loaded_find_holder(image_read, head, IMAGE_BASE - 1, &o));
        ASSERT_FALSE(loaded_find_holder(image_read, 0, IMAGE_BASE, &o));
        (void) image_map(0, 0, IMAGE_BASE + IMAGE_MOVED,
                         1); /* loaded where it was linked to: has all other addresses */
        ASSERT_TRUE(loaded_find_holder(image_read, head, 0x400000, &o));
        ASSERT_INT(o.base, 0);
        ASSERT_TRUE(loaded_find_holder(image_read, head, IMAGE_BASE, &o));
        ASSERT_INT(o.base, IMAGE_BASE);
        (void) image_map(1, IMAGE_BASE, 0x1234, 1); /* a ring */
        ASSERT_TRUE(loaded_find_holder(image_read, head, 0x400000, &o));
}

static void unfinished_objects(void) {
        uint64_t head;

        image_gnu_hash();
        head = image_map(0, 0, 0x1234, 1);
        (void) image_map(1, 0, 0, 2);          /* an empty entry */
        (void) image_map(2, 0, 0x2DD8, 3);     /* an invalid dynamic section */
        (void) image_map(3, IMAGE_BASE, 1, 4); /* another invalid one */
        (void) image_map(4, IMAGE_BASE, IMAGE_BASE, -1);
        ASSERT_INT(find(head, 0x1234), IMAGE_BASE + 0x10);
}

static void rings_and_dead_ends(void) {
        uint64_t head;
        ElfObject o[3];

        image_gnu_hash();
        head = image_map(0, 0, 0x1234, 0);
        ASSERT_INT(find(head, 0x1234), 0);
        (void) image_map(0, 0, 0x1234, 100000);
        ASSERT_INT(find(head, 0x1234), 0);
        ASSERT_INT(loaded_find_objects(image_read, head, "libimage.so.1", &o[0], 1), 0);
        (void) image_map(0, IMAGE_BASE, IMAGE_BASE, 100000);
        ASSERT_INT(loaded_find_objects(image_read, head, "libimage.so.1", o, 1), 1);
        ASSERT_INT(o[0].base, IMAGE_BASE);
        (void) image_map(0, IMAGE_BASE, IMAGE_BASE, 1);
        (void) image_map(1, 0, 0x1234, 2);
        (void) image_map(2, IMAGE_BASE, IMAGE_BASE, 0);
        ASSERT_INT(loaded_find_objects(image_read, head, "libimage.so.1", o, 2), 2);
        ASSERT_INT(o[1].base, IMAGE_BASE);
        ASSERT_INT(loaded_find_objects(image_read, head, "libimage.so.1", o, 3), 3); /* the list is a ring */
        ASSERT_INT(loaded_find_objects(image_read, head, "libnobody.so.1", o, 3), 0);
}

/* ---- this process ---- */

static void this_process(void) {
        ASSERT_TRUE(loaded_next("pthread_create") != 0);
        ASSERT_INT(loaded_next("getsid"), (uintptr_t) dlsym(RTLD_NEXT, "getsid"));
        ASSERT_INT(loaded_next("no_such_function_anywhere"), 0);
        ASSERT_TRUE(loaded_is_ready());
        ASSERT_INT(loaded_before_libc("getsid"), 0);
        ASSERT_INT(loaded_before_self("getsid"), 0);
}

static _Atomic int over;

static void *load_and_unload(void *unused) {
        while (!over) {
                void *library = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);

                if (library)
                        (void) dlclose(library);
        }
        return unused;
}

static void while_other_threads_load(void) {
#ifdef __SANITIZE_THREAD__
        return; /* it does not know the dynamic linker's lock */
#endif
        pthread_t threads[2];
        unsigned found = 0;
        ElfObject o;

        for (size_t i = 0; i < 2; i++)
                ASSERT_OK(pthread_create(&threads[i], NULL, load_and_unload, NULL));
        for (unsigned i = 0; i < 2000; i++) {
                found += loaded_object("libresolv.so.2", &o) && loaded_function(&o, "ns_name_ntop") != 0;
                ASSERT_TRUE(loaded_next("getsid") != 0);
                ASSERT_FALSE(loaded_object("libnobody.so.7", &o));
        }
        over = 1;
        for (size_t i = 0; i < 2; i++)
                ASSERT_OK(pthread_join(threads[i], NULL));
        (void) found; /* depends on the schedule */
}

int main(void) {
        return TEST_MAIN(TEST(after_this_library), TEST(up_to_a_defining_object), TEST(before_this_library),
                         TEST(finds_the_holder), TEST(unfinished_objects), TEST(rings_and_dead_ends),
                         TEST(this_process), TEST(while_other_threads_load));
}
