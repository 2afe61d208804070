/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a call asks of the driver, and what the gate does about it. Pure. Amounts are bytes.
 *
 * Memory of the card comes from RM_ALLOC of class 0x40, from functions of RM_VID_HEAP_CONTROL that
 * become one, and from duplicates and imports of another process's memory. RM_ALLOC_MEMORY of class
 * 0x40 gives none in spite of its name: it tells the size of the heap. */

#include <stdbool.h>

#include "gpu/rm/rm.h"

enum {
        RM_OUTER_MAX = 184, /* the longest structure that is decoded here: RmHeap */
        RM_INNER_MAX = 160, /* above the parameters of memory and channel groups: 32 to 128 bytes */
};

typedef enum RmKind {
        RM_OTHER = 0,    /* nothing about memory */
        RM_ALLOC_CLIENT, /* this and the next two are recorded: memory is allocated below them */
        RM_ALLOC_DEVICE,
        RM_ALLOC_SUBDEVICE,
        RM_ALLOC_VIDMEM,
        RM_ALLOC_CHANNEL_GROUP, /* the driver takes memory for it that is no object of the process */
        RM_ALLOC_CHANNEL,       /* outside a group: the driver makes a group for it */
        RM_ALLOC_EXPORT,        /* this and the next would keep memory of other objects: refused */
        RM_ALLOC_FLA,
        RM_ALLOC_FABRIC, /* keeps memory that its parameters name */
        RM_FREE_OBJECT,
        RM_DUPLICATE,
        RM_EXPORT, /* the parameters name the object and the descriptor */
        RM_EXPORT_MANY,
        RM_IMPORT, /* by the descriptor of an export, of this process or another */
        RM_IMPORT_MANY,
        RM_ATTACH,   /* attaches memory to a multicast object */
        RM_QUERY_FB, /* this and the next six are queries about the card's memory */
        RM_QUERY_FB_LIST,
        RM_QUERY_REGIONS,
        RM_QUERY_UGPU,
        RM_QUERY_STATS,
        RM_QUERY_HEAP,
        RM_QUERY_HEAP_LIMIT,
        RM_SET_TIMESLICE, /* this and the next two set how the card's time is shared */
        RM_SET_PREEMPTION,
        RM_SET_CHANNELS,
        RM_UNKNOWN, /* an unknown size, or an unknown heap function: it may take memory */
} RmKind;

typedef struct RmRequest {
        RmKind kind;
        uint32_t nr, size;
        uint32_t client, parent;
        uint32_t object; /* the new one, 0: the driver chooses its handle; the freed or queried one */
        uint32_t source_client, source_object;
        uint64_t params; /* address of the inner structure; 0: none */
        uint32_t params_size;
        uint64_t bytes; /* as asked, not rounded; for RM_ALLOC set by rm_decode_inner() */
        bool overflow;  /* the size exceeds that of any card */
} RmRequest;

bool rm_metered(uint32_t nr, uint32_t size);    /* rm_decode() knows this number with this size */
bool rm_is_dma_buf(uint32_t nr, uint32_t size); /* an export to a dma-buf, of a known size */

/* Whether it is one of these numbers with another size (RM_UNKNOWN). Drivers 535 to 595 answer with
 * EINVAL, and where the status would be is not known. With size 0 no driver accepts it. */
bool rm_is_odd(uint32_t nr, uint32_t size);

/* outer: the call, `size` bytes. RM_OTHER and RM_UNKNOWN leave all but kind, nr and size zero. */
void rm_decode(uint32_t nr, uint32_t size, const void *outer, RmRequest *ret);

/* Takes the size of an RM_ALLOC_VIDMEM by RM_ALLOC from n bytes of its parameters; missing: 0. */
void rm_decode_inner(RmRequest *request, const void *inner, uint32_t n);

/* What the driver will take for a block, in bytes, as far as known before the call: whole pages of
 * 64 KiB, or of 2 MiB from 2 MiB on. UINT64_MAX: more than any card has. */
uint64_t rm_round(uint64_t bytes);

typedef enum RmAction {
        RM_FORWARD,
        RM_CHARGE,       /* reserve `bytes`, forward, and note the object or give the bytes back */
        RM_REFUSE,       /* answer with `status`, without the driver */
        RM_REWRITE,      /* forward, then make the answer that of the slice */
        RM_FORGET,       /* forward; after OK the object and all below it are gone */
        RM_REMEMBER,     /* forward; after OK note an object without bytes of its own */
        RM_TRACK_EXPORT, /* forward; after OK a file or another object holds the object, too */
        RM_MEASURE,      /* forward; then ask the driver for the size, and charge it or free the object */
        RM_SCHEDULE,     /* forward with a copy of the parameters, if rm_admit_scheduling() agrees */
} RmAction;

typedef struct RmSliceInfo {
        bool sliced;          /* the card is known, and has a slice here */
        uint64_t limit;       /* bytes of that slice; 0: it is not usable */
        uint64_t group_bytes; /* for each channel group */
        bool grouped;         /* of a channel: it is below a charged group, or a duplicate of one */
} RmSliceInfo;

typedef struct RmVerdict {
        RmAction action;
        uint32_t status;
        uint64_t bytes;
} RmVerdict;

/* Decides what the gate does about a request. slice may be NULL if rm_needs_card() is false. */
bool rm_needs_card(const RmRequest *request);
RmVerdict rm_admit(const RmRequest *request, const RmSliceInfo *slice);

/* Checks a call with RM_SCHEDULE. params: a copy of its parameters, changed to what the driver may
 * get. Returns RM_OK, or the status to refuse with. The caller checks RmDisableChannels.clients. */
uint32_t rm_admit_scheduling(const RmRequest *request, void *params);

/* ---- of the driver's answer ---- */

uint32_t rm_status(const RmRequest *request, const void *outer);
void rm_set_status(const RmRequest *request, void *outer, uint32_t status);
uint32_t rm_new_handle(const RmRequest *request, const void *outer); /* 0: there is none */

/* Returns the bytes that the driver took; never less than requested, and never 0. */
uint64_t rm_taken(const RmRequest *request, const void *outer, const void *inner, uint32_t n);
