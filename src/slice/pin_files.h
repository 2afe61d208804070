/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Descriptors through which locks are asked about (pin.h). A lock is of an inode, so any descriptor
 * of that inode will do: the program's, or one that is opened for the question. A path only leads
 * to a file; that it is the right one shows in its inode. */

#include <stddef.h>

/* Kinds of the driver's files: PIN_RM is nvidiactl and the cards' files, PIN_UVM nvidia-uvm,
 * PIN_OTHER any other, such as a dma-buf. */
typedef enum PinFileKind { PIN_RM = 0, PIN_UVM, PIN_OTHER } PinFileKind;

enum { PIN_PATH = 256, PIN_FD_PATH = 32 };

/* file: a descriptor of the program, or -1. opened: our descriptor by kind; -1: not opened yet; -2:
 * the file cannot be opened. */
typedef struct PinFiles {
        int file;
        int opened[PIN_OTHER];
} PinFiles;

#define PIN_FILES(file_) ((PinFiles){.file = (file_), .opened = {-1, -1}})

/* Opens the driver's file of a kind, which lies beside `file`, or in /dev. Returns the descriptor,
 * which pin_files_close() closes, or -2: it cannot be opened. */
int pin_files_get(PinFiles *files, PinFileKind kind);
void pin_files_close(PinFiles *files);

/* Writes the kernel's path of an open file, as a string. Returns 0; -EBADF: fd is negative;
 * -ENAMETOOLONG; or negative errno of readlink(). */
int pin_files_path(int fd, char ret[static PIN_PATH]);

/* Opens a file to ask about locks. Returns a descriptor, which the caller closes, or negative errno
 * of open(). */
int pin_files_open(const char *path);

/* Writes prefix and the number of fd, which is not negative. prefix: at most 18 characters. */
void pin_files_fd_path(const char *prefix, int fd, char ret[static PIN_FD_PATH]);
