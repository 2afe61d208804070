/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rm/uvm_ioctl.h"

#include <assert.h>
#include <errno.h>

#include "gpu/rm/rm.h"
#include "sim/call.h"

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

static uint32_t know_gpu(const Sim *s, const uint8_t uuid[static 16]) {
        uint8_t bytes[16];

        for (size_t i = 0; i < s->n_cards; i++) {
                sim_uuid_bytes(&s->cards[i], bytes);
                if (memcmp(bytes, uuid, sizeof bytes) == 0)
                        return RM_OK;
        }
        return RM_ERR_INVALID_DEVICE;
}

static uint32_t register_gpu(const Sim *s, UvmRegisterGpu *p) {
        uint32_t status = know_gpu(s, p->uuid);

        if (status == RM_OK) {
                p->numa_enabled = 0;
                p->numa_node = -1;
        }
        return status;
}

static size_t size_of(uint32_t request) {
        switch (request) {
        case UVM_INITIALIZE_CMD:
                return sizeof(UvmInitialize);
        case UVM_REGISTER_GPU_CMD:
                return sizeof(UvmRegisterGpu);
        case UVM_UNREGISTER_GPU_CMD:
                return sizeof(UvmUnregisterGpu);
        case UVM_PAGEABLE_MEM_ACCESS_CMD:
                return sizeof(UvmPageableMemAccess);
        case UVM_MM_INITIALIZE_CMD:
                return sizeof(UvmMmInitialize);
        default:
                return 0;
        }
}

typedef union Params {
        UvmInitialize initialize;
        UvmRegisterGpu register_gpu;
        UvmUnregisterGpu unregister_gpu;
        UvmPageableMemAccess pageable;
        UvmMmInitialize mm;
} Params;

/* uvm_va_space_initialize(): a second call with the same flags succeeds, with others it fails. HMM
 * is as on a kernel and a machine that have it. */
static void initialize(SimFile *f, UvmInitialize *p) {
        bool hmm = !(p->flags & UVM_INIT_DISABLE_HMM);

        p->status = RM_ERR_INVALID_ARGUMENT;
        if ((p->flags & ~UVM_INIT_FLAGS) || (f->initialized && hmm != f->hmm))
                return;
        f->initialized = true;
        f->hmm = hmm;
        p->status = RM_OK;
}

static void answer(SimFile *f, uint32_t request, Params *p) {
        switch (request) {
        case UVM_INITIALIZE_CMD:
                initialize(f, &p->initialize);
                return;
        case UVM_MM_INITIALIZE_CMD:
                p->mm.status = RM_OK;
                return;
        case UVM_REGISTER_GPU_CMD:
                p->register_gpu.status =
                        f->initialized ? register_gpu(f->sim, &p->register_gpu) : RM_ERR_ILLEGAL_ACTION;
                return;
        case UVM_UNREGISTER_GPU_CMD:
                p->unregister_gpu.status =
                        f->initialized ? know_gpu(f->sim, p->unregister_gpu.uuid) : RM_ERR_ILLEGAL_ACTION;
                return;
        default:
                assert(request == UVM_PAGEABLE_MEM_ACCESS_CMD);
                p->pageable.pageable = f->initialized && f->hmm;
                p->pageable.status = f->initialized ? RM_OK : RM_ERR_ILLEGAL_ACTION;
        }
}

int sim_call_uvm(SimCall *k, uint32_t request, uint64_t at) {
        size_t n = size_of(request);
        Params p;

        if (request == UVM_DEINITIALIZE_CMD)
                return 0;
        if (n == 0)
                return -EINVAL;
        if (k->caller->read(k->caller, at, &p, n) < 0)
                return -EFAULT;
        answer(k->file, request, &p);
        return k->caller->write(k->caller, at, &p, n);
}
