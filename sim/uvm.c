/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/uvm_ioctl.h"

#include <assert.h>
#include <errno.h>

#include "gpu/rm/rm.h"
#include "sim/call.h"
#include "sim/uvm_space.h"

/* The UUID as 16 bytes, in the order of its text, which is one of gpu/cards/simulated_cards.c. */
void sim_uuid_bytes(const SimCard *c, uint8_t ret[static 16]) {
        const char *digits = "0123456789abcdef";
        size_t n = 0;

        memset(ret, 0, 16);
        for (const char *p = c->about.uuid + strcspn(c->about.uuid, "-"); *p && n < 32; p++) {
                const char *digit = strchr(digits, *p);

                if (!digit)
                        continue;
                ret[n / 2] = (uint8_t) (ret[n / 2] << 4 | (digit - digits));
                n++;
        }
}

/* SIM_CARDS_MAX: there is none. */
static uint32_t card_of(const Sim *s, const uint8_t uuid[static 16]) {
        uint8_t bytes[16];

        for (uint32_t i = 0; i < s->n_cards; i++) {
                sim_uuid_bytes(&s->cards[i], bytes);
                if (memcmp(bytes, uuid, sizeof bytes) == 0)
                        return i;
        }
        return SIM_CARDS_MAX;
}

/* UVM_MIGRATE, as far as it is obeyed here: to a card, and done when the call returns. */
enum { UVM_MIGRATE_CMD = 51 };

typedef struct UvmMigrate {
        uint64_t base, length;
        uint8_t uuid[16];
        uint32_t flags, pad0;
        uint64_t semaphore;
        uint32_t payload;
        int32_t node;
        uint64_t rest, rest_length; /* out: what the caller has to move itself */
        uint32_t status, pad1;
} UvmMigrate;
static_assert(sizeof(UvmMigrate) == 80, "UVM_MIGRATE_PARAMS of uvm_ioctl.h");

typedef union Params {
        UvmInitialize initialize;
        UvmRegisterGpu register_gpu;
        UvmUnregisterGpu unregister_gpu;
        UvmPageableMemAccess pageable;
        UvmPageableOnGpu pageable_on;
        UvmMmInitialize mm;
        UvmRegisterVaspace vaspace;
        UvmMapExternal map;
        UvmAllocPool pool;
        UvmFree free;
        UvmCreateRange range; /* and UvmFree before 590 */
        UvmUnmapExternal unmap;
        UvmAllocP2p p2p;
        UvmMigrate migrate;
} Params;

static size_t size_of(const RmRelease *release, uint32_t request) {
        size_t absent = sizeof(UvmMapping) * (size_t) (UVM_GPUS_MAX - release->uvm_gpus);

        switch (request) {
        case UVM_INITIALIZE_CMD:
                return sizeof(UvmInitialize);
        case UVM_REGISTER_GPU_CMD:
                return sizeof(UvmRegisterGpu);
        case UVM_UNREGISTER_GPU_CMD:
        case UVM_UNREGISTER_VASPACE_CMD:
                return sizeof(UvmUnregisterGpu);
        case UVM_PAGEABLE_MEM_ACCESS_CMD:
                return sizeof(UvmPageableMemAccess);
        case UVM_PAGEABLE_ON_GPU_CMD:
                return sizeof(UvmPageableOnGpu);
        case UVM_MM_INITIALIZE_CMD:
                return sizeof(UvmMmInitialize);
        case UVM_REGISTER_VASPACE_CMD:
                return sizeof(UvmRegisterVaspace);
        case UVM_MAP_EXTERNAL_CMD:
                return sizeof(UvmMapExternal) - absent;
        case UVM_ALLOC_POOL_CMD:
                return sizeof(UvmAllocPool) - absent;
        case UVM_FREE_CMD:
                return release->uvm_free;
        case UVM_UNMAP_EXTERNAL_CMD:
        case UVM_MAP_SPARSE_CMD:
                return sizeof(UvmUnmapExternal);
        case UVM_CREATE_RANGE_CMD:
                return sizeof(UvmCreateRange);
        case UVM_ALLOC_P2P_CMD:
                return release->uvm_p2p ? sizeof(UvmAllocP2p) : 0;
        case UVM_MIGRATE_CMD:
                return sizeof(UvmMigrate);
        default:
                return 0;
        }
}

/* What follows the list of cards lies further in front in older releases. */
static void move_rest(Params *p, size_t at, size_t n, const RmRelease *release, bool back) {
        uint8_t *bytes = (uint8_t *) p;
        size_t old = at - sizeof(UvmMapping) * (size_t) (UVM_GPUS_MAX - release->uvm_gpus);

        memmove(bytes + (back ? old : at), bytes + (back ? at : old), n);
}

static void move_lists(Params *p, uint32_t request, const RmRelease *release, bool back) {
        if (request == UVM_MAP_EXTERNAL_CMD)
                move_rest(p, offsetof(UvmMapExternal, n),
                          sizeof(UvmMapExternal) - offsetof(UvmMapExternal, n), release, back);
        else if (request == UVM_ALLOC_POOL_CMD)
                move_rest(p, offsetof(UvmAllocPool, n), sizeof(UvmAllocPool) - offsetof(UvmAllocPool, n),
                          release, back);
}

/* uvm_va_space_initialize(): a second call with the same flags succeeds, with others it fails. HMM
 * is as on a kernel and a machine that have it. */
static void initialize(SimFile *f, UvmInitialize *p) {
        bool hmm = !(p->flags & UVM_INIT_DISABLE_HMM);

        p->status = RM_ERR_INVALID_ARGUMENT;
        if ((p->flags & ~(uint64_t) f->sim->release.facts->uvm_flags) || (f->initialized && hmm != f->hmm))
                return;
        f->initialized = true;
        f->hmm = hmm;
        p->status = RM_OK;
}

/* ---- memory objects ---- */

/* dupMemory() of nv_gpu_ops.c, with the rights of the caller. NULL: *status says why. */
static const SimObject *object_of(const SimCall *k, uint32_t client, uint32_t memory, uint32_t *status) {
        const SimClient *c = sim_client_find(k->file->sim, client);
        const SimObject *o = c ? sim_object_find(c, memory) : NULL;

        *status = !c                         ? RM_ERR_INVALID_OBJECT_HANDLE
                  : !o                       ? RM_ERR_OBJECT_NOT_FOUND
                  : c->uid != k->caller->uid ? RM_ERR_INSUFFICIENT_PERMISSIONS
                                             : RM_OK;
        return *status == RM_OK ? o : NULL;
}

/* uvm_map_external_allocation(): cards are done one after the other; an error takes back those of
 * this call. */
static uint32_t map_external(SimCall *k, const UvmMapExternal *p) {
        SimUvmPart part = {p->base, p->length};
        uint32_t status = RM_OK, card;
        uint64_t done = 0;

        if (p->n == 0 || p->n > k->file->sim->release.facts->uvm_gpus)
                return RM_ERR_INVALID_ARGUMENT;
        for (; done < p->n && status == RM_OK; done++) {
                const SimObject *o = object_of(k, p->client, p->memory, &status);

                card = card_of(k->file->sim, p->gpus[done].uuid);
                if (card == SIM_CARDS_MAX)
                        status = RM_ERR_INVALID_DEVICE;
                else if (o)
                        status = sim_uvm_map(k->file, card, part, p->offset, o);
        }
        for (uint64_t i = 0; status != RM_OK && i + 1 < done; i++)
                (void) sim_uvm_unmap(k->file, card_of(k->file->sim, p->gpus[i].uuid), part); /* as made */
        return status;
}

static uint32_t map_p2p(SimCall *k, const UvmAllocP2p *p) {
        uint32_t status, card = card_of(k->file->sim, p->uuid);
        const SimObject *o = object_of(k, p->client, p->memory, &status);

        if (card == SIM_CARDS_MAX)
                return RM_ERR_INVALID_DEVICE;
        return o ? sim_uvm_map_p2p(k->file, card, (SimUvmPart){p->base, p->length}, p->offset, o) : status;
}

static uint32_t migrate(SimFile *f, const UvmMigrate *p) {
        uint32_t card = card_of(f->sim, p->uuid);

        if (p->flags != 0 || p->semaphore != 0)
                return RM_ERR_INVALID_ARGUMENT;
        return card == SIM_CARDS_MAX ? RM_ERR_INVALID_DEVICE
                                     : sim_uvm_migrate(f, card, (SimUvmPart){p->base, p->length});
}

static uint32_t of_card(SimFile *f, const uint8_t uuid[static 16], uint32_t (*change)(SimFile *, uint32_t)) {
        uint32_t card = card_of(f->sim, uuid);

        return card == SIM_CARDS_MAX ? RM_ERR_INVALID_DEVICE : change(f, card);
}

static uint32_t of_part(SimFile *f, uint32_t request, const UvmUnmapExternal *p) {
        uint32_t card = card_of(f->sim, p->uuid);
        SimUvmPart part = {p->base, p->length};

        if (card == SIM_CARDS_MAX)
                return RM_ERR_INVALID_DEVICE;
        return request == UVM_UNMAP_EXTERNAL_CMD ? sim_uvm_unmap(f, card, part)
                                                 : sim_uvm_map(f, card, part, 0, NULL);
}

static uint32_t register_gpu(SimFile *f, UvmRegisterGpu *p) {
        uint32_t status = of_card(f, p->uuid, sim_uvm_register);

        if (status == RM_OK) {
                p->numa_enabled = 0;
                p->numa_node = -1;
        }
        return status;
}

/* uvm_api_pageable_mem_access_on_gpu() */
static uint32_t pageable_on(const SimFile *f, UvmPageableOnGpu *p) {
        uint32_t card = card_of(f->sim, p->uuid);

        if (card == SIM_CARDS_MAX || !(f->uvm_cards >> card & 1))
                return RM_ERR_INVALID_DEVICE;
        p->pageable = f->hmm;
        return RM_OK;
}

static uint32_t release_range(SimFile *f, const Params *p) {
        bool has_length = f->sim->release.facts->uvm_free == sizeof(UvmCreateRange);

        if (has_length && p->range.length == 0)
                return RM_ERR_INVALID_ADDRESS;
        return sim_uvm_free(f, (SimUvmPart){p->free.base, has_length ? p->range.length : 0});
}

/* Calls that need UVM_INITIALIZE, and where their status is. */
static uint32_t *status_in(const Sim *s, uint32_t request, Params *p) {
        switch (request) {
        case UVM_REGISTER_GPU_CMD:
                return &p->register_gpu.status;
        case UVM_UNREGISTER_GPU_CMD:
        case UVM_UNREGISTER_VASPACE_CMD:
                return &p->unregister_gpu.status;
        case UVM_REGISTER_VASPACE_CMD:
                return &p->vaspace.status;
        case UVM_MAP_EXTERNAL_CMD:
                return &p->map.status;
        case UVM_ALLOC_POOL_CMD:
                return &p->pool.status;
        case UVM_FREE_CMD:
                return s->release.facts->uvm_free == sizeof(UvmFree) ? &p->free.status : &p->range.status;
        case UVM_UNMAP_EXTERNAL_CMD:
        case UVM_MAP_SPARSE_CMD:
                return &p->unmap.status;
        case UVM_CREATE_RANGE_CMD:
                return &p->range.status;
        case UVM_ALLOC_P2P_CMD:
                return &p->p2p.status;
        case UVM_MIGRATE_CMD:
                return &p->migrate.status;
        case UVM_PAGEABLE_ON_GPU_CMD:
                return &p->pageable_on.status;
        default:
                assert(request == UVM_PAGEABLE_MEM_ACCESS_CMD);
                return &p->pageable.status;
        }
}

static uint32_t run(SimCall *k, uint32_t request, Params *p) {
        SimFile *f = k->file;

        switch (request) {
        case UVM_REGISTER_GPU_CMD:
                return register_gpu(f, &p->register_gpu);
        case UVM_UNREGISTER_GPU_CMD:
                return of_card(f, p->unregister_gpu.uuid, sim_uvm_unregister);
        case UVM_REGISTER_VASPACE_CMD:
                return of_card(f, p->vaspace.uuid, sim_uvm_add_space);
        case UVM_UNREGISTER_VASPACE_CMD:
                return of_card(f, p->unregister_gpu.uuid, sim_uvm_remove_space);
        case UVM_MAP_EXTERNAL_CMD:
                return map_external(k, &p->map);
        case UVM_ALLOC_POOL_CMD:
                return sim_uvm_create(f, SIM_UVM_POOL, (SimUvmPart){p->pool.base, p->pool.length});
        case UVM_FREE_CMD:
                return release_range(f, p);
        case UVM_UNMAP_EXTERNAL_CMD:
        case UVM_MAP_SPARSE_CMD:
                return of_part(f, request, &p->unmap);
        case UVM_CREATE_RANGE_CMD:
                return sim_uvm_create(f, SIM_UVM_EXTERNAL, (SimUvmPart){p->range.base, p->range.length});
        case UVM_ALLOC_P2P_CMD:
                return map_p2p(k, &p->p2p);
        case UVM_MIGRATE_CMD:
                return migrate(f, &p->migrate);
        case UVM_PAGEABLE_ON_GPU_CMD:
                return pageable_on(f, &p->pageable_on);
        default:
                p->pageable.pageable = f->hmm;
                return RM_OK;
        }
}

static void answer(SimCall *k, uint32_t request, Params *p) {
        if (request == UVM_INITIALIZE_CMD) {
                initialize(k->file, &p->initialize);
        } else if (request == UVM_MM_INITIALIZE_CMD) {
                p->mm.status = RM_OK;
        } else {
                uint32_t status = k->file->initialized ? run(k, request, p) : RM_ERR_ILLEGAL_ACTION;

                *status_in(k->file->sim, request, p) = status;
        }
}

int sim_call_uvm(SimCall *k, uint32_t request, uint64_t at) {
        const RmRelease *release = k->file->sim->release.facts;
        size_t n = size_of(release, request);
        Params p;

        if (request == UVM_DEINITIALIZE_CMD)
                return 0;
        if (n == 0)
                return -EINVAL;
        if (k->caller->read(k->caller, at, &p, n) < 0)
                return -EFAULT;
        move_lists(&p, request, release, false);
        answer(k, request, &p);
        move_lists(&p, request, release, true);
        return k->caller->write(k->caller, at, &p, n);
}
