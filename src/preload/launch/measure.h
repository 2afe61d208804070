/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long batches were on the card, by their events. */

#include "preload/launch/process.h"

bool measure_take(Context *c, uint64_t now); /* one thread at a time measures; ends by measuring = 0 */
/* Of a batch that is over and was not closed, with an event behind its last launch; false: there is
 * none. */
bool measure_unclosed(ProcessState *a, Batch *b, uint64_t now);
void measure_done(ProcessState *a, Context *c); /* by who has taken it */
void measure_all(ProcessState *a, Context *c, uint64_t now);
