/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Times as ResourcePolicies and pods have them. */

#include "base/str.h"

/* A duration as Go writes it ("15m", "1h30m", "1.5h"), in whole seconds. False for other texts, and
 * for more than a year. */
bool policy_time_duration(Str text, uint64_t *ret_seconds);

/* RFC 3339 in UTC in seconds since 1970; 0 for other texts. */
uint64_t policy_time_seconds(Str text);
