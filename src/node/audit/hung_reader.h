/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads the arbiter's reports of kernels that do not end: lines from a pipe (arbiter/respawn.h). */

#include <systemd/sd-event.h>

#include "base/str.h"

typedef struct HungKernel {
        uint64_t nsec; /* how long it has run beyond its window */
        bool part;     /* one process hangs, while others of the container go on */
        bool again;    /* the kernel was reported before and still runs */
        Str slice;     /* its directory */
        Str uuid;      /* UUID of the card */
        Str namespace_, pod, container;
} HungKernel;

/* Reads a line without its end. Strings point into it. False: it is malformed. */
bool hung_reader_parse(Str line, HungKernel *ret);

typedef struct HungReader HungReader;

/* Reads fd, which stays the caller's (below 0: nothing), and calls on_kernel for each line. Its
 * strings live as long as that call. 0 or negative errno. */
int hung_reader_new(sd_event *event, int fd, void (*on_kernel)(void *userdata, const HungKernel *kernel),
                    void *userdata, HungReader **ret);
HungReader *hung_reader_free(HungReader *h);
uint64_t hung_reader_count(const HungReader *h); /* kernels ever, each once; h may be NULL */
