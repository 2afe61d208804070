/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The process that makes a call: its memory, pids and descriptors, as far as the answer depends on
 * them. sim/process.h has real processes; tests have made-up ones. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct SimCaller SimCaller;

struct SimCaller {
        uint32_t uid;
        /* All n bytes, or -EFAULT. Nothing is read twice, because it can change in between. */
        int (*read)(SimCaller *c, uint64_t at, void *to, size_t n);
        int (*write)(SimCaller *c, uint64_t at, const void *from, size_t n);
        uint32_t (*pid)(SimCaller *c);                    /* its pid in the server's namespace */
        uint32_t (*pid_seen)(SimCaller *c, uint32_t pid); /* a pid in its namespace; 0: none */
        bool (*is_ctl)(SimCaller *c,
                       int fd); /* whether its descriptor fd is an open nvidiactl of this server */
        /* Which open file that is; NULL: none, or not known. Only for the descriptor of
         * sim_call_descriptor(). */
        struct SimFile *(*file)(SimCaller *c, int fd);
};
