/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this node has allocated: device IDs by pod and container. The kubelet's own records are not
 * enough. It forgets a pod with its object although processes may still run, and it has given the
 * same IDs to two pods (kubernetes#137534).
 *
 * A record exists in memory from Allocate on, and on disk from PreStart on, before the container
 * starts: a pod that never started holds nothing. There is one small file per pod, written under
 * another name and renamed. It is not fsynced, because no container survives a reboot.
 *
 * record.c has one record and its text, records.c all of them and their files. */

#include "base/buf.h"
#include "base/hash.h"
#include "node/records/device.h"

typedef struct RecordContainer {
        char *name;
        /* an ordinary init container: later containers may get the same IDs */
        bool init;
        bool started; /* PreStart verified its memory at least once */
        /* the size in force, units of all its cards and percent; 0: its limit (slice_resize.h) */
        uint32_t size_mem, size_core;
        /* the most that its processes may hold since it has grown beyond its limit, units of all
         * its cards; 0: no more than its size (slice_growth.h) */
        uint32_t permit_mem;
        DeviceSet given[DEVICE_KINDS_];
} RecordContainer;

typedef struct Record {
        UT_hash_handle hh;
        char *uid, *namespace_, *name;
        RecordContainer *containers;
        size_t n_containers;
        /* assume-time of the placement when the first container started; 0: not known */
        uint64_t assume;
        bool orphan; /* the pod object is gone, its processes are not */
        bool saved;  /* the file has the same content */
} Record;

typedef struct Records {
        Record *by_uid;
        char *directory;
} Records;

/* Reads all records, and makes the directory if it is missing. Files that cannot be read are logged
 * and renamed to NAME.bad. Returns 0 or negative errno with a fault. */
int records_open(Records *r, const char *directory, Fault *fault);
void records_done(Records *r);

Record *records_find(const Records *r, Str uid);
/* Sets the container's devices of one kind (copied). Returns 0 or -ENOMEM. */
int records_give(Records *r, Str uid, Str namespace_, Str name, Str container, bool init, DeviceKind kind,
                 const DeviceSet *set);
const RecordContainer *record_container(const Record *record, Str name);
void record_set_started(Record *record, Str container, bool started);
/* Sets the size in force of a container; 0: its limit. */
void record_set_size(Record *record, Str container, uint32_t mem, uint32_t core);
void record_set_permit(Record *record, Str container, uint32_t mem);
/* Units by which the size or the permit exceeds the devices on the card. */
uint32_t record_mem_above(const RecordContainer *c, uint32_t card);
/* whether any of its containers has started */
bool record_has_started(const Record *record);
void record_set_assume(Record *record, uint64_t assume); /* ignored if it is known already */

/* Writes the file. Returns 0, or negative errno with a fault that names it. */
int records_save(Records *r, Record *record, Fault *fault);
/* Removes the record from memory and disk. */
void records_drop(Records *r, Record *record);

/* Whether a container of this record holds an ID of the set. */
bool record_touches(const Record *record, DeviceKind kind, const DeviceSet *set);
/* Finds a record other than except_uid's that holds an ID of the set; NULL: none. */
Record *records_holder(const Records *r, DeviceKind kind, const DeviceSet *set, Str except_uid);

/* Read and write the text of a record's file. record_read() returns 0, RECORD_E_MALFORMED with a
 * fault, or -ENOMEM. */
enum { RECORD_E_MALFORMED = 1 };
int record_read(Str json, Record **ret, Fault *fault);
void record_write(const Record *record, Buf *out);
Record *record_free(Record *record);

DEFINE_CLEANUP(Record *, record_free)
