/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this node has allocated: device IDs by pod and container. The kubelet's own records are not
 * enough: it forgets a pod with its object, although processes may still run, and twice it has
 * given the same IDs to two pods (kubernetes#137534).
 *
 * A record exists in memory from Allocate on, and on disk from PreStart on, before the container
 * starts: a pod that never started holds nothing. There is one small file per pod, written under
 * another name and renamed. It is not fsynced, because no container survives a reboot.
 *
 * record.c has one record and its text, records.c all of them and their files. */

#include "base/buf.h"
#include "base/hash.h"
#include "node/records/device.h"

enum { RECORD_SLICE_SIZE = 128 };

typedef struct RecordContainer {
        char *name;
        char slice[RECORD_SLICE_SIZE]; /* the directory of its slice pages; "": not recorded */
        bool init;                     /* an ordinary init container: later ones may be given the same IDs */
        bool started;                  /* its memory was proved at least once */
        DeviceSet given[DEVICE_KINDS_];
} RecordContainer;

typedef struct Record {
        UT_hash_handle hh;
        char *uid, *namespace_, *name;
        RecordContainer *containers;
        size_t n_containers;
        uint64_t assume; /* assume-time of the pod's place when its first container started; 0: not known */
        bool orphan;     /* the pod object is gone, its processes are not */
        bool saved;      /* the file says what this says */
} Record;

typedef struct Records {
        Record *by_uid;
        char *directory;
} Records;

/* Reads what is there; files that cannot be read are logged, set aside as NAME.bad, and counted.
 * The directory is made. 0 or negative errno with a fault. */
int records_open(Records *r, const char *directory, Fault *fault);
void records_done(Records *r);

Record *records_find(const Records *r, Str uid);
/* The container's devices of one kind from now on (copied). Other memory than before is another
 * slice, which has no name yet. 0 or -ENOMEM. */
int records_give(Records *r, Str uid, Str namespace_, Str name, Str container, bool init, DeviceKind kind,
                 const DeviceSet *set);
const RecordContainer *record_container(const Record *record, Str name);
void record_set_started(Record *record, Str container, bool started);
/* Names the directory of the container's slice pages: shorter than RECORD_SLICE_SIZE. */
void record_set_slice(Record *record, Str container, const char *slice);
bool record_has_started(const Record *record);           /* any container of it */
void record_set_assume(Record *record, uint64_t assume); /* once: what is known stays */

/* To disk. 0, or negative errno with a fault that names the file. */
int records_save(Records *r, Record *record, Fault *fault);
/* From memory and disk. */
void records_drop(Records *r, Record *record);

/* Does any container of this record hold one of them? */
bool record_touches(const Record *record, DeviceKind kind, const DeviceSet *set);
/* Another pod that holds one of them; NULL: nobody. */
Record *records_holder(const Records *r, DeviceKind kind, const DeviceSet *set, Str except_uid);
bool records_hold(const Records *r, DeviceKind kind, DeviceId id);

/* The text of a file: for tests and fuzzing. RECORD_E_MALFORMED, -ENOMEM. */
enum { RECORD_E_MALFORMED = 1 };
int record_read(Str json, Record **ret, Fault *fault);
void record_write(const Record *record, Buf *out);
Record *record_free(Record *record);

DEFINE_CLEANUP(Record *, record_free)
