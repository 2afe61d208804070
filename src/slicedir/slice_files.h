/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files of a slice from outside: the node agent, `aliquot run` and `aliquot smi` make and read
 * them. What the container can write is never mapped and never believed: it is read with pread, cut
 * short or full of anything as it may be. All functions take the descriptor of the directory, so
 * that no path is walked that a tenant could have changed.
 *
 * limits is written by one process at a time, the one that makes the slice. */

#include "base/fault.h"
#include "slice/page.h"

/* What is charged for a channel group unless somebody knows better: a guess until it is read from a
 * card. */
#define SLICE_GROUP_BYTES (UINT64_C(2) << 20)

typedef struct SliceSpec {
        uint64_t limit, card_bytes, group_bytes; /* bytes, as in SliceLimits */
        uint32_t card, flags;
        const char *uuid;      /* shorter than SLICE_UUID */
        const char *container; /* for people; cut where it is too long */
        SliceFile ctl, device, uvm;
        CardCompute compute;
        ComputeRequest request;
} SliceSpec;

typedef struct SliceReport {
        uint64_t used; /* bytes, as the counters say */
        uint64_t dead; /* of these, of rows whose process is gone: they come back when somebody needs them */
        uint64_t
                pinned; /* of these, of rows whose process is gone, and whose memory is on a file that is not (slice/pin.h) */
        uint64_t peak;    /* bytes */
        uint64_t refused; /* reservations */
        uint32_t n_alive; /* rows */
        bool alive[SLICE_ROWS];
        int64_t held[SLICE_ROWS]; /* bytes; below zero when a process gave back what another one took */
} SliceReport;

#define SLICE_DOORBELL "bell"

/* Both files, open for writing: as long as they are nobody can lease them (slicedir/file_lease.h). -1:
 * it is not. */
typedef struct SliceFds {
        int limits, counters;
} SliceFds;

#define SLICE_FDS_NULL ((SliceFds){-1, -1})
void slice_files_close(SliceFds *held);

enum {
        SLICE_FILES_E_DAMAGED = 1, /* not a slice page of this major version, or cut short */
};

/* Makes both files, and the bell beside them. limits is replaced as a whole: who has mapped it
 * keeps the old one. counters that are good stay as they are, because a container may be running on
 * them; others are replaced, never written over. 0, or negative errno with a fault: -EINVAL a uuid
 * that is too long, -EOPNOTSUPP a kernel before 3.15, on which nobody could use them; else of the
 * file that could not be made. */
int slice_files_make(int directory, const SliceSpec *spec, Fault *fault);

/* The same, and what is new of it was never closed before it is in *ret_fds. Counters that stay
 * and are leased are not in it. */
int slice_files_make_open(int directory, const SliceSpec *spec, SliceFds *ret_fds, Fault *fault);

/* Of a page that is there: what can be opened without waiting. */
void slice_files_open(int directory, SliceFds *ret_fds);

/* Says another limit in the file that is there, because containers have it mounted. Bytes that are
 * held above it stay; nothing is reserved until they are fewer. 0, SLICE_FILES_E_DAMAGED with a
 * fault, or negative errno with a fault. */
int slice_files_set_limit(int directory, uint64_t bytes, Fault *fault);

/* The same for the policy of compute. Nothing is written where the page says so already, and no
 * process died writing it. */
int slice_files_set_compute(int directory, const CardCompute *compute, Fault *fault);

/* counters can be written by the container, and so can be made larger than they are: what is above
 * their size, or was reserved above it, is given back to the file system. *ret_bytes is what the
 * file took of it; 0: no more than it should. 0, SLICE_FILES_E_DAMAGED, or negative errno of open,
 * fstat and ftruncate. */
int slice_files_trim(int directory, uint64_t *ret_bytes);

/* The same to the last block, and nobody is told: before files are written beside it, where there
 * may be no more room. 0, SLICE_FILES_E_DAMAGED, or negative errno, as above. */
int slice_files_give_back(int directory);

/* 0, SLICE_FILES_E_DAMAGED, or negative errno of open, fstat, pread and fcntl; ret is untouched
 * then. */
int slice_files_read_limits(int directory, SliceLimits *ret);

/* The settings of compute that a page says. An open slice is native. */
CardCompute slice_files_compute(const SliceLimits *l);
ComputeRequest slice_files_request(const SliceLimits *l);
int slice_files_read_report(int directory, SliceReport *ret);
