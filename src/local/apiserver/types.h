/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The types of a pod's spec. The API server decodes it into Go, so one number in place of a string
 * refuses the whole object. A common mistake is `value: 1` or `value: true` in env. Members that
 * are not read here are not in the table, and may have any type. */

#include "base/str.h"
#include "local/apiserver/violation.h"
#include "wire/json.h"

/* Returns 0, or STORE_VALID_E_TYPE with the first member of a wrong type. */
int store_types_check_pod_spec(Str spec, StoreViolation *ret);

/* Says that a string must stand where a value of another type was found, and returns
 * STORE_VALID_E_TYPE. YAML makes a boolean of n, yes and off, and a number of 1. */
int store_types_wrong_string(StoreViolation *v, JsonType found);
