/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The version of the driver whose answers are given. Only the indices of GET_SURFACE_INFO depend on
 * it so far. */

#include "gpu/rm/release.h"

#define SIM_VERSION "595.45.04" /* the layouts are its, whatever the version */

typedef struct SimRelease {
        char version[64]; /* as CHECK_VERSION tells it */
        const RmRelease *facts;
} SimRelease;

/* 0, or -EINVAL: not a version such as 550.163.01, or older than 535. */
int sim_release_parse(const char *version, SimRelease *ret);
