/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A lock inside another program's process: held for some dozens of instructions, never across a
 * call of the driver. The wait is bounded, because the holder may be stopped, interrupted by a
 * signal handler, or left by longjmp(). A caller that does not get the lock errs on the safe side:
 * bytes stay charged. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/sys.h"
#include "preload/inject/tunables.h"

/* Turns of a waiter: busy ones first, then yields. The holder may be off its processor for longer
 * than they last, so naps follow: half a second at least. */
enum {
        SPIN_TURNS = 64,
        SPIN_YIELDS = 1000,
        SPIN_NAPS = 5000,
};

typedef struct Spin {
        _Atomic uintptr_t owner; /* thread pointer of the holder; 0: free */
} Spin;

/* Identifies the thread without a system call: the register that points at its thread-local
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
        const struct timespec nap = {.tv_nsec = SPIN_NAP_NS};

        if (turn >= SPIN_TURNS + SPIN_YIELDS)
                (void) sys_call(SYS_nanosleep, &nap, 0); /* a signal may end the nap early */
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
                        return false; /* this is a signal handler of the holder */
                spin_wait(turn);
        }
        return false;
}

static inline void spin_drop(Spin *s) {
        atomic_store_explicit(&s->owner, 0, memory_order_release);
}
