/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gathers the facts of this machine that lie in files: nothing is asked that can hang. */

#include "cli/doctor/facts.h"

/* Fills in h, of which root, driver and simulated are set. A part that cannot be read becomes a
 * fact that says why. Returns 0 or -ENOMEM. */
int host_facts_read(HostFacts *h);

/* Whether one of the paths, separated by colons, exists below root. */
bool host_facts_exist(const char *root, const char *path);
