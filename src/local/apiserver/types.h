/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The types of a pod's spec. The API server decodes it into Go, so one number in place of a string
 * refuses the whole object. A common mistake is `value: 1` or `value: true` in env. Members that
 * are not read here are not in the table, and may have any type. */

#include "base/str.h"
#include "local/apiserver/violation.h"

/* Returns 0, or STORE_VALID_E_TYPE with the first member of a wrong type. */
int store_types_check_pod_spec(Str spec, StoreViolation *ret);
