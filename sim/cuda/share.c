/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/share.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/rm/export.h"
#include "sim/user/contents.h"

#define SHARE_MAGIC 0x45524148534C4151ull /* "QALSHARE" */

/* The exporter's note beside the object, in the driver's field for metadata. */
typedef struct ShareNote {
        uint64_t magic, size;
        uint8_t uuid[16], pad0[32];
} ShareNote;

_Static_assert(sizeof(ShareNote) == sizeof((RmExportMany *) 0)->metadata, "it is the metadata");

Device *share_device(const uint8_t uuid[16]) {
        for (unsigned i = 0; i < state.n; i++)
                if (memcmp(state.devices[i].card->uuid_bytes, uuid, 16) == 0)
                        return &state.devices[i];
        return NULL;
}

CUresult share_duplicate(Device *d, uint32_t client, uint32_t object, uint32_t *ret) {
        return from_status(driver_dup(&state.driver, d->card->device, client, object, ret));
}

static uint32_t control(uint32_t cmd, void *params, uint32_t size) {
        return driver_control(&state.driver, state.driver.client, cmd, params, size);
}

CUresult share_export(const Block *b, int *ret) {
        ShareNote note = {.magic = SHARE_MAGIC, .size = b->size};
        RmExportMany p = {.device = b->device->card->device, .max = 1, .objects = {b->object}, .n = 1};
        uint32_t status;

        memcpy(note.uuid, b->device->card->uuid_bytes, sizeof note.uuid);
        memcpy(p.metadata, &note, sizeof note);
        p.fd = driver_open_file("nvidiactl");
        if (p.fd < 0)
                return CUDA_ERROR_OPERATING_SYSTEM;
        status = control(RM_CTRL_EXPORT_MANY, &p, sizeof p);
        if (status == RM_OK && ioctl(p.fd, SIM_KEEP_CONTENTS, &b->fd) < 0)
                status = DRIVER_E_FILE;
        if (status != RM_OK) {
                (void) close(p.fd); /* what was exported goes with it */
                return status == DRIVER_E_FILE ? CUDA_ERROR_OPERATING_SYSTEM : from_status(status);
        }
        *ret = p.fd;
        return CUDA_SUCCESS;
}

/* Before 545 the instance is missing, and what stands behind it is earlier by as much
 * (gpu/rm/layouts.txt). */
static uint32_t export_info(RmExportInfo *info) {
        const RmRelease *facts = driver_release(&state.driver);
        uint32_t missing = facts ? (uint32_t) sizeof *info - facts->export_info : 0,
                 size = (uint32_t) sizeof *info - missing;
        uint32_t status = control(RM_CTRL_EXPORT_INFO, info, size);
        uint8_t *behind = (uint8_t *) &info->max_objects;

        memmove(behind, behind - missing, sizeof *info - offsetof(RmExportInfo, max_objects));
        return status;
}

/* Any process may have exported the object, so of the note only what the file confirms is used. */
static CUresult read_note(int fd, ShareNote *ret) {
        RmExportInfo info = {.fd = fd};

        if (export_info(&info) != RM_OK || info.max_objects != 1)
                return CUDA_ERROR_INVALID_HANDLE;
        memcpy(ret, info.metadata, sizeof *ret);
        return ret->magic == SHARE_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static int receive(int from) {
        char byte;
        struct iovec io = {&byte, 1};
        _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {0};
        struct msghdr m = {
                .msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
        const struct cmsghdr *c;
        int fd;

        if (recvmsg(from, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
                return -1;
        c = CMSG_FIRSTHDR(&m);
        if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof fd))
                return -1;
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
        return fd;
}

/* -1: no file is kept, or it is too small. */
static int get_contents(int fd, uint64_t size) {
        int ends[2], contents = -1;
        struct stat s;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
                return -1;
        if (ioctl(fd, SIM_GIVE_CONTENTS, &ends[1]) == 0)
                contents = receive(ends[0]);
        (void) close(ends[0]); /* nothing more is in it */
        (void) close(ends[1]); /* as above */
        if (contents >= 0 && (fstat(contents, &s) < 0 || s.st_size < 0 || (uint64_t) s.st_size < size)) {
                (void) close(contents); /* not written to */
                return -1;
        }
        return contents;
}

static CUresult get_object(Device *d, int fd, uint32_t *ret) {
        RmImportMany p = {.fd = fd, .parent = d->card->device, .objects = {state.driver.next++}, .n = 1};
        uint32_t status = control(RM_CTRL_IMPORT_MANY, &p, sizeof p);

        if (status != RM_OK)
                return from_status(status);
        if (p.types[0] == RM_IMPORT_NONE)
                return CUDA_ERROR_INVALID_HANDLE;
        *ret = p.objects[0];
        return CUDA_SUCCESS;
}

CUresult share_import(int fd, Block **ret) {
        uint32_t object = 0;
        ShareNote note;
        CUresult r = read_note(fd, &note);
        Device *d;
        int own;

        if (r != CUDA_SUCCESS)
                return r;
        d = share_device(note.uuid);
        if (!d)
                return CUDA_ERROR_INVALID_DEVICE;
        own = get_contents(fd, note.size);
        if (own < 0)
                return CUDA_ERROR_INVALID_HANDLE;
        r = get_object(d, fd, &object);
        if (r == CUDA_SUCCESS) {
                r = block_adopt(d, object, note.size, own, 0, ret);
                if (r != CUDA_SUCCESS)
                        (void) driver_free(&state.driver, object);
        }
        if (r != CUDA_SUCCESS)
                (void) close(own);
        return r;
}
