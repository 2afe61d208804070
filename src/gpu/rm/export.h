/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Controls that export objects to open files and import them again, and tell the size of an object.
 * Sources: ctrl0041.h, ctrl0000unix.h. */

#include "gpu/rm/fifo.h"
#include "gpu/rm/rm.h"

enum {
        RM_CTRL_SURFACE_INFO = 0x410110,
        RM_CTRL_EXPORT_TO_FD = 0x3D05,
        RM_CTRL_IMPORT_FROM_FD = 0x3D06,
        RM_CTRL_EXPORT_INFO = 0x3D08,
        RM_CTRL_EXPORT_EMPTY = 0x3D0A,
        RM_CTRL_EXPORT_MANY = 0x3D0B,
        RM_CTRL_IMPORT_MANY = 0x3D0C,
};

/* The size and the location of a memory object: a list of index and data, at a pointer
 * (ctrl0041.h). An index that the driver does not know is answered with INVALID_ARGUMENT, and the
 * entries behind it stay unanswered. RM_SURFACE_SIZE is in all drivers from 535 on. */
enum {
        RM_SURFACE_SIZE_LO = 0x02, /* bytes; from 580 on */
        RM_SURFACE_SIZE_HI = 0x03, /* from 580 on */
        RM_SURFACE_SIZE = 0x07,    /* in units of RM_SURFACE_UNIT */
        RM_SURFACE_UNIT = 4096,
        RM_SURFACE_ADDR_SPACE = 0x09,
        RM_ADDR_SPACE_VIDMEM = 2, /* of RM_SURFACE_ADDR_SPACE; other values: not memory of the card */
};

typedef struct RmSurfaceInfo { /* NV0041_CTRL_GET_SURFACE_INFO_PARAMS, with entries as RmFbEntry */
        uint32_t n, pad0;
        uint64_t list;
} RmSurfaceInfo;

/* Export and import (ctrl0000unix.h). The driver keeps a duplicate of each exported object, with a
 * client of its own, until the open file is closed or another object is exported to the same index.
 * The exporting process may free its own object or end. The file is an nvidiactl that nothing else
 * was exported to. An import makes duplicates again. */
enum {
        RM_EXPORT_TYPE_RM = 1,
        RM_EXPORT_FLAG_EMPTY = 1, /* for client libraries only; the driver refuses it */
        RM_EXPORTS_MAX = 512,     /* in one call; a file has up to 65,535 */
        RM_IMPORTS_MAX = 128,
        RM_IMPORT_NONE = 0, /* types of imported objects: */
        RM_IMPORT_VIDMEM = 1,
        RM_IMPORT_SYSMEM = 2,
        RM_ERR_OUT_OF_RANGE = 0x5B,
        RM_ERR_STATE_IN_USE = 0x63,
        RM_EXPORT_NO_DEVICE = 32, /* device number of objects that are below no device */
};

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

typedef struct RmExportEmpty { /* NV0000_CTRL_OS_UNIX_CREATE_EXPORT_OBJECT_FD_PARAMS */
        uint32_t device;
        uint16_t max;
        uint8_t metadata[64], pad0[2];
        int32_t fd;
} RmExportEmpty;

/* Exports to `index` and the n - 1 indices after it. device and max only count for a file to which
 * nothing was exported yet. */
typedef struct RmExportMany { /* NV0000_CTRL_OS_UNIX_EXPORT_OBJECTS_TO_FD_PARAMS */
        int32_t fd;
        uint32_t device;
        uint16_t max;
        uint8_t metadata[64], pad0[2];
        uint32_t objects[RM_EXPORTS_MAX]; /* 0: clears the index */
        uint16_t n, index;
} RmExportMany;

/* Imports from n indices, starting at `index`. An empty index gives RM_IMPORT_NONE. */
typedef struct RmImportMany { /* NV0000_CTRL_OS_UNIX_IMPORT_OBJECTS_FROM_FD_PARAMS */
        int32_t fd;
        uint32_t parent;
        uint32_t objects[RM_IMPORTS_MAX];
        uint8_t types[RM_IMPORTS_MAX];
        uint16_t n, index;
} RmImportMany;

RM_SIZE(RmSurfaceInfo, 16);
RM_SIZE(RmExport, 24);
RM_SIZE(RmImport, 20);
RM_SIZE(RmExportInfo, 80);
RM_AT(RmExportInfo, metadata, 14);
RM_SIZE(RmExportEmpty, 76);
RM_AT(RmExportEmpty, fd, 72);
RM_SIZE(RmExportMany, 2128);
RM_AT(RmExportMany, objects, 76);
RM_AT(RmExportMany, index, 2126);
RM_SIZE(RmImportMany, 652);
RM_AT(RmImportMany, types, 520);
RM_AT(RmImportMany, index, 650);
