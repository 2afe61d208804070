/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What differs between the releases of the driver; the other headers have the newest. All numbers
 * are those of layouts.txt, and a unit test compares them. libc only.
 *
 * The library of a container needs no release. The class determines how long the parameters of an
 * allocation are, and the size of a call tells how long a list of FB info or of regions is. It asks
 * only for RM_SURFACE_SIZE, which all releases have. */

#include <stddef.h>
#include <stdint.h>

#include "gpu/rm/fifo.h"
#include "gpu/rm/query.h"

/* Columns: the branch; bytes of RmMemoryParams; RM_FB_INDEX_MAX; RM_FB_LIST_MAX; bytes of
 * RmFbRegion; 1 where RM_SURFACE_SIZE_LO and HI exist; bytes of RmProbedIds, RmNameString and
 * RmExportInfo. Of uvm: UVM_GPUS_MAX; bytes of UvmFree; 1 where UVM_ALLOC_P2P_CMD exists.
 * Class 0xE0: 1 where the headers name it, 2 where the driver has it.
 * Bytes of RmDmaBuf and RmGroupSchedule. All flags of UvmInitialize. */
/* clang-format off */
#define RM_RELEASES(ROW) \
        ROW(535, 120, 0x35, 0x36, 48, 0, 256, 132, 76, 32, 24, 0, 0, 2600, 2, 3) \
        ROW(545, 128, 0x36, 0x37, 48, 0, 256, 132, 80, 32, 24, 0, 1, 2600, 2, 3) \
        ROW(550, 128, 0x36, 0x37, 48, 0, 256, 132, 80, 256, 24, 0, 2, 2600, 2, 3) \
        ROW(555, 128, 0x36, 0x37, 48, 0, 256, 132, 80, 256, 24, 0, 2, 2600, 2, 3) \
        ROW(560, 128, 0x38, 0x39, 48, 0, 256, 132, 80, 256, 24, 0, 2, 2600, 2, 3) \
        ROW(565, 128, 0x38, 0x39, 48, 0, 256, 132, 80, 256, 24, 1, 2, 2600, 2, 3) \
        ROW(570, 128, 0x38, 0x39, 48, 0, 256, 132, 80, 256, 24, 1, 2, 2608, 2, 3) \
        ROW(575, 128, 0x38, 0x39, 48, 0, 256, 132, 80, 256, 24, 1, 2, 2608, 3, 3) \
        ROW(580, 128, 0x3B, 0x80, 56, 1, 384, 132, 80, 256, 24, 1, 2, 2608, 3, 3) \
        ROW(590, 128, 0x3B, 0x80, 56, 1, 384, 132, 80, 256, 16, 1, 2, 2608, 3, 3) \
        ROW(595, 128, 0x3B, 0x80, 56, 1, 384,  68, 80, 256, 16, 1, 2, 2608, 3, 3) \
        ROW(610, 128, 0x3C, 0x80, 56, 1, 384,  68, 80, 256, 16, 1, 2, 2608, 3, 7) \
        ROW(615, 128, 0x44, 0x80, 56, 1, 384,  68, 80, 256, 16, 1, 2, 2608, 3, 7)
/* clang-format on */

enum {
        RM_RELEASE_FLOOR = 535,  /* drivers before it have other calls */
        RM_RELEASE_NEWEST = 615, /* of the table */
};

typedef struct RmRelease {
        uint16_t branch; /* the first number of the version */
        uint16_t memory_params;
        uint16_t fb_index_max, fb_list_max, fb_region;
        uint16_t surface_bytes;
        uint16_t probed_ids, name_string, export_info;
        uint16_t uvm_gpus, uvm_free, uvm_p2p;
        uint16_t export_mem, dma_buf, group_schedule;
        uint16_t uvm_flags;
} RmRelease;

/* Returns the row of that branch, or of the newest branch before it; NULL below the floor. */
static inline const RmRelease *rm_release_of(unsigned branch) {
#define RM_RELEASE_ROW(...) {__VA_ARGS__},
        static const RmRelease releases[] = {RM_RELEASES(RM_RELEASE_ROW)};
#undef RM_RELEASE_ROW
        const RmRelease *found = NULL;

        for (size_t i = 0; i < sizeof releases / sizeof *releases; i++)
                if (releases[i].branch <= branch)
                        found = &releases[i];
        return found;
}

/* Returns the bytes of a control's parameters in that release. newest: in the newest release. */
static inline uint32_t rm_release_params(const RmRelease *facts, uint32_t cmd, uint32_t newest) {
        switch (cmd) {
        case RM_CTRL_PROBED_IDS:
                return facts->probed_ids;
        case RM_CTRL_NAME_STRING:
                return facts->name_string;
        case RM_CTRL_GROUP_SCHEDULE:
                return facts->group_schedule;
        case RM_CTRL_FB_INFO_V2:
                return (uint32_t) (offsetof(RmFbInfoV2, list) + facts->fb_list_max * sizeof(RmFbEntry));
        case RM_CTRL_FB_REGION_INFO:
                return (uint32_t) offsetof(RmFbRegions, regions) + RM_FB_REGION_MAX * facts->fb_region;
        default:
                return newest;
        }
}
