/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the driver is being asked for, and what to do about it. Pure: no I/O, no state, no pointer
 * is followed; the gate inside the container decides with it, and a supervisor outside can.
 *
 * Memory of the card comes through RM_ALLOC of class 0x40, through the functions of
 * RM_VID_HEAP_CONTROL that become such an allocation, and by duplicates and imports of what another
 * process got. RM_ALLOC_MEMORY of class 0x40, a third door by its name, gives none: it tells the
 * size of the heap. Amounts are bytes. */

#include <stdbool.h>

#include "gpu/rm/rm.h"

enum {
        RM_OUTER_MAX = 184, /* the longest structure that is decoded here: RmHeap */
        RM_INNER_MAX =
                160, /* parameters of memory and of channel groups: 32 to 128 bytes in the drivers known */
};

typedef enum RmWhat {
        RM_OTHER = 0,  /* nothing to do with memory */
        RM_NEW_CLIENT, /* these three are remembered, because memory hangs below them */
        RM_NEW_DEVICE,
        RM_NEW_SUBDEVICE,
        RM_NEW_MEMORY,
        RM_NEW_GROUP,   /* channels; the driver keeps memory for them that is nobody's object */
        RM_NEW_CHANNEL, /* outside a group the driver makes one for it, which is nobody's object either */
        RM_FREE_OBJECT,
        RM_DUPLICATE,
        RM_EXPORT, /* the control's parameters say of what, and to which descriptor; refused where they are of a size not known */
        RM_EXPORT_MANY,
        RM_IMPORT, /* by the descriptor of an export, of this process or another */
        RM_IMPORT_MANY,
        RM_TELL_FB, /* questions about the card's memory, by their parameters */
        RM_TELL_FB_LIST,
        RM_TELL_REGIONS,
        RM_TELL_HEAP,
        RM_TELL_LIMIT,
        RM_SCHEDULE, /* sets how the card's time is shared */
        RM_UNKNOWN, /* it may take memory, in a way that is not known here: a size, or a function of the heap's */
} RmWhat;

typedef struct RmAsk {
        RmWhat what;
        uint32_t nr, size;
        uint32_t client, parent,
                object; /* object: the new one, 0 if the driver shall choose; the one that is freed or asked */
        uint32_t source_client, source_object;
        uint64_t params; /* where the inner structure lies, 0: none */
        uint32_t params_size;
        uint64_t
                bytes; /* as asked; of what is rounded by rm_round(). Of RM_ALLOC it stands in the inner structure */
        bool overflow; /* the size is no number that any card has */
} RmAsk;

/* Is this number with this size one that rm_decode() wants to see? A load, a shift and a switch. */
bool rm_metered(uint32_t nr, uint32_t size);

/* One of the same numbers with another size: RM_UNKNOWN. Drivers 535 to 595 answer such a call with
 * EINVAL, and where its status would lie is not known. Without a size nothing is copied, and no
 * driver takes it. */
bool rm_is_odd(uint32_t nr, uint32_t size);

/* outer: `size` bytes. RM_OTHER leaves the rest of ret zero, and so does RM_UNKNOWN, but for the
 * number and the size. */
void rm_decode(uint32_t nr, uint32_t size, const void *outer, RmAsk *ret);

/* For RM_NEW_MEMORY by RM_ALLOC: the size out of its parameters, of which n bytes are there; what
 * is not there counts as 0. */
void rm_decode_inner(RmAsk *ask, const void *inner, uint32_t n);

/* What the driver will take for a block of so many bytes, as far as can be known before: 64 KiB
 * pages, 2 MiB for 2 MiB and more. UINT64_MAX: more than can be. */
uint64_t rm_round(uint64_t bytes);

typedef enum RmAction {
        RM_FORWARD,
        RM_CHARGE, /* reserve `bytes` of the card; then forward, and remember the object, or give the bytes back */
        RM_REFUSE,   /* do not forward: `status` is the answer */
        RM_REWRITE,  /* forward, then make the answer that of the slice */
        RM_FORGET,   /* forward; when the driver said OK the object and all below it are gone */
        RM_REMEMBER, /* forward; when the driver said OK there is one more object, without bytes of its own */
        RM_KEEP,     /* forward; when the driver said OK an open file has it, too */
        RM_MEASURE, /* forward; what came has a size that only the driver knows: ask it, charge, or free it again and refuse */
} RmAction;

typedef struct RmKnown {
        bool sliced;          /* the card is known and a good slice of it is here */
        uint64_t limit;       /* bytes of that slice */
        uint64_t group_bytes; /* for each channel group */
        bool grouped; /* of a channel: its parent is a group, or a duplicate of one, that was charged */
} RmKnown;

typedef struct RmVerdict {
        RmAction action;
        uint32_t status;
        uint64_t bytes;
} RmVerdict;

/* known may be NULL where the card does not matter (rm_needs_card() is false). */
bool rm_needs_card(const RmAsk *ask);
RmVerdict rm_admit(const RmAsk *ask, const RmKnown *known);

/* ---- after the driver's OK ---- */

uint32_t rm_status(const RmAsk *ask, const void *outer);
void rm_set_status(const RmAsk *ask, void *outer, uint32_t status);
uint32_t rm_new_handle(const RmAsk *ask, const void *outer); /* 0: it is not told */

/* What was really taken, from the driver's answer; never less than what was asked, and never 0. */
uint64_t rm_taken(const RmAsk *ask, const void *outer, const void *inner, uint32_t n);
