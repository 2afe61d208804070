/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "gpu/rm/query.h"
#include "sim/nvml/nvml.h"

/* ---- handles ---- */

NVML_API NvmlReturn nvmlDeviceGetCount_v2(unsigned *ret) {
        LOCKED;
        NvmlReturn r = nvml_ready();

        if (r != NVML_SUCCESS || !ret)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        *ret = nvml.driver.n;
        return NVML_SUCCESS;
}

NVML_API NvmlReturn nvmlDeviceGetCount(unsigned *ret) {
        return nvmlDeviceGetCount_v2(ret);
}

NVML_API NvmlReturn nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlHandle *ret) {
        LOCKED;
        NvmlReturn r = nvml_ready();

        if (r != NVML_SUCCESS)
                return r;
        if (!ret || index >= nvml.driver.n)
                return NVML_ERROR_INVALID_ARGUMENT;
        *ret = &nvml.cards[index];
        return NVML_SUCCESS;
}

NVML_API NvmlReturn nvmlDeviceGetHandleByIndex(unsigned index, NvmlHandle *ret) {
        return nvmlDeviceGetHandleByIndex_v2(index, ret);
}

NVML_API NvmlReturn nvmlDeviceGetHandleByUUID(const char *uuid, NvmlHandle *ret) {
        LOCKED;
        NvmlReturn r = nvml_ready();

        if (r != NVML_SUCCESS)
                return r;
        if (!uuid || !ret)
                return NVML_ERROR_INVALID_ARGUMENT;
        for (unsigned i = 0; i < nvml.driver.n; i++)
                if (strcmp(nvml.driver.cards[i].uuid, uuid) == 0) {
                        *ret = &nvml.cards[i];
                        return NVML_SUCCESS;
                }
        return NVML_ERROR_NOT_FOUND;
}

/* "[domain:]bus:device.function", hexadecimal; the driver's number of a card is its address. */
NVML_API NvmlReturn nvmlDeviceGetHandleByPciBusId_v2(const char *text, NvmlHandle *ret) {
        LOCKED;
        unsigned domain = 0, bus = 0, device = 0;
        NvmlReturn r = nvml_ready();

        if (r != NVML_SUCCESS)
                return r;
        if (!text || !ret)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (sscanf(text, "%x:%x:%x", &domain, &bus, &device) !=
            3) { /* NOLINT(cert-err34-c): numbers of any size */
                domain = 0;
                if (sscanf(text, "%x:%x", &bus, &device) != 2) /* NOLINT(cert-err34-c) */
                        return NVML_ERROR_INVALID_ARGUMENT;
        }
        for (unsigned i = 0; i < nvml.driver.n; i++)
                if (nvml.driver.cards[i].gpu == (domain << 16 | bus << 8 | device)) {
                        *ret = &nvml.cards[i];
                        return NVML_SUCCESS;
                }
        return NVML_ERROR_NOT_FOUND;
}

NVML_API NvmlReturn nvmlDeviceGetHandleByPciBusId(const char *text, NvmlHandle *ret) {
        return nvmlDeviceGetHandleByPciBusId_v2(text, ret);
}

/* ---- what a card is ---- */

NVML_API NvmlReturn nvmlDeviceGetName(NvmlHandle h, char *ret, unsigned size) {
        LOCKED;
        DriverCard *c;
        NvmlReturn r = nvml_enter(h, &c);

        return r == NVML_SUCCESS ? nvml_put(ret, size, c->name) : r;
}

NVML_API NvmlReturn nvmlDeviceGetUUID(NvmlHandle h, char *ret, unsigned size) {
        LOCKED;
        DriverCard *c;
        NvmlReturn r = nvml_enter(h, &c);

        return r == NVML_SUCCESS ? nvml_put(ret, size, c->uuid) : r;
}

static NvmlReturn get_number(NvmlHandle h, unsigned *ret, bool minor) {
        DriverCard *c;
        NvmlReturn r = nvml_enter(h, &c);

        if (r != NVML_SUCCESS || !ret)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        *ret = minor ? c->minor : h->index;
        return NVML_SUCCESS;
}

NVML_API NvmlReturn nvmlDeviceGetMinorNumber(NvmlHandle h, unsigned *ret) {
        LOCKED;

        return get_number(h, ret, true);
}

NVML_API NvmlReturn nvmlDeviceGetIndex(NvmlHandle h, unsigned *ret) {
        LOCKED;

        return get_number(h, ret, false);
}

static NvmlReturn get_pci(NvmlHandle h, NvmlPci3 *ret) {
        DriverCard *c;
        NvmlReturn r = nvml_enter(h, &c);

        if (r != NVML_SUCCESS || !ret)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        *ret = (NvmlPci3){.domain = c->gpu >> 16, .bus = c->gpu >> 8 & 0xff, .device = c->gpu & 0xff};
        (void) snprintf(ret->bus_id_legacy, sizeof ret->bus_id_legacy, "%04X:%02X:%02X.0",
                        ret->domain & 0xffff, ret->bus & 0xff, ret->device & 0xff);
        (void) snprintf(ret->bus_id, sizeof ret->bus_id, "%08X:%02X:%02X.0", ret->domain, ret->bus & 0xff,
                        ret->device & 0xff);
        return NVML_SUCCESS;
}

NVML_API NvmlReturn nvmlDeviceGetPciInfo_v3(NvmlHandle h, NvmlPci3 *ret) {
        LOCKED;

        return get_pci(h, ret);
}

NVML_API NvmlReturn nvmlDeviceGetPciInfo_v2(NvmlHandle h, NvmlPci1 *ret) {
        LOCKED;
        NvmlPci3 p;
        NvmlReturn r = get_pci(h, &p);

        if (r != NVML_SUCCESS || !ret)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        memcpy(ret, &p, offsetof(NvmlPci1, reserved));
        return NVML_SUCCESS;
}

NVML_API NvmlReturn nvmlDeviceGetPciInfo(NvmlHandle h, NvmlPci1 *ret) {
        return nvmlDeviceGetPciInfo_v2(h, ret);
}

/* ---- memory ---- */

static NvmlReturn get_memory(NvmlHandle h, DriverMemory *ret) {
        DriverCard *c;
        NvmlReturn r = nvml_enter(h, &c);

        return r == NVML_SUCCESS ? nvml_from_status(driver_memory(&nvml.driver, c, ret)) : r;
}

/* The older form counts the driver's own memory as used. */
NVML_API NvmlReturn nvmlDeviceGetMemoryInfo(NvmlHandle h, NvmlMemory1 *ret) {
        LOCKED;
        DriverMemory m;
        NvmlReturn r = get_memory(h, &m);

        if (r != NVML_SUCCESS || !ret)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        *ret = (NvmlMemory1){.total = m.total, .free = m.free, .used = m.used + m.reserved};
        return NVML_SUCCESS;
}

NVML_API NvmlReturn nvmlDeviceGetMemoryInfo_v2(NvmlHandle h, NvmlMemory2 *ret) {
        LOCKED;
        DriverCard *c;
        DriverMemory m;
        NvmlReturn r = get_memory(h, &m);

        if (r != NVML_SUCCESS || !ret)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        if (ret->version != NVML_MEMORY_V2)
                return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (nvml_enter(h, &c) == NVML_SUCCESS)
                driver_limit_memory(&nvml.driver, c, &m);
        ret->total = m.total;
        ret->reserved = m.reserved;
        ret->free = m.free;
        ret->used = m.used;
        return NVML_SUCCESS;
}

/* ---- what it does ---- */

static NvmlReturn get_fixed(NvmlHandle h, unsigned *ret, unsigned value) {
        DriverCard *c;
        NvmlReturn r = nvml_enter(h, &c);

        if (r != NVML_SUCCESS || !ret)
                return r != NVML_SUCCESS ? r : NVML_ERROR_INVALID_ARGUMENT;
        *ret = value;
        return NVML_SUCCESS;
}

/* The simulated card is always cool, and has neither screen nor fan. */
#define FIXED(name, value)                                                                                   \
        NVML_API NvmlReturn name(NvmlHandle h, unsigned *ret) {                                              \
                LOCKED;                                                                                      \
                return get_fixed(h, ret, value);                                                             \
        }

FIXED(nvmlDeviceGetPerformanceState, 0)
FIXED(nvmlDeviceGetPersistenceMode, 1)
FIXED(nvmlDeviceGetComputeMode, 0)
FIXED(nvmlDeviceGetDisplayActive, 0)
FIXED(nvmlDeviceGetDisplayMode, 0)
FIXED(nvmlDeviceGetPowerUsage, 40000)
FIXED(nvmlDeviceGetEnforcedPowerLimit, 300000)
FIXED(nvmlDeviceGetPowerManagementLimit, 300000)

NVML_API NvmlReturn nvmlDeviceGetTemperature(NvmlHandle h, int sensor, unsigned *ret) {
        LOCKED;

        return get_fixed(h, ret, 35);
}

static NvmlReturn unsupported(NvmlHandle h) {
        DriverCard *c;
        NvmlReturn r = nvml_enter(h, &c);

        return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}

NVML_API NvmlReturn nvmlDeviceGetFanSpeed(NvmlHandle h, unsigned *ret) {
        LOCKED;

        return unsupported(h);
}

NVML_API NvmlReturn nvmlDeviceGetMigMode(NvmlHandle h, unsigned *now, unsigned *pending) {
        LOCKED;

        return unsupported(h);
}

NVML_API NvmlReturn nvmlDeviceGetEccMode(NvmlHandle h, unsigned *now, unsigned *pending) {
        LOCKED;

        return unsupported(h);
}

NVML_API NvmlReturn nvmlDeviceGetTotalEccErrors(NvmlHandle h, int type, int counter,
                                                unsigned long long *ret) {
        LOCKED;

        return unsupported(h);
}
