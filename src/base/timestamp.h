/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* RFC 3339 in UTC, in the two forms of meta/v1: Time (whole seconds) and MicroTime (always six
 * digits). */

#include "base/str.h"

typedef struct Timestamp {
        char text[32];
} Timestamp;

Timestamp timestamp_seconds(uint64_t realtime_nsec);
Timestamp timestamp_micro(uint64_t realtime_nsec);

/* Whole seconds since 1970 of either form; what follows the seconds is not read. 0 for other texts,
 * and for times before 1970. */
uint64_t timestamp_read(Str text);
