/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of admission.h share: one launch's request, its check (admission_check.c), the
 * wait until it is admitted (admission_wait.c), and the current context (admission_context.c). */

#include "preload/launch/admission.h"
#include "preload/launch/tunables.h"

typedef enum Admission { PASS, WAIT_WINDOW, WAIT_LATE, WAIT_DEPTH, WAIT_BALANCE } Admission;

typedef struct LaunchRequest { /* one launch that is to be admitted */
        ProcessState *process;
        Context *context;
        const SliceLimits *limits;
        ProcessUsage *usage;
        uint32_t card;
        uint64_t nsec, now, held_since; /* held_since: it waits since then; 0: not yet */
        uint64_t known;                 /* measured part of nsec; 0: none */
        CuHandle stream;
        uint32_t window, wake;       /* the words when admission was checked */
        uint64_t crowded_since;      /* too many launches in flight since then; 0: there are not */
        uint64_t backlog;            /* ns in flight that this window does not count */
        uint32_t max_launches, room; /* launches in flight: by the estimate; beside the backlog */
        bool copy;                   /* a copy or fill */
        bool cold;                   /* the estimate is uncertain */
        bool fills;                  /* no further launch fits */
} LaunchRequest;

/* ---- limits of a slice ---- */

static inline uint32_t admission_word(const uint32_t *p) {
        return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* The container's own percentage, without an arbiter; 0: no limit. */
static inline uint32_t admission_percent(const SliceLimits *l) {
        uint32_t policy = admission_word(&l->policy), percent = admission_word(&l->core_percent);

        if (policy == COMPUTE_NATIVE)
                return 0;
        if (policy == COMPUTE_FAIR && admission_word(&l->max_inst) > 0)
                percent = 100 / admission_word(&l->max_inst);
        return percent < 100 ? percent : 0;
}

/* Whether the compute of the slice is limited now. */
static inline bool admission_is_limited(const SliceLimits *l) {
        if (atomic_load_explicit(&l->schedule.flags, memory_order_relaxed) & SCHED_F_GATED)
                return true;
        return !(admission_word(&l->flags) & SLICE_FLAG_OPEN) && admission_percent(l) > 0;
}

/* Only MAX_BLOCKED_NS of work may be reported as blocked, because it runs in another tenant's
 * window when the host function returns. */
static inline bool admission_may_block(uint64_t in_flight) {
        return in_flight <= MAX_BLOCKED_NS;
}

/* ---- functions ---- */

/* Checks one launch against the window, or without an arbiter against the balance. PASS: it is
 * counted as in flight. Otherwise: what it has to wait for. */
Admission admission_check(LaunchRequest *k);

/* Waits until the launch is admitted, and fills in what was found. stream: for queries. */
void admission_wait(AdmittedLaunch *l, CuHandle stream);

/* Makes a context current for our own calls; false: the driver refused. pop: undoes it if
 * pushed. */
bool admission_push_context(CuHandle context);
void admission_pop_context(bool pushed);
