/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Controls of class 0xE0, from 550 on (ctrl00e0.h). The driver keeps a duplicate of each object
 * until the index is cleared or the last object of the class for it is freed. A client needs a
 * subscription to an IMEX channel for the class. */

#include "gpu/rm/layout.h"

enum {
        RM_CTRL_EXPORT_MEM = 0xE00101,
        RM_CTRL_IMPORT_MEM = 0xE00102,
        RM_EXPORT_MEM_MAX = 256, /* handles in one call */
        RM_IMPORT_MEM_MAX = 128,
};

typedef struct RmExportMem { /* NV00E0_CTRL_EXPORT_MEM_PARAMS */
        uint16_t index, pad0;
        uint32_t parent;
        uint32_t handles[RM_EXPORT_MEM_MAX]; /* 0: clears the index */
        uint16_t n, pad1;
        uint32_t pad2;
        uint64_t descriptor;
} RmExportMem;

typedef struct RmImportMemInfo { /* NV_IMPORT_MEM_INFO */
        uint32_t parent;         /* the parent that the driver chose; 0: nothing was imported */
        uint8_t kind, pad0[3];
} RmImportMemInfo;

typedef struct RmImportMem { /* NV00E0_CTRL_IMPORT_MEM_PARAMS */
        uint16_t index, n;
        /* handles of the imported objects, which the caller chooses */
        uint32_t handles[RM_IMPORT_MEM_MAX];
        RmImportMemInfo infos[RM_IMPORT_MEM_MAX];
} RmImportMem;

RM_SIZE(RmExportMem, 1048);
RM_SIZE(RmImportMem, 1540);
