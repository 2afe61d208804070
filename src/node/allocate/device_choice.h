/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Chooses which of the available devices a container gets, when its cards are known. Pure. */

#include "node/records/roster.h"

typedef struct DeviceChoice {
        DeviceKind kind;
        const DeviceSet *available;    /* free by the kubelet's books; must_include is among them */
        const DeviceSet *must_include; /* devices of the pod's own init containers */
        const CardShare *shares;       /* how many devices to take of which card */
        size_t n_shares;
        /* Whether another pod holds the device by our records, though the kubelet counts it as
         * free. Such a device is taken only when there is no other. The container then waits at
         * PreStart until the old holder has ended. */
        bool (*is_held)(void *userdata, DeviceKind kind, DeviceId id);
        void *userdata;
} DeviceChoice;

/* 0; DEVICE_CHOICE_E_SHORT when a card has too few available, with a fault that names it;
 * -ENOMEM. */
enum { DEVICE_CHOICE_E_SHORT = 1 };
int device_choice_make(const DeviceChoice *choice, DeviceSet *ret, Fault *fault);
