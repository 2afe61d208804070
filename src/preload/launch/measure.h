/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Measures how long batches were on the card, by their events: corrects the charges and teaches the
 * estimates. One thread at a time measures a context. */

#include "preload/launch/process.h"

bool measure_take(Context *c, uint64_t now); /* takes the right to measure, given back by measuring = 0 */
/* Measures and charges a batch that ended without being closed, by the event behind its last
 * launch. False: there is none, or another thread measures. */
bool measure_unclosed(ProcessState *a, Batch *b, uint64_t now);
void measure_done(ProcessState *a, Context *c); /* after measure_take() */
/* measure_done() under measure_take(), unless the context has ended. */
void measure_all(ProcessState *a, Context *c, uint64_t now);
