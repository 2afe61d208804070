/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/driver_release.h"

#include "gpu/rm/release.h"

/* Returns the first number of the version, 0 when there is none. */
static uint32_t branch_of(Str version) {
        size_t n = 0;
        uint32_t branch;

        while (n < version.len && version.data[n] >= '0' && version.data[n] <= '9')
                n++;
        return str_to_u32((Str){version.data, n}, &branch) ? branch : 0;
}

static void write_old(Str version, DriverRelease *ret) {
        ret->reason = DRIVER_REASON_OLD;
        ret->refused = true;
        (void) fault_set(&ret->fault, 0,
                         "driver " STR_FMT " is older than %d, the oldest that the library of isolated "
                         "containers understands: no container with an isolated slice starts",
                         STR_ARG(version), RM_RELEASE_FLOOR);
}

static void write_new(Str version, bool known_only, DriverRelease *ret) {
        ret->reason = DRIVER_REASON_NEW;
        ret->refused = known_only;
        (void) fault_set(&ret->fault, 0, "driver " STR_FMT " is newer than %d, the newest that is known: %s",
                         STR_ARG(version), RM_RELEASE_NEWEST,
                         known_only ? "no container with an isolated slice starts (--known-drivers-only)"
                                    : "slices are isolated by the numbers of that one");
}

DriverRelease driver_release_judge(Str version, bool known_only) {
        uint32_t branch = branch_of(version);
        DriverRelease release = {0};

        if (branch == 0)
                return release;
        release.reason = "";
        if (!rm_release_of(branch))
                write_old(version, &release);
        else if (branch > RM_RELEASE_NEWEST)
                write_new(version, known_only, &release);
        return release;
}

/* Refused, because the library knows by locks how long memory of the card lives (slice/pin.h). */
DriverRelease driver_release_without_locks(void) {
        DriverRelease release = {.reason = DRIVER_REASON_LOCKS, .refused = true};

        (void) fault_set(&release.fault, 0,
                         "nvidiactl cannot be locked (as in gVisor), so memory cannot be counted: no "
                         "container with an isolated slice starts");
        return release;
}
