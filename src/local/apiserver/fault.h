/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Faults that wait for their requests, first injected first served. */

#include "local/apiserver/store.h"

enum { STORE_FAULTS_MAX = 64 };

typedef struct StoreFaults {
        struct {
                StoreFault fault; /* its strings are the copies below */
                char *method, *path_prefix;
        } waiting[STORE_FAULTS_MAX];
        size_t n;
} StoreFaults;

int store_faults_add(StoreFaults *f, const StoreFault *fault); /* 0, -EINVAL, -ENOSPC or -ENOMEM */
void store_faults_done(StoreFaults *f);

/* Uses up one fault for this request; false when none matches. CUT_WATCH is for the lines of
 * watches, and only asked for with `lines`; the other kinds are for requests. */
bool store_faults_take(StoreFaults *f, const char *method, const char *path, bool lines, StoreFault *ret);
