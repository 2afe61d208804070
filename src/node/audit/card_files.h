/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a process has a file of the driver open. Memory of a card lives as long as such a file
 * is open, and the driver does not say which process has it. /proc/PID/fd leads to the open file
 * itself, so neither its path in the container nor its name matters.
 *
 * All threads are looked at: a thread can have descriptors of its own (unshare(CLONE_FILES)), and
 * those of a first thread that has ended cannot be read. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Which files are the driver's: character devices of NVIDIA's major number and of nvidia-uvm's, and
 * those on a simulated driver's file system. */
typedef struct CardFiles {
        unsigned uvm_major; /* 0: the module is not loaded */
        dev_t simulated;    /* 0: none is */
} CardFiles;

/* simulated: where a simulated driver is mounted; NULL: there is none. */
CardFiles card_files_find(const char *simulated);

typedef enum CardFilesOpen {
        CARD_FILES_NONE,
        CARD_FILES_SOME, /* or it has too many files open to tell */
        CARD_FILES_UNREADABLE,
} CardFilesOpen;

/* proc: where the host's proc is mounted. */
CardFilesOpen card_files_of(const char *proc, uint32_t pid, const CardFiles *files);
