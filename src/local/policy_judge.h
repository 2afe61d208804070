/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the scheduler says of a ResourcePolicy (scheduler/policy/policy_spec.h), as in its Events
 * ResourcePolicyInvalid and ResourcePolicyIgnored. It stands apart from judges.c because the names
 * of wire/json.h and of jansson cannot be used in one file. */

#include "base/fault.h"
#include "base/str.h"

/* Judges a ResourcePolicy. object: its JSON. *wrong: why it is not in force; *ignored: what is in
 * it and has no effect; "" where there is nothing to say. Returns 0 or -ENOMEM. */
int policy_judge(Str object, Fault *wrong, Fault *ignored);
