/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keys of rows and of exports: numbers of bytes that are locked in the driver's files (pin.h). */

#include <stdint.h>

/* Keys of rows are below this number; those of other locks on a driver's file, such as exports, are
 * not. */
#define PIN_KEY_END (UINT64_C(1) << 62)

/* A random odd number below PIN_KEY_END. Where the kernel has no random numbers (getrandom,
 * /dev/urandom), it is made from the processor's, the time, addresses and ids. */
uint64_t pin_key_new(void);
