/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/call.h"

#include <assert.h>
#include <errno.h>

#include "gpu/rm/query.h"

/* As osinit.c makes it from the PCI address (gpuGenerate32BitId()): bus 1 + index, domain and slot
 * 0. */
uint32_t sim_gpu_id(uint32_t card) {
        return (card + 1) << 8;
}

uint32_t sim_call_client(SimCall *k, uint32_t handle, SimClient **ret) {
        SimProcess process = {.uid = k->caller->uid};

        if (k->file->registered)
                process.pid = k->caller->pid(k->caller);
        return sim_client_get(k->file, handle, process, ret);
}

/* rs_server.c, serverFreeResourceTree(): an object that does not exist counts as freed (the driver
 * is built with RS_COMPATABILITY_MODE). */
static int call_free(SimCall *k, void *params, size_t n) {
        RmFree *p = params;
        SimClient *c;
        SimObject *o;

        p->status = sim_call_client(k, p->root, &c);
        if (p->status != RM_OK)
                return 0;
        o = sim_object_find(c, p->old);
        if (o == c->root)
                sim_client_free(c);
        else if (o)
                sim_object_free(o);
        return 0;
}

static int call_dup(SimCall *k, void *params, size_t n) {
        RmDup *p = params;
        SimClient *c, *from = sim_client_find(k->file->sim, p->source_client);
        SimObject *o;

        p->status = sim_call_client(k, p->client, &c);
        if (p->status == RM_OK && !from)
                p->status = RM_ERR_INVALID_OBJECT_HANDLE;
        if (p->status == RM_OK)
                p->status = sim_object_dup(c, p->parent, p->object, from, p->source_object, &o);
        if (p->status == RM_OK)
                p->object = o->handle;
        return 0;
}

/* nvidia_read_card_info(): EINVAL when the array is too short for all cards. */
static int call_card_info(SimCall *k, void *params, size_t n) {
        const Sim *s = k->file->sim;
        RmCardInfo *p = params;

        if (n / sizeof *p < s->n_cards)
                return -EINVAL;
        memset(p, 0, n);
        for (uint32_t i = 0; i < s->n_cards; i++)
                p[i] = (RmCardInfo){.valid = 1,
                                    .bus = (uint8_t) (i + 1),
                                    .vendor = 0x10DE,
                                    .gpu = sim_gpu_id(i),
                                    .fb_bytes = s->cards[i].bytes,
                                    .minor = s->cards[i].about.minor};
        return 0;
}

static int call_register_fd(SimCall *k, void *params, size_t n) {
        const RmRegisterFd *p = params;

        if (k->file->registered || !k->caller->is_ctl(k->caller, p->ctl))
                return -EINVAL;
        k->file->registered = true;
        return 0;
}

/* RmPerformVersionCheck() in osapi.c */
static int call_check_version(SimCall *k, void *params, size_t n) {
        const char *own = k->file->sim->release.version;
        RmVersion *p = params;
        size_t len = strlen(own), major = strcspn(own, ".") + 1;
        bool same;

        p->reply = 1;
        same = p->cmd == RM_VERSION_RELAXED ? memcmp(p->version, own, major) == 0
                                            : memcmp(p->version, own, len + 1) == 0;
        if (same && p->cmd != RM_VERSION_QUERY)
                return 0;
        memcpy(p->version, own, len + 1);
        return p->cmd == RM_VERSION_QUERY ? 0 : -EINVAL;
}

typedef enum Where { ON_CTL, ON_CARD, ON_BOTH } Where;

typedef struct Kind {
        uint32_t nr, size, other_size;
        bool array; /* at least one element of this size */
        Where where;
        int (*run)(SimCall *k, void *params, size_t n);
} Kind;

/* RmValidateIoctl(), nv_validate_ioctls() and the NV_..._DEVICE_ONLY() of each case. */
static const Kind kinds[] = {
        {RM_ESC_ALLOC_MEMORY, sizeof(RmAllocMemory), 0, false, ON_CARD, sim_call_alloc_memory},
        {RM_ESC_ALLOC_OBJECT, 20, 0, false, ON_CTL, sim_call_alloc_object},
        {RM_ESC_FREE, sizeof(RmFree), 0, false, ON_CTL, call_free},
        {RM_ESC_CONTROL, sizeof(RmControl), 0, false, ON_CTL, sim_call_control},
        {RM_ESC_ALLOC, sizeof(RmAlloc), sizeof(RmAllocRights), false, ON_BOTH, sim_call_alloc},
        {RM_ESC_DUP_OBJECT, sizeof(RmDup), 0, false, ON_CTL, call_dup},
        {RM_ESC_VID_HEAP_CONTROL, sizeof(RmHeap), 0, false, ON_CTL, sim_call_heap},
        {RM_ESC_CARD_INFO, sizeof(RmCardInfo), 0, true, ON_CTL, call_card_info},
        {RM_ESC_REGISTER_FD, sizeof(RmRegisterFd), 0, false, ON_BOTH, call_register_fd},
        {RM_ESC_CHECK_VERSION, sizeof(RmVersion), 0, false, ON_CTL, call_check_version},
};

static const Kind *kind_find(uint32_t nr, size_t size) {
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
                const Kind *k = &kinds[i];

                if (k->nr != nr)
                        continue;
                if (k->array)
                        return size > 0 && size % k->size == 0 ? k : NULL;
                return size == k->size || (k->other_size > 0 && size == k->other_size) ? k : NULL;
        }
        return NULL;
}

static bool is_here(const Kind *k, const SimFile *f) {
        return k->where == ON_BOTH || (k->where == ON_CTL) == (f->kind == SIM_FILE_CTL);
}

/* The driver copies the parameters in, works on the copy, and copies it out after any result. If
 * that last step fails, the answer is EFAULT, and the work stays done. */
static int run(SimCall *k, uint32_t nr, size_t size, uint64_t at) {
        const Kind *kind = kind_find(nr, size);
        _Alignas(8) uint8_t params[RM_XFER_MAX];
        int r = -EINVAL;

        assert(size <= sizeof params);
        if (k->caller->read(k->caller, at, params, size) < 0)
                return -EFAULT;
        if (kind && is_here(kind, k->file))
                r = kind->run(k, params, size);
        if (k->caller->write(k->caller, at, params, size) < 0)
                return -EFAULT;
        return r;
}

static int call_xfer(SimCall *k, uint64_t at) {
        RmXfer x;

        if (k->caller->read(k->caller, at, &x, sizeof x) < 0)
                return -EFAULT;
        return x.size > RM_XFER_MAX ? -EINVAL : run(k, x.cmd, x.size, x.ptr);
}

int sim_call(SimFile *f, SimCaller *c, uint32_t request, uint64_t at) {
        SimCall k = {f, c};
        uint32_t nr = rm_ioctl_nr(request), size = rm_ioctl_size(request);

        if (f->kind == SIM_FILE_UVM)
                return sim_call_uvm(&k, request, at);
        if (f->kind == SIM_FILE_UVM_TOOLS)
                return -EINVAL;
        if (nr == RM_ESC_XFER_CMD)
                return size == sizeof(RmXfer) ? call_xfer(&k, at) : -EINVAL;
        if (!kind_find(nr, size))
                return -EINVAL;
        return run(&k, nr, size, at);
}
