/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this process's clients hold, as far as it matters: clients, devices, subdevices, and
 * whatever has bytes (memory, channel groups). The driver is asked first and its word is written
 * down afterwards, so between the two another thread may already use the same handle for something
 * else: objects are told apart by a serial number besides their handle. The order is
 *
 *   make:  objects_seat() - the driver says OK - objects_still(), where its card matters - objects_add()
 *   free:  objects_find() - objects_leave() - the driver says OK, or no - objects_left() - objects_forget()
 *
 * and whatever happened in between is sorted out by add and forget: a child of what was freed
 * meanwhile is an orphan of its client, and a new object with the old one's handle stays.
 *
 * Memory comes from mmap, nothing is allocated elsewhere. All functions may be called by any thread
 * and in signal handlers. Objects must be zero at first. Bytes are kept in units of 4 KiB. */

#include "preload/memory/shares.h"

enum {
        OBJECTS_SHARDS = 8,
        OBJECTS_CARDS = 32,
        OBJECTS_NO_CARD = 255, /* not known yet */
};

/* Where bytes are counted (gate.h, GateRow): this process's own, or what lies on files that others
 * use, too. */
enum { OBJECTS_OWN = 0, OBJECTS_SHARED, OBJECTS_ROWS };

typedef enum ObjectKind { OBJECT_CLIENT = 1, OBJECT_DEVICE, OBJECT_SUBDEVICE, OBJECT_LEAF } ObjectKind;

typedef struct Object {
        uint32_t client, handle;
        uint32_t serial;
        uint32_t up[3]; /* serials of client, device, subdevice above it; 0: none, or not known */
        uint32_t units;
        uint32_t share; /* of one charge among duplicates: its number; 0: its own */
        uint8_t kind, card;
        uint8_t row;     /* of its bytes; of a client and what is below it, of the bytes to come */
        uint8_t leaving; /* frees of it, or of what is above it, that the driver is being asked for */
} Object;

typedef struct ObjectShard {
        Spin lock;
        uint32_t size, n; /* of the table: a power of two, and how many are in use */
        Object *table;    /* open addressing; kind 0 is empty */
} ObjectShard;

typedef struct Objects {
        _Atomic uint32_t serial;
        _Atomic uint32_t
                clients; /* that are known, at most; with more than one, a stale one may be among them */
        ObjectShard shards[OBJECTS_SHARDS];
        Shares shares;
} Objects;

/* An object as it was found, and when: what came later is not meant by it. */
typedef struct ObjectMark {
        Object object;
        uint32_t now;
} ObjectMark;

/* Where a new object will hang. */
typedef struct ObjectSeat {
        uint32_t client, parent;
        uint32_t serial; /* of the parent, when it was found; 0: it is not known */
        uint32_t up[3];
        bool known; /* the parent is in the table */
        uint8_t card;
        uint8_t row; /* of a client that is not known: OBJECTS_SHARED */
} ObjectSeat;

/* What is given back. Of cards whose bit is not set nothing was written. */
typedef struct ObjectBytes {
        uint32_t cards[OBJECTS_ROWS];
        uint64_t card[OBJECTS_ROWS][OBJECTS_CARDS];
} ObjectBytes;

static inline void object_bytes_none(ObjectBytes *b) {
        for (unsigned i = 0; i < OBJECTS_ROWS; i++)
                b->cards[i] = 0;
}

ObjectSeat objects_seat(Objects *o, uint32_t client, uint32_t parent);

/* After the driver's OK. false: somebody has begun to free the parent that was found, and the new
 * object may be below a namesake, of another card. */
bool objects_still(Objects *o, const ObjectSeat *seat);

/* share: as objects_share() gave it, whose reference goes to the new object; 0 for none. handle 0:
 * the driver did not tell it; it goes with its parent. 0; -ENOMEM: no memory for the table, or no
 * lock: the bytes stay charged until the process ends. A new client with the handle of a known one
 * says that the old one is gone: its bytes are added to freed. */
int objects_add(Objects *o, const ObjectSeat *seat, uint32_t handle, ObjectKind kind, uint64_t bytes,
                uint32_t share, ObjectBytes *freed);

bool objects_find(Objects *o, uint32_t client, uint32_t handle, ObjectMark *ret); /* the newest one */

/* Around the driver's word on a free: who frees is seen before a namesake can be there. Of leaves
 * nothing hangs, and nothing is noted. */
void objects_leave(Objects *o, const ObjectMark *mark);
void objects_left(Objects *o, const ObjectMark *mark);

/* The object that was found and all below it. Adds what they held to freed; bytes that duplicates
 * still hold stay. */
void objects_forget(Objects *o, const ObjectMark *mark, ObjectBytes *freed);

/* Writes down what was learnt of a parent, but not of a namesake that came since. One that was not
 * known (it came over a fork, or by a descriptor that was passed) is entered. */
void objects_set_card(Objects *o, ObjectSeat *seat, uint8_t card);

/* One more holder of what a known leaf holds. 0: there is no such leaf, or no memory. Drop adds the
 * bytes to freed when it was the last; ret says what the share is of, source its row, card and
 * units. */
uint32_t objects_share(Objects *o, uint32_t client, uint32_t handle, Object *ret);
void objects_drop_share(Objects *o, uint32_t share, const Object *source, ObjectBytes *freed);

/* The clients in the table, those of orphans, too: up to max handles, the lowest ones above
 * `after`, in their order. Returns how many were written; with fewer than max there are no more. */
unsigned objects_clients(Objects *o, uint32_t after, uint32_t *ret, unsigned max);

/* A client as it is now, for objects_forget(): with all that is known to be its, or might be. */
ObjectMark objects_client(Objects *o, uint32_t client);

/* In a child of fork, by its only thread: all is forgotten. What was made before is the parent's,
 * and its row counts it: a child that frees some of it must not give it back, because the parent
 * may free the same handle again, and the driver says OK to that. */
void objects_after_fork(Objects *o);
