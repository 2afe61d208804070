/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files of a slice, as the node agent, `aliquot run` and `aliquot smi` make and read them. What
 * the container can write is never mapped and never trusted: it is read with pread, and may be cut
 * short or contain anything. All functions take the descriptor of the slice's directory, so that no
 * path is walked that a tenant could have changed.
 *
 * limits is written by one process at a time, the one that makes the slice, all but `schedule`:
 * that is the arbiter's (slice/page.h has the table). */

#include "base/fault.h"
#include "slice/page.h"

/* A slice's name, which is that of its directory. */
enum { SLICEDIR_ID_SIZE = 128 };

#define SLICE_DOORBELL "doorbell"

/* Charged per channel group where nothing better is known: a guess, until it is read from a
 * card. Not 0: the library remembers only groups with bytes, and refuses the channels of another
 * one if the process has several cards. */
#define SLICE_GROUP_BYTES (UINT64_C(2) << 20)

typedef struct SliceSpec {
        uint64_t limit, card_bytes, group_bytes, granted; /* bytes, as in SliceLimits */
        uint32_t card, flags, granted_percent;
        const char *uuid, *container; /* shorter than SLICE_UUID; cut if it is longer */
        char asked[SLICE_ASKED];      /* what made granted, or the limit where that is 0 */
        SliceFile ctl, device, uvm, log;
        CardCompute compute;
        ComputeRequest request;
} SliceSpec;

typedef struct SliceReport {
        uint64_t used;    /* bytes, as the counters say */
        uint64_t dead;    /* of these, in rows of dead processes: come back when needed */
        uint64_t pinned;  /* of these, in dead rows with memory on an open file (pin.h) */
        uint64_t peak;    /* bytes */
        uint64_t refused; /* reservations */
        uint32_t n_alive; /* rows */
        bool alive[SLICE_ROWS];
        int64_t held[SLICE_ROWS]; /* bytes; negative: released what another row reserved */
} SliceReport;

/* limits and counters, open for writing: while they are, no container can lease them
 * (file_lease.h). -1: not open. */
typedef struct SliceFds {
        int limits, counters;
} SliceFds;

#define SLICE_FDS_NULL ((SliceFds){-1, -1})
void slice_files_close(SliceFds *fds);

enum {
        SLICE_FILES_E_DAMAGED = 1, /* not a slice page of this version, or cut short */
};

/* Makes limits, counters and the doorbell. limits is replaced as a whole: a process that has mapped
 * it keeps the old one. Good counters stay, because a container may use them; bad ones are replaced
 * and never written over.
 *
 * 0, or negative errno with a fault. -EINVAL: the uuid is too long. -EOPNOTSUPP: a kernel before
 * 3.15, on which no process could use the files. Others: a file could not be made. */
int slice_files_make(int directory, const SliceSpec *spec, Fault *fault);

/* The same. *ret_fds gets what is new, open without interruption since it was made. Counters that
 * stay and are leased are not in it. */
int slice_files_make_open(int directory, const SliceSpec *spec, SliceFds *ret_fds, Fault *fault);

/* Opens those of the existing files that open without waiting. */
void slice_files_open(int directory, SliceFds *ret_fds);

/* Writes another size, bytes and percent of compute, into the existing file, because containers
 * have it mounted. Bytes held above the limit stay, and nothing is reserved until they are fewer.
 * Writes nothing if the page has this size already and no process died while it wrote.
 * *ret_written: whether it wrote; may be NULL. 0, or SLICE_FILES_E_DAMAGED or negative errno, both
 * with a fault. */
int slice_files_set_size(int directory, uint64_t bytes, uint32_t percent, bool *ret_written, Fault *fault);

/* The same for the card's settings of compute. Writes nothing if the page has them already and no
 * process died while it wrote. */
int slice_files_set_compute(int directory, const CardCompute *compute, Fault *fault);

/* Returns space to the file system that a container has taken by enlarging counters, or by
 * reserving beyond their end. *ret_bytes: what the file took; 0: no more than it should. 0,
 * SLICE_FILES_E_DAMAGED, or negative errno of open, fstat and ftruncate. */
int slice_files_trim(int directory, uint64_t *ret_bytes);

/* The same to the last block, before files are written where there may be no room. */
int slice_files_give_back(int directory);

/* 0, SLICE_FILES_E_DAMAGED, or negative errno of open, fstat, pread and fcntl. ret is untouched on
 * failure. */
int slice_files_read_limits(int directory, SliceLimits *ret);
int slice_files_read_report(int directory, SliceReport *ret);

/* How far each lane's operations are. Its processes only count up, also the one that takes over a
 * dead one's row (slice/counters.h). So a lane that is behind was overwritten, as by a copy of the
 * file from before. */
typedef struct SliceSequences {           /* all zero at first */
        uint64_t inode, refused, rowless; /* 0: it was not read yet; as in SliceUsage */
        uint32_t lanes[SLICE_ROWS * SLICE_LANES];
} SliceSequences;

/* Reads them. *ret_behind: a lane is behind what *s had of the same file. The same errors as above;
 * then *s stays. */
int slice_files_read_sequences(int directory, SliceSequences *s, bool *ret_behind);

/* The sums of the counters, for little cost: no process is looked for. The container may write any
 * number there. The same errors. */
typedef struct SliceUsage {
        uint64_t used, peak;       /* bytes */
        uint64_t refused, rowless; /* reservations; of these, for want of a row */
} SliceUsage;
int slice_files_read_usage(int directory, SliceUsage *ret);

/* The settings of compute in a page. An open slice is native. */
CardCompute slice_files_compute(const SliceLimits *l);
ComputeRequest slice_files_request(const SliceLimits *l);
