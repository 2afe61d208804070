/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "gpu/rm/query.h"
#include "sim/nvml/nvml.h"

/* The processes on a card: those with a channel group, and those that hold its memory without one,
 * as a program may that calls the driver directly. */

typedef struct Found {
        unsigned n;
        RmPidInfo list[RM_PIDS_MAX];
} Found;

static bool is_found(const Found *f, uint32_t pid) {
        for (unsigned i = 0; i < f->n; i++)
                if (f->list[i].pid == pid)
                        return true;
        return false;
}

static uint32_t find_class(const DriverCard *c, uint32_t class_, Found *f) {
        RmPids p = {.type = RM_PIDS_BY_CLASS, .id = class_};
        uint32_t status = driver_control(&nvml.driver, c->subdevice, RM_CTRL_PIDS, &p, sizeof p);

        for (uint32_t i = 0; status == RM_OK && i < p.n && i < RM_PIDS_MAX && f->n < RM_PIDS_MAX; i++)
                if (!is_found(f, p.pids[i]))
                        f->list[f->n++] = (RmPidInfo){.pid = p.pids[i], .index = RM_PID_INFO_VIDMEM};
        return status;
}

/* The driver answers about this many at once. */
static uint32_t ask_memory(const DriverCard *c, Found *f) {
        static RmPidInfos p; /* 14 KiB, under the lock */

        for (unsigned at = 0; at < f->n; at += RM_PID_INFO_MAX) {
                uint32_t n = f->n - at < RM_PID_INFO_MAX ? f->n - at : RM_PID_INFO_MAX, status;

                memset(&p, 0, sizeof p);
                p.n = n;
                memcpy(p.list, &f->list[at], n * sizeof *p.list);
                status = driver_control(&nvml.driver, c->subdevice, RM_CTRL_PID_INFO, &p, sizeof p);
                if (status != RM_OK)
                        return status;
                memcpy(&f->list[at], p.list, n * sizeof *p.list);
        }
        return RM_OK;
}

static NvmlReturn find(NvmlHandle h, Found *f) {
        DriverCard *c;
        NvmlReturn r = nvml_enter(h, &c);
        uint32_t status;

        if (r != NVML_SUCCESS)
                return r;
        f->n = 0;
        status = find_class(c, RM_CLASS_CHANNEL_GROUP, f);
        if (status == RM_OK)
                status = find_class(c, RM_CLASS_MEMORY_LOCAL, f);
        if (status == RM_OK)
                status = ask_memory(c, f);
        return nvml_from_status(status);
}

static unsigned long long memory_of(const RmPidInfo *p) {
        return p->result == RM_OK ? p->exclusive + p->shared_owned + p->shared_duped
                                  : UINT64_MAX; /* not available */
}

/* count: in, the room; out, the number. */
static NvmlReturn list(NvmlHandle h, unsigned *count, NvmlProcess2 *ret, NvmlProcess1 *ret_old) {
        static Found f; /* 67 KiB, under the lock */
        NvmlReturn r;
        unsigned room;

        if (!count || (*count > 0 && !ret && !ret_old))
                return NVML_ERROR_INVALID_ARGUMENT;
        r = find(h, &f);
        if (r != NVML_SUCCESS)
                return r;
        room = *count;
        *count = f.n;
        if (f.n > room)
                return NVML_ERROR_INSUFFICIENT_SIZE;
        for (unsigned i = 0; i < f.n; i++)
                if (ret)
                        ret[i] = (NvmlProcess2){f.list[i].pid, memory_of(&f.list[i]), UINT32_MAX, UINT32_MAX};
                else
                        ret_old[i] = (NvmlProcess1){f.list[i].pid, memory_of(&f.list[i])};
        return NVML_SUCCESS;
}

NVML_API NvmlReturn nvmlDeviceGetComputeRunningProcesses_v3(NvmlHandle h, unsigned *count,
                                                            NvmlProcess2 *ret) {
        LOCKED;

        return list(h, count, ret, NULL);
}

NVML_API NvmlReturn nvmlDeviceGetComputeRunningProcesses_v2(NvmlHandle h, unsigned *count,
                                                            NvmlProcess2 *ret) {
        LOCKED;

        return list(h, count, ret, NULL);
}

NVML_API NvmlReturn nvmlDeviceGetComputeRunningProcesses(NvmlHandle h, unsigned *count, NvmlProcess1 *ret) {
        LOCKED;

        return list(h, count, NULL, ret);
}

/* A simulated card has no graphics processes, and no MPS server runs. */
static NvmlReturn none(NvmlHandle h, unsigned *count) {
        DriverCard *c;
        NvmlReturn r = nvml_enter(h, &c);

        if (r != NVML_SUCCESS || !count)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        *count = 0;
        return NVML_SUCCESS;
}

#define NONE(name)                                                                                           \
        NVML_API NvmlReturn name(NvmlHandle h, unsigned *count, void *ret) {                                 \
                LOCKED;                                                                                      \
                return none(h, count);                                                                       \
        }

NONE(nvmlDeviceGetGraphicsRunningProcesses)
NONE(nvmlDeviceGetGraphicsRunningProcesses_v2)
NONE(nvmlDeviceGetGraphicsRunningProcesses_v3)
NONE(nvmlDeviceGetMPSComputeRunningProcesses)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v3)
