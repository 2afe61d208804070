/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/hung_filter.h"

#include <stdio.h>
#include <string.h>

/* The index of a kernel that was reported as paused; -1: none. */
static int find(const HungFilter *f, const char *name) {
        for (int i = 0; i < HUNG_FILTER_KERNELS; i++)
                if (strcmp(f->kernels[i].name, name) == 0)
                        return i;
        return -1;
}

static void keep(HungFilter *f, int at, const char *name) {
        size_t i = at >= 0 ? (size_t) at : f->next++ % HUNG_FILTER_KERNELS;

        (void) snprintf(f->kernels[i].name, HUNG_FILTER_NAME, "%s", name);
        f->kernels[i].runs = 0;
}

HungVerdict hung_filter_judge(HungFilter *f, const HungKernel *k, bool is_paused) {
        char name[HUNG_FILTER_NAME];
        int at;

        (void) snprintf(name, sizeof name, STR_FMT " " STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(k->uuid),
                        STR_ARG(k->namespace_), STR_ARG(k->pod), STR_ARG(k->container));
        at = find(f, name);
        if (is_paused && (at >= 0 || !k->again)) {
                keep(f, at, name);
                return k->again ? HUNG_VERDICT_WAIT : HUNG_VERDICT_PAUSED;
        }
        if (at < 0)
                return k->again ? HUNG_VERDICT_WAIT : HUNG_VERDICT_HUNG;
        if (k->again && ++f->kernels[at].runs < HUNG_FILTER_RUNS)
                return HUNG_VERDICT_WAIT;
        f->kernels[at].name[0] = '\0';
        return HUNG_VERDICT_HUNG;
}
