/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "gpu/rm/export.h"
#include "gpu/rm/fabric.h"
#include "gpu/rm/heap.h"
#include "sim/call.h"
#include "sim/export.h"

/* The three calls by which a program gets objects, and memory with them. As in
 * serverAllocApiCopyIn(), the parameters of a class are read first, before anything is looked up.
 * Their size is that of the class, whatever the caller says. */

enum {
        CLASS_EVENT = 0x5,
        CLASS_EVENT_CALLBACK = 0x78,
        CLASS_EVENT_OS = 0x79,
        CLASS_EVENT_CALLBACK_EX = 0x7E,
        CLASS_MEMORY_PRIVILEGED = 0x3F,
        SYSTEM_PAGE = 4096,
        OWNER_DRIVER_FIRST = (int) 0xDEAF0000, /* HEAP_OWNER_RM_SCRATCH_BEGIN */
        OWNER_DRIVERS = 4,
};

static bool is_root(uint32_t class_) {
        return class_ == RM_CLASS_ROOT || class_ == RM_CLASS_ROOT_NON_PRIV || class_ == RM_CLASS_ROOT_CLIENT;
}

/* only events can be made on a card's file */
static bool is_event(uint32_t class_) {
        return class_ == CLASS_EVENT || class_ == CLASS_EVENT_CALLBACK || class_ == CLASS_EVENT_OS ||
               class_ == CLASS_EVENT_CALLBACK_EX;
}

static bool owner_is_valid(uint32_t owner) {
        return owner != 0 && owner != UINT32_MAX && owner - (uint32_t) OWNER_DRIVER_FIRST >= OWNER_DRIVERS;
}

/* stdmemValidateParams(), then vidmemConstruct(). On success p holds what the driver chose. */
static uint32_t check_memory(RmMemoryParams *p) {
        if (p->internal_flags != 0 || p->size == 0)
                return RM_ERR_INVALID_ARGUMENT;
        if (!owner_is_valid(p->owner))
                return RM_ERR_INVALID_OWNER;
        if ((p->attr >> RM_ATTR_LOCATION_SHIFT & RM_ATTR_LOCATION_MASK) != RM_ATTR_LOCATION_VIDMEM ||
            (p->flags & RM_FLAG_VIRTUAL))
                return RM_ERR_INVALID_ARGUMENT;
        switch (sim_card_round(p->size, &p->attr, p->attr2, &p->size)) {
        case 0:
                return RM_OK;
        case SIM_CARD_E_FULL:
                return RM_ERR_NO_MEMORY;
        default:
                return RM_ERR_INVALID_STATE; /* _vidmemQueryAlignment(): unknown page size */
        }
}

/* vidmemConstruct_IMPL() in video_mem.c of 615.71.09 charges pAllocData->size, before the allocator
 * rounds it. */
static uint32_t charge_memory(SimCall *k, const SimClient *client, SimWish *w, uint64_t asked) {
        SimAccount *a = &k->file->sim->account;
        const SimObject *parent = sim_object_find(client, w->parent);
        SimCaller *c = k->caller;
        SimCgroup creator, current;
        bool has_creator, has_current;

        w->charge = NULL;
        if (a->o.kind == SIM_LIMITS_NONE || !c->cgroup)
                return RM_OK;
        has_creator = c->cgroup(c, client->pid, client->started, &creator);
        has_current = c->cgroup(c, c->pid(c), c->started(c), &current);
        return sim_account_charge(a, parent->card, has_creator ? &creator : NULL,
                                  has_current ? &current : NULL, asked, &w->charge);
}

static uint32_t new_memory(SimCall *k, uint32_t client, SimWish *w, RmMemoryParams *p, uint32_t *ret_handle) {
        uint64_t asked = p->size;
        uint32_t status;
        SimClient *c;
        SimObject *o;

        status = sim_call_client(k, client, &c);
        if (status == RM_OK && !sim_object_find(c, w->parent))
                status = RM_ERR_OBJECT_NOT_FOUND;
        if (status == RM_OK)
                status = check_memory(p);
        if (status != RM_OK)
                return status;
        w->bytes = p->size;
        status = charge_memory(k, c, w, asked);
        if (status != RM_OK)
                return status;
        status = sim_object_new(c, w, &o);
        if (status != RM_OK) {
                sim_account_release(w->charge);
                return status;
        }
        p->offset = o->block->extents[0].start;
        p->limit = p->size - 1;
        p->address = 0;
        *ret_handle = o->handle;
        return RM_OK;
}

static uint32_t new_plain(SimCall *k, uint32_t client, const SimWish *w, uint32_t *ret_handle) {
        uint32_t status;
        SimClient *c;
        SimObject *o;

        status = sim_call_client(k, client, &c);
        if (status == RM_OK)
                status = sim_object_new(c, w, &o);
        if (status == RM_OK)
                *ret_handle = o->handle;
        return status;
}

/* sysmemConstruct_IMPL(): memory of the machine has pages of 4 KiB
 * (memmgrDeterminePageSize_IMPL()), and the size comes back rounded to them. libcuda maps as much
 * as it is told. */
static uint32_t round_system(RmMemoryParams *p) {
        if (p->size > UINT64_MAX - SYSTEM_PAGE)
                return RM_ERR_NO_MEMORY;
        p->size = (p->size + SYSTEM_PAGE - 1) / SYSTEM_PAGE * SYSTEM_PAGE;
        p->limit = p->size - 1;
        return RM_OK;
}

/* If its parameters cannot be copied out, the object stays (serverAllocApiCopyOut()). A client that
 * chose the handle itself has it then. */
static uint32_t alloc_memory(SimCall *k, uint32_t client, SimWish *w, uint64_t at, uint32_t *ret_handle) {
        size_t size = k->file->sim->release.facts->memory_params;
        bool local = w->class_ == RM_CLASS_MEMORY_LOCAL;
        RmMemoryParams p = {0};
        uint32_t status;

        if (at == 0)
                return local ? RM_ERR_INVALID_ARGUMENT : new_plain(k, client, w, ret_handle);
        if (k->caller->read(k->caller, at, &p, size) < 0)
                return RM_ERR_INVALID_ADDRESS;
        status = local ? new_memory(k, client, w, &p, ret_handle) : round_system(&p);
        if (status == RM_OK && !local)
                status = new_plain(k, client, w, ret_handle);
        if (status == RM_OK && k->caller->write(k->caller, at, &p, size) < 0)
                return RM_ERR_INVALID_ADDRESS;
        return status;
}

static uint32_t alloc_device(SimCall *k, uint32_t client, SimWish *w, uint64_t at, uint32_t *ret_handle) {
        RmDeviceParams p;

        if (at == 0) /* resservResourceFactory() */
                return RM_ERR_INVALID_ARGUMENT;
        if (k->caller->read(k->caller, at, &p, sizeof p) < 0)
                return RM_ERR_INVALID_ADDRESS;
        w->instance = p.device;
        return new_plain(k, client, w, ret_handle);
}

static uint32_t alloc_subdevice(SimCall *k, uint32_t client, SimWish *w, uint64_t at, uint32_t *ret_handle) {
        RmSubdeviceParams p = {0};

        if (at != 0 && k->caller->read(k->caller, at, &p, sizeof p) < 0)
                return RM_ERR_INVALID_ADDRESS;
        w->instance = p.subdevice;
        return new_plain(k, client, w, ret_handle);
}

/* memoryfabricConstruct_IMPL(): the object holds the memory that it is made with. Addresses, and
 * flexible objects, are not simulated. */
static uint32_t alloc_fabric(SimCall *k, uint32_t client, SimWish *w, uint64_t at, uint32_t *ret_handle) {
        RmExportMem one = {.n = 1};
        RmFabricParams p;
        uint32_t status;
        SimClient *c;
        SimObject *o;

        if (at == 0)
                return RM_ERR_INVALID_ARGUMENT;
        if (k->caller->read(k->caller, at, &p, sizeof p) < 0)
                return RM_ERR_INVALID_ADDRESS;
        if (p.flags & RM_FABRIC_FLEXIBLE)
                return RM_ERR_NOT_SUPPORTED;
        status = sim_call_client(k, client, &c);
        if (status == RM_OK)
                status = sim_object_new(c, w, &o);
        if (status != RM_OK)
                return status;
        one.handles[0] = p.memory;
        if (p.memory != 0 && (status = sim_export_object(o, &one)) != RM_OK)
                sim_object_free(o);
        else
                *ret_handle = o->handle;
        return status;
}

/* hRoot is the wanted handle of a client. Its optional parameter, a handle, is not read. */
static uint32_t alloc_root(SimCall *k, uint32_t wanted, uint32_t *ret_handle) {
        SimCaller *caller = k->caller;
        SimProcess process = {caller->pid(caller), caller->uid,
                              caller->started ? caller->started(caller) : 0};
        SimClient *c;
        uint32_t status = sim_client_new(k->file, wanted, process, &c);

        if (status == RM_OK)
                *ret_handle = c->handle;
        return status;
}

static uint32_t alloc(SimCall *k, uint32_t client, SimWish *w, uint64_t at, uint32_t *ret_handle) {
        if (!sim_release_has_class(&k->file->sim->release, w->class_)) /* rmapiGetClassAllocParamSize() */
                return RM_ERR_INVALID_CLASS;
        switch (w->class_) {
        case RM_CLASS_MEMORY_LOCAL:
        case RM_CLASS_MEMORY_SYSTEM:
                return alloc_memory(k, client, w, at, ret_handle);
        case RM_CLASS_DEVICE:
                return alloc_device(k, client, w, at, ret_handle);
        case RM_CLASS_SUBDEVICE:
                return alloc_subdevice(k, client, w, at, ret_handle);
        case RM_CLASS_MEMORY_FABRIC:
                return alloc_fabric(k, client, w, at, ret_handle);
        default:
                return new_plain(k, client, w, ret_handle);
        }
}

int sim_call_alloc(SimCall *k, void *params, size_t n) {
        RmAlloc *p = params; /* RmAllocRights begins in the same way */
        uint32_t *status = n == sizeof(RmAllocRights) ? &((RmAllocRights *) params)->status : &p->status;
        SimWish w = {.parent = p->parent, .handle = p->new, .class_ = p->class_};

        if (k->file->kind != SIM_FILE_CTL && !is_event(p->class_))
                return -EINVAL;
        if (!is_root(p->class_)) {
                *status = alloc(k, p->root, &w, p->params, &p->new);
                return 0;
        }
        p->class_ = RM_CLASS_ROOT_CLIENT;
        *status = alloc_root(k, p->root, &p->new);
        return 0;
}

/* NVOS05_PARAMETERS, for objects without parameters */
int sim_call_alloc_object(SimCall *k, void *params, size_t n) {
        uint32_t *p = params; /* root, parent, new, class, status */
        SimWish w = {.parent = p[1], .handle = p[2], .class_ = p[3]};

        p[4] = is_root(w.class_) ? RM_ERR_INVALID_CLASS : alloc(k, p[0], &w, 0, &p[2]);
        return 0;
}

/* ---- RM_ESC_ALLOC_MEMORY ---- */

enum {
        OS02_LOCATION_SHIFT = 8,
        OS02_LOCATION_MASK = 15,
        OS02_ALLOC_SHIFT = 16,
        OS02_ALLOC_MASK = 3,
        OS02_NONE = 1
};

static bool os02_is_none(const RmAllocMemory *p) {
        return (p->flags >> OS02_ALLOC_SHIFT & OS02_ALLOC_MASK) == OS02_NONE;
}

static uint32_t alloc_os02(SimCall *k, SimWish *w, RmAllocMemory *p) {
        const SimObject *o;
        SimClient *c;
        uint32_t status;

        if (w->class_ == RM_CLASS_MEMORY_SYSTEM &&
            ((p->flags >> OS02_LOCATION_SHIFT & OS02_LOCATION_MASK) != 0 || os02_is_none(p)))
                return RM_ERR_INVALID_FLAGS;
        if (w->class_ == CLASS_MEMORY_PRIVILEGED && !os02_is_none(p))
                return RM_ERR_INVALID_FLAGS;
        if (w->class_ != RM_CLASS_MEMORY_LOCAL)
                return new_plain(k, p->root, w, &p->new);
        /* Gives no memory in spite of its name: an object without memory, and the size of the
         * card's. */
        w->class_ = RM_CLASS_MEMORY_DYNAMIC;
        status = new_plain(k, p->root, w, &p->new);
        if (status != RM_OK || sim_call_client(k, p->root, &c) != RM_OK)
                return status;
        o = sim_object_find(c, p->new);
        p->limit = k->file->sim->cards[o->card].bytes - 1;
        return RM_OK;
}

/* rmapi_deprecated_allocmemory.c */
int sim_call_alloc_memory(SimCall *k, void *params, size_t n) {
        RmAllocMemory *p = params;
        SimWish w = {.parent = p->parent, .handle = p->new, .class_ = p->class_};

        switch (p->class_) {
        case RM_CLASS_MEMORY_SYSTEM:
        case RM_CLASS_MEMORY_DYNAMIC:
        case RM_CLASS_MEMORY_LOCAL:
        case CLASS_MEMORY_PRIVILEGED:
        case RM_CLASS_OS_DESCRIPTOR:
                p->status = alloc_os02(k, &w, p);
                return 0;
        case RM_CLASS_MEMORY_FLA: /* until 580 */
                p->status = alloc(k, p->root, &w, 0, &p->new);
                return 0;
        default:
                p->status = RM_ERR_INVALID_CLASS;
                return 0;
        }
}

/* ---- RM_ESC_VID_HEAP_CONTROL: rmapi_deprecated_vidheapctrl.c ---- */

static uint32_t heap_alloc(SimCall *k, RmHeap *p, RmMemoryParams *m) {
        SimWish w = {.parent = p->parent,
                     .handle = p->flags & RM_FLAG_HANDLE_GIVEN ? p->memory : 0,
                     .class_ = RM_CLASS_MEMORY_LOCAL};

        p->memory = w.handle;
        p->total = p->free = 0;
        if (m->flags & RM_FLAG_VIRTUAL)
                w.class_ = RM_CLASS_MEMORY_VIRTUAL;
        else if ((m->attr >> RM_ATTR_LOCATION_SHIFT & RM_ATTR_LOCATION_MASK) != RM_ATTR_LOCATION_VIDMEM)
                w.class_ = RM_CLASS_MEMORY_SYSTEM;
        if (w.class_ == RM_CLASS_MEMORY_LOCAL)
                return new_memory(k, p->root, &w, m, &p->memory);
        if (m->size == 0)
                return RM_ERR_INVALID_ARGUMENT;
        if (w.class_ == RM_CLASS_MEMORY_SYSTEM && round_system(m) != RM_OK)
                return RM_ERR_NO_MEMORY;
        return owner_is_valid(m->owner) ? new_plain(k, p->root, &w, &p->memory) : RM_ERR_INVALID_OWNER;
}

static uint32_t heap_alloc_size(SimCall *k, RmHeap *p) {
        RmMemoryParams m = {
                .owner = p->owner, .type = p->type, .flags = p->flags, .attr = p->attr, .size = p->size};
        uint32_t status = heap_alloc(k, p, &m);

        p->attr = m.attr;
        p->size = m.size;
        p->partition_stride = 256;
        return status;
}

static uint32_t heap_alloc_range(SimCall *k, RmHeapRange *p) {
        RmMemoryParams m = {
                .owner = p->owner, .type = p->type, .flags = p->flags, .attr = p->attr, .size = p->size};
        uint32_t status = heap_alloc(k, (RmHeap *) p, &m);

        p->attr = m.attr;
        p->size = m.size;
        p->partition_stride = 256;
        return status;
}

static uint32_t heap_alloc_pitch(SimCall *k, RmHeapPitch *p) {
        RmMemoryParams m = {.owner = p->owner,
                            .type = p->type,
                            .flags = p->flags,
                            .attr = p->attr,
                            .size = (uint64_t) p->height * (uint64_t) (int64_t) p->pitch};
        uint32_t status = heap_alloc(k, (RmHeap *) p, &m);

        p->attr = m.attr;
        p->size = m.size;
        p->partition_stride = 256;
        return status;
}

static uint32_t heap_free(SimCall *k, const RmHeapFree *p) {
        uint32_t status;
        SimClient *c;
        SimObject *o;

        if (!(p->flags & 1))
                return RM_ERR_INVALID_ARGUMENT;
        status = sim_call_client(k, p->root, &c);
        if (status != RM_OK)
                return status;
        o = sim_object_find(c, p->memory);
        if (o == c->root)
                sim_client_free(c);
        else if (o)
                sim_object_free(o);
        return RM_OK;
}

static uint32_t heap_info(SimCall *k, RmHeapInfo *p) {
        const SimObject *o;
        const SimCard *card;
        SimExtent largest;
        SimClient *c;
        uint32_t status;

        status = sim_call_client(k, p->root, &c);
        if (status != RM_OK)
                return status;
        o = sim_object_find(c, p->parent);
        if (!o)
                return RM_ERR_OBJECT_NOT_FOUND;
        if (o->class_ != RM_CLASS_DEVICE)
                return RM_ERR_INVALID_OBJECT_PARENT;
        card = &k->file->sim->cards[o->card];
        largest = sim_card_largest(card);
        p->total = card->bytes - card->reserved;
        p->free = sim_card_free(card);
        p->base = card->reserved;
        p->largest = largest.bytes;
        p->largest_at = largest.start;
        return RM_OK;
}

int sim_call_heap(SimCall *k, void *params, size_t n) {
        RmHeap *p = params;

        if (p->ivc > 0) {
                p->status = RM_ERR_NOT_SUPPORTED;
                return 0;
        }
        switch (p->function) {
        case RM_HEAP_ALLOC_SIZE:
                p->status = heap_alloc_size(k, p);
                return 0;
        case RM_HEAP_ALLOC_SIZE_RANGE:
                p->status = heap_alloc_range(k, params);
                return 0;
        case RM_HEAP_ALLOC_PITCH_HEIGHT:
                p->status = heap_alloc_pitch(k, params);
                return 0;
        case RM_HEAP_FREE:
                p->status = heap_free(k, params);
                return 0;
        case RM_HEAP_INFO:
                p->status = heap_info(k, params);
                return 0;
        default:
                p->status = RM_ERR_INVALID_ARGUMENT;
                return 0;
        }
}
