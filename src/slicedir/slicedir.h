/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The directory of all slices of this machine:
 *
 *     DIR/lock              held while a slice is made or removed
 *     DIR/ID/owner          the owner's line; `aliquot run` holds its lock as long as it lives
 *     DIR/ID/ld.so.preload  the agent's: mounted in its container as /etc/ld.so.preload
 *     DIR/ID/N/             one per card: the slice page (slice/page.h)
 *
 * The node agent and `aliquot run` use the same directory: `aliquot run` of root counts the agent's
 * slices, and `aliquot smi` shows both. Where one can be mounted, each slice of the agent and of
 * `aliquot run --cdi` is a file system of its own (slice_tmpfs.h). A slice of `aliquot run` is
 * alive while its owner's lock is held, a process has a row, or an open file holds memory charged
 * to a row.
 *
 * A process that makes pages keeps them open (held_fds.h). It changes the times of DIR to tell
 * watchers that there are new ones. */

#include "base/fault.h"
#include "slicedir/held_fds.h"
#include "slicedir/slice_files.h"

enum { SLICEDIR_CARDS_MAX = 32, SLICEDIR_OWNER_SIZE = 256, SLICEDIR_PATH_SIZE = 4096 };

#define SLICEDIR_DEFAULT "/run/aliquot/slices"
#define SLICEDIR_PRELOAD "ld.so.preload"
#define SLICEDIR_AGENT   "agent " /* begins the owner's line of an agent */
#define SLICEDIR_RUN     "run "   /* and that of `aliquot run` */

typedef struct SlicedirEntry {
        char id[SLICEDIR_ID_SIZE];
        char owner[SLICEDIR_OWNER_SIZE]; /* the owner's line, shown to users */
        bool own_tmpfs;                  /* on a file system of its own */
        uint32_t n_cards;
        struct {
                uint32_t number; /* of its directory */
                SliceLimits limits;
                SliceReport report;
        } cards[SLICEDIR_CARDS_MAX];
} SlicedirEntry;

typedef struct Slicedir {
        int fd;           /* the directory */
        int lock;         /* -1: not held */
        const char *proc; /* borrowed; set: new slices get a tmpfs each, as slice_tmpfs.h says */
        bool labels;      /* slices are for containers on a machine with SELinux: base/selinux.h */
        char path[SLICEDIR_PATH_SIZE];
        HeldFds held; /* pages that were made through this handle */
} Slicedir;

#define SLICEDIR_NULL ((Slicedir){.fd = -1, .lock = -1})

/* Opens the directory. path NULL: SLICEDIR_DEFAULT for root, else a directory of the user below
 * XDG_RUNTIME_DIR or /tmp. make: make it if it is missing. 0, or negative errno with a fault. With
 * make, -EACCES also: another user owns it, or, of a default path, the directory above it. */
int slicedir_open(Slicedir *d, const char *path, bool make, Fault *fault);
void slicedir_done(Slicedir *d);
/* Checks that the directory is the caller's own. Returns 0, or negative errno with a fault that
 * names path. -EACCES: another user owns it, others may write to it, or it is no directory. */
int slicedir_check_own(int fd, const char *path, Fault *fault);

/* Opens the directory again, and makes it, if its path leads to another one by now, or to none:
 * other programs clean /run. Returns 0, or negative errno with a fault. */
int slicedir_refresh(Slicedir *d, Fault *fault);

int slicedir_lock(Slicedir *d, Fault *fault); /* waits; 0, or negative errno with a fault */
void slicedir_unlock(Slicedir *d);

/* Visits each living slice until visit() returns non-zero, and returns that. Dead slices are
 * removed if the lock is held, and skipped otherwise. Slices that cannot be read are skipped.
 * Negative errno: the directory cannot be read, or out of memory. */
int slicedir_each(Slicedir *d, int (*visit)(void *userdata, const SlicedirEntry *slice), void *userdata);

typedef struct SlicedirCard { /* valid during the call only */
        const char *id, *owner;
        uint32_t number;
        int dir;        /* descriptor of the directory with the card's files */
        uint64_t bytes; /* size that its counters had; only for slicedir_trim(), else 0 */
} SlicedirCard;

/* Visits each card of each slice. Returns 0, or negative errno: the directory cannot be read. */
int slicedir_each_card(Slicedir *d, void (*visit)(void *userdata, const SlicedirCard *card), void *userdata);
/* Truncates all counters that a container has enlarged to their size, and visits each of these
 * cards. Returns 0, or negative errno: the directory cannot be read. */
int slicedir_trim(Slicedir *d, void (*visit)(void *userdata, const SlicedirCard *grown), void *userdata);

void slicedir_remove(Slicedir *d, const char *id);

/* Removes the slice unless it is alive. The caller holds the lock. */
void slicedir_remove_dead(Slicedir *d, const char *id);

/* Makes DIR/ID with one slice page per spec; the caller holds the lock. Where d->proc is set, but
 * no tmpfs can be mounted as slice_tmpfs.h says, the slice has none. owner begins with
 * SLICEDIR_RUN. *ret_owner is a descriptor that keeps the slice alive, as its copies do: inherited
 * over fork, closed at exec. 0, or negative errno with a fault, and nothing is left behind
 * (-ENOSPC: the directory is full; -E2BIG: too many cards, or too long an id). */
int slicedir_create(Slicedir *d, const char *id, const char *owner, const SliceSpec *specs, size_t n,
                    int *ret_owner, Fault *fault);

/* Makes or updates a slice of the agent: makes what is missing, writes limits anew, and truncates
 * good counters to their size. An existing slice stays on its file system, because containers have
 * its files mounted. Needs no lock: the slice stays until the agent removes it. 0, or negative
 * errno with a fault (-ENOSPC: the directory is full, or the slice's own file system); then a slice
 * that existed before stays. */
int slicedir_update(Slicedir *d, const char *id, const char *owner, const SliceSpec *specs, size_t n,
                    Fault *fault);

/* Writes another size into a card's page, as slice_files_set_size(), and notifies watchers. For a
 * slice of `aliquot run` the caller holds the lock. Errors of open and slice_files_set_size(). */
int slicedir_resize(Slicedir *d, const char *id, uint32_t number, uint64_t bytes, uint32_t percent,
                    Fault *fault);

/* Writes the file SLICEDIR_PRELOAD if the slice lacks it. 0, or negative errno with a fault. */
int slicedir_write_preload(Slicedir *d, const char *id, Fault *fault);

/* Removes the agent's slices for which keep() is false, and those that it left unfinished. From now
 * on keeps open the pages of the others, also of an earlier agent, if they open without waiting.
 * Returns 0, -ENOMEM, or negative errno: the directory cannot be read. */
int slicedir_sweep(Slicedir *d, bool (*keep)(void *userdata, const char *id), void *userdata);
