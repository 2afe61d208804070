/* SPDX-License-Identifier: Apache-2.0 */
#include "local/policy_judge.h"

#include "scheduler/policy/policy_spec.h"

int policy_judge(Str object, Fault *wrong, Fault *ignored) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PolicySpec spec;
        int r = policy_spec_decode(object, &arena, &spec, wrong);

        *ignored = FAULT_NULL;
        if (r < 0)
                return r;
        if (r == 0) {
                *wrong = spec.wrong;
                *ignored = spec.ignored;
        }
        return wrong->text[0] ? fault_wrap(wrong, 0, "the policy is not in force") : 0;
}
