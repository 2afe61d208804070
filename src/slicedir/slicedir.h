/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All slices of this machine, as directories:
 *
 *   BOARD/lock          held while somebody takes or throws away a slice
 *   BOARD/ID/owner      who has it; `aliquot run` holds its lock as long as it lives
 *   BOARD/ID/ld.so.preload  the agent's: mounted in its container as /etc/ld.so.preload (slice/container_paths.h)
 *   BOARD/ID/preload    the same for containers whose mounts are below SLICE_RUN
 *   BOARD/ID/N/         one per card: the slice page (slice/page.h), and a bell (slice/schedule.h)
 *
 * The node agent's slices stand on the same board: `aliquot run` of root counts them, and `aliquot
 * smi` shows both. Each is a file system of its own (slicedir/slice_tmpfs.h) where the agent can mount
 * one. A slice of `aliquot run` lives as long as anybody has its owner's descriptor, or any process
 * has a row, or what a row counts is on an open file.
 *
 * Whoever makes pages keeps them open (slicedir/held_fds.h), and says to whoever watches BOARD that
 * there are new ones by changing its times. */

#include "base/fault.h"
#include "slicedir/held_fds.h"
#include "slicedir/slice_files.h"

enum {
        SLICEDIR_CARDS_MAX = 32,
        SLICEDIR_ID_SIZE = 128,
        SLICEDIR_OWNER_SIZE = 256,
        SLICEDIR_PATH_SIZE = 4096
};

#define SLICEDIR_DEFAULT     "/run/aliquot/slices"
#define SLICEDIR_PRELOAD     "ld.so.preload"
#define SLICEDIR_PRELOAD_RUN "preload"
#define SLICEDIR_AGENT       "agent " /* how the owner of the agent's slices begins; others begin with "run " */

typedef struct SlicedirEntry {
        char id[SLICEDIR_ID_SIZE];
        char owner[SLICEDIR_OWNER_SIZE]; /* one line, for people */
        bool own_tmpfs;                  /* on a file system of its own */
        uint32_t n_cards;
        struct {
                uint32_t number; /* of its directory */
                SliceLimits limits;
                SliceReport report;
        } cards[SLICEDIR_CARDS_MAX];
} SlicedirEntry;

typedef struct Slicedir {
        int fd;   /* the directory */
        int lock; /* -1 unless it is held */
        const char *
                proc; /* the agent's new slices are file systems of their own, as in slicedir/slice_tmpfs.h; NULL: they are not. Lent */
        char path[SLICEDIR_PATH_SIZE];
        HeldFds held; /* pages that were made through it, as long as it is open and they stand there */
} Slicedir;

#define SLICEDIR_NULL ((Slicedir){.fd = -1, .lock = -1})

/* path NULL: SLICEDIR_DEFAULT for root, else one of the user's own below XDG_RUNTIME_DIR or /tmp. May
 * make it. 0 or negative errno with a fault: -EACCES also when somebody else owns it, or, of a
 * default, the directory above it. */
int slicedir_open(Slicedir *b, const char *path, bool make, Fault *fault);
void slicedir_done(Slicedir *b);

/* What is mounted by its path must be where the path leads: /run is cleaned by others. Opens, and
 * makes, the board again when another directory, or none, stands there now. 0 or negative errno
 * with a fault. */
int slicedir_refresh(Slicedir *b, Fault *fault);

int slicedir_lock(Slicedir *b, Fault *fault); /* waits; 0 or negative errno */
void slicedir_unlock(Slicedir *b);

/* Each living slice in turn, until it returns non-zero, which is returned. Dead ones are removed
 * when the board is locked, and passed over else. What cannot be read is passed over. Negative
 * errno when the board cannot be read. */
int slicedir_each(Slicedir *b, int (*visit)(void *userdata, const SlicedirEntry *slice), void *userdata);

/* Cuts counters that a container has made larger than they are back to their size, on the whole
 * board, and tells of each. 0 or negative errno when the board cannot be read. */
typedef struct SlicedirGrown {
        const char *id, *owner; /* lent for the call */
        uint32_t number;
        uint64_t bytes;
} SlicedirGrown;
int slicedir_trim(Slicedir *b, void (*visit)(void *userdata, const SlicedirGrown *grown), void *userdata);

/* Makes BOARD/ID with one slice page per spec, under the lock. *ret_owner is a descriptor that
 * keeps it alive, and so do its copies: inherited over fork, closed at exec. 0 or negative errno
 * with a fault (-ENOSPC: the board is full); nothing is left behind on failure. */
int slicedir_create(Slicedir *b, const char *id, const char *owner, const SliceSpec *specs, size_t n,
                    int *ret_owner, Fault *fault);
void slicedir_remove(Slicedir *b, const char *id);

/* Under the lock: drops it unless somebody has it. */
void slicedir_remove_dead(Slicedir *b, const char *id);

/* The node agent's: the directory and its pages are made where they are missing, limits are said
 * anew, good counters stay, cut to their size. One that was there stays on the file system that it
 * is on: containers have its files mounted. Nobody holds a lock: it stands until the agent takes it
 * away. 0 or negative errno with a fault (-ENOSPC: the board is full, or the slice's own file
 * system); a slice that was there before stays then. */
int slicedir_update(Slicedir *b, const char *id, const char *owner, const SliceSpec *specs, size_t n,
                    Fault *fault);

/* Makes the slice's SLICEDIR_PRELOAD and SLICEDIR_PRELOAD_RUN where it lacks one: an agent of another
 * version made the slice. 0 or negative errno with a fault. */
int slicedir_write_preloads(Slicedir *b, const char *id, Fault *fault);

/* Drops the agent's slices that keep() does not want, and what it has left half made. Pages of the
 * others that an agent before us has made are kept open from now on, where they can be opened
 * without waiting, and no others are. 0, -ENOMEM, or negative errno when the board cannot be
 * read. */
int slicedir_sweep(Slicedir *b, bool (*keep)(void *userdata, const char *id), void *userdata);
