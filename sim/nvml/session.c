/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sim/nvml/nvml.h"

Nvml nvml = {.lock = PTHREAD_MUTEX_INITIALIZER, .driver = {.ctl = -1}};

int nvml_lock(void) {
        (void) pthread_mutex_lock(&nvml.lock);
        return 0;
}

void nvml_unlock(const int *unused) {
        (void) pthread_mutex_unlock(&nvml.lock);
}

NvmlReturn nvml_from_status(uint32_t status) {
        switch (status) {
        case RM_OK:
                return NVML_SUCCESS;
        case RM_ERR_NOT_SUPPORTED:
                return NVML_ERROR_NOT_SUPPORTED;
        case RM_ERR_NO_MEMORY:
                return NVML_ERROR_MEMORY;
        case DRIVER_E_FILE:
                return NVML_ERROR_DRIVER_NOT_LOADED;
        default:
                return NVML_ERROR_UNKNOWN;
        }
}

NvmlReturn nvml_ready(void) {
        return nvml.users > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

NvmlReturn nvml_enter(NvmlHandle h, DriverCard **ret) {
        if (nvml.users == 0)
                return NVML_ERROR_UNINITIALIZED;
        for (unsigned i = 0; i < nvml.driver.n; i++)
                if (h == &nvml.cards[i]) {
                        *ret = &nvml.driver.cards[i];
                        return NVML_SUCCESS;
                }
        return NVML_ERROR_INVALID_ARGUMENT;
}

NvmlReturn nvml_put(char *into, unsigned size, const char *text) {
        if (!into)
                return NVML_ERROR_INVALID_ARGUMENT;
        if (strlen(text) >= size)
                return NVML_ERROR_INSUFFICIENT_SIZE;
        (void) snprintf(into, size, "%s", text);
        return NVML_SUCCESS;
}

/* ---- exported ---- */

static NvmlReturn init(void) {
        NvmlReturn r;

        if (nvml.users == 0) {
                r = nvml_from_status(driver_open(&nvml.driver));
                if (r != NVML_SUCCESS)
                        return r;
        }
        nvml.users++;
        for (unsigned i = 0; i < DRIVER_CARDS; i++)
                nvml.cards[i].index = i;
        return NVML_SUCCESS;
}

NVML_API NvmlReturn nvmlInit_v2(void) {
        LOCKED;

        return init();
}

NVML_API NvmlReturn nvmlInit(void) {
        LOCKED;

        return init();
}

NVML_API NvmlReturn nvmlInitWithFlags(unsigned flags) {
        LOCKED;

        return init();
}

NVML_API NvmlReturn nvmlShutdown(void) {
        LOCKED;

        if (nvml.users == 0)
                return NVML_ERROR_UNINITIALIZED;
        if (--nvml.users == 0)
                driver_close(&nvml.driver);
        return NVML_SUCCESS;
}

#define RETURN_CASE(name, number, words)                                                                     \
        case name:                                                                                           \
                return words;

NVML_API const char *nvmlErrorString(NvmlReturn r) {
        switch (r) { NVML_RETURNS(RETURN_CASE) }
        return "Unknown Error";
}

/* ---- the system ---- */

NVML_API NvmlReturn nvmlSystemGetDriverVersion(char *ret, unsigned size) {
        LOCKED;
        NvmlReturn r = nvml_ready();

        return r == NVML_SUCCESS ? nvml_put(ret, size, nvml.driver.version) : r;
}

NVML_API NvmlReturn nvmlSystemGetNVMLVersion(char *ret, unsigned size) {
        char text[80];
        LOCKED;

        (void) snprintf(text, sizeof text, "13.%s", nvml.driver.version);
        return nvml_put(ret, size, text);
}

NVML_API NvmlReturn nvmlSystemGetCudaDriverVersion(int *ret) {
        LOCKED;

        if (!ret)
                return NVML_ERROR_INVALID_ARGUMENT;
        *ret = driver_cuda_version(&nvml.driver);
        return NVML_SUCCESS;
}

NVML_API NvmlReturn nvmlSystemGetCudaDriverVersion_v2(int *ret) {
        return nvmlSystemGetCudaDriverVersion(ret);
}

/* The first word of the command line, cut to size. */
NVML_API NvmlReturn nvmlSystemGetProcessName(unsigned pid, char *ret, unsigned size) {
        _cleanup_close_ int fd = -1;
        char path[64];
        ssize_t n;

        if (!ret || size == 0)
                return NVML_ERROR_INVALID_ARGUMENT;
        (void) snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return NVML_ERROR_NOT_FOUND;
        n = read(fd, ret, size - 1);
        ret[n > 0 ? n : 0] = '\0';
        return n > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
