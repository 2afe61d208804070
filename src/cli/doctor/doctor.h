/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The table of all checks, and their judgement of the facts. */

#include "cli/doctor/gather.h"

typedef struct DoctorCheck {
        const char *name, *asks;
        Scope scope;
        void (*judge)(const Facts *f, Finding *ret);
} DoctorCheck;

extern const DoctorCheck doctor_checks[];
extern const size_t doctor_n_checks;

/* Judges the facts by one check. Pure. */
void doctor_judge(const DoctorCheck *check, const Facts *f, Finding *ret);
