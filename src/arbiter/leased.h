/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files of slices that cannot be opened now, because their container has leased them
 * (slicedir/file_lease.h). For each one a child waits, so that the daemon does not; what is not
 * asked for any more when the slice directory has been read was opened meanwhile, or has gone. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { LEASED_MOST = 96 }; /* a container has two of each card, and 32 cards */

typedef struct Leased {
        struct {
                dev_t dev;
                ino_t ino;
                pid_t pid;
                bool asked; /* since the last end */
        } files[LEASED_MOST];
        uint32_t n;
} Leased;

/* Somebody waits for it, another one where he has ended; what is no regular file, and one too many,
 * is let be. */
void leased_ask(Leased *l, int directory, const char *name);

/* Ends whoever waits for what was not asked for since the last time. */
void leased_settle(Leased *l);

void leased_done(Leased *l);
