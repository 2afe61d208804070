/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timestamp.h"

#include <stdio.h>
#include <string.h>
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

uint64_t timestamp_read(Str text) {
        struct tm tm = {0};
        char copy[sizeof "2026-11-21T00:00:00"];
        time_t t;

        if (text.len < sizeof copy - 1)
                return 0;
        memcpy(copy, text.data, sizeof copy - 1);
        copy[sizeof copy - 1] = '\0';
        if (!strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm))
                return 0;
        t = timegm(&tm);
        return t > 0 ? (uint64_t) t : 0;
}
