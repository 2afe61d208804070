/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Faults of the server that tests ask for. Each waits for requests that match it; the fault that
 * was added first is used first. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum StoreFaultKind {
        STORE_FAULT_STATUS,      /* answer `status`, carry nothing out */
        STORE_FAULT_LOSE_ANSWER, /* carry it out, then cut the connection: the outcome is unknown */
        STORE_FAULT_CUT,         /* cut the connection, carry nothing out */
        STORE_FAULT_CUT_WATCH,   /* end watches in the middle of their next line */
        STORE_FAULT_DELAY,       /* carry it out after `delay_usec` */
} StoreFaultKind;

typedef struct StoreFault {
        StoreFaultKind kind;
        const char *method, *path_prefix; /* requests that match have these; NULL: any */
        unsigned count;                   /* matching requests that it applies to */
        unsigned status;                  /* HTTP status of STORE_FAULT_STATUS */
        unsigned retry_after;             /* its Retry-After in seconds; 0: no such header */
        uint64_t delay_usec;
} StoreFault;

enum { STORE_FAULTS_MAX = 64 };

typedef struct StoreFaults {
        struct {
                StoreFault fault; /* its strings are the copies below */
                char *method, *path_prefix;
        } waiting[STORE_FAULTS_MAX];
        size_t n;
} StoreFaults;

/* Returns 0, -EINVAL (no count, no such kind, or a status outside 200 to 599), -ENOSPC when
 * STORE_FAULTS_MAX wait, or -ENOMEM. */
int store_faults_add(StoreFaults *f, const StoreFault *fault);
void store_faults_done(StoreFaults *f);

/* Uses up one fault for this request; false when none matches. STORE_FAULT_CUT_WATCH applies to the
 * lines of watches and is taken only with `lines`; the other kinds apply to requests. */
bool store_faults_take(StoreFaults *f, const char *method, const char *path, bool lines, StoreFault *ret);
