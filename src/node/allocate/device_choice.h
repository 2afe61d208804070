/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which of the devices on offer a container is to get, when its cards are known. Pure. */

#include "node/records/roster.h"

typedef struct DeviceChoice {
        DeviceKind kind;
        const DeviceSet *available;    /* the kubelet thinks they are free; must_include among them */
        const DeviceSet *must_include; /* of the pod's own init containers */
        const CardShare *shares;       /* how many of which card */
        size_t n_shares;
        /* Held by another pod in our own books, though the kubelet thinks otherwise: taken only
         * when there is no other, and the container then waits at PreStart until the old holder has
         * ended. */
        bool (*is_held)(void *userdata, DeviceKind kind, DeviceId id);
        void *userdata;
} DeviceChoice;

/* 0; DEVICE_CHOICE_E_SHORT when a card has not that many on offer (fault says which); -ENOMEM. */
enum { DEVICE_CHOICE_E_SHORT = 1 };
int device_choice_make(const DeviceChoice *ask, DeviceSet *ret, Fault *fault);
