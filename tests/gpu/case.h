/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The common part of the cases of gpu-case. A case is a process of its own, which writes lines to
 * stdout:
 *
 *     KEY VALUE       a figure
 *     == PLACE        it waits for a line on stdin, while the suite looks at the card
 *     fail: WORDS     and exit status 1; "skip: WORDS" and 77
 *
 * With stdin closed it does not wait. libcuda and NVML are opened at their first use, by their
 * sonames, so that this can be built without them. */

#include <stdio.h>

#include "../fake/cuda-calls.h"

#define MIB (1ull << 20)

/* A function of the driver API or of NVML. If it is missing, the case ends as skipped. */
#define CU(name)                                                                                             \
        (__extension__({                                                                                     \
                static __typeof__(name) *found_;                                                             \
                if (!found_)                                                                                 \
                        found_ = (__typeof__(name) *) case_find(#name);                                      \
                found_;                                                                                      \
        }))
#define OK(call) case_check((int) (call), #call, __FILE__, __LINE__)

void *case_find(const char *name);
void case_check(int r, const char *call, const char *file, int line);
_Noreturn void case_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void case_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
void case_say(const char *key, unsigned long long value);
void case_mark(const char *place);
unsigned long long case_now(void); /* ns, CLOCK_MONOTONIC */

CUcontext case_begin(void);                 /* cuInit, and a context on card 0, current */
CUfunction case_function(const char *name); /* of kernels.c */

/* ---- memory, by family ---- */

enum { HELD_PIECES = 8192 };

typedef struct Held {
        CUdeviceptr at[HELD_PIECES];
        size_t n, bytes;
        CUmemGenericAllocationHandle handle;
        CUmemoryPool pool;
        CUarray array;
        CUmipmappedArray mipmap;
        CUgraph graph;
        CUgraphExec exec;
        CUexternalMemory external;
        void *host;
} Held;

typedef struct Family {
        const char *name;
        CUresult (*take)(
                Held *h); /* h->bytes, a multiple of 16 MiB; what it leaves on failure, give() takes */
        void (*give)(Held *h);
        int on_card; /* counted */
} Family;

extern const Family families[];
const Family *family_find(const char *name);

/* ---- the cases: arguments after the name ---- */

int case_agree(char **arguments);
int case_family(char **arguments);
int case_over(char **arguments);
int case_fill(char **arguments);
int case_hold(char **arguments);
int case_contexts(char **arguments);
int case_threads(char **arguments);
int case_forked(char **arguments);
int case_ipc(char **arguments);
int case_shared(char **arguments);
int case_race(char **arguments);
int case_crowd(char **arguments);
int case_time(char **arguments);
int case_probe(char **arguments);
int case_rate(char **arguments);
int case_work(char **arguments);
int case_gaps(char **arguments);
int case_latency(char **arguments);
int case_limits(char **arguments);
int case_limited(char **arguments);
