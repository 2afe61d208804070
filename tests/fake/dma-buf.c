/* SPDX-License-Identifier: Apache-2.0 */

/* The driver's exports to dma-bufs, which the simulated driver cannot answer: a file system has no
 * way to open a descriptor in its caller. Preloaded behind libaliquot.so. A dma-buf is an export
 * file of the simulated driver here, with the first object of the call. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu/rm/dma_buf.h"
#include "gpu/rm/export.h"

static int open_driver(void) {
        char path[4096];

        snprintf(path, sizeof path, "%s/nvidiactl", getenv("SIM_DIR"));
        return open(path, O_RDWR | O_CLOEXEC);
}

/* Waits for another thread, which is told through one pipe and answers through another. */
static void meet(void) {
        const char *pipes = getenv("DMA_BUF_PIPES");
        int to, from;
        char word = 0;

        if (pipes && sscanf(pipes, "%d %d", &to, &from) == 2)
                if (write(to, &word, 1) != 1 || read(from, &word, 1) != 1)
                        abort();
}

static uint32_t export_object(int fd, uint32_t client, uint32_t object, int32_t *ret_fd) {
        RmExport p = {.type = RM_EXPORT_TYPE_RM, .object = object, .fd = open_driver()};
        RmControl control = {.client = client,
                             .object = client,
                             .cmd = RM_CTRL_EXPORT_TO_FD,
                             .params = (uint64_t) (uintptr_t) &p,
                             .params_size = sizeof p};

        meet();
        if (syscall(SYS_ioctl, fd, RM_IOCTL(RM_ESC_CONTROL, sizeof control), &control) < 0 ||
            control.status != RM_OK) {
                close(p.fd);
                return control.status != RM_OK ? control.status : RM_ERR_INVALID_ARGUMENT;
        }
        *ret_fd = p.fd;
        return RM_OK;
}

int ioctl(int fd, unsigned long request, ...) {
        RmDmaBuf *new;
        va_list more;
        void *p;
        int old;

        va_start(more, request);
        p = va_arg(more, void *);
        va_end(more);
        if (rm_ioctl_nr(request) != RM_ESC_EXPORT_DMA_BUF)
                return (int) syscall(SYS_ioctl, fd, request, p);
        new = p;
        old = rm_ioctl_size(request) < sizeof *new;
        *(uint32_t *) ((char *) p + rm_ioctl_size(request) - 8) =
                new->n != 1 ? RM_ERR_INVALID_ARGUMENT
                            : export_object(fd, new->client, old ? *(uint32_t *) new->pad1 : new->handles[0],
                                            &new->fd);
        return 0;
}
