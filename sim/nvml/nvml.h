/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state of the simulated libnvidia-ml.so.1: one session of the driver, opened by the first
 * nvmlInit and closed by the last nvmlShutdown. Every call holds the lock. */

#include <pthread.h>

#include "base/cleanup.h"
#include "sim/nvml/api.h"
#include "sim/user/driver.h"

typedef struct NvmlCard {
        unsigned index;
} NvmlCard;

typedef struct Nvml {
        pthread_mutex_t lock;
        unsigned users;
        Driver driver;
        NvmlCard cards[DRIVER_CARDS]; /* handles point to them, so they outlive a session */
} Nvml;

extern Nvml nvml;

int nvml_lock(void);
void nvml_unlock(const int *unused);
#define LOCKED _cleanup_(nvml_unlock) _unused_ int locked_ = nvml_lock()

/* UNINITIALIZED, INVALID_ARGUMENT, or the card. */
NvmlReturn nvml_enter(NvmlHandle h, DriverCard **ret);
NvmlReturn nvml_ready(void);
NvmlReturn nvml_from_status(uint32_t status);
/* Copies a text to a caller's buffer; INSUFFICIENT_SIZE: it does not fit. */
NvmlReturn nvml_put(char *into, unsigned size, const char *text);
