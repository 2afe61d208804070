/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Lines for people on standard error, from a program that must go on even if they are lost. */

#include "base/cleanup.h"

enum { MESSAGE_MAX = 2048 }; /* bytes of a line; the rest is cut */

/* Writes the line, and a newline. Never waits and never ends the program: where standard error is
 * closed, is a full pipe or one that nothing reads any more, the line is lost. */
void message_write(const char *format, ...) _printf_(1, 2);

/* What is printed on `stderr` from now on never ends the program: where standard error is closed,
 * or a pipe that nothing reads any more, it is lost. A full pipe is waited for. glibc allows a
 * program to assign to `stderr` ("Standard Streams" of its manual). Without memory nothing
 * changes. */
void message_guard(void);
