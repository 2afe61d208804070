/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The clock and the futex calls of the launch hooks, in one file, so that tests/unit/card can
 * replace them by a virtual clock. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns CLOCK_MONOTONIC in ns. */
uint64_t launch_now(void);

/* Sleeps while *at is `value`, at most nsec; a signal ends it early. local: the word is private to
 * this process, not in a page that other processes map. */
void launch_sleep_on(const _Atomic uint32_t *at, uint32_t value, bool local, uint64_t nsec);

/* Wakes all threads that sleep on the word. */
void launch_wake(const _Atomic uint32_t *at, bool local);

/* Sleeps for nsec, less than a second; a signal ends it early. */
void launch_sleep(uint64_t nsec);
