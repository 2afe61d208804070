/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"
#include "events.h"
#include "gpu/rm/uvm_ioctl.h"
#include "memory.h"
#include "trace.h"

enum {
        FDS = 1024,
        PAGE = 4096,
        UVM_CREATE_RANGE_GROUP = 23,
        UVM_MIGRATE = 51,
        MAPPING_BYTES = 36, /* sizeof(UvmGpuMappingAttributes) */
        UVM_GPUS_535 = 32,  /* UVM_MAX_GPUS; later releases: UVM_GPUS_MAX */
        CLASS_USERMODE_VOLTA = 0xC361,
        CLASS_USERMODE_TURING = 0xC461,
        STATUS_NOT_FOUND = 0x57, /* NV_ERR_OBJECT_NOT_FOUND */
        STATUS_INVALID_ARGUMENT = 0x1F,
        REST_BUSY_NS = 20000, /* the card looks again after this time when it has nothing to do */
        REST_IDLE_NS = 500000,
        TURNS_UNTIL_IDLE = 2000,
};

typedef struct Object {
        uint32_t client, parent, handle, class_;
        uint32_t minor; /* of its card */
        Memory *memory; /* NULL: none yet, or none at all */
        struct Object *next;
} Object;

static struct {
        pthread_mutex_t lock;
        Object *objects; /* newest first */
        struct {
                Memory *memory;
                uint64_t offset;
        } mapped[FDS]; /* by descriptor */
        bool runs;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock(void) {
        (void) pthread_mutex_lock(&state.lock); /* a plain mutex: cannot fail */
}

static void unlock(void) {
        (void) pthread_mutex_unlock(&state.lock); /* as above */
}

/* ---- the card's thread ---- */

static void *run_card(void *unused) {
        unsigned turns = 0;

        (void) unused;
        for (;;) {
                struct timespec rest = {0, turns < TURNS_UNTIL_IDLE ? REST_BUSY_NS : REST_IDLE_NS};
                bool worked;

                lock();
                worked = channel_turn();
                unlock();
                turns = worked ? 0 : turns + 1;
                if (!worked)
                        (void) nanosleep(&rest, NULL); /* a shorter rest does no harm */
        }
        return NULL;
}

/* Signals of the program are not this thread's. */
static void start_card(void) {
        pthread_t thread;
        sigset_t all, before;

        if (state.runs)
                return;
        (void) sigfillset(&all);                            /* cannot fail */
        (void) pthread_sigmask(SIG_SETMASK, &all, &before); /* as above */
        if (pthread_create(&thread, NULL, run_card, NULL) != 0)
                abort();
        (void) pthread_detach(thread);                      /* it is there */
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL); /* as above */
        state.runs = true;
}

/* ---- objects ---- */

static Object *find(uint32_t client, uint32_t handle) {
        Object *o = state.objects;

        while (o && (o->client != client || o->handle != handle))
                o = o->next;
        return o;
}

static Memory *memory_of(uint32_t client, uint32_t handle) {
        const Object *o = find(client, handle);

        return o ? o->memory : NULL;
}

static void drop(Object **link) {
        Object *o = *link;

        *link = o->next;
        channel_free(o->client, o->handle);
        if (o->memory)
                channel_no_doorbell(o->memory);
        memory_unref(o->memory);
        free(o);
}

/* An object and all below it; a client's own object has its handle. */
static void free_tree(uint32_t client, uint32_t handle) {
        for (Object **o = &state.objects; *o;) {
                if ((*o)->client == client && (*o)->handle == handle) {
                        drop(o);
                } else if ((*o)->client == client && (*o)->parent == handle && (*o)->handle != handle) {
                        free_tree(client, (*o)->handle);
                        o = &state.objects; /* the list has changed */
                } else {
                        o = &(*o)->next;
                }
        }
}

static void add(KernelObject k, uint32_t minor, Memory *memory) {
        Object *o = malloc(sizeof *o);

        if (!o)
                abort();
        *o = (Object){k.client, k.parent, k.handle, k.class_, minor, memory, state.objects};
        state.objects = o;
}

/* The card of the device above. */
static uint32_t minor_of(KernelObject k) {
        const Object *parent = find(k.client, k.parent);

        return parent ? parent->minor : 0;
}

void kernel_saw_alloc(KernelObject o, uint64_t bytes, const void *params) {
        uint32_t minor;

        lock();
        if (o.class_ == RM_CLASS_DEVICE && params) /* cards have their instance for minor here */
                minor = ((const RmDeviceParams *) params)->device;
        else
                minor = minor_of(o);
        add(o, minor, bytes > 0 ? memory_new(bytes) : NULL);
        if (rm_class_is_channel(o.class_) && params) {
                channel_new((TimingGroup){o.client, o.parent, minor}, o.handle, params, memory_of);
                start_card();
        }
        unlock();
}

void kernel_saw_program(KernelObject o, uint64_t address, uint64_t bytes) {
        lock();
        add(o, minor_of(o), memory_of_program(address, bytes));
        unlock();
}

void kernel_saw_free(uint32_t client, uint32_t handle) {
        lock();
        free_tree(client, handle);
        unlock();
}

void kernel_saw_dup(KernelObject o, uint32_t from_client, uint32_t from) {
        const Object *source;

        lock();
        source = find(from_client, from);
        if (source) {
                o.class_ = source->class_;
                add(o, minor_of(o), source->memory ? memory_ref(source->memory) : NULL);
        }
        unlock();
}

/* ---- mappings ---- */

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
        if (!o->memory) /* registers */
                o->memory = memory_new(p->offset + p->length);
        if (o->class_ == CLASS_USERMODE_VOLTA || o->class_ == CLASS_USERMODE_TURING)
                channel_doorbell(o->memory);
        if (p->fd >= 0 && p->fd < FDS) {
                memory_unref(state.mapped[p->fd].memory);
                state.mapped[p->fd].memory = memory_ref(o->memory);
                state.mapped[p->fd].offset = p->offset;
        }
        p->address = (uint64_t) p->memory << 16 | p->offset; /* only has to be one */
}

void *kernel_map(int fd, void *address, size_t length, int protection, int flags) {
        uint64_t at = 0, offset = 0;
        int file = -1;

        lock();
        if (fd >= 0 && fd < FDS && state.mapped[fd].memory) {
                file = memory_file(state.mapped[fd].memory, &at);
                offset = state.mapped[fd].offset;
        }
        unlock();
        if (file < 0)
                flags |= MAP_ANONYMOUS;
        return (void *) syscall(SYS_mmap, address, length, protection, flags, file, (off_t) (at + offset));
}

/* Memory of UVM has the same address for the program and the card. */
void *kernel_map_uvm(void *address, size_t length, int protection, int flags) {
        void *at = (void *) syscall(SYS_mmap, address, length, protection, flags | MAP_ANONYMOUS, -1, 0);
        Memory *m;

        if (at == MAP_FAILED)
                return at;
        lock();
        m = memory_of_program((uintptr_t) at, length);
        memory_map((uintptr_t) at, length, m, 0);
        memory_unref(m); /* the mapping has it */
        unlock();
        return at;
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

enum { FREE_OS_EVENT = 0xCF, FD_OF_EVENT = 8 }; /* nv_ioctl_free_os_event_t */

static int easy_call(uint32_t nr, uint8_t *params, uint32_t size) {
        for (size_t i = 0; i < sizeof easy / sizeof *easy; i++)
                if (easy[i].nr == nr && easy[i].status_at + 4 <= size) {
                        if (nr == FREE_OS_EVENT)
                                events_closed(*(int32_t *) (params + FD_OF_EVENT));
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
                lock();
                map_memory(params);
                unlock();
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
        {42, 32}, /* SET_PREFERRED_LOCATION; 36 in 550 */
        {43, 16}, /* UNSET_PREFERRED_LOCATION */
        {44, 16}, /* ENABLE_READ_DUPLICATION */
        {45, 16}, /* DISABLE_READ_DUPLICATION */
        {46, 32}, /* SET_ACCESSED_BY */
        {47, 32}, /* UNSET_ACCESSED_BY */
        {UVM_MIGRATE, 72},
        {65, 32}, /* MAP_DYNAMIC_PARALLELISM_REGION */
        {72, 16}, /* VALIDATE_VA_RANGE */
};

static size_t uvm_gpus(void) {
        const char *version = getenv("NATIVE_VERSION");

        return version && strtoul(version, NULL, 10) < 550 ? UVM_GPUS_535 : UVM_GPUS_MAX;
}

/* UVM_MAP_EXTERNAL_ALLOCATION_PARAMS: what follows the list of cards is behind it. */
static void saw_map(const UvmMapExternal *p) {
        const struct {
                uint64_t n;
                int32_t ctl;
                uint32_t client, memory, status;
        } *rest = (const void *) ((const uint8_t *) p->gpus + uvm_gpus() * MAPPING_BYTES);
        const Object *o = find(rest->client, rest->memory);

        trace("external address=%#lx bytes=%#lx offset=%#lx memory=%#x status=%#x", p->base, p->length,
              p->offset, rest->memory, rest->status);
        if (rest->status == 0 && o && o->memory)
                memory_map(p->base, p->length, o->memory, p->offset);
}

/* UVM_FREE_PARAMS of 535 and 550. */
static void saw_free(const uint64_t *p) {
        if ((uint32_t) p[2] == 0)
                memory_unmap(p[0], p[1]);
}

static void saw_unmap(const UvmUnmapExternal *p) {
        if (p->status == 0)
                memory_unmap(p->base, p->length);
}

void kernel_saw_uvm(uint32_t nr, const void *params) {
        lock();
        if (nr == UVM_MAP_EXTERNAL_CMD)
                saw_map(params);
        else if (nr == UVM_FREE_CMD)
                saw_free(params);
        else if (nr == UVM_UNMAP_EXTERNAL_CMD)
                saw_unmap(params);
        unlock();
}

/* Nothing has to move: all memory is the machine's. A semaphore of the pool tells that it is
 * done. */
static void migrated(const void *params) {
        const struct { /* UVM_MIGRATE_PARAMS */
                uint64_t base, length;
                uint8_t to[16];
                uint32_t flags, pad0;
                uint64_t semaphore;
                uint32_t payload;
        } *p = params;
        uint64_t fault;

        lock();
        if (p->semaphore != 0 && !memory_store(p->semaphore, &p->payload, sizeof p->payload, &fault))
                trace("migrate semaphore=%#lx is not mapped", p->semaphore);
        unlock();
}

int kernel_uvm(uint32_t nr, void *params) {
        static _Atomic uint64_t group;

        for (size_t i = 0; i < sizeof uvm_easy / sizeof *uvm_easy; i++) {
                if (uvm_easy[i].nr != nr)
                        continue;
                memset((uint8_t *) params + uvm_easy[i].status_at, 0, 4);
                if (nr == UVM_CREATE_RANGE_GROUP)
                        *(uint64_t *) params = ++group;
                if (nr == UVM_MIGRATE)
                        migrated(params);
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

        lock();
        o = find(client, p[0]);
        if (o)
                p[2] = o->class_ == RM_CLASS_MEMORY_LOCAL                                           ? VIDMEM
                       : o->class_ == RM_CLASS_MEMORY_SYSTEM || o->class_ == RM_CLASS_OS_DESCRIPTOR ? SYSMEM
                                                                                                    : REGMEM;
        unlock();
        return o ? 0 : STATUS_NOT_FOUND;
}

/* NVC36F_CTRL_CMD_GET_CLASS_ENGINEID: the object, and what SET_OBJECT gets for it, class,
 * engine. */
static uint32_t class_engine(uint32_t client, uint32_t *p) {
        const Object *o;

        lock();
        o = find(client, p[0]);
        if (o) {
                p[1] = p[2] = o->class_;
                p[3] = 0;
        }
        unlock();
        return o ? 0 : STATUS_NOT_FOUND;
}

/* NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN */
static uint32_t submit_token(uint32_t client, uint32_t object, uint32_t *p) {
        lock();
        p[0] = channel_token(client, object);
        unlock();
        return p[0] ? 0 : STATUS_NOT_FOUND;
}

/* NV0000_CTRL_CMD_GPU_GET_PCI_INFO: the card's number, which has the bus, then domain and bus. */
static uint32_t pci_info(uint32_t *p) {
        p[1] = 0;
        p[2] = p[0] >> 8 & 0xFF;
        return 0;
}

/* NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES and its clear: no processor has an error, but an
 * address may have had a fault. */
static uint32_t error_states(uint32_t cmd, uint8_t *p) {
        enum { READ = 0x83DE030C, MMU_FAULT_VALID = 4812, PARAMS = 4824 };

        lock();
        if (cmd == READ) {
                memset(p + 8, 0, PARAMS - 8);
                p[MMU_FAULT_VALID] = channel_has_mmu_fault();
        } else {
                channel_clear_mmu_fault();
        }
        unlock();
        return 0;
}

bool kernel_control(uint32_t cmd, uint32_t client, uint32_t object, void *params, uint32_t *ret_status) {
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
        case 0x83DE030C:
        case 0x83DE0310:
                *ret_status = error_states(cmd, params);
                return true;
        case 0xC36F0101:
                *ret_status = class_engine(client, params);
                return true;
        case 0xC36F0108:
                *ret_status = submit_token(client, object, params);
                return true;
        default:
                return false;
        }
}
