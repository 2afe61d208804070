/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Slice files that cannot be opened now because a process of the container holds a lease on them
 * (slicedir/file_lease.h). A child process waits for each such file, so the daemon does not block.
 * The daemon requests the files at each scan of the slice directory, then ends the children of
 * files that it did not request. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { LEASED_MOST = 96 }; /* a container has two files per card, and at most 32 cards */

typedef struct Leased {
        struct {
                dev_t dev;
                ino_t ino;
                pid_t pid;
                bool requested; /* since the last leased_end_unrequested() */
        } files[LEASED_MOST];
        uint32_t n;
} Leased;

/* Starts a child that waits until the lease on a file in `directory` is given up, or restarts it if
 * it has ended. Does nothing if the file is not a regular file, or if LEASED_MOST files are waited
 * for. */
void leased_request(Leased *l, int directory, const char *name);

/* Ends the children of files that were not requested since the last call. */
void leased_end_unrequested(Leased *l);

/* Ends all children. */
void leased_done(Leased *l);
