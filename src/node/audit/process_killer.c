/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/process_killer.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "node/audit/container_processes.h"
#include "node/kubelet/process_state.h"

enum { SWEEP_MIN = 64 };
enum { ROUNDS_MAX = 16 }; /* over one container's processes */

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

static const char *proc_of(const ProcessKiller *k) {
        return k->proc ? k->proc : "/proc";
}

static uint64_t start_of(const ProcessKiller *k, uint32_t pid) {
        uint64_t start = 0;

        (void) process_state_start_time(proc_of(k), pid, &start);
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

/* Linux before 5.3 has no pidfd, so there the pid may be reused before the signal. */
static int send_kill(int fd, uint32_t pid) {
        int r = fd >= 0 ? (int) syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0)
                        : kill((pid_t) pid, SIGKILL);

        return r < 0 ? -errno : 0;
}

/* Kills the process if it belongs to the container, which is checked while a pidfd holds it. 1:
 * killed now. 0: not of the container, killed before, or gone. Negative errno of the kernel. */
static int kill_pid(ProcessKiller *k, const ContainerProcesses *container, uint32_t pid) {
        _cleanup_close_ int fd = -1;
        int r;

        if (pid <= 1 || pid > INT32_MAX)
                return 0;
        fd = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0);
        if (fd < 0 && errno == ESRCH)
                return 0;
        if (!container_processes_has(container, pid) || was_killed(k, pid))
                return 0;
        r = send_kill(fd, pid);
        if (r < 0)
                return r == -ESRCH ? 0 : r;
        note(k, pid);
        return 1;
}

typedef struct Killing {
        ProcessKiller *killer;
        const ContainerProcesses *container;
        KilledProcesses *ret;
} Killing;

static void kill_one(void *userdata, uint32_t pid) {
        const Killing *k = userdata;
        int r = kill_pid(k->killer, k->container, pid);

        k->ret->killed += r > 0;
        k->ret->failed += r < 0;
}

static void kill_all(Killing *k) {
        container_processes_each(k->container, kill_one, k);
        k->ret->all = true;
}

KilledProcesses process_killer_end_excess(ProcessKiller *k, const MemoryExcess *excess) {
        const ContainerProcesses container = {proc_of(k), excess->pod, excess->container};
        KilledProcesses ret = {0};
        Killing killing = {k, &container, &ret};

        for (size_t i = 0; i < excess->n_pids; i++)
                if (!excess->pids[i].ended)
                        kill_one(&killing, excess->pids[i].pid);
        if (excess->n_ended > 0 && excess->container)
                kill_all(&killing);
        return ret;
}

/* Repeats until a round kills none: a process that was forked during one round is found in the
 * next. */
KilledProcesses process_killer_end_container(ProcessKiller *k, const RosterPod *pod, const char *container) {
        const ContainerProcesses processes = {proc_of(k), pod, container};
        KilledProcesses ret = {0};
        Killing killing = {k, &processes, &ret};
        size_t before;

        for (int i = 0; i < ROUNDS_MAX; i++) {
                before = ret.killed;
                kill_all(&killing);
                if (ret.killed == before)
                        break;
                ret.failed = 0; /* they are tried again */
        }
        return ret;
}
