/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The slice page: what a container may use of one card, and what it uses. Three files per container
 * and card. The maker is the node agent or `aliquot run`:
 *
 *     file      field       written by     read by
 *     limits    schedule    the arbiter    the processes (mapped), the agent
 *     limits    all others  the maker      the processes (mapped), the arbiter, the agent
 *     counters  all         the processes  the processes (mapped), the arbiter, the agent
 *     doorbell  a FIFO      the processes  the arbiter: a byte wakes it
 *
 * limits is mounted read-only in the container. A process outside never maps or trusts counters,
 * because the container may write anything there: it uses pread.
 *
 * A process owns a row of the counters as long as it lives. Ownership is an OFD lock on the row's
 * first byte. The mapping of the file holds the lock, so no descriptor stays open, and exec or
 * death releases it. Memory that outlives the process is recognised by a key (pin.h).
 *
 * A reservation is one compare-and-swap on the used word, which names the lane and the operation
 * that changed it last; the next change first notes that operation. So what a killed process holds
 * is known exactly, between any two of its instructions. A row has four lanes for four threads.
 *
 * Raw system calls only, no allocation, no stdio: the preloaded library runs this inside
 * applications. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slice/compute_policy.h"
#include "slice/schedule.h"

/* Version of the layout of limits and counters. A page of another version is refused. */
enum { SLICE_VERSION = 2 };
/* SLICE_UNIT: bytes per unit of the counters. SLICE_UUID, SLICE_ASKED: sizes of texts. */
enum { SLICE_ROWS = 256, SLICE_LANES = 4, SLICE_UNIT = 4096, SLICE_UUID = 48, SLICE_ASKED = 60 };

#define SLICE_LIMITS_MAGIC   0x54494D494C514C41ull /* "ALQLIMIT" */
#define SLICE_COUNTERS_MAGIC 0x544E554F43514C41ull /* "ALQCOUNT" */

/* SliceLimits.flags. OPEN: no reservation is refused; CGPU_DISABLE sets it where the node permits
 * that. SAY: a process that is refused memory reports it on its standard error. */
enum { SLICE_FLAG_OPEN = 1, SLICE_FLAG_SAY = 2 };

/* Identifies a driver's file: a real one by its device number, others by file system and inode. */
typedef struct SliceFile {
        uint64_t rdev;     /* device number; 0: a simulated file, or not known */
        uint64_t dev, ino; /* file system and inode of a simulated one */
} SliceFile;

typedef struct SliceLimits {
        uint64_t magic;
        uint32_t version;
        uint32_t size;               /* of this structure, in bytes */
        _Atomic uint64_t generation; /* odd while it is written */
        uint64_t limit;              /* bytes of the card that the container may hold */
        uint64_t card_bytes;         /* of the whole card */
        uint64_t group_bytes;        /* charged per channel group, for the driver's own use */
        uint32_t granted_percent;    /* that core_percent may grow back to; 0: core_percent */
        uint32_t card;               /* index, as in ALIYUN_COM_GPU_MEM_IDX */
        uint32_t core_percent;       /* 0: no limit of compute */
        uint32_t flags;
        char uuid[SLICE_UUID]; /* "GPU-...", NUL-terminated */
        SliceFile ctl, device, uvm;
        char container[256]; /* NAMESPACE/POD/CONTAINER, for people */
        uint64_t granted;    /* bytes that limit may grow back to; 0: limit is all */
        SliceSchedule schedule;
        uint32_t weight; /* ALIYUN_COM_GPU_SCHD_WEIGHT, at least 1; 0 is taken as 1 */
        uint32_t high_priority;
        uint32_t policy;         /* ComputePolicy */
        uint32_t max_inst;       /* instances of COMPUTE_FAIR; 0: not set */
        uint32_t prio_ratio;     /* percent, 20..99; 0: not set */
        char asked[SLICE_ASKED]; /* "aliyun.com/gpu-mem: 2", for people; NUL-terminated */
        uint64_t asked_limit;    /* bytes that `asked` stands for; a resize does not change them */
        SliceFile log;           /* the maker's standard error; inode 0: not known */
        uint8_t reserved[3472];
} SliceLimits;

/* The three words are laid out in counter_word.h. Only the row's owner writes a lane. Other
 * processes write what they noted of it, so that has a cache line of its own. A row holds the sum
 * of its lanes: memory reserved through one lane may be released through another, so a single lane
 * may be negative. */
typedef struct SliceLane {
        _Atomic uint64_t operation; /* what the owner is about to do; 0 units: nothing */
        _Atomic uint64_t held;      /* signed units, and the sequence of the last operation */
} SliceLane;

typedef struct SliceRow {
        SliceLane lanes[SLICE_LANES];
        _Atomic uint32_t noted[SLICE_LANES]; /* the lane's last sequence seen in `used` */
        _Atomic uint64_t key;                /* byte locked in the driver's files (pin.h); 0: none */
        _Atomic uint64_t inode;              /* of the locked files (pin_inode()); 0: no lock was made */
        SliceWork work;
} SliceRow;

typedef struct SliceCounters {
        uint64_t magic;
        uint32_t version;
        uint32_t size;
        _Atomic uint64_t used;    /* units of all rows, and the operation that changed them last */
        _Atomic uint64_t peak;    /* largest number of units so far */
        _Atomic uint64_t refused; /* number of refused reservations */
        _Atomic uint64_t shared;  /* key of rows for files that several processes use; 0: none */
        _Atomic uint64_t rowless; /* of the refused: those of processes without a free row */
        uint8_t reserved[72];
        SliceRow rows[SLICE_ROWS];
} SliceCounters;

_Static_assert(sizeof(SliceFile) == 24 && sizeof(SliceLimits) == 4096 && sizeof(SliceLane) == 16, "sizes");
_Static_assert(offsetof(SliceLimits, generation) == 16 && offsetof(SliceLimits, limit) == 24, "limit");
_Static_assert(offsetof(SliceLimits, uuid) == 64 && offsetof(SliceLimits, ctl) == 112, "card");
_Static_assert(offsetof(SliceLimits, container) == 184 && offsetof(SliceLimits, granted) == 440, "container");
_Static_assert(offsetof(SliceLimits, schedule) == 448 && offsetof(SliceLimits, weight) == 512, "compute");
_Static_assert(offsetof(SliceLimits, asked) == 532 && offsetof(SliceLimits, log) == 600, "asked, log");
_Static_assert(offsetof(SliceRow, noted) == 64 && offsetof(SliceRow, work) == 96, "noted, work");
_Static_assert(sizeof(SliceRow) == 128, "SliceRow");
_Static_assert(offsetof(SliceCounters, used) == 16 && offsetof(SliceCounters, rows) == 128, "used, rows");
_Static_assert(sizeof(SliceCounters) == 128 + SLICE_ROWS * 128, "SliceCounters");
