/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A thread that handles requests in order. The server's calls are made there, because one may wait
 * for a page that only the server can fill. The thread that reads the kernel's requests must stay
 * free for that. */

#include <stddef.h>

#include "base/cleanup.h"

typedef struct Worker Worker;

/* Begins the thread, which calls run() with each request. NULL: no memory, or no thread. */
Worker *worker_new(void (*run)(void *data, void *request, size_t n), void *data);
/* Returns when all requests are handled. */
void worker_free(Worker *w);
DEFINE_CLEANUP(Worker *, worker_free)
/* Queues a copy of the request. 0 or -ENOMEM. */
int worker_give(Worker *w, const void *request, size_t n);
