/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a ResourcePolicy is decoded. policy_spec.c reads the texts into a draft. policy_rules.c
 * judges it: it turns texts into numbers and enums, and finds broken rules. Each broken rule is a
 * sentence in spec.wrong, and each member without an effect is one in spec.ignored. */

#include "base/arena.h"
#include "scheduler/policy/policy_spec.h"

enum { POLICY_SHOWN = 48 }; /* bytes of a wrong value that are shown in a sentence */

/* A unit as it is written, before it is judged. */
typedef struct PolicyUnitDraft {
        Str resource;
        bool has_max;
        StringMap selects, amounts, labels, annotations;
        int64_t max;
} PolicyUnitDraft;

typedef struct PolicyDraft {
        PolicySpec spec; /* its units are made by policy_spec_judge() */
        Arena *arena;
        Str spec_text, strategy, preempt, next, timeout;
        PolicyUnitDraft *units; /* spec.n_units of them */
} PolicyDraft;

/* Judges the draft and completes d->spec. Returns 0, also where rules are broken, or -ENOMEM. */
int policy_spec_judge(PolicyDraft *d);

/* Adds a sentence to spec.wrong or spec.ignored. */
void policy_spec_complain(Fault *list, const char *format, ...) _printf_(2, 3);
