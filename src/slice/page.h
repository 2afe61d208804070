/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The slice page: what a container may have of one card, and what it has. Two files in one
 * directory per container and card:
 *
 *   limits     written by the node agent (or aliquot run), mounted read-only into the container
 *   counters   written by the processes of the container, which may scribble over it: whoever is outside never maps it, never
 *              believes it, and reads it with pread
 *
 * A process owns a row of the counters as long as it lives: an OFD lock on its first byte, held by
 * its mapping of the file (no descriptor stays open), gone at exec and at death. What of its memory
 * outlives it is seen by a key (pin.h). A reservation is one compare-and-swap on the used word,
 * which names the lane (one of a row's four, so that four threads need not wait for each other) and
 * the operation that changed it last; whoever changes it next notes that first. So it can be told
 * of every killed process, between any two of its instructions, what it holds, and its bytes come
 * back exactly.
 *
 * libc only, no allocation, no stdio, raw system calls: the gate runs this in other people's
 * processes. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slice/compute_policy.h"
#include "slice/schedule.h"

enum {
        SLICE_MAJOR =
                1, /* another major is another layout; a higher minor has more in what is reserved here */
        SLICE_MINOR =
                4, /* 1: turns of the card's compute; 2: keys of rows; 3: the key that rows share, and what may outlast a window; 4: rests */
        SLICE_ROWS = 256,
        SLICE_LANES = 4,
        SLICE_UNIT = 4096, /* bytes; counters count these */
        SLICE_UUID = 48,
};

#define SLICE_LIMITS_MAGIC   0x54494D494C514C41ull /* "ALQLIMIT" */
#define SLICE_COUNTERS_MAGIC 0x544E554F43514C41ull /* "ALQCOUNT" */

/* SliceLimits.flags. Nothing is counted or refused: the container said CGPU_DISABLE, and its node
 * allows it. */
enum { SLICE_FLAG_OPEN = 1 };

/* How the gate knows the driver's files: the real ones by their device number, simulated ones by
 * file system and inode. */
typedef struct SliceFile {
        uint64_t rdev;     /* 0: a simulated one */
        uint64_t dev, ino; /* of a simulated one */
} SliceFile;

typedef struct SliceLimits {
        uint64_t magic;
        uint16_t major, minor;
        uint32_t size; /* of this structure, as its writer knew it */
        _Atomic uint64_t
                generation; /* odd while it is being written; what was read is good if it is even and the same after */
        uint64_t limit;      /* bytes the container may hold of this card: visible_MiB of the wire contract */
        uint64_t card_bytes; /* of the whole card */
        uint64_t group_bytes; /* charged for each channel group, for what the driver itself keeps for it */
        uint32_t reserved0;
        uint32_t card;         /* index, as in ALIYUN_COM_GPU_MEM_IDX */
        uint32_t core_percent; /* 0: no limit of compute */
        uint32_t flags;
        char uuid[SLICE_UUID]; /* "GPU-...", NUL-terminated */
        SliceFile ctl, device, uvm;
        char container[256]; /* NAMESPACE/POD/CONTAINER, for people */
        uint8_t reserved1[8];
        SliceSchedule schedule;
        uint32_t weight; /* ALIYUN_COM_GPU_SCHD_WEIGHT, 1 at least; 0 is taken as 1 */
        uint32_t high_priority;
        uint32_t policy;     /* ComputePolicy */
        uint32_t max_inst;   /* of policy 0 */
        uint32_t prio_ratio; /* percent, 20..99; 0: not said */
        uint8_t reserved[3564];
} SliceLimits;

/* The three words are laid out in word.h. Only the row's owner writes a lane; only others write
 * what they noted of it, so that stands in a cache line of its own. What a row holds is the sum
 * over its lanes: memory that was reserved through one may be released through another, and a
 * single lane's share of it means nothing. */
typedef struct SliceLane {
        _Atomic uint64_t operation; /* what its owner is about to do; 0 units: nothing */
        _Atomic uint64_t held;      /* units, signed, and the sequence of the last operation in them */
} SliceLane;

typedef struct SliceRow {
        SliceLane lanes[SLICE_LANES];
        _Atomic uint32_t noted[SLICE_LANES]; /* sequence of a lane's last operation that was seen in `used` */
        _Atomic uint64_t key;   /* what its owner locks in the driver's files (pin.h); 0: nothing */
        _Atomic uint64_t inode; /* whose locks those are; 0: none was made */
        SliceWork work;
} SliceRow;

typedef struct SliceCounters {
        uint64_t magic;
        uint16_t major, minor;
        uint32_t size;
        _Atomic uint64_t used;    /* units, and which operation of which lane changed it last */
        _Atomic uint64_t peak;    /* units */
        _Atomic uint64_t refused; /* reservations */
        _Atomic uint64_t
                shared;   /* key of all rows for files that more than one process uses; 0: not made yet */
        SliceRests rests; /* zero where nobody knows of it */
        uint8_t reserved[56];
        SliceRow rows[SLICE_ROWS];
} SliceCounters;

_Static_assert(sizeof(SliceFile) == 24, "SliceFile");
_Static_assert(sizeof(SliceLimits) == 4096, "SliceLimits");
_Static_assert(offsetof(SliceLimits, limit) == 24, "limit");
_Static_assert(offsetof(SliceLimits, uuid) == 64, "uuid");
_Static_assert(offsetof(SliceLimits, container) == 184, "container");
_Static_assert(offsetof(SliceLimits, schedule) == 448, "schedule");
_Static_assert(offsetof(SliceLimits, weight) == 512, "weight");
_Static_assert(offsetof(SliceLimits, generation) == 16, "generation");
_Static_assert(offsetof(SliceLimits, ctl) == 112, "ctl");
_Static_assert(sizeof(SliceLane) == 16, "SliceLane");
_Static_assert(offsetof(SliceRow, noted) == 64, "noted");
_Static_assert(offsetof(SliceRow, work) == 96, "work");
_Static_assert(sizeof(SliceRow) == 128, "SliceRow");
_Static_assert(offsetof(SliceCounters, used) == 16 && offsetof(SliceCounters, rests) == 48, "used, rests");
_Static_assert(offsetof(SliceCounters, rows) == 128, "rows");
_Static_assert(sizeof(SliceCounters) == 128 + SLICE_ROWS * 128, "SliceCounters");
