/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A caller of the simulated driver without a process. Its memory is an array: the first page is
 * read-only, the next ones can be read and written, and nothing else is mapped. */

#include <errno.h>
#include <string.h>

#include "sim/caller.h"

enum {
        MEMORY_PAGE = 4096,
        MEMORY_SIZE = 16 * MEMORY_PAGE,
        MEMORY_CTL_FD = 3,  /* the only descriptor that is an nvidiactl, except */
        MEMORY_FILE_FD = 4, /* the first descriptor whose file the test tells */
        MEMORY_FILES = 2,
};
#define MEMORY_READ_ONLY 0x10000ull
#define MEMORY_START     (MEMORY_READ_ONLY + MEMORY_PAGE)
#define MEMORY_END       (MEMORY_READ_ONLY + MEMORY_SIZE)

typedef struct MemoryCaller {
        SimCaller caller;
        uint32_t process;
        uint32_t hidden; /* a pid outside its namespace */
        struct SimFile *files[MEMORY_FILES];
        uint8_t bytes[MEMORY_SIZE];
} MemoryCaller;

static inline int memory_read(SimCaller *c, uint64_t at, void *to, size_t n) {
        const MemoryCaller *m = (const MemoryCaller *) c;

        if (at < MEMORY_READ_ONLY || at > MEMORY_END || n > MEMORY_END - at)
                return -EFAULT;
        memcpy(to, m->bytes + (at - MEMORY_READ_ONLY), n);
        return 0;
}

static inline int memory_write(SimCaller *c, uint64_t at, const void *from, size_t n) {
        MemoryCaller *m = (MemoryCaller *) c;

        if (at < MEMORY_START || at > MEMORY_END || n > MEMORY_END - at)
                return -EFAULT;
        memcpy(m->bytes + (at - MEMORY_READ_ONLY), from, n);
        return 0;
}

static inline uint32_t memory_pid(SimCaller *c) {
        return ((MemoryCaller *) c)->process;
}

static inline uint32_t memory_pid_seen(SimCaller *c, uint32_t pid) {
        return pid == ((MemoryCaller *) c)->hidden ? 0 : pid + 1000;
}

static inline bool memory_is_ctl(SimCaller *c, int fd) {
        return fd == MEMORY_CTL_FD;
}

static inline struct SimFile *memory_file(SimCaller *c, int fd) {
        return fd >= MEMORY_FILE_FD && fd < MEMORY_FILE_FD + MEMORY_FILES
                       ? ((MemoryCaller *) c)->files[fd - MEMORY_FILE_FD]
                       : NULL;
}

static inline void memory_caller_init(MemoryCaller *m, uint32_t process, uint32_t uid) {
        *m = (MemoryCaller){.caller = {.uid = uid,
                                       .read = memory_read,
                                       .write = memory_write,
                                       .pid = memory_pid,
                                       .pid_seen = memory_pid_seen,
                                       .is_ctl = memory_is_ctl,
                                       .file = memory_file},
                            .process = process};
}
