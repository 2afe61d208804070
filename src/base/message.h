/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Lines for people on standard error, from a program that must go on even if they are lost. */

#include "base/cleanup.h"

enum { MESSAGE_MAX = 2048 }; /* bytes of a line; the rest is cut */

/* Writes the line, and a newline. Never waits and never ends the program: where standard error is
 * closed, is a full pipe or one that nothing reads any more, the line is lost. */
void message_write(const char *format, ...) _printf_(1, 2);

/* From now on `stderr` never ends the program and never holds it up. What is printed is lost where
 * standard error is closed, or a pipe that nothing reads any more. A full pipe is waited for while
 * it is read. When nothing was read for a second, the text is lost, and nothing waits again before
 * there is room. The next text then begins with the number of lost bytes. glibc allows a program to
 * assign to `stderr` ("Standard Streams" of its manual). Without memory nothing changes. */
void message_guard(void);
