/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/rm/rm.h"
#include "sim/nvml/nvml.h"
#include "sim/user/dmem.h"
#include "sim/user/limits.h"

/* The two calls of 615's library, with the structures of NVML's reference. Their return codes are
 * not documented. Others have seen 4 without the right, 6 for a cgroup without dmem files, and 17
 * for a path that is gone. 3 stands for no limit as well as for no account. */

enum { PATH_SIZE = 4096 };

static NvmlReturn from_status(uint32_t status) {
        switch (status) {
        case RM_ERR_INSUFFICIENT_PERMISSIONS:
                return NVML_ERROR_NO_PERMISSION;
        case RM_ERR_OBJECT_NOT_FOUND:
                return NVML_ERROR_NOT_FOUND;
        case RM_ERR_INVALID_LIMIT:
        case RM_ERR_INVALID_ARGUMENT:
                return NVML_ERROR_INVALID_ARGUMENT;
        default:
                return nvml_from_status(status);
        }
}

/* As NVML looks at it, the files decide where there are some. */
static NvmlReturn enter(NvmlHandle h, const char *path, DriverCard **ret_card, SimLimitsImpl *ret_impl,
                        int *ret_dir) {
        NvmlReturn r = nvml_enter(h, ret_card);

        if (r != NVML_SUCCESS)
                return r;
        if (!path)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (strtoul(nvml.driver.version, NULL, 10) < SIM_RELEASE_WITH_LIMITS)
                return NVML_ERROR_FUNCTION_NOT_FOUND; /* the library of that driver has no such symbol */
        r = from_status(driver_control(&nvml.driver, nvml.driver.client, SIM_CTRL_LIMITS_IMPL, ret_impl,
                                       sizeof *ret_impl));
        if (r != NVML_SUCCESS)
                return r;
        if (ret_impl->kind == SIM_LIMITS_NONE)
                return NVML_ERROR_NOT_SUPPORTED;
        *ret_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return *ret_dir < 0 ? NVML_ERROR_OPERATING_SYSTEM : NVML_SUCCESS;
}

/* The kernel ignores a limit below the use: page_counter_set_max() answers EBUSY, and dmem.c does
 * not pass that on. ALIQUOT_SIM_LOWERS: a kernel that sets it. */
static NvmlReturn set_dmem(const char *path, const DriverCard *card, const NvmlSetLimits *p) {
        char file[PATH_SIZE], region[DMEM_REGION];
        uint64_t used = 0;

        if (geteuid() != 0)
                return NVML_ERROR_NO_PERMISSION;
        dmem_region(card->gpu, region);
        (void) snprintf(file, sizeof file, "%s/dmem.current", path); /* a longer path does not exist */
        if (dmem_read(file, region, &used) && used != UINT64_MAX && used > p->hard &&
            !secure_getenv("ALIQUOT_SIM_LOWERS"))
                return NVML_SUCCESS;
        (void) snprintf(file, sizeof file, "%s/dmem.max", path); /* as above */
        return dmem_write(file, region, p->hard) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

NVML_API NvmlReturn nvmlDeviceSetMemoryLimits_v1(NvmlHandle h, NvmlSetLimits *p) {
        LOCKED;
        _cleanup_close_ int dir = -1;
        SimLimitsImpl impl = {0};
        SimSetLimits set;
        DriverCard *card;
        NvmlReturn r = p ? enter(h, p->path, &card, &impl, &dir) : NVML_ERROR_INVALID_ARGUMENT;

        if (r != NVML_SUCCESS)
                return r;
        if (impl.kind == SIM_LIMITS_DMEM)
                return set_dmem(p->path, card, p);
        set = (SimSetLimits){.cgroup = dir, .gpu = card->gpu, .soft = p->soft, .hard = p->hard};
        return from_status(
                driver_control(&nvml.driver, nvml.driver.client, SIM_CTRL_SET_LIMITS, &set, sizeof set));
}

/* Own files, else those of the nearest ancestor. */
static NvmlReturn get_dmem(const char *path, const DriverCard *card, NvmlGetLimits *p) {
        char file[PATH_SIZE], region[DMEM_REGION];
        uint64_t hard, used = 0;
        size_t len = strlen(path);

        dmem_region(card->gpu, region);
        for (; len > 0; len = (size_t) ((const char *) memrchr(path, '/', len) - path)) {
                (void) snprintf(file, sizeof file, "%.*s/dmem.max", (int) len, path); /* as above */
                if (!dmem_read(file, region, &hard))
                        continue;
                (void) snprintf(file, sizeof file, "%.*s/dmem.current", (int) len, path); /* as above */
                if (!dmem_read(file, region, &used) || used == UINT64_MAX)
                        used = 0;
                p->soft = 0;
                p->hard = hard;
                p->used = used;
                return NVML_SUCCESS;
        }
        return NVML_ERROR_NOT_SUPPORTED;
}

NVML_API NvmlReturn nvmlDeviceGetMemoryLimits_v1(NvmlHandle h, NvmlGetLimits *p) {
        LOCKED;
        _cleanup_close_ int dir = -1;
        SimLimitsImpl impl = {0};
        SimGetLimits get = {0};
        DriverCard *card;
        NvmlReturn r = p ? enter(h, p->path, &card, &impl, &dir) : NVML_ERROR_INVALID_ARGUMENT;

        if (r != NVML_SUCCESS)
                return r;
        if (impl.kind == SIM_LIMITS_DMEM)
                return p->path[0] == '/' ? get_dmem(p->path, card, p) : NVML_ERROR_INVALID_ARGUMENT;
        get.cgroup = dir;
        r = from_status(
                driver_control(&nvml.driver, nvml.driver.client, SIM_CTRL_GET_LIMITS, &get, sizeof get));
        for (uint32_t i = 0; r == NVML_SUCCESS && i < get.n && i < SIM_LIMITS_MAX; i++)
                if (get.list[i].gpu == card->gpu) {
                        p->soft = get.list[i].soft;
                        p->hard = get.list[i].hard;
                        p->used = get.list[i].used;
                        return NVML_SUCCESS;
                }
        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}
