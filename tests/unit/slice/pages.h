/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A slice of the test: both files in a directory that is removed at exit. */

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "slice/counter_word.h"
#include "slice/counters.h"
#include "slice/slice.h"
#include "slicedir/slice_files.h"
#include "test.h"

enum { PAGES_DEADLINE = 120 }; /* seconds: more than anything here takes */

typedef struct Pages {
        char path[64];
        int directory;
} Pages;

static inline SliceSpec pages_spec(uint64_t limit) {
        return (SliceSpec){.limit = limit,
                           .card_bytes = UINT64_C(16160) << 20,
                           .group_bytes = UINT64_C(8) << 20,
                           .card = 1,
                           .request.percent = 30,
                           .uuid = "GPU-7f1b2c3d-0000-4000-8000-0123456789ab",
                           .container = "default/resnet/train",
                           .device = {.dev = 5, .ino = 7}};
}

static inline Pages pages_make(uint64_t limit) {
        Pages p = {.path = "/tmp/test-slice-XXXXXX"};
        SliceSpec spec = pages_spec(limit);
        Fault fault = FAULT_NULL;

        ASSERT_TRUE(mkdtemp(p.path) != NULL);
        p.directory = open(p.path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        ASSERT_TRUE(p.directory >= 0);
        ASSERT_INT(slice_files_make(p.directory, &spec, &fault), 0);
        return p;
}

static inline void pages_remove(Pages *p) {
        (void) unlinkat(p->directory, "limits", 0); /* a test may have done it */
        (void) unlinkat(p->directory, "counters", 0);
        (void) unlinkat(p->directory, SLICE_DOORBELL, 0);
        (void) close(p->directory);
        ASSERT_OK(rmdir(p->path));
}

static inline void pages_write(const Pages *p, const char *name, const void *bytes, size_t size, size_t at) {
        int fd = openat(p->directory, name, O_WRONLY | O_CLOEXEC);

        ASSERT_TRUE(fd >= 0);
        ASSERT_INT(pwrite(fd, bytes, size, (off_t) at), size);
        (void) close(fd);
}

static inline SliceReport pages_report(const Pages *p) {
        SliceReport report;

        ASSERT_INT(slice_files_read_report(p->directory, &report), 0);
        return report;
}

/* A child that ends with its parent. 0 in the child. */
static inline pid_t pages_fork(void) {
        pid_t pid = fork();

        ASSERT_TRUE(pid >= 0);
        if (pid == 0)
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        return pid;
}

static inline int pages_wait(pid_t pid) {
        int status = 0;

        ASSERT_INT(waitpid(pid, &status, 0), pid);
        return status;
}

#define ASSERT_CHILD_OK(pid)                                                                                 \
        do {                                                                                                 \
                int status_ = pages_wait(pid);                                                               \
                ASSERT_TRUE(WIFEXITED(status_) && WEXITSTATUS(status_) == 0);                                \
        } while (0)

/* Waits for a lock to be released. A process that looks at the memory of an ended one at that
 * moment, as ps does, keeps its lock for so long. */
static inline void pages_reap_to(SliceUser *s, uint64_t bytes) {
        time_t end = time(NULL) + PAGES_DEADLINE;

        while ((void) slice_reap(s), slice_used(s) != bytes && time(NULL) < end)
                (void) sched_yield();
        ASSERT_INT(slice_used(s), bytes);
}
