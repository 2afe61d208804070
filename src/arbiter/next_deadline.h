/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* When it is time to look again, should nobody ring before. Each look is a wake-up of the arbiter,
 * and what comes too late is time that the card is without work. */

#include "arbiter/engine_helpers.h"

/* ns, behind now. */
uint64_t next_deadline(const Engine *e, uint64_t now);
