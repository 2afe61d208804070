/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The types of a pod's spec, as the API server decodes it into Go: a number where a string belongs
 * refuses the whole object. The mistake that people make is `value: 1` or `value: true` in env.
 * Members that nobody here reads are not in the table, and may be anything. */

#include "base/str.h"
#include "local/apiserver/violation.h"

/* 0, or STORE_VALID_E_TYPE with the first member that has the wrong type. */
int store_types_check_pod_spec(Str spec, StoreViolation *ret);
