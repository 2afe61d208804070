/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Descriptors through which locks are asked about (pin.h). A lock is of an inode, so any descriptor
 * of that inode will do: the program's, or one that is opened for the question. A path only leads
 * to a file; that it is the right one shows in its inode. */

#include <stddef.h>

/* Which of the driver's files: nvidiactl and those of cards, nvidia-uvm, or another, such as a
 * dma-buf. */
typedef enum PinFileKind { PIN_RM = 0, PIN_UVM, PIN_OTHER } PinFileKind;

enum { PIN_PATH = 256, PIN_FD_PATH = 32 };

/* file: the program's, or -1. opened: ours by kind; -1: not yet; -2: cannot be had. */
typedef struct PinFiles {
        int file;
        int opened[PIN_OTHER];
} PinFiles;

#define PIN_FILES(file_) ((PinFiles){.file = (file_), .opened = {-1, -1}})

/* Opens the driver's file of a kind, which lies beside `file`, or in /dev. -2: it cannot be
 * opened. */
int pin_files_get(PinFiles *files, PinFileKind kind);
void pin_files_close(PinFiles *files);

/* The kernel's path of an open file, as a string. 0; -ENAMETOOLONG, or negative errno of
 * readlink(). */
int pin_files_path(int fd, char ret[static PIN_PATH]);

/* Opens a file for a question only. Negative errno of open(). */
int pin_files_open(const char *path);

/* Writes prefix and the number of fd, which is not negative. prefix: at most 18 characters. */
void pin_files_fd_path(const char *prefix, int fd, char ret[static PIN_FD_PATH]);
