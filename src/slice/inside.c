/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/inside.h"

#include <stddef.h>
#include <unistd.h>

const char *slice_pages_inside(void) {
        if (access(SLICE_PAGES, F_OK) == 0)
                return SLICE_PAGES;
        return access(SLICE_RUN_PAGES, F_OK) == 0 ? SLICE_RUN_PAGES : NULL;
}
