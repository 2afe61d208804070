/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* RM_ESC_EXPORT_DMA_BUF, a call of /dev/nvidiaN (nv-ioctl.h, nv-dmabuf.c): makes a dma-buf of
 * memory objects, or adds objects to one. The driver keeps duplicates of the objects in a client of
 * its own, until the last user of the dma-buf has closed it. */

#include "gpu/rm/layout.h"

enum { RM_DMA_BUF_MAX = 128 };

typedef struct RmDmaBuf { /* nv_ioctl_export_to_dma_buf_fd_t; before 570, `handles` begins 4 bytes earlier */
        int32_t fd;       /* -1: a new dma-buf, whose descriptor is the answer */
        uint32_t client, total;
        uint32_t n, index; /* of the handles in this call, and where they go in the dma-buf */
        uint32_t pad0;
        uint64_t total_bytes;
        uint8_t pad1[4];
        uint32_t handles[RM_DMA_BUF_MAX];
        uint32_t pad2;
        uint64_t offsets[RM_DMA_BUF_MAX], sizes[RM_DMA_BUF_MAX];
        uint32_t status, pad3;
} RmDmaBuf;

RM_SIZE(RmDmaBuf, 2608);
RM_AT(RmDmaBuf, handles, 36);
RM_AT(RmDmaBuf, status, 2600);
