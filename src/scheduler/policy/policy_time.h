/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Durations as ResourcePolicies have them. */

#include "base/str.h"

/* Reads a duration as Go writes it ("15m", "1h30m", "1.5h") into whole seconds. False for other
 * texts, and for more than a year. */
bool policy_time_duration(Str text, uint64_t *ret_seconds);
