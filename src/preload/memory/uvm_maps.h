/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this process has in the address spaces of uvm files besides managed memory. A mapping of a
 * memory object is a holder of the object's charge: uvm has a duplicate of it until the mapping
 * ends, whatever becomes of the object. A part of a mapping keeps all of the object.
 *
 * A note is made after the driver's answer, and taken out after it. In between another thread may
 * map the same addresses, so notes have serials: a call takes out no note that came after it began.
 *
 * Memory comes from mmap. Any thread and any signal handler may call these functions. A caller that
 * does not get the lock or memory leaves bytes charged until the process ends. A table begins
 * zeroed. */

#include "preload/memory/rm_objects.h"

enum { UVM_MAPS_FILES = 16, UVM_MAPS_BATCH = 32 };

typedef enum UvmNoteKind {
        UVM_NOTE_RANGE = 1, /* a range of addresses, as UVM_FREE knows it */
        UVM_NOTE_POOL,      /* a semaphore pool: an mmap of it is not managed memory */
        UVM_NOTE_MAP,
        UVM_NOTE_P2P,
} UvmNoteKind;
enum { UVM_NOTE_MAPPINGS = 1 << UVM_NOTE_MAP | 1 << UVM_NOTE_P2P }; /* bits: kinds with an object */

typedef struct UvmNote {
        uint64_t key; /* key of the file */
        uint64_t start, end;
        uint32_t client, memory; /* of a mapping: the object */
        uint32_t serial;         /* younger notes have higher ones */
        uint32_t charge, units;  /* charge 0: the object has no bytes of a card */
        uint8_t kind, gpu;       /* gpu: the card that sees the mapping */
        uint8_t card, row;       /* of the charge */
} UvmNote;

/* Makes the note a holder of the charge. source: its row, card and units. */
static inline void uvm_note_hold(UvmNote *note, uint32_t charge, const RmObject *source) {
        note->charge = charge;
        note->units = source->units;
        note->card = source->card;
        note->row = source->row;
}

/* Only the first process that uses a file frees ranges of it: what others free is not known. */
typedef enum UvmFileUse { UVM_FILE_NEW, UVM_FILE_SOLE, UVM_FILE_SHARED } UvmFileUse;

/* An open uvm file. NEW: it is not locked yet. */
typedef struct UvmFile {
        uint64_t key;   /* of a lock that lasts until the file is closed (pin.h); 0: an unused entry */
        uint64_t inode; /* as pin_inode() says */
        int fd;         /* a descriptor that the program once had of it */
        UvmFileUse use;
        bool alone;    /* no other open file can lock the byte (pin_file_alone()) */
        uint32_t rows; /* bits: it is pinned for this row */
} UvmFile;

typedef struct UvmMaps {
        Spin lock;
        _Atomic uint32_t serial, n, n_files;       /* n: notes */
        _Atomic uint32_t frees_begun, frees_ended; /* calls of UVM_FREE */
        _Atomic uint32_t gpus; /* length of a list of cards in this driver's calls; 0: unknown */
        uint32_t size;
        UvmNote *notes;
        UvmFile files[UVM_MAPS_FILES];
} UvmMaps;

/* The newest serial. */
static inline uint32_t uvm_maps_now(UvmMaps *m) {
        return atomic_load(&m->serial);
}

/* Adds a note, and gives it a serial. 0 or -ENOMEM: nothing was added. */
int uvm_maps_add(UvmMaps *m, const UvmNote *note);

/* The same for a pool. frees: uvm_maps_frees() before the driver made it. -ENOMEM, too: a UVM_FREE
 * was under way since then, and the pool may be gone. */
int uvm_maps_add_pool(UvmMaps *m, const UvmNote *note, uint32_t frees);

/* Call the first when UVM_FREE begins, before the notes of pools are taken out, and the second
 * after the driver's answer. false: the lock was not free, and the call must not be made. */
bool uvm_maps_begin_free(UvmMaps *m);
void uvm_maps_end_free(UvmMaps *m);

/* Returns how many calls of UVM_FREE have ended. */
uint32_t uvm_maps_frees(UvmMaps *m);

/* Selects the notes that end. */
typedef struct UvmEnd {
        uint64_t key, start, end;
        uint32_t kinds; /* bits: 1 << UvmNoteKind */
        uint32_t gpus;  /* bits: cards; only for mappings */
        uint32_t now;   /* newest serial that ends */
} UvmEnd;

/* Takes out what ends, at most max notes: called until it returns 0. A mapping that reaches beyond
 * the addresses is shortened, or becomes two holders. Other notes end if they begin within. */
uint32_t uvm_maps_take(UvmMaps *m, Charges *charges, const UvmEnd *what, UvmNote *ret, uint32_t max);

/* The end of the range that begins at base; 0: not known. Of several notes the nearest end. */
uint64_t uvm_maps_range_end(UvmMaps *m, uint64_t key, uint64_t base);

/* Returns the serial of a pool with exactly these addresses; 0: there is none. */
uint32_t uvm_maps_pool(UvmMaps *m, uint64_t key, uint64_t start, uint64_t end);

/* For mappings younger than `since`: if the object was not in the table yet, a second note holds
 * its charge from now on. In one pass, so that no note comes or goes meanwhile. */
void uvm_maps_recheck(UvmMaps *m, RmObjects *objects, uint32_t since);

/* ---- files ---- */

/* Returns 0, or -ENOMEM: UVM_MAPS_FILES files are in use, or no lock. */
int uvm_maps_add_file(UvmMaps *m, const UvmFile *file);
bool uvm_maps_file_at(UvmMaps *m, uint32_t i, UvmFile *ret);                 /* false: entry i is not used */
void uvm_maps_set_use(UvmMaps *m, uint64_t key, UvmFileUse use, bool alone); /* it is locked now */
bool uvm_maps_is_sole(UvmMaps *m, uint64_t key);
void uvm_maps_note_row(UvmMaps *m, uint64_t key, uint32_t row);
void uvm_maps_drop_file(UvmMaps *m, uint64_t key);

void uvm_maps_after_fork(UvmMaps *m); /* in a child, by its only thread: the mappings are the parent's */
