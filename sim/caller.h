/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who makes a call, as far as the answer depends on it: its memory, its pids, its descriptors. A
 * real process is in sim/process.h; tests make one up. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SimCaller SimCaller;

struct SimCaller {
        uint32_t uid;
        /* All n bytes, or -EFAULT. Nothing that is read is read twice: it can change between. */
        int (*read)(SimCaller *c, uint64_t at, void *to, size_t n);
        int (*write)(SimCaller *c, uint64_t at, const void *from, size_t n);
        uint32_t (*pid)(SimCaller *c);                    /* of its process, as the server sees it */
        uint32_t (*pid_seen)(SimCaller *c, uint32_t pid); /* a pid as it sees it; 0: it does not */
        bool (*is_ctl)(SimCaller *c, int fd); /* is its descriptor fd an open nvidiactl of this server? */
        /* Which one; NULL: none, or it is not known. Only of the descriptor that
         * sim_call_descriptor() tells. */
        struct SimFile *(*file)(SimCaller *c, int fd);
};
