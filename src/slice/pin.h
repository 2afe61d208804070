/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of the card may outlive the process that it is charged to. It belongs to an open file of
 * the driver, which a program inherits over exec, a child over fork, and another process gets
 * through a socket. So each row has a key, and its owner locks the byte of that number in each such
 * file. These are OFD locks: they belong to the open file, and last until its last descriptor is
 * closed. Such a lock is a pin. A row whose processes have all ended is left alone while one of its
 * pins exists.
 *
 * Other processes may have the same inode open and lock any part of it. So only a lock of exactly
 * one byte counts. Where a larger lock hides the byte of a row, and for inodes that cannot be
 * opened, the kernel's list of all locks is searched, which may miss one (docs/internals/pins.md).
 *
 * The keys are made in pin_key.h. */

#include "slice/page.h"
#include "slice/pin_files.h"
#include "slice/pin_key.h"

/* Most keys that are looked up in the kernel's list at once. The buffers are on the stack, also in
 * signal handlers. */
enum { PIN_BATCH_MAX = 128 };

/* Locks the byte of key: for reading, as any number of files may, or, where the file is open for
 * writing only, for writing. Then only the first file of an inode gets the lock, which is enough.
 * 0; -EAGAIN or -EACCES: another process has locked more than the byte; -EBADF: also, the file is
 * open for neither (access mode 3); other negative errno of fcntl(). */
int pin_file(int fd, uint64_t key);

/* Like pin_file(), for a key of this open file alone: a write lock if it can be had. Then
 * *ret_alone is true, and while the byte is locked no other open file can have a lock there, so
 * none hides it. */
int pin_file_alone(int fd, uint64_t key, bool *ret_alone);

/* Unlocks the byte that pin_file() or pin_file_alone() locked. */
void pin_release(int fd, uint64_t key);

/* Has any open file of this inode locked exactly this byte? alone: the lock was one for writing.
 * PIN_UNSURE: a larger lock hides it, or there is no answer. */
typedef enum PinAnswer { PIN_NO, PIN_YES, PIN_UNSURE } PinAnswer;
PinAnswer pin_ask(int fd, uint64_t key, bool alone);

/* Does this open file have the lock of a row other than `own`, so that another process uses it, or
 * has used it? Also false where the kernel does not report locks in fdinfo (before 4.1). */
bool pin_is_shared(int fd, const uint64_t *own, size_t n);

/* Calls each() for the key of every export (memory that was exported to this open file). Returns 0,
 * or negative errno: the locks cannot be read (no /proc, or a kernel before 4.1), so exports may be
 * missed. */
int pin_each_export(int fd, void (*each)(void *userdata, uint64_t key), void *userdata);

/* A 32-bit hash of the file's inode, in the half of its kind, as SliceRow.inode has it. A row has a
 * half for each of the two inodes that a container usually has of the driver. A file of PIN_OTHER
 * sets the mark "several inodes" instead. 0: not known. */
uint64_t pin_inode(int fd, PinFileKind kind);
uint64_t pin_merge_inodes(uint64_t a, uint64_t b);

/* Records in the row that files of these inodes (pin_inode()) are locked. Must come before the
 * lock. */
void pin_note_inodes(SliceRow *row, uint64_t inodes);

/* Like pin_ask(), for the inode of this kind in `inodes`, through a descriptor of that inode.
 * PIN_YES: also, nvidia-uvm cannot be opened. PIN_UNSURE: also, no descriptor of that inode can be
 * had, or the hash stands for several inodes. */
PinAnswer pin_query(PinFiles *files, PinFileKind kind, uint64_t inodes, uint64_t key, bool alone);

/* Is a file still open that the owner of the row has locked? Each inode of the row is asked through
 * a descriptor of it. PIN_UNSURE: ask pin_find_listed() for the row's key, because a larger lock
 * hides the byte, or an inode cannot be opened: that of a dma-buf, or of another container. */
PinAnswer pin_query_row(const SliceRow *row, PinFiles *files);

/* Like pin_query_row(), but decides PIN_UNSURE by the kernel's list of locks. fd: any file of the
 * driver, or -1. Also true where the list is not available. */
bool pin_holds_row(const SliceRow *row, int fd);

/* Sets ret[i] to whether keys[i] is in the kernel's list of locks; all true where that is not
 * available. */
void pin_find_listed(const uint64_t *keys, bool *ret, size_t n);

/* A parser for /proc/locks, which is given piece by piece. Each line is a lock and ends with its
 * first and last byte. each() is called for every lock of exactly one byte but byte 0; it returns
 * true to end the search. Begin with PIN_SCAN(). */
typedef struct PinScan {
        bool (*each)(void *userdata, uint64_t key);
        void *userdata;
        bool done;
        bool digits, other_signs; /* seen in the current word: digits, other characters */
        /* the current word and the one before it; PIN_NO_NUMBER: not a number */
        uint64_t word, before;
} PinScan;

#define PIN_NO_NUMBER UINT64_MAX
#define PIN_SCAN(each_, userdata_)                                                                           \
        ((PinScan){.each = (each_), .userdata = (userdata_), .before = PIN_NO_NUMBER})

void pin_scan(PinScan *scan, const char *text, size_t n);
