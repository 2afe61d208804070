/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Controls of class 0xFD, multicast objects (ctrl00fd.h). Memory that is attached to one is written
 * by a store to all cards of the object's team. */

#include "gpu/rm/layout.h"

enum {
        RM_CTRL_ATTACH_MULTICAST = 0xFD0102,
        RM_CTRL_DETACH_MULTICAST = 0xFD0105,
};

typedef struct RmAttachMulticast { /* NV00FD_CTRL_ATTACH_MEM_PARAMS */
        uint32_t subdevice, memory;
        uint64_t offset; /* in the multicast object */
        uint64_t from, length;
        uint32_t flags, pad0;
} RmAttachMulticast;

typedef struct RmDetachMulticast { /* NV00FD_CTRL_DETACH_MEM_PARAMS */
        uint32_t subdevice, pad0;
        uint64_t offset;
        uint32_t flags, pad1;
} RmDetachMulticast;

RM_SIZE(RmAttachMulticast, 40);
RM_SIZE(RmDetachMulticast, 24);
