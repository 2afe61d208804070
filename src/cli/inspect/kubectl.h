/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* kubectl as our way to the cluster: whatever login it knows, we have too. `get --raw` hands on the
 * API server's own bytes, where `get -o json` would hold the whole list in memory, twice, before it
 * prints the first byte. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"

typedef struct Kubectl {
        pid_t pid;
        int out;           /* its standard output, to read */
        char command[512]; /* for messages; cut, never overrun */
} Kubectl;

enum { KUBECTL_E_FAILED = 1 };

enum { KUBECTL_MAX_FLAGS = 32 };

/* Starts `kubectl FLAGS... get --raw PATH`; standard error and input are ours. Returns 0, or
 * negative errno with a fault: -ENOENT when there is no kubectl on PATH. flags beyond
 * KUBECTL_MAX_FLAGS: -E2BIG. */
int kubectl_get_raw(const char *const *flags, size_t n_flags, const char *path, Kubectl *ret, Fault *fault);

/* Closes the pipe and waits. 0, or KUBECTL_E_FAILED with its status in words (its own words have
 * gone to stderr). give_up: nobody reads on, so it is told to end. */
int kubectl_finish(Kubectl *k, bool give_up, Fault *fault);
