/* SPDX-License-Identifier: Apache-2.0 */

/* The table of libcuda's functions while several threads call the driver for the first time. The
 * loaded objects are simulated: one libcuda, which defines every function. */

#include <pthread.h>
#include <string.h>

#include "preload/inject/elf_slots.h"
#include "preload/inject/loaded.h"
#include "preload/launch/real.h"
#include "test.h"

enum {
        BASE = 0x10000,
        FUNCTION = 0x20000,
        THREADS = 4,
        ROUNDS = 20000,
};

/* ---- the loaded objects ---- */

static void (*while_filled)(void); /* called once, before the last entry is known */

unsigned loaded_objects(const char *soname, ElfObject ret[], unsigned most) {
        ASSERT_TRUE(strcmp(soname, "libcuda.so.1") == 0 && most > 0);
        ret[0] = (ElfObject){.base = BASE};
        return 1;
}

uint64_t loaded_function(const ElfObject *o, const char *name) {
        void (*call)(void) = while_filled;

        ASSERT_TRUE(o->base == BASE);
        if (call && strcmp(name, "cuThreadExchangeStreamCaptureMode") == 0) {
                while_filled = NULL;
                call();
        }
        return FUNCTION;
}

bool loaded_read(void *to, uint64_t from, size_t n) {
        (void) to, (void) from, (void) n;
        return false;
}

bool elf_slots(ElfRead read, const ElfObject *o, const char *const names[], unsigned n, ElfSlot *slots,
               unsigned max, unsigned *ret_n) {
        (void) read, (void) o, (void) names, (void) n, (void) slots, (void) max;
        *ret_n = 0;
        return true;
}

/* ---- tests ---- */

static void forget(void) {
        atomic_store(&real_base, 0);
        for (unsigned i = 0; i < REAL_ALL; i++)
                atomic_store(&real_table[i], 0);
}

static void all_are_known(void) {
        for (unsigned i = 0; i < REAL_ALL; i++)
                ASSERT_TRUE(real_get(i) == FUNCTION);
}

/* A thread asks while another one has filled all entries but one. */
static void half_filled(void) {
        ASSERT_TRUE(REAL_cuThreadExchangeStreamCaptureMode == REAL_ALL - 1);
        forget();
        while_filled = all_are_known;
        ASSERT_TRUE(real_find() && !while_filled);
        all_are_known();
}

static pthread_barrier_t start, end;

static void *ask(void *unused) {
        for (unsigned i = 0; i < ROUNDS; i++) {
                (void) pthread_barrier_wait(&start);
                ASSERT_TRUE(real_get(i % REAL_ALL) == FUNCTION);
                (void) pthread_barrier_wait(&end);
        }
        return unused;
}

/* Several threads ask at once, and none has asked before. */
static void first_calls(void) {
        pthread_t threads[THREADS];

        ASSERT_OK(pthread_barrier_init(&start, NULL, THREADS + 1));
        ASSERT_OK(pthread_barrier_init(&end, NULL, THREADS + 1));
        for (unsigned i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_create(&threads[i], NULL, ask, NULL));
        for (unsigned i = 0; i < ROUNDS; i++) {
                forget();
                (void) pthread_barrier_wait(&start);
                (void) pthread_barrier_wait(&end);
        }
        for (unsigned i = 0; i < THREADS; i++)
                ASSERT_OK(pthread_join(threads[i], NULL));
}

int main(void) {
        return TEST_MAIN(TEST(half_filled), TEST(first_calls));
}
