/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/admit.h"

#include "gpu/rm/heap.h"
#include "gpu/rm/travel.h"
#include "preload/inject/bytes.h"

enum {
        PAGE_BIG = 64 * 1024,
        PAGE_HUGE = 2 * 1024 * 1024,
        HEAP_BY_PITCH_HEIGHT = 56, /* where AllocTiledPitchHeight differs from AllocSize */
        HEAP_BY_PITCH_PITCH = 60,
        HEAP_BY_PITCH_ATTR = 64,
};
#define BYTES_MAX (UINT64_C(1) << 50) /* no card has a pebibyte, and sums of such sizes do not overflow */

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

bool rm_is_odd(uint32_t nr, uint32_t size) {
        return size != 0 && size_of(nr) != 0 && !rm_metered(nr, size);
}

static RmWhat what_class(uint32_t class_) {
        switch (class_) {
        case RM_CLASS_ROOT:
        case RM_CLASS_ROOT_NON_PRIV:
        case RM_CLASS_ROOT_CLIENT:
                return RM_NEW_CLIENT;
        case RM_CLASS_DEVICE:
                return RM_NEW_DEVICE;
        case RM_CLASS_SUBDEVICE:
                return RM_NEW_SUBDEVICE;
        case RM_CLASS_MEMORY_LOCAL:
                return RM_NEW_MEMORY;
        case RM_CLASS_CHANNEL_GROUP:
                return RM_NEW_GROUP;
        default:
                return rm_class_is_channel(class_) ? RM_NEW_CHANNEL : RM_OTHER;
        }
}

/* The driver takes the client for the parent where none is named. */
static void set_new(RmAsk *ask, uint32_t client, uint32_t parent, uint32_t object) {
        ask->client = ask->what == RM_NEW_CLIENT ? object : client;
        ask->parent = ask->what == RM_NEW_CLIENT ? 0 : parent ? parent : client;
        ask->object = object;
}

static void decode_alloc(const uint8_t *p, RmAsk *ask) {
        bool rights = ask->size == sizeof(RmAllocRights);

        ask->what = what_class(get32(p + offsetof(RmAlloc, class_)));
        set_new(ask, get32(p), get32(p + offsetof(RmAlloc, parent)), get32(p + offsetof(RmAlloc, new)));
        ask->params = get64(p + offsetof(RmAlloc, params));
        ask->params_size =
                get32(p + (rights ? offsetof(RmAllocRights, params_size) : offsetof(RmAlloc, params_size)));
}

static void decode_object(const uint8_t *p, RmAsk *ask) {
        RmWhat what = what_class(get32(p + offsetof(RmAlloc, class_)));

        ask->what = what == RM_NEW_MEMORY || what == RM_NEW_GROUP || what == RM_NEW_CHANNEL ? RM_OTHER : what;
        set_new(ask, get32(p), get32(p + offsetof(RmAlloc, parent)), get32(p + offsetof(RmAlloc, new)));
}

static void set_bytes(RmAsk *ask, uint64_t bytes) {
        ask->overflow = bytes > BYTES_MAX;
        ask->bytes = ask->overflow ? 0 : bytes;
}

static void decode_memory(const uint8_t *p, RmAsk *ask) {
        ask->what = get32(p + offsetof(RmAllocMemory, class_)) == RM_CLASS_MEMORY_LOCAL ? RM_TELL_LIMIT
                                                                                        : RM_OTHER;
        set_new(ask, get32(p), get32(p + offsetof(RmAllocMemory, parent)),
                get32(p + offsetof(RmAllocMemory, new)));
}

/* The driver multiplies a 32-bit height by a signed pitch, in 64 bits: a pitch below zero becomes a
 * size that cannot be. */
static uint64_t pitch_bytes(const uint8_t *p) {
        int64_t pitch = (int32_t) get32(p + HEAP_BY_PITCH_PITCH);
        uint64_t bytes;

        if (pitch < 0 ||
            __builtin_mul_overflow((uint64_t) pitch, (uint64_t) get32(p + HEAP_BY_PITCH_HEIGHT), &bytes))
                return UINT64_MAX;
        return bytes;
}

static void decode_heap_alloc(const uint8_t *p, uint32_t function, RmAsk *ask) {
        bool pitch = function == RM_HEAP_ALLOC_PITCH_HEIGHT;
        uint32_t attr = get32(p + (pitch ? (size_t) HEAP_BY_PITCH_ATTR : offsetof(RmHeap, attr)));
        uint32_t location = attr >> RM_ATTR_LOCATION_SHIFT & RM_ATTR_LOCATION_MASK;

        if ((get32(p + offsetof(RmHeap, flags)) & RM_FLAG_VIRTUAL) || location != RM_ATTR_LOCATION_VIDMEM)
                return; /* addresses, or the machine's own memory */
        ask->what = RM_NEW_MEMORY;
        set_bytes(ask, pitch ? pitch_bytes(p) : get64(p + offsetof(RmHeap, size)));
}

static void decode_heap(const uint8_t *p, RmAsk *ask) {
        uint32_t function = get32(p + offsetof(RmHeap, function));

        set_new(ask, get32(p), get32(p + offsetof(RmHeap, parent)), get32(p + offsetof(RmHeap, memory)));
        switch (function) {
        case RM_HEAP_ALLOC_SIZE:
        case RM_HEAP_ALLOC_SIZE_RANGE:
        case RM_HEAP_ALLOC_PITCH_HEIGHT:
                decode_heap_alloc(p, function, ask);
                break;
        case RM_HEAP_FREE:
                ask->what = RM_FREE_OBJECT;
                break;
        case RM_HEAP_INFO:
                ask->what = RM_TELL_HEAP;
                break;
        case RM_HEAP_DUMP:
        case RM_HEAP_REACQUIRE_COMPR:
        case RM_HEAP_RELEASE_COMPR:
        case RM_HEAP_GET_ALIGNMENT:
        case RM_HEAP_HW_ALLOC:
        case RM_HEAP_HW_FREE:
        case RM_HEAP_ALLOC_OS_DESCRIPTOR:
                break; /* none of the card's memory */
        default:
                /* Drivers 535 to 595 have no other. Those before have 1, which allocates width *
                 * height * depth. */
                ask->what = RM_UNKNOWN;
                break;
        }
}

static RmWhat what_control(uint32_t cmd) {
        switch (cmd) {
        case RM_CTRL_FB_INFO:
                return RM_TELL_FB_LIST;
        case RM_CTRL_FB_INFO_V2:
                return RM_TELL_FB;
        case RM_CTRL_FB_REGION_INFO:
                return RM_TELL_REGIONS;
        case RM_CTRL_EXPORT_TO_FD:
                return RM_EXPORT;
        case RM_CTRL_EXPORT_MANY:
                return RM_EXPORT_MANY;
        case RM_CTRL_IMPORT_FROM_FD:
                return RM_IMPORT;
        case RM_CTRL_IMPORT_MANY:
                return RM_IMPORT_MANY;
        case RM_CTRL_SET_TIMESLICE:
        case RM_CTRL_PREEMPT:
        case RM_CTRL_DISABLE_CHANNELS:
        case RM_CTRL_PREEMPTION_MODE:
                return RM_SCHEDULE;
        default:
                return RM_OTHER; /* those with bit 0x8000 in their number, too: they are not described anywhere */
        }
}

static void decode_control(const uint8_t *p, RmAsk *ask) {
        ask->what = what_control(get32(p + offsetof(RmControl, cmd)));
        ask->client = get32(p);
        ask->object = ask->parent = get32(p + offsetof(RmControl, object));
        ask->params = get64(p + offsetof(RmControl, params));
        ask->params_size = get32(p + offsetof(RmControl, params_size));
}

static void decode_dup(const uint8_t *p, RmAsk *ask) {
        ask->what = RM_DUPLICATE;
        ask->client = get32(p);
        ask->parent = get32(p + offsetof(RmDup, parent));
        ask->object = get32(p + offsetof(RmDup, object));
        ask->source_client = get32(p + offsetof(RmDup, source_client));
        ask->source_object = get32(p + offsetof(RmDup, source_object));
}

static void decode_free(const uint8_t *p, RmAsk *ask) {
        ask->what = RM_FREE_OBJECT;
        ask->client = get32(p);
        ask->parent = get32(p + offsetof(RmFree, parent));
        ask->object = get32(p + offsetof(RmFree, old));
}

void rm_decode(uint32_t nr, uint32_t size, const void *outer, RmAsk *ret) {
        RmAsk ask = {.what = RM_OTHER, .nr = nr, .size = size};
        const uint8_t *p = outer;

        if (!rm_metered(nr, size)) {
                ask.what = rm_is_odd(nr, size) ? RM_UNKNOWN : RM_OTHER;
                nr = 0;
        }
        if (nr == RM_ESC_ALLOC)
                decode_alloc(p, &ask);
        else if (nr == RM_ESC_ALLOC_OBJECT)
                decode_object(p, &ask);
        else if (nr == RM_ESC_ALLOC_MEMORY)
                decode_memory(p, &ask);
        else if (nr == RM_ESC_VID_HEAP_CONTROL)
                decode_heap(p, &ask);
        else if (nr == RM_ESC_CONTROL)
                decode_control(p, &ask);
        else if (nr == RM_ESC_DUP_OBJECT)
                decode_dup(p, &ask);
        else if (nr == RM_ESC_FREE)
                decode_free(p, &ask);
        if (ask.what == RM_OTHER)
                ask = (RmAsk){.what = RM_OTHER, .nr = nr, .size = size};
        *ret = ask;
}

void rm_decode_inner(RmAsk *ask, const void *inner, uint32_t n) {
        size_t at = offsetof(RmMemoryParams, size);

        if (ask->nr == RM_ESC_ALLOC && ask->what == RM_NEW_MEMORY)
                set_bytes(ask, n >= at + 8 ? get64((const uint8_t *) inner + at) : 0);
}

uint64_t rm_round(uint64_t bytes) {
        uint64_t page = bytes >= PAGE_HUGE ? PAGE_HUGE : PAGE_BIG;

        if (bytes > BYTES_MAX)
                return UINT64_MAX;
        return bytes == 0 ? page : (bytes + page - 1) / page * page;
}

bool rm_needs_card(const RmAsk *ask) {
        switch (ask->what) {
        case RM_NEW_MEMORY:
        case RM_NEW_GROUP:
        case RM_NEW_CHANNEL:
        case RM_TELL_FB:
        case RM_TELL_FB_LIST:
        case RM_TELL_REGIONS:
        case RM_TELL_HEAP:
        case RM_TELL_LIMIT:
                return true;
        default:
                return false;
        }
}

static RmVerdict charge(const RmKnown *known, uint64_t bytes, bool overflow) {
        if (!known || !known->sliced || overflow || known->limit == 0 || bytes > known->limit)
                return (RmVerdict){.action = RM_REFUSE, .status = RM_ERR_NO_MEMORY};
        return (RmVerdict){.action = RM_CHARGE, .bytes = bytes};
}

static uint32_t size_that_travels(RmWhat what) {
        switch (what) {
        case RM_EXPORT:
                return sizeof(RmExport);
        case RM_EXPORT_MANY:
                return sizeof(RmExportMany);
        case RM_IMPORT:
                return sizeof(RmImport);
        default:
                return sizeof(RmImportMany);
        }
}

/* Of another size these have other parameters than are known here, and what they move could not be
 * counted. Drivers 515 to 595 have them all alike, and since 555 say this to another size; one that
 * took it would be newer. */
static RmVerdict travel(const RmAsk *ask, RmAction action) {
        if (ask->params_size != size_that_travels(ask->what))
                return (RmVerdict){.action = RM_REFUSE, .status = RM_ERR_INVALID_ARGUMENT};
        return (RmVerdict){.action = action};
}

RmVerdict rm_admit(const RmAsk *ask, const RmKnown *known) {
        switch (ask->what) {
        case RM_NEW_MEMORY:
                return charge(known, rm_round(ask->bytes), ask->overflow);
        case RM_NEW_GROUP:
                return charge(known, known ? known->group_bytes : 0, false);
        case RM_NEW_CHANNEL:
                if (known && known->grouped)
                        return (RmVerdict){.action = RM_FORWARD};
                return charge(known, known ? known->group_bytes : 0, false);
        case RM_NEW_CLIENT:
        case RM_NEW_DEVICE:
        case RM_NEW_SUBDEVICE:
                return (RmVerdict){.action = RM_REMEMBER};
        case RM_FREE_OBJECT:
                return (RmVerdict){.action = RM_FORGET};
        case RM_DUPLICATE:
                return (RmVerdict){.action = RM_MEASURE};
        case RM_IMPORT:
        case RM_IMPORT_MANY:
                return travel(ask, RM_MEASURE);
        case RM_EXPORT:
        case RM_EXPORT_MANY:
                return travel(ask, RM_KEEP);
        case RM_TELL_FB:
        case RM_TELL_FB_LIST:
        case RM_TELL_REGIONS:
        case RM_TELL_HEAP:
        case RM_TELL_LIMIT:
                return (RmVerdict){.action = known && known->sliced ? RM_REWRITE : RM_FORWARD};
        case RM_SCHEDULE: /* what the driver says to who may not */
                return (RmVerdict){.action = RM_REFUSE, .status = RM_ERR_INSUFFICIENT_PERMISSIONS};
        case RM_UNKNOWN: /* what drivers that do not have it say */
                return (RmVerdict){.action = RM_REFUSE, .status = RM_ERR_INVALID_ARGUMENT};
        case RM_OTHER:
        default:
                return (RmVerdict){.action = RM_FORWARD};
        }
}

static size_t status_at(const RmAsk *ask) {
        switch (ask->nr) {
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
                return ask->size == sizeof(RmAllocRights) ? offsetof(RmAllocRights, status)
                                                          : offsetof(RmAlloc, status);
        }
}

uint32_t rm_status(const RmAsk *ask, const void *outer) {
        return get32((const uint8_t *) outer + status_at(ask));
}

void rm_set_status(const RmAsk *ask, void *outer, uint32_t status) {
        put32((uint8_t *) outer + status_at(ask), status);
}

uint32_t rm_new_handle(const RmAsk *ask, const void *outer) {
        size_t at = offsetof(RmAlloc, new);

        if (ask->nr == RM_ESC_VID_HEAP_CONTROL)
                at = offsetof(RmHeap, memory);
        else if (ask->nr == RM_ESC_DUP_OBJECT)
                at = offsetof(RmDup, object);
        return get32((const uint8_t *) outer + at); /* the other three have it where RM_ALLOC has it */
}

uint64_t rm_taken(const RmAsk *ask, const void *outer, const void *inner, uint32_t n) {
        size_t at = offsetof(RmMemoryParams, size);
        uint64_t bytes = 0;

        if (ask->nr == RM_ESC_VID_HEAP_CONTROL)
                bytes = get64((const uint8_t *) outer + offsetof(RmHeap, size));
        else if (n >= at + 8)
                bytes = get64((const uint8_t *) inner + at);
        if (bytes < ask->bytes || bytes > BYTES_MAX)
                bytes = rm_round(ask->bytes); /* an answer that cannot be */
        return bytes > 0 ? bytes : PAGE_BIG;
}
