/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the machine's driver is one whose numbers we have (gpu/rm/release.h). Pure. */

#include <stdbool.h>

#include "base/fault.h"
#include "base/str.h"

typedef struct DriverRelease {
        /* of the condition GPUShareDriverUnsupported: static; "": the driver is supported;
         * NULL: the version is not known */
        const char *reason;
        bool refused;     /* no isolated container starts */
        char version[32]; /* as NVML gives it; "": not known */
        Fault fault;      /* what is the matter; "" when nothing is */
} DriverRelease;

#define DRIVER_REASON_OLD   "DriverTooOld"
#define DRIVER_REASON_NEW   "DriverTooNew"
#define DRIVER_REASON_LOCKS "DriverFilesUnlockable"

/* version: as NVML gives it, "580.95.05"; "": not known. known_only: a driver that is newer than
 * the table is refused as well. */
DriverRelease driver_release_judge(Str version, bool known_only);

/* Of a driver whose files cannot be locked: refused. */
DriverRelease driver_release_without_locks(void);
