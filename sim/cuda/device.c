/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "sim/cuda/api_launch.h"
#include "sim/cuda/state.h"

CUDA_API CUresult cuInit(unsigned flags) {
        LOCKED;

        return flags != 0 ? CUDA_ERROR_INVALID_VALUE : state_init();
}

CUDA_API CUresult cuDriverGetVersion(int *ret) {
        LOCKED;

        if (!ret)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = driver_cuda_version(&state.driver);
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuDeviceGetCount(int *ret) {
        LOCKED;
        CUresult r = state_check();

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = (int) state.n;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuDeviceGet(CUdevice *ret, int ordinal) {
        LOCKED;
        Device *d;
        CUresult r = state_device(ordinal, &d);

        if (r == CUDA_SUCCESS)
                *ret = ordinal;
        return r;
}

CUDA_API CUresult cuDeviceGetName(char *ret, int n, CUdevice device) {
        LOCKED;
        Device *d;
        CUresult r = state_device(device, &d);

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || n <= 0)
                return CUDA_ERROR_INVALID_VALUE;
        (void) snprintf(ret, (size_t) n, "%s", d->card->name);
        return CUDA_SUCCESS;
}

static CUresult get_uuid(CUuuid *ret, CUdevice device) {
        Device *d;
        CUresult r = state_device(device, &d);

        if (r == CUDA_SUCCESS)
                memcpy(ret->bytes, d->card->uuid_bytes, sizeof ret->bytes);
        return r;
}

CUDA_API CUresult cuDeviceGetUuid(CUuuid *ret, CUdevice device) {
        LOCKED;

        return get_uuid(ret, device);
}

CUDA_API CUresult cuDeviceGetUuid_v2(CUuuid *ret, CUdevice device) {
        LOCKED;

        return get_uuid(ret, device);
}

CUDA_API CUresult cuDeviceTotalMem_v2(size_t *ret, CUdevice device) {
        LOCKED;
        DriverMemory memory;
        Device *d;
        CUresult r = state_device(device, &d);

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret)
                return CUDA_ERROR_INVALID_VALUE;
        r = from_status(driver_memory(&state.driver, d->card, &memory));
        if (r == CUDA_SUCCESS)
                *ret = memory.total;
        return r;
}

CUDA_API CUresult cuDeviceTotalMem(unsigned *ret, CUdevice device) {
        size_t total = 0;
        CUresult r = cuDeviceTotalMem_v2(&total, device);

        if (r == CUDA_SUCCESS)
                *ret = total > UINT32_MAX ? UINT32_MAX : (unsigned) total;
        return r;
}

CUDA_API CUresult cuMemGetInfo_v2(size_t *free_, size_t *total) {
        LOCKED;
        DriverMemory memory;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r != CUDA_SUCCESS)
                return r;
        r = from_status(driver_memory(&state.driver, c->device->card, &memory));
        if (r != CUDA_SUCCESS)
                return r;
        driver_limit_memory(&state.driver, c->device->card, &memory);
        if (free_)
                *free_ = memory.free;
        if (total)
                *total = memory.total;
        return CUDA_SUCCESS;
}

/* ---- attributes ---- */

/* Attributes by number, from 1, of a card of the last generations. 0: not supported, or it depends
 * on the card. */
static const int attributes[148] = {
        [1] = 1024,    [2] = 1024,   [3] = 1024,     [4] = 64,          [5] = 2147483647, [6] = 65535,
        [7] = 65535, /* blocks, grids */
        [8] = 49152,   [9] = 65536,  [10] = 32,      [11] = 2147483647, [12] = 65536,     [13] = 1410000,
        [14] = 512,    [15] = 1,     [19] = 1,       [21] = 131072,     [22] = 131072,    [23] = 65536,
        [24] = 16384,  [25] = 16384, [26] = 16384,   [27] = 32768,      [28] = 32768,     [29] = 2048,
        [30] = 512,    [31] = 1,     [32] = 1,       [36] = 1215000,    [37] = 4096,      [38] = 6291456,
        [39] = 2048,   [40] = 3,     [41] = 1,       [42] = 32768,      [43] = 2048,      [44] = 1,
        [45] = 32768,  [46] = 32768, [47] = 8192,    [48] = 8192,       [49] = 32768,     [51] = 32,
        [52] = 32768,  [53] = 32768, [54] = 2046,    [55] = 32768,      [56] = 131072,    [57] = 65536,
        [58] = 16384,  [59] = 16384, [60] = 16384,   [61] = 32768,      [62] = 2048,      [63] = 32768,
        [64] = 32768,  [65] = 2048,  [66] = 32768,   [67] = 32768,      [68] = 2046,      [69] = 268435456,
        [70] = 131072, [71] = 65000, [72] = 2097120, [73] = 32768,      [74] = 32768,     [77] = 32768,
        [78] = 1,      [79] = 1,     [80] = 1,       [81] = 98304,      [82] = 65536,     [83] = 1,
        [87] = 2,      [89] = 1,     [90] = 1,       [91] = 1,          [92] = 1,         [93] = 1,
        [94] = 1,      [95] = 1,     [96] = 1,       [97] = 98304,      [98] = 0,         [99] = 1,
        [102] = 1,     [103] = 1,    [106] = 32,     [111] = 1024,      [113] = 1,        [115] = 1,
        [119] = 0,     [122] = 1,    [123] = 1,      [126] = 1,         [131] = -1,
};

static int attribute_of(const Device *d, int attribute) {
        switch (attribute) {
        case 16: /* MULTIPROCESSOR_COUNT */
                return d->processors;
        case 33: /* PCI_BUS_ID */
                return (int) (d->card->gpu >> 8 & 0xff);
        case 34: /* PCI_DEVICE_ID */
                return (int) (d->card->gpu & 0xff);
        case 50: /* PCI_DOMAIN_ID */
                return (int) (d->card->gpu >> 16);
        case 75: /* COMPUTE_CAPABILITY_MAJOR */
                return d->major;
        case 76: /* COMPUTE_CAPABILITY_MINOR */
                return d->minor;
        case 85: /* MULTI_GPU_BOARD_GROUP_ID */
                return d->ordinal;
        case 120: /* CLUSTER_LAUNCH */
                return d->major >= 9;
        default:
                return attributes[attribute];
        }
}

CUDA_API CUresult cuDeviceGetAttribute(int *ret, int attribute, CUdevice device) {
        LOCKED;
        Device *d;
        CUresult r = state_device(device, &d);

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || attribute < 1 || attribute >= (int) ELEMENTSOF(attributes))
                return CUDA_ERROR_INVALID_VALUE;
        *ret = attribute_of(d, attribute);
        return CUDA_SUCCESS;
}

/* ---- errors ---- */

#define ERROR_CASE(name, number) {number, #name},

static const struct {
        int number;
        const char *name;
} errors[] = {CUDA_ERRORS(ERROR_CASE)};

CUDA_API CUresult cuGetErrorName(CUresult error, const char **ret) {
        if (!ret)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = NULL;
        for (size_t i = 0; i < ELEMENTSOF(errors); i++)
                if (errors[i].number == (int) error)
                        *ret = errors[i].name;
        return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
