/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/timestamp.h"

#include <stdio.h>
#include <time.h>

static struct tm utc_of(uint64_t realtime_nsec) {
        time_t seconds = (time_t) (realtime_nsec / 1000000000);
        struct tm utc = {.tm_mday = 1, .tm_year = 70};

        /* fails only after the year 2^31; 1970 is then used */
        (void) gmtime_r(&seconds, &utc);
        return utc;
}

Timestamp timestamp_seconds(uint64_t realtime_nsec) {
        struct tm utc = utc_of(realtime_nsec);
        Timestamp t;

        (void) strftime(t.text, sizeof t.text, "%Y-%m-%dT%H:%M:%SZ", &utc);
        return t;
}

Timestamp timestamp_micro(uint64_t realtime_nsec) {
        struct tm utc = utc_of(realtime_nsec);
        Timestamp t;
        size_t n = strftime(t.text, sizeof t.text, "%Y-%m-%dT%H:%M:%S", &utc);

        (void) snprintf(t.text + n, sizeof t.text - n, ".%06uZ", (unsigned) (realtime_nsec / 1000 % 1000000));
        return t;
}
