/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The types of a pod's spec, and the words that some of its strings must be. The API server decodes
 * it into Go, so one number in place of a string refuses the whole object. A common mistake is
 * `value: 1` or `value: true` in env. Members that are not read here are not in the table, and may
 * have any type. */

#include <stdbool.h>

#include "base/str.h"
#include "local/apiserver/violation.h"

/* Returns 0, or with the first member that is wrong STORE_VALID_E_TYPE, or STORE_VALID_E_RULE for a
 * word that is none of those that it may be. */
int store_types_check_pod_spec(Str spec, StoreViolation *ret);

/* Says that a string must stand where a value of another type, in JSON, was found, and returns
 * STORE_VALID_E_TYPE. YAML makes a boolean of n, yes and off, and a number of 1. */
int store_types_wrong_string(StoreViolation *v, Str found);

/* Whether a member of a pod's spec, or of its containers, is in the table. */
typedef enum StoreTypesOf { STORE_TYPES_SPEC, STORE_TYPES_CONTAINER } StoreTypesOf;
bool store_types_has(StoreTypesOf of, const char *member);
