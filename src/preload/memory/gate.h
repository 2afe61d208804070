/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The gate: the part of libaliquot.so that keeps a process to the memory of its slices, and what it
 * knows of that process. `gate` is the word of this room. The state is made by the first call that
 * may be for the driver, never earlier. A child of fork() makes it again.
 *
 *   hook, gate_state      the interposed ioctl, mmap, munmap and mremap; how the state is made
 *   discover, driver_fd   which slices there are; what a descriptor is of
 *   admit, rewrite        pure: decodes a call, decides about it, rewrites an answer
 *   rm_call               one call of the resource manager. Parts of it are call_attach.c,
 *                         call_dma_buf.c, call_duplicate.c, call_export.c, call_fabric.c,
 *                         call_import.c and call_schedule.c, and foreign_mem and export_fd
 *   managed, uvm_external calls of the uvm driver; parts of the second are uvm_call, uvm_file,
 *                         uvm_mapping, uvm_object and uvm_range
 *   card_lookup, reserve  the card of an object; bytes of a slice
 *   rows                  the rows of the slice page, and the locks that keep them
 *   rm_objects, charges, export_table, uvm, uvm_maps   tables of what the process holds */

#include <stddef.h>

#include "gpu/rm/rm.h"
#include "preload/inject/next.h"
#include "preload/inject/spin.h"
#include "preload/memory/export_table.h"
#include "preload/memory/uvm.h"
#include "preload/memory/uvm_maps.h"
#include "slice/slice.h"

enum {
        GATE_CARDS = RM_OBJECTS_CARDS,
        GATE_NO_CARD = -1,
};

/* Bytes with the same end of life share a row of the slice page. The two further rows are opened
 * when they are needed. If the page has no free row, the process's own row counts their bytes, too,
 * until the last of its files is closed. */
typedef enum GateRow {
        GATE_ROW_OWN = RM_OBJECTS_OWN,       /* the process, and files that it alone has */
        GATE_ROW_SHARED = RM_OBJECTS_SHARED, /* files that other processes have, too: inherited or received */
        GATE_ROW_EXPORTS,                    /* files that objects were exported to */
        GATE_ROWS
} GateRow;

/* A card of which this container has a slice: there is a directory with its pages. */
typedef struct GateCard {
        bool known;          /* the limits page was read: the files and the UUID below are its */
        _Atomic bool usable; /* the slice is open; if not, no memory is allocated and free memory is 0 */
        uint32_t number;     /* name of that directory */
        SliceUser slice;     /* the process's own row, which it may have only from its first charge on */
        Spin taking;         /* held while that row is taken */
        struct GateExtraRow {
                _Atomic int state;
                SliceUser slice;
        } extra[GATE_ROWS - 1]; /* the other rows */
        SliceFile ctl, device, uvm;
        char uuid[SLICE_UUID];
} GateCard;

typedef struct Gate {
        unsigned log; /* by ALIQUOT_LOG, 0 to 9; 1 where it is not set */
        /* 1: gate_say_rowless() or gate_say_refused() has written its sentence. */
        _Atomic bool said_rowless, said_refused;
        long pid;
        _Atomic uint64_t keys[GATE_ROWS];   /* of the locks on the files of each row (slice/pin.h) */
        _Atomic uint64_t inodes[GATE_ROWS]; /* of these files; 0: none yet */
        _Atomic bool unpinned;              /* a file could not be locked: a foreign lock covers the byte */
        /* the files of some card are not known; then any file may be the driver's */
        bool files_unknown;
        _Atomic uint32_t n_cards; /* in any order */
        RmObjects objects;
        ExportTable exports;
        Uvm uvm;
        UvmMaps maps;
        SliceFile uvm_file;         /* valid if uvm_file_state is 2 */
        _Atomic int uvm_file_state; /* 0: unknown; 1: a thread writes uvm_file; 2: known */
        GateCard cards[GATE_CARDS];
} Gate;

/* Writes a line with a text and two numbers to stderr if ALIQUOT_LOG is 2 or more. A line that
 * stderr does not take at once is lost: the program is neither held up nor ended for it. */
void gate_log(const Gate *g, const char *text, uint64_t a, uint64_t b);

/* Write on stderr, each once per process, that an allocation was refused: for lack of a row, and
 * for lack of bytes. The second only with SLICE_FLAG_SAY. As gate_log(), but with any ALIQUOT_LOG
 * except 0, and only where stderr is a log. That is a pipe, a terminal, or the file that standard
 * output or the maker's stderr is: a closed one may be followed by data there. */
void gate_say_rowless(Gate *g, const GateCard *card);
/* bytes: size of the refused allocation; 0: not known. */
void gate_say_refused(Gate *g, GateCard *card, uint64_t bytes);

/* The answer of a hook whose call is of no concern to the gate, or has parameters that cannot be
 * read: the call goes on unchanged. */
#define GATE_NOT_OURS (-65536L)

/* gate_next_ioctl() passes on a call of the application, to another library that interposes ioctl
 * or to the kernel (next.h). gate_driver() is a call of the gate's own, to the kernel. Both return
 * what the system call returns. Benchmarks replace both by a driver of their own, which costs a
 * system call and always succeeds. */
#ifdef GATE_DRIVER
long GATE_DRIVER(int fd, unsigned long request, void *argument);
#define gate_driver(fd, request, argument)     GATE_DRIVER(fd, request, argument)
#define gate_next_ioctl(fd, request, argument) GATE_DRIVER(fd, request, argument)
#else
static inline long gate_next_ioctl(int fd, unsigned long request, void *argument) {
        return next_ioctl(fd, request, argument);
}

static inline long gate_driver(int fd, unsigned long request, void *argument) {
        return sys_call(SYS_ioctl, fd, request, argument);
}
#endif
