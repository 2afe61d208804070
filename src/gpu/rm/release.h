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

/* Columns: the branch; bytes of RmMemoryParams; RM_FB_INDEX_MAX; RM_FB_LIST_MAX; bytes of
 * RmFbRegion; 1 where RM_SURFACE_SIZE_LO and HI exist; bytes of RmProbedIds, RmNameString and
 * RmExportInfo. */
/* clang-format off */
#define RM_RELEASES(ROW) \
        ROW(535, 120, 0x35, 0x36, 48, 0, 256, 132, 76) \
        ROW(545, 128, 0x36, 0x37, 48, 0, 256, 132, 80) \
        ROW(550, 128, 0x36, 0x37, 48, 0, 256, 132, 80) \
        ROW(555, 128, 0x36, 0x37, 48, 0, 256, 132, 80) \
        ROW(560, 128, 0x38, 0x39, 48, 0, 256, 132, 80) \
        ROW(565, 128, 0x38, 0x39, 48, 0, 256, 132, 80) \
        ROW(570, 128, 0x38, 0x39, 48, 0, 256, 132, 80) \
        ROW(575, 128, 0x38, 0x39, 48, 0, 256, 132, 80) \
        ROW(580, 128, 0x3B, 0x80, 56, 1, 384, 132, 80) \
        ROW(590, 128, 0x3B, 0x80, 56, 1, 384, 132, 80) \
        ROW(595, 128, 0x3B, 0x80, 56, 1, 384,  68, 80)
/* clang-format on */

enum {
        RM_RELEASE_FLOOR = 535,  /* older drivers have other calls */
        RM_RELEASE_NEWEST = 595, /* of the table */
};

typedef struct RmRelease {
        uint16_t branch; /* the first number of the version */
        uint16_t memory_params;
        uint16_t fb_index_max, fb_list_max, fb_region;
        uint16_t surface_bytes;
        uint16_t probed_ids, name_string, export_info;
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
