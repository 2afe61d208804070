/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The driver's objects that this process has: clients, devices, subdevices, and objects with bytes
 * (memory, channel groups). The table is changed after the driver's answer. Between the two,
 * another thread may get the same handle for another object, so each object has a serial number.
 * Order:
 *
 *   make:  rm_objects_parent(), the driver, rm_objects_is_valid() if the card matters,
 *          rm_objects_add()
 *   free:  rm_objects_find(), rm_objects_begin_free(), the driver,
 *          rm_objects_cancel_free() or rm_objects_remove()
 *
 * Adding and removing repair what happened in between: a child of a freed parent becomes an orphan
 * of its client, and a new object with a freed handle stays.
 *
 * Memory comes from mmap. Any thread and any signal handler may call these functions. A table
 * begins zeroed. Bytes are counted in units of 4 KiB. */

#include "preload/memory/charges.h"
#include "preload/memory/freed_bytes.h"

enum { RM_OBJECTS_SHARDS = 8, RM_OBJECTS_NO_CARD = 255 /* not known yet */ };

/* A leaf is an object with bytes: memory, or a channel group. */
typedef enum RmObjectKind {
        RM_OBJECT_CLIENT = 1,
        RM_OBJECT_DEVICE,
        RM_OBJECT_SUBDEVICE,
        RM_OBJECT_LEAF
} RmObjectKind;

typedef struct RmObject {
        uint32_t client, handle, serial;
        uint32_t up[3]; /* serials of the client, device and subdevice above it; 0: none, or not known */
        uint32_t units;
        uint32_t charge; /* number of a charge that it shares; 0: the units are its own */
        uint8_t kind, card;
        uint8_t row;     /* row of its bytes; for a client and what is below it: of future bytes */
        uint8_t freeing; /* number of calls in progress that free it, or an object above it */
} RmObject;

typedef struct RmObjectShard {
        Spin lock;
        uint32_t size, n; /* of the table: a power of two; entries in use */
        RmObject *table;  /* open addressing; kind 0: an empty entry */
} RmObjectShard;

typedef struct RmObjects {
        _Atomic uint32_t serial;
        _Atomic uint32_t clients; /* upper bound; if above 1, one of them may be stale */
        RmObjectShard shards[RM_OBJECTS_SHARDS];
        Charges charges;
} RmObjects;

/* An object as it was found, and the newest serial at that time: later objects are not meant. */
typedef struct RmObjectMark {
        RmObject object;
        uint32_t now;
} RmObjectMark;

/* The parent of a new object. */
typedef struct RmParent {
        uint32_t client, handle, serial; /* serial: when it was found; 0: not known */
        uint32_t up[3];
        bool known; /* whether it is in the table */
        uint8_t card;
        uint8_t row; /* RM_OBJECTS_SHARED for an unknown client */
} RmParent;

RmParent rm_objects_parent(RmObjects *o, uint32_t client, uint32_t handle);

/* Whether the parent still has its handle after the driver's OK. false: a call is freeing the
 * parent, and the new object may be below another object with its handle, of another card. */
bool rm_objects_is_valid(RmObjects *o, const RmParent *parent);

/* Adds an object. charge: from rm_objects_ref_charge(), with a reference for the new object; 0:
 * none. handle 0: the driver did not return it; the object goes with its parent. Returns 0;
 * -ENOMEM: no memory or no lock, and the bytes stay charged until the process ends. A new client
 * replaces one with its handle, which is gone: the bytes of that are added to freed. */
int rm_objects_add(RmObjects *o, const RmParent *parent, uint32_t handle, RmObjectKind kind, uint64_t bytes,
                   uint32_t charge, FreedBytes *freed);

bool rm_objects_find(RmObjects *o, uint32_t client, uint32_t handle, RmObjectMark *ret); /* the newest one */

/* Call the first before the driver frees an object, and the second after it refused to. */
void rm_objects_begin_free(RmObjects *o, const RmObjectMark *mark);
void rm_objects_cancel_free(RmObjects *o, const RmObjectMark *mark);

/* Whether the object is the newest one with its handle, and no call frees it. If so before and
 * after a call of the driver, the handle was this object's meanwhile. */
bool rm_objects_is_kept(RmObjects *o, const RmObject *object);

/* Removes the object and all below it, and adds their bytes to freed, except shared charges that
 * have other holders. */
void rm_objects_remove(RmObjects *o, const RmObjectMark *mark, FreedBytes *freed);

/* Records the card of a parent, but not of a newer object with its handle. A parent that is not in
 * the table (inherited by a fork, or on a received descriptor) is added. */
void rm_objects_set_card(RmObjects *o, RmParent *parent, uint8_t card);

/* Adds a holder to the bytes of a known leaf. Returns the charge; 0: no such leaf, no memory or no
 * lock. *ret: the leaf. The second function ends a holder: after the last one the bytes, of
 * source's row, card and units, are added to freed. */
uint32_t rm_objects_ref_charge(RmObjects *o, uint32_t client, uint32_t handle, RmObject *ret);
void rm_objects_drop_charge(RmObjects *o, uint32_t charge, const RmObject *source, FreedBytes *freed);

/* Lists the clients in the table, with those of orphans: the max lowest handles above `after`, in
 * order. Returns how many; fewer than max: there are no more. */
unsigned rm_objects_clients(RmObjects *o, uint32_t after, uint32_t *ret, unsigned max);

/* Marks a client for rm_objects_remove(), with all objects that belong to it, or may. */
RmObjectMark rm_objects_mark_client(RmObjects *o, uint32_t client);

/* In a child of fork(), by its only thread: forgets all. The parent's row counts what was made
 * before. A child that frees such an object must not give bytes back, because the parent may free
 * the same handle again, and the driver answers OK to that. */
void rm_objects_after_fork(RmObjects *o);
