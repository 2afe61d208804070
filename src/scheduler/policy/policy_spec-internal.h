/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a ResourcePolicy is read. policy_spec.c decodes the texts into a draft. policy_rules.c judges
 * it: it makes numbers and choices of the texts, and finds the rules that are broken. A broken rule
 * is a sentence in spec.wrong, and a member without an effect is one in spec.ignored. */

#include "base/arena.h"
#include "scheduler/policy/policy_spec.h"

enum { POLICY_SHOWN = 48 }; /* bytes of a wrong value that a sentence shows */

/* The texts of a unit before they are judged. */
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

/* Completes d->spec. Returns 0, also where rules are broken, or -ENOMEM. */
int policy_spec_judge(PolicyDraft *d);

/* Adds a sentence to spec.wrong or spec.ignored. */
void policy_spec_complain(Fault *list, const char *format, ...) _printf_(2, 3);
