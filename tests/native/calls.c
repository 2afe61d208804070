/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "answers.h"
#include "events.h"
#include "files.h"
#include "gpu/rm/rm.h"
#include "kernel.h"
#include "trace.h"

/* ioctl() and mmap() on the files of the driver. The simulator is asked first. What it does not
 * know is answered by the table or by kernel.c, and the rest stays refused. Each call is a line of
 * the trace with the one that answered it. */

int native_ioctl(int fd, unsigned long request, ...) __asm__("ioctl");
void *native_mmap(void *address, size_t length, int protection, int flags, int fd,
                  off_t offset) __asm__("mmap");
void *native_mmap64(void *address, size_t length, int protection, int flags, int fd,
                    off_t offset) __asm__("mmap64");

enum {
        CLASS_EVENT_OS = 0x79, /* NV01_EVENT_OS_EVENT */
        CTRL_FB_INFO = 0x20801301,
        CTRL_FB_INFO_V2 = 0x20801303,
        HEAP_FUNCTION_SIZE = 2,
        HEAP_FUNCTION_FREE = 3,
        HEAP_FUNCTION_RANGE = 14,
};

static const char simulator[] = "simulator";

static void answer_control(RmControl *p) {
        const char *by = simulator;
        void *params = (void *) (uintptr_t) p->params;

        if (p->status == RM_OK && (p->cmd == CTRL_FB_INFO || p->cmd == CTRL_FB_INFO_V2))
                answers_add_fb(p->cmd, params);
        if (p->status == RM_ERR_NOT_SUPPORTED) {
                by = "nothing";
                if (kernel_control(p->cmd, p->client, p->object, params, &p->status)) {
                        by = "interposer";
                } else if (answers_fill(p->cmd, params, p->params_size)) {
                        p->status = RM_OK;
                        by = "table";
                }
        }
        trace("control %#x size=%u status=%#x by=%s", p->cmd, p->params_size, p->status, by);
}

static void note_alloc(const RmAlloc *p, uint32_t size) {
        const RmAllocRights *rights = (const RmAllocRights *) p;
        uint32_t status = size == sizeof *rights ? rights->status : p->status;
        uint32_t params_size = size == sizeof *rights ? rights->params_size : p->params_size;
        const RmMemoryParams *memory = (const RmMemoryParams *) (uintptr_t) p->params;
        uint64_t bytes =
                p->class_ == RM_CLASS_MEMORY_LOCAL || p->class_ == RM_CLASS_MEMORY_SYSTEM ? memory->size : 0;

        trace("alloc %#x size=%u bytes=%#lx status=%#x by=%s", p->class_, params_size, (unsigned long) bytes,
              status, simulator);
        if (p->class_ == CLASS_EVENT_OS && status == RM_OK)
                events_add((const EventsParams *) (uintptr_t) p->params);
        if (status == RM_OK)
                kernel_saw_alloc(
                        (KernelObject){p->root != 0 ? p->root : p->new, p->parent, p->new, p->class_}, bytes,
                        memory);
}

static void note_heap(const RmHeap *p) {
        bool allocates = p->function == HEAP_FUNCTION_SIZE || p->function == HEAP_FUNCTION_RANGE;
        uint32_t class_ = RM_CLASS_MEMORY_LOCAL;
        uint64_t size = p->function == HEAP_FUNCTION_RANGE ? ((const RmHeapRange *) p)->size : p->size;

        if (p->flags & RM_FLAG_VIRTUAL)
                class_ = RM_CLASS_MEMORY_VIRTUAL;
        else if ((p->attr >> RM_ATTR_LOCATION_SHIFT & RM_ATTR_LOCATION_MASK) != RM_ATTR_LOCATION_VIDMEM)
                class_ = RM_CLASS_MEMORY_SYSTEM;
        trace("heap %#x function=%u bytes=%#lx status=%#x by=%s", class_, p->function, (unsigned long) size,
              p->status, simulator);
        if (allocates && p->status == RM_OK)
                kernel_saw_alloc((KernelObject){p->root, p->parent, p->memory, class_},
                                 class_ == RM_CLASS_MEMORY_VIRTUAL ? 0 : size, NULL);
        if (p->function == HEAP_FUNCTION_FREE && p->status == RM_OK)
                kernel_saw_free(p->root, p->memory);
}

/* Calls that the simulator has answered, with objects that the card needs to know. */
static void note_call(uint32_t nr, const void *params) {
        const RmFree *f = params;
        const RmDup *d = params;
        const RmAllocMemory *m = params;

        if (nr == RM_ESC_FREE && f->status == RM_OK)
                kernel_saw_free(f->root, f->old);
        else if (nr == RM_ESC_DUP_OBJECT && d->status == RM_OK)
                kernel_saw_dup((KernelObject){d->client, d->parent, d->object, 0}, d->source_client,
                               d->source_object);
        else if (nr == RM_ESC_ALLOC_MEMORY && m->status == RM_OK)
                kernel_saw_program((KernelObject){m->root, m->parent, m->new, m->class_}, m->memory,
                                   m->limit + 1);
}

/* r: of the simulator. Returns what the caller gets, both negative errnos or 0. */
static int rm_call(uint32_t nr, uint32_t size, void *params, int r) {
        const char *by = simulator;

        if (r == 0 && nr == RM_ESC_CONTROL && size == sizeof(RmControl)) {
                answer_control(params);
                return 0;
        }
        if (r == 0 && nr == RM_ESC_ALLOC)
                note_alloc(params, size);
        else if (r == 0 && nr == RM_ESC_VID_HEAP_CONTROL)
                note_heap(params);
        else {
                if (r == 0)
                        note_call(nr, params);
                if (r == -EINVAL) {
                        r = kernel_escape(nr, params, size);
                        by = r == -EINVAL ? "nothing" : "interposer";
                }
                trace("escape %#x size=%u result=%d by=%s", nr, size, r, by);
        }
        return r;
}

static int uvm_call(uint32_t request, void *params, int r) {
        const char *by = simulator;

        if (r == 0)
                kernel_saw_uvm(request, params);
        if (r == -EINVAL) {
                r = kernel_uvm(request, params);
                by = r == -EINVAL ? "nothing" : "interposer";
        }
        trace("uvm %#x result=%d by=%s", request, r, by);
        return r;
}

int native_ioctl(int fd, unsigned long request, ...) {
        uint32_t nr = rm_ioctl_nr(request), size = rm_ioctl_size(request);
        FilesKind kind = files_kind(fd);
        void *params;
        va_list more;
        int r;

        va_start(more, request);
        params = va_arg(more, void *);
        va_end(more);
        r = (int) syscall(SYS_ioctl, fd, request, params);
        if (kind == FILES_OTHER)
                return r;
        r = r < 0 ? -errno : 0;
        r = kind == FILES_UVM ? uvm_call((uint32_t) request, params, r) : rm_call(nr, size, params, r);
        if (r < 0)
                errno = -r;
        return r < 0 ? -1 : 0;
}

/* The simulator's files have other contents than the driver's, so they are not mapped. */
void *native_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        FilesKind kind = fd >= 0 && !(flags & MAP_ANONYMOUS) ? files_kind(fd) : FILES_OTHER;

        if (kind == FILES_OTHER)
                return (void *) syscall(SYS_mmap, address, length, protection, flags, fd, offset);
        trace("mmap %s bytes=%#zx protection=%d flags=%#x offset=%#lx",
              kind == FILES_UVM    ? "uvm"
              : kind == FILES_CARD ? "card"
                                   : "ctl",
              length, protection, flags, (unsigned long) offset);
        return kind == FILES_UVM ? kernel_map_uvm(address, length, protection, flags)
                                 : kernel_map(fd, address, length, protection, flags);
}

void *native_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
        return native_mmap(address, length, protection, flags, fd, offset);
}
