/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The containers of a pod that can have another size than their limits: main ones that request
 * slices. */

#include "node/records/records.h"
#include "node/records/roster.h"
#include "share/resize_status.h"

enum { RESIZABLE_MAX = RESIZE_STATUS_CONTAINERS };

typedef struct Resizable {
        const RosterContainer *containers[RESIZABLE_MAX];
        ResizeLimit limits[RESIZABLE_MAX];
        ResizeSize wanted[RESIZABLE_MAX]; /* filled in by the caller */
        size_t n;
} Resizable;

/* Collects them, without the wanted sizes. record may be NULL. grows: sizes above the limits may be
 * requested. */
void resizable_find(const RosterPod *pod, const Record *record, bool grows, Resizable *ret);

/* The container's size in force: the record's, else the limit. record may be NULL. */
ResizeSize resizable_in_force(const Record *record, const ResizeLimit *l);
