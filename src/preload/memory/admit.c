/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/admit.h"

#include "gpu/rm/dma_buf.h"
#include "gpu/rm/export.h"
#include "gpu/rm/fifo.h"
#include "gpu/rm/heap.h"
#include "gpu/rm/multicast.h"
#include "preload/inject/bytes.h"
#include "preload/memory/tunables.h"

enum {
        PAGE_BIG = 64 * 1024,
        PAGE_HUGE = 2 * 1024 * 1024,
};
/* More than any card has: no card has a pebibyte. Sums of such sizes do not overflow. */
#define BYTES_MAX (UINT64_C(1) << 50)

/* The structure of RM_ALLOC_OBJECT: handles and class as RM_ALLOC has them, then the status. It has
 * no parameters, so it cannot size memory: the driver itself refuses class 0x40, channel groups and
 * channels there. */
enum { OBJECT_SIZE = 20, OBJECT_STATUS = 16 };

static uint32_t size_of(uint32_t nr) {
        switch (nr) {
        case RM_ESC_ALLOC_MEMORY:
                return sizeof(RmAllocMemory);
        case RM_ESC_ALLOC_OBJECT:
                return OBJECT_SIZE;
        case RM_ESC_FREE:
                return sizeof(RmFree);
        case RM_ESC_CONTROL:
                return sizeof(RmControl);
        case RM_ESC_ALLOC:
                return sizeof(RmAlloc);
        case RM_ESC_DUP_OBJECT:
                return sizeof(RmDup);
        case RM_ESC_VID_HEAP_CONTROL:
                return sizeof(RmHeap);
        default:
                return 0;
        }
}

bool rm_metered(uint32_t nr, uint32_t size) {
        uint32_t want = size_of(nr);

        return want != 0 && (size == want || (nr == RM_ESC_ALLOC && size == sizeof(RmAllocRights)));
}

bool rm_is_dma_buf(uint32_t nr, uint32_t size) {
        return nr == RM_ESC_EXPORT_DMA_BUF && (size == sizeof(RmDmaBuf) || size == sizeof(RmDmaBuf) - 8);
}

bool rm_is_odd(uint32_t nr, uint32_t size) {
        return size != 0 && (size_of(nr) != 0 || nr == RM_ESC_EXPORT_DMA_BUF) && !rm_metered(nr, size) &&
               !rm_is_dma_buf(nr, size);
}

static RmKind class_kind(uint32_t class_) {
        switch (class_) {
        case RM_CLASS_ROOT:
        case RM_CLASS_ROOT_NON_PRIV:
        case RM_CLASS_ROOT_CLIENT:
                return RM_ALLOC_CLIENT;
        case RM_CLASS_DEVICE:
                return RM_ALLOC_DEVICE;
        case RM_CLASS_SUBDEVICE:
                return RM_ALLOC_SUBDEVICE;
        case RM_CLASS_MEMORY_LOCAL:
                return RM_ALLOC_VIDMEM;
        case RM_CLASS_CHANNEL_GROUP:
                return RM_ALLOC_CHANNEL_GROUP;
        case RM_CLASS_MEMORY_EXPORT:
        case RM_CLASS_MEMORY_FABRIC_IMPORT:
                return RM_ALLOC_EXPORT;
        case RM_CLASS_MEMORY_FABRIC:
                return RM_ALLOC_FABRIC;
        case RM_CLASS_MEMORY_FLA:
                return RM_ALLOC_FLA;
        default:
                return rm_class_is_channel(class_) ? RM_ALLOC_CHANNEL : RM_OTHER;
        }
}

/* Sets the handles of a new object. The driver takes the client for the parent if none is named. */
static void set_new(RmRequest *request, uint32_t client, uint32_t parent, uint32_t object) {
        request->client = request->kind == RM_ALLOC_CLIENT ? object : client;
        request->parent = request->kind == RM_ALLOC_CLIENT ? 0 : parent ? parent : client;
        request->object = object;
}

static void decode_alloc(const uint8_t *p, RmRequest *request) {
        bool rights = request->size == sizeof(RmAllocRights);

        request->kind = class_kind(get32(p + offsetof(RmAlloc, class_)));
        set_new(request, get32(p), get32(p + offsetof(RmAlloc, parent)), get32(p + offsetof(RmAlloc, new)));
        request->params = get64(p + offsetof(RmAlloc, params));
        request->params_size =
                get32(p + (rights ? offsetof(RmAllocRights, params_size) : offsetof(RmAlloc, params_size)));
}

static void decode_object(const uint8_t *p, RmRequest *request) {
        RmKind kind = class_kind(get32(p + offsetof(RmAlloc, class_)));

        request->kind = kind == RM_ALLOC_VIDMEM || kind == RM_ALLOC_CHANNEL_GROUP || kind == RM_ALLOC_CHANNEL
                                ? RM_OTHER
                                : kind;
        set_new(request, get32(p), get32(p + offsetof(RmAlloc, parent)), get32(p + offsetof(RmAlloc, new)));
}

static void set_bytes(RmRequest *request, uint64_t bytes) {
        request->overflow = bytes > BYTES_MAX;
        request->bytes = request->overflow ? 0 : bytes;
}

static void decode_memory(const uint8_t *p, RmRequest *request) {
        uint32_t class_ = get32(p + offsetof(RmAllocMemory, class_));

        request->kind = class_ == RM_CLASS_MEMORY_LOCAL ? RM_QUERY_HEAP_LIMIT
                        : class_ == RM_CLASS_MEMORY_FLA ? RM_ALLOC_FLA
                                                        : RM_OTHER;
        set_new(request, get32(p), get32(p + offsetof(RmAllocMemory, parent)),
                get32(p + offsetof(RmAllocMemory, new)));
}

/* The size by pitch. The driver multiplies a 32-bit height by a signed pitch, in 64 bits: a
 * negative pitch becomes an impossible size. */
static uint64_t pitch_bytes(const uint8_t *p) {
        int64_t pitch = (int32_t) get32(p + offsetof(RmHeapPitch, pitch));
        uint64_t bytes;

        if (pitch < 0 || __builtin_mul_overflow((uint64_t) pitch,
                                                (uint64_t) get32(p + offsetof(RmHeapPitch, height)), &bytes))
                return UINT64_MAX;
        return bytes;
}

/* AllocSizeRange has no width and height: its size is where AllocSize has its height. */
static size_t heap_size_at(uint32_t function) {
        return function == RM_HEAP_ALLOC_SIZE_RANGE ? offsetof(RmHeapRange, size) : offsetof(RmHeap, size);
}

static void decode_heap_alloc(const uint8_t *p, uint32_t function, RmRequest *request) {
        bool pitch = function == RM_HEAP_ALLOC_PITCH_HEIGHT;
        uint32_t attr = get32(p + (pitch ? offsetof(RmHeapPitch, attr) : offsetof(RmHeap, attr)));
        uint32_t location = attr >> RM_ATTR_LOCATION_SHIFT & RM_ATTR_LOCATION_MASK;

        if ((get32(p + offsetof(RmHeap, flags)) & RM_FLAG_VIRTUAL) || location != RM_ATTR_LOCATION_VIDMEM)
                return; /* address ranges, or memory of the machine */
        request->kind = RM_ALLOC_VIDMEM;
        set_bytes(request, pitch ? pitch_bytes(p) : get64(p + heap_size_at(function)));
}

static void decode_heap(const uint8_t *p, RmRequest *request) {
        uint32_t function = get32(p + offsetof(RmHeap, function));

        set_new(request, get32(p), get32(p + offsetof(RmHeap, parent)), get32(p + offsetof(RmHeap, memory)));
        switch (function) {
        case RM_HEAP_ALLOC_SIZE:
        case RM_HEAP_ALLOC_SIZE_RANGE:
        case RM_HEAP_ALLOC_PITCH_HEIGHT:
                decode_heap_alloc(p, function, request);
                break;
        case RM_HEAP_FREE:
                request->kind = RM_FREE_OBJECT;
                break;
        case RM_HEAP_INFO:
                request->kind = RM_QUERY_HEAP;
                break;
        case RM_HEAP_DUMP:
        case RM_HEAP_REACQUIRE_COMPR:
        case RM_HEAP_RELEASE_COMPR:
        case RM_HEAP_GET_ALIGNMENT:
        case RM_HEAP_HW_ALLOC:
        case RM_HEAP_HW_FREE:
        case RM_HEAP_ALLOC_OS_DESCRIPTOR:
                break; /* no memory of the card */
        default:
                /* Drivers 535 to 595 define no other function code. Older ones have 1, which
                 * allocates width * height * depth. */
                request->kind = RM_UNKNOWN;
                break;
        }
}

/* NV2080_CTRL_CMD_FB_STATS_GET. The headers of 550 to 595 have the first number, and the driver
 * does not serve it. 615 serves the second one, by a third party's table of its controls. */
enum { FB_STATS = 0x2080132A, FB_STATS_615 = 0x2080132F };

static RmKind control_kind(uint32_t cmd) {
        switch (cmd) {
        case RM_CTRL_FB_INFO:
                return RM_QUERY_FB_LIST;
        case RM_CTRL_FB_INFO_V2:
                return RM_QUERY_FB;
        case RM_CTRL_FB_REGION_INFO:
                return RM_QUERY_REGIONS;
        case RM_CTRL_UGPU_MEMORY:
                return RM_QUERY_UGPU;
        case FB_STATS:
        case FB_STATS_615:
                return RM_QUERY_STATS;
        case RM_CTRL_EXPORT_TO_FD:
                return RM_EXPORT;
        case RM_CTRL_EXPORT_MANY:
                return RM_EXPORT_MANY;
        case RM_CTRL_IMPORT_FROM_FD:
                return RM_IMPORT;
        case RM_CTRL_IMPORT_MANY:
                return RM_IMPORT_MANY;
        case RM_CTRL_ATTACH_MULTICAST:
                return RM_ATTACH;
        case RM_CTRL_SET_TIMESLICE:
                return RM_SET_TIMESLICE;
        case RM_CTRL_PREEMPTION_MODE:
                return RM_SET_PREEMPTION;
        case RM_CTRL_DISABLE_CHANNELS:
                return RM_SET_CHANNELS;
        default:
                return RM_OTHER; /* also those with bit 0x8000 in their number, which NVIDIA does not describe */
        }
}

static void decode_control(const uint8_t *p, RmRequest *request) {
        request->kind = control_kind(get32(p + offsetof(RmControl, cmd)));
        request->client = get32(p);
        request->object = request->parent = get32(p + offsetof(RmControl, object));
        request->params = get64(p + offsetof(RmControl, params));
        request->params_size = get32(p + offsetof(RmControl, params_size));
}

static void decode_dup(const uint8_t *p, RmRequest *request) {
        request->kind = RM_DUPLICATE;
        request->client = get32(p);
        request->parent = get32(p + offsetof(RmDup, parent));
        request->object = get32(p + offsetof(RmDup, object));
        request->source_client = get32(p + offsetof(RmDup, source_client));
        request->source_object = get32(p + offsetof(RmDup, source_object));
}

static void decode_free(const uint8_t *p, RmRequest *request) {
        request->kind = RM_FREE_OBJECT;
        request->client = get32(p);
        request->parent = get32(p + offsetof(RmFree, parent));
        request->object = get32(p + offsetof(RmFree, old));
}

void rm_decode(uint32_t nr, uint32_t size, const void *outer, RmRequest *ret) {
        RmRequest request = {.kind = RM_OTHER, .nr = nr, .size = size};
        const uint8_t *p = outer;

        if (!rm_metered(nr, size)) {
                request.kind = rm_is_odd(nr, size) ? RM_UNKNOWN : RM_OTHER;
                nr = 0;
        }
        if (nr == RM_ESC_ALLOC)
                decode_alloc(p, &request);
        else if (nr == RM_ESC_ALLOC_OBJECT)
                decode_object(p, &request);
        else if (nr == RM_ESC_ALLOC_MEMORY)
                decode_memory(p, &request);
        else if (nr == RM_ESC_VID_HEAP_CONTROL)
                decode_heap(p, &request);
        else if (nr == RM_ESC_CONTROL)
                decode_control(p, &request);
        else if (nr == RM_ESC_DUP_OBJECT)
                decode_dup(p, &request);
        else if (nr == RM_ESC_FREE)
                decode_free(p, &request);
        if (request.kind == RM_OTHER)
                request = (RmRequest){.kind = RM_OTHER, .nr = nr, .size = size};
        *ret = request;
}

void rm_decode_inner(RmRequest *request, const void *inner, uint32_t n) {
        size_t at = offsetof(RmMemoryParams, size);

        if (request->nr == RM_ESC_ALLOC && request->kind == RM_ALLOC_VIDMEM)
                set_bytes(request, n >= at + 8 ? get64((const uint8_t *) inner + at) : 0);
}

uint64_t rm_round(uint64_t bytes) {
        uint64_t page = bytes >= PAGE_HUGE ? PAGE_HUGE : PAGE_BIG;

        if (bytes > BYTES_MAX)
                return UINT64_MAX;
        return bytes == 0 ? page : (bytes + page - 1) / page * page;
}

bool rm_needs_card(const RmRequest *request) {
        switch (request->kind) {
        case RM_ALLOC_VIDMEM:
        case RM_ALLOC_CHANNEL_GROUP:
        case RM_ALLOC_CHANNEL:
        case RM_QUERY_FB:
        case RM_QUERY_FB_LIST:
        case RM_QUERY_REGIONS:
        case RM_QUERY_UGPU:
        case RM_QUERY_STATS:
        case RM_QUERY_HEAP:
        case RM_QUERY_HEAP_LIMIT:
                return true;
        default:
                return false;
        }
}

static RmVerdict charge_bytes(const RmSliceInfo *slice, uint64_t bytes, bool overflow) {
        if (!slice || !slice->sliced || overflow || slice->limit == 0 || bytes > slice->limit)
                return (RmVerdict){.action = RM_REFUSE, .status = RM_ERR_NO_MEMORY};
        return (RmVerdict){.action = RM_CHARGE, .bytes = bytes};
}

static uint32_t params_size_of(RmKind kind) {
        switch (kind) {
        case RM_EXPORT:
                return sizeof(RmExport);
        case RM_EXPORT_MANY:
                return sizeof(RmExportMany);
        case RM_IMPORT:
                return sizeof(RmImport);
        case RM_ATTACH:
                return sizeof(RmAttachMulticast);
        case RM_SET_TIMESLICE:
                return sizeof(RmTimeslice);
        case RM_SET_PREEMPTION:
                return sizeof(RmPreemptionMode);
        case RM_SET_CHANNELS:
                return sizeof(RmDisableChannels);
        default:
                return sizeof(RmImportMany);
        }
}

/* With another size the parameters are unknown: the memory of exports and imports could not be
 * counted, and what is asked about the card's time could not be limited. Drivers 535 to 595 have
 * the same parameters, and most answer another size with this status; a driver that accepts one is
 * newer. */
static RmVerdict admit_if_known_size(const RmRequest *request, RmAction action) {
        if (request->params_size != params_size_of(request->kind))
                return (RmVerdict){.action = RM_REFUSE, .status = RM_ERR_INVALID_ARGUMENT};
        return (RmVerdict){.action = action};
}

RmVerdict rm_admit(const RmRequest *request, const RmSliceInfo *slice) {
        switch (request->kind) {
        case RM_ALLOC_VIDMEM:
                return charge_bytes(slice, rm_round(request->bytes), request->overflow);
        case RM_ALLOC_CHANNEL_GROUP:
                return charge_bytes(slice, slice ? slice->group_bytes : 0, false);
        case RM_ALLOC_CHANNEL:
                if (slice && slice->grouped)
                        return (RmVerdict){.action = RM_FORWARD};
                return charge_bytes(slice, slice ? slice->group_bytes : 0, false);
        case RM_ALLOC_CLIENT:
        case RM_ALLOC_DEVICE:
        case RM_ALLOC_SUBDEVICE:
                return (RmVerdict){.action = RM_REMEMBER};
        /* The driver's status for a client without an IMEX channel (mem_export.c,
         * mem_fabric_import_v2.c), and from 590 on, where the class is gone. */
        case RM_ALLOC_EXPORT:
                return (RmVerdict){.action = RM_REFUSE, .status = RM_ERR_INSUFFICIENT_PERMISSIONS};
        case RM_ALLOC_FLA:
                return (RmVerdict){.action = RM_REFUSE, .status = RM_ERR_INVALID_CLASS};
        case RM_FREE_OBJECT:
                return (RmVerdict){.action = RM_FORGET};
        case RM_DUPLICATE:
                return (RmVerdict){.action = RM_MEASURE};
        case RM_IMPORT:
        case RM_IMPORT_MANY:
                return admit_if_known_size(request, RM_MEASURE);
        case RM_EXPORT:
        case RM_EXPORT_MANY:
        case RM_ATTACH:
                return admit_if_known_size(request, RM_TRACK_EXPORT);
        case RM_ALLOC_FABRIC:
                return (RmVerdict){.action = RM_TRACK_EXPORT};
        case RM_QUERY_FB:
        case RM_QUERY_FB_LIST:
        case RM_QUERY_REGIONS:
        case RM_QUERY_UGPU:
        case RM_QUERY_STATS:
        case RM_QUERY_HEAP:
        case RM_QUERY_HEAP_LIMIT:
                return (RmVerdict){.action = slice && slice->sliced ? RM_REWRITE : RM_FORWARD};
        case RM_SET_TIMESLICE:
        case RM_SET_PREEMPTION:
        case RM_SET_CHANNELS:
                return admit_if_known_size(request, RM_SCHEDULE);
        case RM_UNKNOWN: /* refused with the status of drivers that do not have the call */
                return (RmVerdict){.action = RM_REFUSE, .status = RM_ERR_INVALID_ARGUMENT};
        case RM_OTHER:
        default:
                return (RmVerdict){.action = RM_FORWARD};
        }
}

/* Compute preemption must not be set to less than libcuda sets: a kernel that is not preempted at
 * any instruction keeps the card beyond its time slice. NOT_SUPPORTED is the status for a channel
 * whose mode cannot be changed (ctrl2080gr.h). */
uint32_t rm_admit_scheduling(const RmRequest *request, void *params) {
        RmTimeslice *timeslice = params;
        const RmPreemptionMode *mode = params;
        const RmDisableChannels *list = params;

        switch (request->kind) {
        case RM_SET_TIMESLICE:
                if (timeslice->usec > TIMESLICE_MAX_USEC)
                        timeslice->usec = TIMESLICE_MAX_USEC;
                return RM_OK;
        case RM_SET_PREEMPTION:
                return (mode->flags & RM_PREEMPT_FLAG_COMPUTE) && mode->compute < RM_PREEMPT_COMPUTE_CILP
                               ? RM_ERR_NOT_SUPPORTED
                               : RM_OK;
        default:
                return list->n > RM_DISABLE_CHANNELS_MAX ? RM_ERR_INVALID_ARGUMENT : RM_OK;
        }
}

/* ---- of the driver's answer ---- */

static size_t status_at(const RmRequest *request) {
        switch (request->nr) {
        case RM_ESC_ALLOC_MEMORY:
                return offsetof(RmAllocMemory, status);
        case RM_ESC_ALLOC_OBJECT:
                return OBJECT_STATUS;
        case RM_ESC_FREE:
                return offsetof(RmFree, status);
        case RM_ESC_CONTROL:
                return offsetof(RmControl, status);
        case RM_ESC_DUP_OBJECT:
                return offsetof(RmDup, status);
        case RM_ESC_VID_HEAP_CONTROL:
                return offsetof(RmHeap, status);
        default:
                return request->size == sizeof(RmAllocRights) ? offsetof(RmAllocRights, status)
                                                              : offsetof(RmAlloc, status);
        }
}

uint32_t rm_status(const RmRequest *request, const void *outer) {
        return get32((const uint8_t *) outer + status_at(request));
}

void rm_set_status(const RmRequest *request, void *outer, uint32_t status) {
        put32((uint8_t *) outer + status_at(request), status);
}

uint32_t rm_new_handle(const RmRequest *request, const void *outer) {
        size_t at = offsetof(RmAlloc, new);

        if (request->nr == RM_ESC_VID_HEAP_CONTROL)
                at = offsetof(RmHeap, memory);
        else if (request->nr == RM_ESC_DUP_OBJECT)
                at = offsetof(RmDup, object);
        return get32((const uint8_t *) outer + at); /* the other three have it at the offset of RM_ALLOC */
}

uint64_t rm_taken(const RmRequest *request, const void *outer, const void *inner, uint32_t n) {
        size_t at = offsetof(RmMemoryParams, size);
        const uint8_t *p = outer;
        uint64_t bytes = 0;

        if (request->nr == RM_ESC_VID_HEAP_CONTROL)
                bytes = get64(p + heap_size_at(get32(p + offsetof(RmHeap, function))));
        else if (n >= at + 8)
                bytes = get64((const uint8_t *) inner + at);
        if (bytes < request->bytes || bytes > BYTES_MAX)
                bytes = rm_round(request->bytes); /* an impossible answer */
        return bytes > 0 ? bytes : PAGE_BIG;
}
