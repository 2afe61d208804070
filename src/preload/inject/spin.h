/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A lock for a guest: taken for some dozens of instructions, never across a call of the driver. It
 * is not waited for without end: a thread may have been stopped with it, and a signal handler may
 * have come in between, or have left by longjmp(). Who does not get it goes without, on the careful
 * side: bytes stay charged. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/sys.h"

/* Yielding alone is over in 30 ms where nobody else wants the processor, and who has the lock may
 * be kept from his for longer: then naps, half a second of them at least. */
enum {
        SPIN_TURNS = 64,
        SPIN_YIELDS = 1000,
        SPIN_NAPS = 5000,
        SPIN_NAP = 100000, /* ns */
};

typedef struct Spin {
        _Atomic uintptr_t owner; /* the thread's pointer; 0: free */
} Spin;

/* What tells threads apart without a system call: the register that points at a thread's own
 * data. */
static inline uintptr_t spin_self(void) {
        uintptr_t self;

#if defined(__x86_64__)
        __asm__("mov %%fs:0, %0" : "=r"(self));
#else
        __asm__("mrs %0, tpidr_el0" : "=r"(self));
#endif
        return self | 1;
}

static inline void spin_wait(unsigned turn) {
        const struct timespec nap = {.tv_nsec = SPIN_NAP};

        if (turn >= SPIN_TURNS + SPIN_YIELDS)
                (void) sys_call(SYS_nanosleep, &nap, 0); /* a signal ends it: it looks once more often */
        else if (turn >= SPIN_TURNS)
                (void) sys_call(SYS_sched_yield);
}

static inline bool spin_take(Spin *s) {
        uintptr_t self = spin_self();

        for (unsigned turn = 0; turn < SPIN_TURNS + SPIN_YIELDS + SPIN_NAPS; turn++) {
                uintptr_t owner = atomic_load_explicit(&s->owner, memory_order_relaxed);

                if (owner == 0 &&
                    atomic_compare_exchange_strong_explicit(&s->owner, &owner, self, memory_order_acquire,
                                                            memory_order_relaxed))
                        return true;
                if (owner == self)
                        return false; /* we are a signal handler of this thread */
                spin_wait(turn);
        }
        return false;
}

static inline void spin_drop(Spin *s) {
        atomic_store_explicit(&s->owner, 0, memory_order_release);
}
