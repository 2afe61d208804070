/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "sim/nvml/nvml.h"

/* A caller can wait for events, but none comes: a simulated card has no faults of its own. */

typedef struct NvmlSet {
        unsigned cards;
} NvmlSet;

NVML_API NvmlReturn nvmlEventSetCreate(NvmlSet **ret) {
        LOCKED;
        NvmlReturn r = nvml_ready();

        if (r != NVML_SUCCESS || !ret)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        *ret = calloc(1, sizeof **ret);
        return *ret ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

NVML_API NvmlReturn nvmlEventSetFree(NvmlSet *set) {
        LOCKED;
        NvmlReturn r = nvml_ready();

        free(set);
        return r;
}

NVML_API NvmlReturn nvmlDeviceRegisterEvents(NvmlHandle h, unsigned long long types, NvmlSet *set) {
        LOCKED;
        DriverCard *c;
        NvmlReturn r = nvml_enter(h, &c);

        if (r != NVML_SUCCESS || !set)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        set->cards++;
        return NVML_SUCCESS;
}

NVML_API NvmlReturn nvmlDeviceGetSupportedEventTypes(NvmlHandle h, unsigned long long *ret) {
        LOCKED;
        DriverCard *c;
        NvmlReturn r = nvml_enter(h, &c);

        if (r != NVML_SUCCESS || !ret)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        *ret = 8; /* nvmlEventTypeXidCriticalError */
        return NVML_SUCCESS;
}

/* Without the lock, so that other threads continue. */
static NvmlReturn wait_in_vain(const NvmlSet *set, unsigned msec) {
        const struct timespec t = {.tv_sec = msec / 1000, .tv_nsec = (long) (msec % 1000) * 1000000};

        if (!set)
                return NVML_ERROR_INVALID_ARGUMENT;
        (void) nanosleep(&t, NULL);
        return NVML_ERROR_TIMEOUT;
}

NVML_API NvmlReturn nvmlEventSetWait_v2(NvmlSet *set, NvmlEventData *ret, unsigned msec) {
        return wait_in_vain(set, msec);
}

NVML_API NvmlReturn nvmlEventSetWait(NvmlSet *set, NvmlEventData *ret, unsigned msec) {
        return wait_in_vain(set, msec);
}
