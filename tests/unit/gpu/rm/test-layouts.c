/* SPDX-License-Identifier: Apache-2.0 */

/* Compares the headers of src/gpu/rm with layouts.txt, for each release of the driver. */

#include "gpu/rm/dma_buf.h"
#include "gpu/rm/export.h"
#include "gpu/rm/export_mem.h"
#include "gpu/rm/fabric.h"
#include "gpu/rm/fifo.h"
#include "gpu/rm/multicast.h"
#include "gpu/rm/query.h"
#include "gpu/rm/release.h"
#include "gpu/rm/rm.h"
#include "gpu/rm/uvm_ioctl.h"

/* RELEASE_535_fb_region and so on: the columns of RM_RELEASES as constants. */
#define COLUMNS(branch, memory, index, list, region, bytes, probed, name, export, gpus, free, p2p, mem, dma, \
                group, flags)                                                                                \
        RELEASE_##branch##_memory_params = (memory), RELEASE_##branch##_fb_index_max = (index),              \
        RELEASE_##branch##_fb_list_max = (list), RELEASE_##branch##_fb_region = (region),                    \
        RELEASE_##branch##_surface_bytes = (bytes), RELEASE_##branch##_probed_ids = (probed),                \
        RELEASE_##branch##_name_string = (name), RELEASE_##branch##_export_info = (export),                  \
        RELEASE_##branch##_uvm_gpus = (gpus), RELEASE_##branch##_uvm_free = (free),                          \
        RELEASE_##branch##_uvm_p2p = (p2p), RELEASE_##branch##_export_mem = (mem),                           \
        RELEASE_##branch##_dma_buf = (dma), RELEASE_##branch##_group_schedule = (group),                     \
        RELEASE_##branch##_uvm_flags = (flags),
enum { RM_RELEASES(COLUMNS) };

#include "layouts-of-releases.h"

#ifndef LAYOUTS_ONLY
#include "test.h"

static void floor_and_newest_are_the_tables(void) {
        unsigned rows = 0, last = 0;

        ASSERT_INT(RM_RELEASE_FLOOR, FLOOR);
        ASSERT_INT(RM_RELEASE_NEWEST, NEWEST);
        for (unsigned branch = 0; branch <= NEWEST; branch++) {
                const RmRelease *r = rm_release_of(branch);

                if (r != NULL && r->branch == branch) {
                        rows++;
                        last = branch;
                }
        }
        ASSERT_INT(rows, RELEASES);
        ASSERT_INT(last, NEWEST);
}

static void releases_between_two_rows_are_as_the_older_one(void) {
        ASSERT_TRUE(rm_release_of(0) == NULL);
        ASSERT_TRUE(rm_release_of(FLOOR - 1) == NULL);
        ASSERT_INT(rm_release_of(FLOOR)->memory_params, 120);
        ASSERT_INT(rm_release_of(579)->fb_region, 48);
        ASSERT_INT(rm_release_of(580)->fb_region, 56);
        ASSERT_INT(rm_release_of(NEWEST + 100)->branch, NEWEST);
}

static void each_class_of_a_channel_is_one(void) {
        for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
                ASSERT_TRUE(rm_class_is_channel(channels[i]));
}

int main(void) {
        return TEST_MAIN(TEST(floor_and_newest_are_the_tables),
                         TEST(releases_between_two_rows_are_as_the_older_one),
                         TEST(each_class_of_a_channel_is_one));
}
#endif
