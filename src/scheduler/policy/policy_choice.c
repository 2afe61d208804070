/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/policy_choice.h"

bool policy_choice_is_full(const PolicyUnit *unit, const PolicyUnitState *state) {
        return (unit->has_max && state->pods >= unit->max) || state->over_amount;
}

static bool is_limited(const PolicyUnit *unit) {
        return unit->has_max || unit->n_max_amounts > 0;
}

/* Whether a pod without room in this unit waits there until a timeout. */
static bool waits_for_time(const PolicyUnit *unit, const PolicyUnitState *state) {
        return !policy_choice_is_full(unit, state) && (is_limited(unit) || unit->waits);
}

/* Whether a pod without room in unit k may look at the next unit. n_waits: number of units up to k
 * in which the pod waits for a timeout each. *ret_wait: seconds left, if it waits for the
 * timeout. */
static bool may_go_on(const PolicySpec *spec, size_t k, const PolicyUnitState *state, uint64_t waited,
                      uint64_t n_waits, uint64_t *ret_wait) {
        const PolicyUnit *unit = &spec->units[k];
        bool full = policy_choice_is_full(unit, state);
        uint64_t until = n_waits * spec->timeout;

        switch (spec->next) {
        case POLICY_NEXT_MAX:
                return full || !is_limited(unit);
        case POLICY_NEXT_LACK_AND_NO_TERMINATING:
                return !state->terminating;
        case POLICY_NEXT_TIMEOUT_OR_MAX:
                if (!waits_for_time(unit, state) || waited >= until)
                        return true;
                *ret_wait = until - waited;
                return false;
        default:
                return true;
        }
}

static bool should_preempt(const PolicySpec *spec, size_t k, const PolicyUnitState *state,
                           const PolicyAsker *asker) {
        return spec->preempts_before_next && asker->may_preempt && asker->preempted <= k &&
               state->has_nodes && !policy_choice_is_full(&spec->units[k], state);
}

PolicyChoice policy_choice_make(const PolicySpec *spec, const PolicyUnitState *states,
                                const PolicyAsker *asker) {
        PolicyChoice choice = {.verdict = POLICY_NONE, .unit = spec->n_units};
        uint64_t n_waits = 0;

        for (size_t k = 0; k < spec->n_units; k++) {
                const PolicyUnitState *state = &states[k];

                if (state->has_room && !policy_choice_is_full(&spec->units[k], state))
                        return (PolicyChoice){.verdict = POLICY_OPEN, .unit = k};
                if (should_preempt(spec, k, state, asker))
                        return (PolicyChoice){.verdict = POLICY_PREEMPTS, .unit = k};
                n_waits += waits_for_time(&spec->units[k], state);
                if (!may_go_on(spec, k, state, asker->waited, n_waits, &choice.wait)) {
                        choice.verdict = POLICY_WAITS;
                        choice.unit = k;
                        return choice;
                }
        }
        return choice;
}
