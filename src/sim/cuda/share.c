/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/share.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };
#define SHARE_MAGIC 0x45524148534C4151ull /* "QALSHARE" */

typedef struct SharePage {
        uint64_t magic, size;
        uint32_t client, object;
        uint8_t uuid[16];
} SharePage;

Device *share_device(const uint8_t uuid[16]) {
        for (unsigned i = 0; i < state.n; i++)
                if (memcmp(state.devices[i].card->uuid_bytes, uuid, 16) == 0)
                        return &state.devices[i];
        return NULL;
}

CUresult share_duplicate(Device *d, uint32_t client, uint32_t object, uint32_t *ret) {
        return from_status(driver_dup(&state.driver, d->card->device, client, object, ret));
}

CUresult share_new(Device *d, uint64_t size, Block **ret) {
        SharePage page = {.magic = SHARE_MAGIC, .size = size, .client = state.driver.client};
        Block *b;
        CUresult r = block_new(d, size, true, &b);

        if (r != CUDA_SUCCESS)
                return r;
        page.object = b->object;
        memcpy(page.uuid, d->card->uuid_bytes, sizeof page.uuid);
        if (ftruncate(b->fd, (off_t) (size + PAGE)) < 0 ||
            pwrite(b->fd, &page, sizeof page, (off_t) size) != sizeof page) {
                block_drop(b);
                return CUDA_ERROR_OPERATING_SYSTEM;
        }
        *ret = b;
        return CUDA_SUCCESS;
}

/* Anybody may have written that file: nothing of it is believed but what the file itself bears out. */
static CUresult read_page(int fd, SharePage *ret) {
        struct stat s;

        if (fstat(fd, &s) < 0 || !S_ISREG(s.st_mode) || s.st_size <= PAGE || s.st_size % PAGE != 0)
                return CUDA_ERROR_INVALID_HANDLE;
        if (pread(fd, ret, sizeof *ret, s.st_size - PAGE) != sizeof *ret || ret->magic != SHARE_MAGIC ||
            ret->size != (uint64_t) s.st_size - PAGE)
                return CUDA_ERROR_INVALID_HANDLE;
        return CUDA_SUCCESS;
}

static CUresult get_object(Device *d, const SharePage *page, uint32_t *ret) {
        uint64_t size = page->size;

        if (share_duplicate(d, page->client, page->object, ret) == CUDA_SUCCESS)
                return CUDA_SUCCESS;
        return from_status(driver_alloc_memory(&state.driver, d->card, &size, ret));
}

CUresult share_import(int fd, Block **ret) {
        SharePage page;
        CUresult r = read_page(fd, &page);
        uint32_t object = 0;
        Device *d;
        int own;

        if (r != CUDA_SUCCESS)
                return r;
        d = share_device(page.uuid);
        if (!d)
                return CUDA_ERROR_INVALID_DEVICE;
        own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (own < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        r = get_object(d, &page, &object);
        if (r == CUDA_SUCCESS) {
                r = block_adopt(d, object, page.size, own, 0, ret);
                if (r != CUDA_SUCCESS)
                        (void) driver_free(&state.driver, object);
        }
        if (r != CUDA_SUCCESS)
                (void) close(own);
        return r;
}
