/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A thread that does what it is given, in that order. The server's calls are done there, because
 * one may have to wait for a page that only the server can fill: who reads the kernel's requests
 * must stay free to do that. */

#include <stddef.h>

#include "base/cleanup.h"

typedef struct Worker Worker;

/* Begins the thread; run() is called on it with each request. NULL: no memory, or no thread. */
Worker *worker_new(void (*run)(void *data, void *request, size_t n), void *data);
/* Ends when everything that was given is done. */
void worker_free(Worker *w);
DEFINE_CLEANUP(Worker *, worker_free)
/* A copy of the request is kept. 0 or -ENOMEM. */
int worker_give(Worker *w, const void *request, size_t n);
