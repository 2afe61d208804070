/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/spared.h"

#include <stdio.h>
#include <string.h>

/* -1: it is not there. */
static int find(const Spared *s, const char *name) {
        for (int i = 0; i < SPARED_KERNELS; i++)
                if (strcmp(s->kernels[i].name, name) == 0)
                        return i;
        return -1;
}

static void spare(Spared *s, int at, const char *name) {
        size_t i = at >= 0 ? (size_t) at : s->next++ % SPARED_KERNELS;

        (void) snprintf(s->kernels[i].name, SPARED_NAME, "%s", name);
        s->kernels[i].runs = 0;
}

SparedVerdict spared_judge(Spared *s, const HungKernel *k, bool is_paused) {
        char name[SPARED_NAME];
        int at;

        (void) snprintf(name, sizeof name, STR_FMT " " STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(k->uuid),
                        STR_ARG(k->namespace_), STR_ARG(k->pod), STR_ARG(k->container));
        at = find(s, name);
        if (is_paused && (at >= 0 || !k->again)) {
                spare(s, at, name);
                return k->again ? SPARED_WAIT : SPARED_PAUSED;
        }
        if (at < 0)
                return k->again ? SPARED_WAIT : SPARED_HANGS;
        if (k->again && ++s->kernels[at].runs < SPARED_RUNS)
                return SPARED_WAIT;
        s->kernels[at].name[0] = '\0';
        return SPARED_HANGS;
}
