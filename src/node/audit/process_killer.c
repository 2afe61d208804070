/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/process_killer.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "node/kubelet/process_state.h"

enum { SWEEP_MIN = 64 };

typedef struct KilledPid {
        UT_hash_handle hh;
        uint32_t pid;
        uint64_t start;
} KilledPid;

static void forget(ProcessKiller *k, KilledPid *p) {
        HASH_DELETE(hh, k->killed, p);
        free(p);
}

void process_killer_done(ProcessKiller *k) {
        KilledPid *p, *next;

        HASH_ITER(hh, k->killed, p, next)
        forget(k, p);
}

static uint64_t start_of(const ProcessKiller *k, uint32_t pid) {
        uint64_t start = 0;

        (void) process_state_start_time(k->proc, pid, &start);
        return start;
}

static bool was_killed(ProcessKiller *k, uint32_t pid) {
        KilledPid *p;

        HASH_FIND(hh, k->killed, &pid, sizeof pid, p);
        if (p && p->start == start_of(k, pid))
                return true;
        if (p)
                forget(k, p);
        return false;
}

static void sweep(ProcessKiller *k) {
        KilledPid *p, *next;

        HASH_ITER(hh, k->killed, p, next)
        if (kill((pid_t) p->pid, 0) < 0 && errno == ESRCH)
                forget(k, p);
        k->sweep_at = 2 * (size_t) HASH_COUNT(k->killed) + SWEEP_MIN;
}

static void note(ProcessKiller *k, uint32_t pid) {
        KilledPid *p;

        if (HASH_COUNT(k->killed) >= k->sweep_at)
                sweep(k);
        p = calloc(1, sizeof *p);
        if (!p)
                return; /* it is counted twice */
        *p = (KilledPid){.pid = pid, .start = start_of(k, pid)};
        HASH_ADD(hh, k->killed, pid, sizeof p->pid, p);
        if (!hash_added(p, hh))
                free(p);
}

/* Before Linux 5.3 there is no way to hold it fast. */
static int send_kill(int fd, uint32_t pid) {
        int r = fd >= 0 ? (int) syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0)
                        : kill((pid_t) pid, SIGKILL);

        return r < 0 ? -errno : 0;
}

int process_killer_kill(ProcessKiller *k, uint32_t pid, bool (*is_meant)(const void *userdata, uint32_t pid),
                        const void *userdata) {
        _cleanup_close_ int fd = -1;
        int r;

        if (pid <= 1 || pid > INT32_MAX)
                return 0;
        fd = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0);
        if (fd < 0 && errno == ESRCH)
                return 0;
        if (!is_meant(userdata, pid) || was_killed(k, pid))
                return 0;
        r = send_kill(fd, pid);
        if (r < 0)
                return r == -ESRCH ? 0 : r;
        note(k, pid);
        return 1;
}
