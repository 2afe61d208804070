/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SET(name, "0-1", ...): a set of devices of memory, as a local variable. */

#include "node/records/device.h"
#include "test.h"

static inline void set_parse(const char *const *texts, size_t n, DeviceSet *ret) {
        Str strs[32];

        for (size_t i = 0; i < n; i++)
                strs[i] = str_from(texts[i]);
        ASSERT_OK(device_set_parse(strs, n, DEVICE_MEM, ret, NULL));
}
#define SET(name, ...)                                                                                       \
        _cleanup_devices_ DeviceSet name = DEVICE_SET_NULL;                                                  \
        do {                                                                                                 \
                const char *const texts_[] = {__VA_ARGS__};                                                  \
                set_parse(texts_, ELEMENTSOF(texts_), &(name));                                              \
        } while (0)
