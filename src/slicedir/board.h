/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All slices of this machine, as directories:
 *
 *   BOARD/lock          held while somebody takes or throws away a slice
 *   BOARD/ID/owner      who has it; `aliquot run` holds its lock as long as it lives
 *   BOARD/ID/ld.so.preload  the agent's: mounted in its container as /etc/ld.so.preload (slice/inside.h)
 *   BOARD/ID/preload    the same for containers whose mounts are below SLICE_RUN
 *   BOARD/ID/N/         one per card: the slice page (slice/page.h), and a bell (slice/turn.h)
 *
 * The node agent's slices stand on the same board: `aliquot run` of root counts them, and `aliquot
 * smi` shows both. Each is a file system of its own (slicedir/mount.h) where the agent can mount
 * one. A slice of `aliquot run` lives as long as anybody has its owner's descriptor, or any process
 * has a row, or what a row counts is on an open file.
 *
 * Whoever makes pages keeps them open (slicedir/kept.h), and says to whoever watches BOARD that
 * there are new ones by changing its times. */

#include "base/fault.h"
#include "slicedir/files.h"
#include "slicedir/kept.h"

enum { BOARD_CARDS = 32, BOARD_ID = 128, BOARD_OWNER = 256, BOARD_PATH = 4096 };

#define BOARD_DEFAULT     "/run/aliquot/slices"
#define BOARD_PRELOAD     "ld.so.preload"
#define BOARD_PRELOAD_RUN "preload"
#define BOARD_AGENT       "agent " /* how the owner of the agent's slices begins; others begin with "run " */

typedef struct BoardSlice {
        char id[BOARD_ID];
        char owner[BOARD_OWNER]; /* one line, for people */
        bool apart;              /* on a file system of its own */
        uint32_t n_cards;
        struct {
                uint32_t number; /* of its directory */
                SliceLimits limits;
                SliceReport report;
        } cards[BOARD_CARDS];
} BoardSlice;

typedef struct Board {
        int fd;   /* the directory */
        int lock; /* -1 unless it is held */
        const char *
                proc; /* the agent's new slices are file systems of their own, as in slicedir/mount.h; NULL: they are not. Lent */
        char path[BOARD_PATH];
        Kept kept; /* pages that were made through it, as long as it is open and they stand there */
} Board;

#define BOARD_NULL ((Board){.fd = -1, .lock = -1})

/* path NULL: BOARD_DEFAULT for root, else one of the user's own below XDG_RUNTIME_DIR or /tmp. May
 * make it. 0 or negative errno with a fault: -EACCES also when somebody else owns it, or, of a
 * default, the directory above it. */
int board_open(Board *b, const char *path, bool make, Fault *fault);
void board_done(Board *b);

/* What is mounted by its path must be where the path leads: /run is cleaned by others. Opens, and
 * makes, the board again when another directory, or none, stands there now. 0 or negative errno
 * with a fault. */
int board_refresh(Board *b, Fault *fault);

int board_lock(Board *b, Fault *fault); /* waits; 0 or negative errno */
void board_unlock(Board *b);

/* Each living slice in turn, until it returns non-zero, which is returned. Dead ones are removed
 * when the board is locked, and passed over else. What cannot be read is passed over. Negative
 * errno when the board cannot be read. */
int board_each(Board *b, int (*visit)(void *userdata, const BoardSlice *slice), void *userdata);

/* Cuts counters that a container has made larger than they are back to their size, on the whole
 * board, and tells of each. 0 or negative errno when the board cannot be read. */
typedef struct BoardGrown {
        const char *id, *owner; /* lent for the call */
        uint32_t number;
        uint64_t bytes;
} BoardGrown;
int board_trim(Board *b, void (*visit)(void *userdata, const BoardGrown *grown), void *userdata);

/* Makes BOARD/ID with one slice page per spec, under the lock. *ret_owner is a descriptor that
 * keeps it alive, and so do its copies: inherited over fork, closed at exec. 0 or negative errno
 * with a fault (-ENOSPC: the board is full); nothing is left behind on failure. */
int board_put(Board *b, const char *id, const char *owner, const SliceSpec *specs, size_t n, int *ret_owner,
              Fault *fault);
void board_drop(Board *b, const char *id);

/* Under the lock: drops it unless somebody has it. */
void board_drop_dead(Board *b, const char *id);

/* The node agent's: the directory and its pages are made where they are missing, limits are said
 * anew, good counters stay, cut to their size. One that was there stays on the file system that it
 * is on: containers have its files mounted. Nobody holds a lock: it stands until the agent takes it
 * away. 0 or negative errno with a fault (-ENOSPC: the board is full, or the slice's own file
 * system); a slice that was there before stays then. */
int board_renew(Board *b, const char *id, const char *owner, const SliceSpec *specs, size_t n, Fault *fault);

/* Makes the slice's BOARD_PRELOAD and BOARD_PRELOAD_RUN where it lacks one: an agent of another
 * version made the slice. 0 or negative errno with a fault. */
int board_preload(Board *b, const char *id, Fault *fault);

/* Drops the agent's slices that keep() does not want, and what it has left half made. Pages of the
 * others that an agent before us has made are kept open from now on, where they can be opened
 * without waiting, and no others are. 0, -ENOMEM, or negative errno when the board cannot be
 * read. */
int board_sweep(Board *b, bool (*keep)(void *userdata, const char *id), void *userdata);
