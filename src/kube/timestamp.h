/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* RFC 3339 in UTC, in the two forms of meta/v1: Time (whole seconds) and MicroTime (always six
 * digits). */

#include <stdint.h>

typedef struct Timestamp {
        char text[32];
} Timestamp;

Timestamp timestamp_seconds(uint64_t realtime_nsec);
Timestamp timestamp_micro(uint64_t realtime_nsec);
