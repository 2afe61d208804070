/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/container_paths.h"

#include <stddef.h>
#include <unistd.h>

const char *slice_container_pages(void) {
        if (access(SLICE_PAGES, F_OK) == 0)
                return SLICE_PAGES;
        return access(SLICE_RUN_PAGES, F_OK) == 0 ? SLICE_RUN_PAGES : NULL;
}
