/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Until when a window's work is on the card: as it is told, as it was noticed, and as far as one
 * can tell before. All in ns. */

#include "arbiter/engine_helpers.h"

uint64_t window_end_first_kernel(const EngineTenant *t); /* when its first kernel began, or will have */
uint64_t window_end_expected(const EngineTenant *t);     /* when it is over by its own word */
uint64_t window_end_predicted(const EngineTenant *t,
                              uint64_t now);         /* when it will be over, as far as one can tell */
uint64_t window_end_deadline(const EngineTenant *t); /* so long others wait for it */

/* UINT64_MAX: it is not over. */
uint64_t window_end_noticed(
        const EngineTenant *t,
        uint64_t now); /* when that was noticed, or would have been by who waited for it */
uint64_t window_end_drained(const EngineTenant *t, uint64_t now); /* when its work was gone */
