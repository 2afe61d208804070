/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the arbiter tells of kernels that do not end: lines from a pipe, taken apart. */

#include <systemd/sd-event.h>

#include "base/str.h"

typedef struct HungKernel {
        uint64_t nsec; /* it has run so long beyond its window */
        bool part;     /* of one process, beside which others of the container go on */
        bool again;    /* it was told before, and lasts */
        Str uuid;      /* of the card */
        Str namespace_, pod, container;
} HungKernel;

/* A line without its end, as arbiter/respawn.h has it. false: it is none. Strings point into it. */
bool hung_reader_parse(Str line, HungKernel *ret);

typedef struct HungReader HungReader;

/* Reads fd, which stays the caller's, and calls on_kernel for each line; strings live as long as
 * the call. 0, or negative errno. */
int hung_reader_new(sd_event *event, int fd, void (*on_kernel)(void *userdata, const HungKernel *kernel),
                    void *userdata, HungReader **ret);
HungReader *hung_reader_free(HungReader *h);
uint64_t hung_reader_count(const HungReader *h); /* kernels ever, each once; 0 for NULL */
