/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Controls of objects that travel between processes, and of the card's time: what the gate has to know of them (ctrl0041.h,
 * ctrl0000unix.h, ctrla06c.h, ctrl2080fifo.h, ctrl2080gr.h). Beside rm.h, because nobody else needs them. */

#include "rm/rm.h"

enum {
        RM_CTRL_SURFACE_INFO = 0x410110,
        RM_CTRL_EXPORT_TO_FD = 0x3D05,
        RM_CTRL_IMPORT_FROM_FD = 0x3D06,
        RM_CTRL_EXPORT_INFO = 0x3D08,
        /* how the card's time is shared: open to everybody */
        RM_CTRL_SET_TIMESLICE = 0xA06C0103,
        RM_CTRL_PREEMPT = 0xA06C0105,
        RM_CTRL_DISABLE_CHANNELS = 0x2080110B,
        RM_CTRL_PREEMPTION_MODE = 0x20801210,
};

/* A memory object's size and place: a list of index and data, at a pointer (ctrl0041.h). */
enum {
        RM_SURFACE_SIZE_LO = 0x02, /* bytes */
        RM_SURFACE_SIZE_HI = 0x03,
        RM_SURFACE_PLACE = 0x09,
        RM_PLACE_CARD = 2, /* other values of it: not memory of the card */
};

typedef struct RmSurfaceInfo { /* NV0041_CTRL_GET_SURFACE_INFO_PARAMS, with entries as RmFbEntry */
        uint32_t n, pad0;
        uint64_t list;
} RmSurfaceInfo;

/* An object that travels as a descriptor: the memory lives as long as the descriptor's open file (ctrl0000unix.h). */
typedef struct RmExport { /* NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_TO_FD_PARAMS */
        uint32_t type, device, parent, object;
        int32_t fd;
        uint32_t flags;
} RmExport;

typedef struct RmImport { /* NV0000_CTRL_OS_UNIX_IMPORT_OBJECT_FROM_FD_PARAMS */
        int32_t fd;
        uint32_t type, device, parent, object;
} RmImport;

typedef struct RmExportInfo { /* NV0000_CTRL_OS_UNIX_GET_EXPORT_OBJECT_INFO_PARAMS */
        int32_t fd;
        uint32_t device, instance;
        uint16_t max_objects;
        uint8_t metadata[64], pad0[2];
} RmExportInfo;

RM_SIZE(RmSurfaceInfo, 16);
RM_SIZE(RmExport, 24);
RM_SIZE(RmImport, 20);
RM_SIZE(RmExportInfo, 80);
