/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A limit of the driver on the device memory of a cgroup, by NVML of 615 and later. It is read back
 * after it was set, because a kernel may accept a limit and not put it in force
 * (docs/internals/memory-limits.md). */

#include <stdbool.h>
#include <stdint.h>

enum { CARD_LIMIT_PATH = 512 };
#define CARD_LIMIT_NONE UINT64_MAX /* NVML_DEVICE_MEMORY_LIMIT_MAX */

typedef struct CardLimit {
        char uuid[64];              /* of the card */
        char path[CARD_LIMIT_PATH]; /* of the cgroup's directory, as the child sees it */
        uint64_t hard;              /* bytes */
        uint32_t set;               /* 1: set `hard`, then read; 0: only read the limit */
} CardLimit;

/* Beside the codes of NVML, which are below 1000. */
enum {
        CARD_LIMIT_NO_CALLS = 1000, /* the library has no such calls */
        CARD_LIMIT_NO_CARD,         /* there is no such card */
        CARD_LIMIT_NO_ANSWER,       /* the driver did not answer, or the child has ended */
};

typedef struct CardLimitAnswer {
        /* of NVML or one of the above; 0: hard and used are what the driver reports */
        uint32_t code;
        uint64_t hard, used;
        char text[160]; /* what failed; "" with code 0 */
} CardLimitAnswer;

/* Receives the answer, which is valid during the call. May request other limits. */
typedef void (*CardLimitDone)(void *userdata, const CardLimitAnswer *answer);
