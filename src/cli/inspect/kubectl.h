/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reaches the cluster through kubectl, with every kind of login that kubectl supports. `get --raw`
 * passes on the API server's bytes, whereas `get -o json` holds the whole list in memory, twice,
 * before it prints. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"

typedef struct Kubectl {
        pid_t pid;
        int out;           /* its standard output, for reading */
        char command[512]; /* for messages; cut to fit */
} Kubectl;

enum { KUBECTL_E_FAILED = 1 };

enum { KUBECTL_MAX_FLAGS = 32 };

/* How long a node agent or the scheduler may take to answer, unless flags say otherwise. */
#define KUBECTL_TIMEOUT "10s"

/* Starts `kubectl FLAGS... get --raw PATH`, with our standard input and error. Returns 0, or
 * negative errno with a fault: -ENOENT when kubectl is not on PATH, -E2BIG for more than
 * KUBECTL_MAX_FLAGS flags. */
int kubectl_get_raw(const char *const *flags, size_t n_flags, const char *path, Kubectl *ret, Fault *fault);

/* Like kubectl_get_raw(), without kubectl's own messages, for requests that may fail. */
int kubectl_try_raw(const char *const *flags, size_t n_flags, const char *path, Kubectl *ret, Fault *fault);

/* Closes the pipe and waits for kubectl. give_up: its output is not needed, so it is killed first.
 * Returns 0, negative errno, or KUBECTL_E_FAILED with its status in the fault; its own message went
 * to standard error. */
int kubectl_finish(Kubectl *k, bool give_up, Fault *fault);
