/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of the card may outlive the process that it is charged to: it belongs to an open file of
 * the driver, which an exec may inherit, a child of fork have, or somebody get by a socket. So a
 * row has a key, and its owner locks the byte of that number in each such file (OFD locks: they are
 * the open file's, and last until its last descriptor, wherever that is, is closed). Such a lock is
 * a pin. Who finds a row whose processes have all ended looks for that lock, and leaves the row
 * alone as long as it is there.
 *
 * Others may have the inode, too, and lock what they like of it. So only a lock of exactly that
 * byte is one: what is larger is somebody else's, and behind it the byte is looked for in the
 * kernel's list of all locks. */

#include "slice/page.h"
#include "slice/pin_key.h"

enum {
        PIN_BATCH_MAX = 128
}; /* keys that are looked for at once: in signal handlers, too, on what stack there is */

/* Locks the byte, for reading, as any number of files may; where the file is open for writing only,
 * for writing, as one may: then of those of one inode the first has it, and that is enough. 0;
 * -EAGAIN or -EACCES: somebody else has locked more than the byte; -EBADF, too: the file is open
 * for neither (access mode 3); or what fcntl() says. */
int pin_file(int fd, uint64_t key);

/* Has any open file locked exactly this byte? Asked through a file of the same inode. true, too,
 * where it cannot be told. */
bool pin_exists(int fd, uint64_t key);

/* The same of several at once, PIN_BATCH_MAX at most: the kernel's list is read once for all of them
 * where it must be. */
void pin_exist(int fd, const uint64_t *keys, bool *ret, size_t n);

/* Has this open file a row's lock already that is none of one's own, so that others use it, or
 * have? false, too, where the kernel does not tell (before 4.1). */
bool pin_is_shared(int fd, const uint64_t *own, size_t n);

/* The keys of what was exported to this open file, by whomever. Negative: it cannot be told (no
 * /proc, or a kernel before 4.1), and there may be others. */
int pin_each_export(int fd, void (*each)(void *userdata, uint64_t key), void *userdata);

/* Unlocks the byte, where pin_file() has locked it. */
void pin_release(int fd, uint64_t key);

/* Which inode a file is of; 0: it cannot be told. */
uint64_t pin_inode(int fd);

/* Notes in the row that a file of this inode has the lock, before it has. */
void pin_note_inode(SliceRow *row, uint64_t inode);

/* Is a file still open that the owner of the row has locked? fd: any file of the driver, -1: none
 * is at hand, and the kernel's list of all locks is read. true, too, where that cannot be had. */
bool pin_holds_row(const SliceRow *row, int fd);

/* The same where several rows are looked at: the list is not read, and with PIN_UNSURE it must be
 * (pin_find_listed(), by the key of the row). */
typedef enum PinAnswer { PIN_NO, PIN_YES, PIN_UNSURE } PinAnswer;
PinAnswer pin_query_row(const SliceRow *row, int fd);

/* The same of many at once, from the kernel's list; all of them, where that cannot be had. */
void pin_find_listed(const uint64_t *keys, bool *ret, size_t n);

/* Reads such a list, piece by piece: a lock per line, which ends with its first and its last byte.
 * each: called for every lock of exactly one byte but the first; true: it is enough. Begin with
 * PIN_SCAN(). */
typedef struct PinScan {
        bool (*each)(void *userdata, uint64_t key);
        void *userdata;
        bool done;
        bool digits, other_signs; /* in the word that is being read */
        uint64_t word, before;    /* this one and the last; PIN_NO_NUMBER: it is none */
} PinScan;

#define PIN_NO_NUMBER UINT64_MAX
#define PIN_SCAN(each_, userdata_)                                                                           \
        ((PinScan){.each = (each_), .userdata = (userdata_), .before = PIN_NO_NUMBER})

void pin_scan(PinScan *scan, const char *text, size_t n);
