/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Asks the driver through NVML, in a child process (gpu/cards/child.h): the driver may hang. */

#include "base/clock.h"
#include "cli/doctor/facts.h"

/* Sets h->nvml and h->cards. library: as nvml_load() takes it. The caller has one thread. Returns 0
 * or -ENOMEM. */
int driver_facts_read(HostFacts *h, const char *library, usec_t timeout);
