/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the machine's driver is of a release in the table of gpu/rm/release.h. Pure. */

#include <stdbool.h>

#include "base/fault.h"
#include "base/str.h"

typedef struct DriverRelease {
        /* of the condition GPUShareDriverUnsupported: static; "": the driver is supported;
         * NULL: the version is not known */
        const char *reason;
        bool refused;     /* no isolated container starts */
        char version[32]; /* the driver's version from NVML; "": not known */
        Fault fault;      /* why it is unsupported; "" when it is not */
} DriverRelease;

#define DRIVER_REASON_OLD   "DriverTooOld"
#define DRIVER_REASON_NEW   "DriverTooNew"
#define DRIVER_REASON_LOCKS "DriverFilesUnlockable"

/* version: as NVML gives it, "580.95.05"; "": not known. known_only: a driver that is newer than
 * the table is refused as well. */
DriverRelease driver_release_judge(Str version, bool known_only);

/* The judgement of a driver with files that cannot be locked: it is refused. */
DriverRelease driver_release_without_locks(void);
