/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trace.h"

enum {
        OBJECTS = 8192,
        FDS = 1024,
        MEMFD_FIRST = 1100, /* descriptors that the program does not see */
        PAGE = 4096,
        UVM_CREATE_RANGE_GROUP = 23,
        CLASS_SYSTEM = 0x3E, /* NV01_MEMORY_SYSTEM */
        CLASS_LOCAL = 0x40,  /* NV01_MEMORY_LOCAL_USER */
        CLASS_OS_DESCRIPTOR = 0x71,
        STATUS_NOT_FOUND = 0x57, /* NV_ERR_OBJECT_NOT_FOUND */
        STATUS_INVALID_ARGUMENT = 0x1F,
};

typedef struct Object {
        uint32_t client, handle, class_;
        int memory; /* a memfd with its contents, or -1 */
        uint64_t size;
} Object;

static struct {
        pthread_mutex_t lock;
        Object objects[OBJECTS];
        size_t n;
        struct {
                int memory; /* plus 1 */
                uint64_t offset;
        } mapped[FDS]; /* by descriptor */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static Object *find(uint32_t client, uint32_t handle) {
        for (size_t i = state.n; i-- > 0;)
                if (state.objects[i].client == client && state.objects[i].handle == handle)
                        return &state.objects[i];
        return NULL;
}

void kernel_saw_alloc(uint32_t client, uint32_t object, uint32_t class_) {
        Object *o;

        (void) pthread_mutex_lock(&state.lock); /* a plain mutex: cannot fail */
        o = find(client, object);
        if (!o && state.n < OBJECTS)
                o = &state.objects[state.n++];
        if (o)
                *o = (Object){client, object, class_, -1, 0};
        (void) pthread_mutex_unlock(&state.lock);
}

/* ---- mappings ---- */

static void grow(Object *o, uint64_t size) {
        if (o->memory < 0) {
                int fd = memfd_create("native", MFD_CLOEXEC);

                o->memory = fcntl(fd, F_DUPFD_CLOEXEC, MEMFD_FIRST);
                (void) close(fd); /* the copy stays */
        }
        if (o->size < size && ftruncate(o->memory, (off_t) size) == 0)
                o->size = size;
}

typedef struct MapMemory { /* nv_ioctl_nvos33_parameters_with_fd */
        uint32_t client, device, memory, pad;
        uint64_t offset, length, address;
        uint32_t status, flags;
        int32_t fd;
        uint32_t pad1;
} MapMemory;

static void map_memory(MapMemory *p) {
        Object *o = find(p->client, p->memory);

        p->status = o ? 0 : STATUS_NOT_FOUND;
        if (!o)
                return;
        trace("map class=%#x bytes=%#lx offset=%#lx", o->class_, p->length, p->offset);
        grow(o, (p->offset + p->length + PAGE - 1) & ~(uint64_t) (PAGE - 1));
        if (p->fd >= 0 && p->fd < FDS) {
                state.mapped[p->fd].memory = o->memory + 1;
                state.mapped[p->fd].offset = p->offset;
        }
        p->address = (uint64_t) (o - state.objects + 1) << 40 | p->offset; /* only has to be one */
}

void *kernel_map(int fd, void *address, size_t length, int protection, int flags) {
        int memory = fd >= 0 && fd < FDS ? state.mapped[fd].memory - 1 : -1;
        off_t offset = memory >= 0 ? (off_t) state.mapped[fd].offset : 0;

        if (memory < 0)
                flags |= MAP_ANONYMOUS;
        return (void *) syscall(SYS_mmap, address, length, protection, flags, memory, offset);
}

/* ---- calls of nvidiactl and nvidiaN ---- */

/* Where the status is of calls that only have to succeed. */
static const struct {
        uint32_t nr, status_at;
} easy[] = {
        {0x4F, 24}, /* RM_UNMAP_MEMORY */
        {0x57, 48}, /* RM_MAP_MEMORY_DMA */
        {0x58, 32}, /* RM_UNMAP_MEMORY_DMA */
        {0x5E, 32}, /* RM_UPDATE_DEVICE_MAPPING_INFO */
        {0xCE, 12}, /* ALLOC_OS_EVENT */
        {0xCF, 12}, /* FREE_OS_EVENT */
};

static int easy_call(uint32_t nr, uint8_t *params, uint32_t size) {
        for (size_t i = 0; i < sizeof easy / sizeof *easy; i++)
                if (easy[i].nr == nr && easy[i].status_at + 4 <= size) {
                        memset(params + easy[i].status_at, 0, 4);
                        return 0;
                }
        return -EINVAL;
}

int kernel_escape(uint32_t nr, void *params, uint32_t size) {
        switch (nr) {
        case 0x4E: /* RM_MAP_MEMORY */
                if (size != sizeof(MapMemory))
                        return -EINVAL;
                (void) pthread_mutex_lock(&state.lock); /* as above */
                map_memory(params);
                (void) pthread_mutex_unlock(&state.lock);
                return 0;
        case 0xD4: /* ATTACH_GPUS_TO_FD */
        case 0xD6: /* SYS_PARAMS: the size of the machine's memory blocks, which is noted */
                return 0;
        case 0xD7: /* NUMA_INFO: the card's memory is no node of the machine */
                memset(params, 0, size);
                *(int32_t *) params = -1;
                return 0;
        case 0xDA: /* WAIT_OPEN_COMPLETE, since 550: the card is open, without an error */
                memset(params, 0, size);
                return 0;
        default:
                return easy_call(nr, params, size);
        }
}

/* ---- calls of nvidia-uvm ---- */

/* Those that only have to succeed, and the offset of rmStatus (uvm_ioctl.h; the same in 535 and
 * 550). */
static const struct {
        uint32_t nr, status_at;
} uvm_easy[] = {
        {UVM_CREATE_RANGE_GROUP, 8},
        {24, 8},  /* DESTROY_RANGE_GROUP */
        {27, 48}, /* REGISTER_CHANNEL */
        {28, 24}, /* UNREGISTER_CHANNEL */
        {31, 24}, /* SET_RANGE_GROUP */
        {72, 16}, /* VALIDATE_VA_RANGE */
};

int kernel_uvm(uint32_t nr, void *params) {
        static _Atomic uint64_t group;

        for (size_t i = 0; i < sizeof uvm_easy / sizeof *uvm_easy; i++) {
                if (uvm_easy[i].nr != nr)
                        continue;
                memset((uint8_t *) params + uvm_easy[i].status_at, 0, 4);
                if (nr == UVM_CREATE_RANGE_GROUP)
                        *(uint64_t *) params = ++group;
                return 0;
        }
        return -EINVAL;
}

/* ---- controls ---- */

typedef struct BuildVersion { /* NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_PARAMS */
        uint32_t size, pad;
        uint64_t driver, version, title;
        uint32_t changelist, official;
} BuildVersion;

static void put_text(uint64_t at, const char *text, size_t n) {
        memcpy((char *) (uintptr_t) at, text, n);
}

static uint32_t build_version(BuildVersion *p) {
        const char *version = getenv("NATIVE_VERSION");

        if (!version || p->size <= strlen(version) || p->size < sizeof "native")
                return STATUS_INVALID_ARGUMENT;
        put_text(p->driver, version, strlen(version) + 1);
        put_text(p->version, "native", sizeof "native");
        put_text(p->title, "native", sizeof "native");
        p->changelist = p->official = 1;
        return 0;
}

/* NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE: object, flags, and the answer. */
static uint32_t address_space(uint32_t client, uint32_t *p) {
        enum { SYSMEM = 1, VIDMEM, REGMEM };
        const Object *o;

        (void) pthread_mutex_lock(&state.lock); /* as above */
        o = find(client, p[0]);
        if (o)
                p[2] = o->class_ == CLASS_LOCAL                                        ? VIDMEM
                       : o->class_ == CLASS_SYSTEM || o->class_ == CLASS_OS_DESCRIPTOR ? SYSMEM
                                                                                       : REGMEM;
        (void) pthread_mutex_unlock(&state.lock);
        return o ? 0 : STATUS_NOT_FOUND;
}

/* NV0000_CTRL_CMD_GPU_GET_PCI_INFO: the card's number, which has the bus, then domain and bus. */
static uint32_t pci_info(uint32_t *p) {
        p[1] = 0;
        p[2] = p[0] >> 8 & 0xFF;
        return 0;
}

bool kernel_control(uint32_t cmd, uint32_t client, void *params, uint32_t *ret_status) {
        switch (cmd) {
        case 0x101:
                *ret_status = build_version(params);
                return true;
        case 0x21B:
                *ret_status = pci_info(params);
                return true;
        case 0xD01:
                *ret_status = address_space(client, params);
                return true;
        default:
                return false;
        }
}
