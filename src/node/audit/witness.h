/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whose is a pid that the driver names? Memory lives as long as the driver's file is open, which a
 * process can leave to others (fork, SCM_RIGHTS) and end: the driver goes on naming its pid. So
 * what is read of a process while it lives is remembered as long as the driver names it, with its
 * start time: a pid that somebody else has by now is nobody's, neither his nor the old one's,
 * unless both are of the same container. Not remembered is who ended before the first census that
 * named him. */

#include "base/cleanup.h"
#include "node/kubelet/owner.h"

typedef enum WitnessWord {
        WITNESS_NOBODY, /* in no pod, or not known */
        WITNESS_LIVES,
        WITNESS_ENDED, /* the owner is remembered */
} WitnessWord;

typedef struct Witness {
        struct WitnessPid *pids;
        const char *proc; /* outlives it */
} Witness;

void witness_done(Witness *w);

void witness_begin(Witness *w); /* of a census */
/* *ret is set unless NOBODY. */
WitnessWord witness_ask(Witness *w, uint32_t pid, ProcessOwner *ret);
void witness_end(Witness *w); /* whom the driver names no longer is forgotten */
