/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/process_utilization.h"

#include <stdlib.h>

enum { PERCENT = 100 };

#define CLOSE (10 * USEC_PER_SEC) /* clocks that differ by less count as equal */
#define LONG  (60 * USEC_PER_SEC) /* percentages of a longer time are not used */

/* Sorts by pid, the newest sample first. */
static int compare(const void *a, const void *b) {
        const NvmlUse *x = a, *y = b;

        if (x->pid != y->pid)
                return x->pid < y->pid ? -1 : 1;
        return x->time > y->time ? -1 : x->time < y->time;
}

static uint64_t newest_of(const NvmlUse *samples, unsigned n) {
        uint64_t newest = 0;

        for (unsigned i = 0; i < n; i++)
                if (samples[i].time > newest)
                        newest = samples[i].time;
        return newest;
}

static bool is_close(uint64_t a, uint64_t b) {
        return (a > b ? a - b : b - a) <= CLOSE;
}

/* Drops old samples, invalid percentages and samples without a process: drivers fill arrays with
 * zero entries. */
static unsigned drop_invalid(NvmlUse *samples, unsigned n, uint64_t since) {
        unsigned kept = 0;

        if (n > 0)
                qsort(samples, n, sizeof *samples, compare);
        for (unsigned i = 0; i < n; i++) {
                const NvmlUse *s = &samples[i];
                bool again = i > 0 && samples[i - 1].pid == s->pid;

                if (!again && s->pid > 0 && s->time > since && s->sm > 0 && s->sm <= PERCENT)
                        samples[kept++] = *s;
        }
        return kept;
}

unsigned process_utilization_update(ProcessUtilization *m, NvmlUse *samples, unsigned n, usec_t asked,
                                    uint64_t wall, uint64_t *ret_nsec) {
        uint64_t newest = newest_of(samples, n), since = m->since;
        bool first = m->asked == 0 || asked < m->asked || asked - m->asked > LONG;

        *ret_nsec = first ? 0 : (asked - m->asked) * NSEC_PER_USEC;
        m->asked = asked;
        if (newest > 0) {
                /* even when it is older than requested: the driver's clock was set back */
                m->since = newest;
                m->agrees = is_close(newest, wall);
        } else if (m->agrees)
                /* the idle time until now must not count as part of the next sample's time */
                m->since = wall;
        return first ? 0 : drop_invalid(samples, n, since);
}
