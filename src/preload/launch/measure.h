/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Measures how long batches were on the card, by their events: corrects the charges and teaches the
 * estimates. One thread at a time measures a context; for the others it does nothing. */

#include "preload/launch/process.h"

void measure_all(ProcessState *a, Context *c);
