/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Messages of the program on standard error, and its exit statuses. Control characters in a message
 * are replaced, because names may come from an unchecked file. */

#include "base/fault.h"

enum { EXIT_NO = 1, EXIT_USAGE = 2, EXIT_BROKEN = 3 };

void complain_line(const char *before, const char *text);

/* Prints the fault, or else the errno r, and returns `status`. */
int complain(int status, const Fault *fault, int r);

int complain_usage(const char *text, const char *value); /* EXIT_USAGE */
int complain_no_memory(void);                            /* EXIT_BROKEN */
