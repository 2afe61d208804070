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
        const char *uuid, *container; /* uuid: shorter than SLICE_UUID; container: cut to fit */
        char asked[SLICE_ASKED];      /* the request for granted, or for limit where granted is 0 */
        SliceFile ctl, device, uvm, log;
        CardCompute compute;
        ComputeRequest request;
} SliceSpec;

typedef struct SliceReport {
        uint64_t used;    /* bytes, as the counters say */
        uint64_t dead;    /* of the used: in dead processes' rows, released by the next reap */
        uint64_t pinned;  /* of the used: in dead rows with memory on an open file (pin.h) */
        uint64_t peak;    /* largest `used` so far, in bytes */
        uint64_t refused; /* number of refused reservations */
        uint32_t n_alive; /* rows of living processes */
        bool alive[SLICE_ROWS];
        int64_t held[SLICE_ROWS]; /* bytes by row; negative: released what another row reserved */
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

/* Like slice_files_make(). The caller closes *ret_fds, which has both files, new ones open ever
 * since they were made. Counters that stay and are leased are not in it. */
int slice_files_make_open(int directory, const SliceSpec *spec, SliceFds *ret_fds, Fault *fault);

/* Opens limits and counters for writing, where that needs no waiting; else the descriptor is -1. */
void slice_files_open(int directory, SliceFds *ret_fds);

/* Writes another size, bytes and percent of compute, into the existing file, because containers
 * have it mounted. Bytes held above the limit stay, and nothing is reserved until they are fewer.
 * Writes nothing if the page has this size already and no process died while it wrote.
 * *ret_written: whether it wrote; may be NULL. 0, or SLICE_FILES_E_DAMAGED or negative errno, both
 * with a fault. */
int slice_files_set_size(int directory, uint64_t bytes, uint32_t percent, bool *ret_written, Fault *fault);

/* Like slice_files_set_size(), for the card's compute settings. Writes nothing if the page has them
 * already and no process died while it wrote. Returns 0, or an error with a fault. */
int slice_files_set_compute(int directory, const CardCompute *compute, Fault *fault);

/* Frees the space that a container has taken by enlarging counters, or by reserving beyond their
 * end. *ret_bytes: what the file took; 0: no more than it should. Returns 0, SLICE_FILES_E_DAMAGED,
 * or negative errno of open, fstat and ftruncate. */
int slice_files_trim(int directory, uint64_t *ret_bytes);

/* Like slice_files_trim(), to the last block: before files are written where room may be short. */
int slice_files_give_back(int directory);

/* Reads limits, or sums up counters. Returns 0, SLICE_FILES_E_DAMAGED, or negative errno of open,
 * fstat, pread and fcntl. ret is untouched on failure. */
int slice_files_read_limits(int directory, SliceLimits *ret);
int slice_files_read_report(int directory, SliceReport *ret);

/* The last sequence number of each lane. The processes only count up, also the one that takes over
 * a dead one's row (slice/counters.h). So a lane with an earlier number was overwritten, as by an
 * old copy of the file. */
typedef struct SliceSequences {           /* all zero at first */
        uint64_t inode, refused, rowless; /* inode 0: not read yet; the others as in SliceUsage */
        uint32_t lanes[SLICE_ROWS * SLICE_LANES];
} SliceSequences;

/* Reads the sequences into *s. *ret_behind: a lane has an earlier one than *s had of the same file.
 * The errors of slice_files_read_limits(); then *s is unchanged. */
int slice_files_read_sequences(int directory, SliceSequences *s, bool *ret_behind);

/* The sums in the counters' header. Reading them costs little: no row is looked at. The container
 * may write any number there. The errors of slice_files_read_limits(). */
typedef struct SliceUsage {
        uint64_t used, peak;       /* bytes */
        uint64_t refused, rowless; /* refused reservations; of these, those without a free row */
} SliceUsage;
int slice_files_read_usage(int directory, SliceUsage *ret);

/* The compute settings in a page. With SLICE_FLAG_OPEN: COMPUTE_NATIVE, without a percentage. */
CardCompute slice_files_compute(const SliceLimits *l);
ComputeRequest slice_files_request(const SliceLimits *l);
