/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the gate knows in one process: the slices that are mounted here, which files are the
 * driver's, and what the process holds. Made on the first call that could be for the driver, never
 * before; in a child of fork made again, on the parent's knowledge. */

#include <stddef.h>

#include "gpu/rm/rm.h"
#include "preload/inject/next.h"
#include "preload/memory/exports.h"
#include "preload/memory/uvm.h"
#include "slice/slice.h"

enum {
        GATE_CARDS = OBJECTS_CARDS,
        GATE_NO_CARD = -1,
};

typedef enum GateFile { GATE_FILE_OTHER = 0, GATE_FILE_RM, GATE_FILE_UVM } GateFile;

/* Bytes that end together are in one row of the page: with a process, and the files that are his;
 * with files that others use, or have, too (those that were inherited, or came by a socket); with
 * files that something was exported to. The two others are opened when they are needed. Where no
 * further row is to be had its own does for them, and all of it stays as long as the last of its
 * files. */
typedef enum GateRow {
        GATE_ROW_OWN = OBJECTS_OWN,
        GATE_ROW_SHARED = OBJECTS_SHARED,
        GATE_ROW_EXPORTS,
        GATE_ROWS
} GateRow;

typedef struct GateCard { /* that has a directory: it belongs to this container, and its memory is limited */
        bool known;       /* what its limits page says: below the slice */
        _Atomic bool
                good; /* its slice is open; otherwise nothing is allocated on it, and it is shown as empty */
        uint32_t number; /* of its directory */
        SliceUser slice; /* its own row */
        struct GateMore {
                _Atomic int state;
                SliceUser slice;
        } more[GATE_ROWS - 1]; /* the others */
        SliceFile ctl, device, uvm;
        char uuid[SLICE_UUID];
} GateCard;

typedef struct Gate {
        bool log;
        long pid;
        _Atomic uint64_t
                keys[GATE_ROWS]; /* by which it is seen which files have memory of its rows (slice/pin.h) */
        _Atomic uint64_t inodes[GATE_ROWS]; /* of those that have it; 0: none yet */
        _Atomic bool
                unpinned; /* some of them could not be locked, because somebody else has locked more than a byte */
        bool uncertain; /* whose files are the driver's is not known of all cards: any file may be */
        _Atomic uint32_t n_cards; /* of those below, in no order that matters */
        Objects objects;
        Exports exports;
        Uvm uvm;
        SliceFile uvm_file;     /* as it was met, */
        _Atomic int uvm_is_met; /* if this is 2; 1: a thread is writing it down */
        GateCard cards[GATE_CARDS];
} Gate;

/* NULL: nothing is isolated here, all is forwarded, and that stays so (look.h says when it is
 * believed). A child of fork gets a gate of its own. One that could not find or open its slices,
 * for want of descriptors or memory, refuses what takes memory, and tries again at the next
 * call. */
Gate *gate_get(void);
Gate *gate_get_for(int fd);       /* the same, for a call on that file */
Gate *gate_get_of_driver(int fd); /* NULL, too: the file is not known to be the driver's */

/* The same for what is mapped and unmapped: a child of fork has none of the managed memory of its
 * parent, and does not need rows for memory that is none. NULL, too: fd (-1: no file) is not uvm's,
 * and this process has asked the driver for nothing yet. */
Gate *gate_get_mapped(int fd);

/* Below ---- for the gate's own parts ---- */

GateFile gate_file(const Gate *g, int fd);
bool gate_is_driver(const Gate *g, int fd); /* never by a guess, while it is uncertain */
/* The same for what is mapped or registered: as long as it is uncertain, any device that is not one
 * of the kernel's memory may be uvm's. */
bool gate_is_uvm(const Gate *g, int fd);
void gate_learn_uvm(Gate *g, int fd); /* it said so itself; there is one in a machine */

/* The card that a device or subdevice belongs to, by its UUID, as the driver tells it;
 * GATE_NO_CARD: none with a slice here. Asks through fd with objects of its own, which are gone
 * afterwards. Where the driver does not tell and there is one slice only, that. */
int gate_card(Gate *g, int fd, ObjectSeat *seat);

/* Reserves in that row; before it refuses, it looks for what stale clients and closed exports still
 * count. 0 or -ENOMEM. */
int gate_reserve(Gate *g, int card, GateRow row, uint64_t bytes, int fd, uint32_t client);

/* The same in its own row, of a good card, for who has neither file nor client at hand: it looks
 * through a file of this process's on which one of its clients lives. Without one nothing stale is
 * found, and closed exports only with some file of the driver's. */
int gate_reserve_managed(Gate *g, int card, uint64_t bytes);

/* Before a question about memory is answered: gives back what killed processes, stale clients and
 * closed exports still count, at most once in a millisecond. */
void gate_refresh(Gate *g, int card, int fd, uint32_t client);
void gate_give_back(Gate *g, const ObjectBytes *bytes);

/* One metered call: the request is the one that asks the driver directly. What the system call
 * returns, or GATE_NOT_OURS: it is nothing that matters here, or its parameters cannot be read, and
 * the application's own call goes to the kernel as it is. */
#define GATE_NOT_OURS (-65536L)
long gate_call(Gate *g, int fd, unsigned long request, uint64_t argument, uint32_t nr, uint32_t size);

/* To stderr, when ALIQUOT_LOG is 2 and above: a line of a text and up to two numbers. */
void gate_say(const Gate *g, const char *text, uint64_t a, uint64_t b);

/* The gate's own questions; and the application's calls, which go on to whoever else stands before
 * the driver (next.h). Benchmarks put a driver of their own here, which costs a system call and
 * says yes. */
#ifdef GATE_DRIVER
long GATE_DRIVER(int fd, unsigned long request, void *argument);
#define gate_driver(fd, request, argument)  GATE_DRIVER(fd, request, argument)
#define gate_pass_on(fd, request, argument) GATE_DRIVER(fd, request, argument)
#else
static inline long gate_pass_on(int fd, unsigned long request, void *argument) {
        return next_ioctl(fd, request, argument);
}

static inline long gate_driver(int fd, unsigned long request, void *argument) {
        return sys_call(SYS_ioctl, fd, request, argument);
}
#endif
