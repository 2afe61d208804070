/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Prints what the checks found. */

#include "cli/doctor/doctor.h"

/* Exit statuses of `aliquot doctor` (docs/reference/reference.md). */
enum { DIAGNOSIS_OK = 0, DIAGNOSIS_FAILED = 1, DIAGNOSIS_WARNED = 4 };

/* Judges the facts by the checks of these scopes, and prints text or JSON to standard output.
 * Returns the exit status, or negative errno. */
int diagnosis_print(const Facts *f, unsigned scopes, bool json);
