/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Threads on a virtual clock: the clock stands still while a fiber runs, and moves to the next
 * fiber's time when all of them sleep. One thread of the kernel runs them, so every run with the
 * same seed is the same. Times are ns. */

#include <stdbool.h>
#include <stdint.h>

typedef struct Fiber Fiber;

void fibers_begin(uint64_t seed); /* drops all fibers and resets the clock */
void fibers_run(uint64_t until);
uint64_t fibers_now(void);
uint64_t fibers_draw(uint64_t below); /* pseudo-random, from the seed */

/* owner: any pointer that fibers_owner() returns while this fiber runs. */
Fiber *fibers_add(void (*run)(void *argument), void *argument, void *owner);
void *fibers_owner(void);
void fibers_end(const void *owner);                /* its fibers never run again; not for the one that runs */
void fibers_stop(const void *owner, bool stopped); /* as with SIGSTOP and SIGCONT */

/* The next three are for the fiber that runs. */
void fibers_spend(uint64_t ns); /* computes for that time */
void fibers_sleep_until(uint64_t when);
void fibers_sleep_on(const void *word, uint64_t until); /* until then, or until fibers_wake() */

/* The fibers that sleep on the word continue `delay` later. */
void fibers_wake(const void *word, uint64_t delay);
