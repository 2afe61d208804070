/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/process_killer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process_stat.h"
#include "node/audit/container_processes.h"
#include "node/kubelet/process_state.h"
#include "node/records/process_lookup.h"

enum { SWEEP_MIN = 64 };
enum { ROUNDS_MAX = 16 }; /* rounds over one container's processes */
enum { KEY_SIZE = POD_UID_SIZE + PROCESS_LOOKUP_NAME_SIZE, CGROUP_FILE_MAX = 64 * 1024 };

typedef struct KilledPid {
        UT_hash_handle hh;
        uint32_t pid;
        uint64_t start;
} KilledPid;

/* The last kills of a container. */
typedef struct KilledContainer {
        UT_hash_handle hh;
        char key[KEY_SIZE];
        usec_t at[PROCESS_KILLER_KILLS - 1]; /* the oldest first; 0: none */
} KilledContainer;

static void forget_pid(ProcessKiller *k, KilledPid *p) {
        HASH_DELETE(hh, k->killed, p);
        free(p);
}

/* Forgets the containers with no kill since that time. */
static void forget_containers(ProcessKiller *k, usec_t before) {
        KilledContainer *c, *next;

        HASH_ITER(hh, k->containers, c, next) {
                if (c->at[ELEMENTSOF(c->at) - 1] >= before)
                        continue;
                HASH_DELETE(hh, k->containers, c);
                free(c);
        }
}

void process_killer_done(ProcessKiller *k) {
        while (k->killed)
                forget_pid(k, k->killed);
        forget_containers(k, UINT64_MAX);
}

static const char *proc_of(const ProcessKiller *k) {
        return k->proc ? k->proc : "/proc";
}

static uint64_t start_of(const ProcessKiller *k, uint32_t pid) {
        uint64_t start = 0;

        (void) process_stat_start_time(proc_of(k), pid, &start);
        return start;
}

static bool was_killed(ProcessKiller *k, uint32_t pid) {
        KilledPid *p;

        HASH_FIND(hh, k->killed, &pid, sizeof pid, p);
        if (p && p->start == start_of(k, pid))
                return true;
        if (p)
                forget_pid(k, p);
        return false;
}

static void sweep_killed(ProcessKiller *k) {
        KilledPid *p, *next;

        HASH_ITER(hh, k->killed, p, next)
        if (kill((pid_t) p->pid, 0) < 0 && errno == ESRCH)
                forget_pid(k, p);
        k->sweep_at = 2 * (size_t) HASH_COUNT(k->killed) + SWEEP_MIN;
}

static void note_pid(ProcessKiller *k, uint32_t pid) {
        KilledPid *p;

        if (HASH_COUNT(k->killed) >= k->sweep_at)
                sweep_killed(k);
        p = calloc(1, sizeof *p);
        if (!p)
                return; /* out of memory: it may be counted twice */
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
 * killed now. 0: not of the container, or gone. -EALREADY: killed before. Other negative errno of
 * the kernel. */
static int kill_pid(ProcessKiller *k, const ContainerProcesses *container, uint32_t pid) {
        _cleanup_close_ int fd = -1;
        int r;

        if (pid <= 1 || pid > INT32_MAX)
                return 0;
        fd = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0);
        if (fd < 0 && errno == ESRCH)
                return 0;
        if (!container_processes_has(container, pid))
                return 0;
        if (was_killed(k, pid))
                return -EALREADY;
        r = send_kill(fd, pid);
        if (r < 0)
                return r == -ESRCH ? 0 : r;
        note_pid(k, pid);
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
        k->ret->pending += r == -EALREADY;
        k->ret->failed += r < 0 && r != -EALREADY;
}

static void kill_all(Killing *k) {
        container_processes_each(k->container, kill_one, k);
        k->ret->all = true;
}

/* ---- the whole container ---- */

static int read_cgroups(const ProcessKiller *k, uint32_t pid, Buf *text) {
        _cleanup_buf_ Buf path = BUF_NULL;

        buf_appendf(&path, "%s/%u/cgroup", proc_of(k), pid);
        return buf_result(&path) == 0 ? file_read(path.data, CGROUP_FILE_MAX, text) : -ENOMEM;
}

typedef struct FindCgroup {
        const ProcessKiller *killer;
        const ContainerProcesses *container;
        Buf *file;
} FindCgroup;

/* The text is read once, because the pid may be another container's process by then. Beside version
 * 1 the tree of version 2 is mounted at "unified" (systemd's hybrid hierarchy), where runc makes a
 * cgroup for each container, too. */
static void find_cgroup(void *userdata, uint32_t pid) {
        const FindCgroup *f = userdata;
        _cleanup_buf_ Buf text = BUF_NULL;
        ProcessOwner owner;
        Str path;

        if (f->file->len > 0 || read_cgroups(f->killer, pid, &text) != 0 ||
            !process_owner_parse(buf_str(&text), &owner) || !container_processes_is_of(f->container, &owner))
                return;
        path = process_owner_container_path(process_state_cgroup_path(buf_str(&text), STR("")));
        if (path.len > 0 &&
            process_state_cgroup_file(f->killer->cgroups, "", path, "cgroup.kill", f->file) == -ENOENT)
                (void) process_state_cgroup_file(f->killer->cgroups, "/unified", path, "cgroup.kill",
                                                 f->file);
}

/* Kills what is in the cgroup at one time, so that no process can fork in between (Linux,
 * Documentation/admin-guide/cgroup-v2.rst). Where that fails, the rounds of the caller remain. */
static void kill_cgroup(const char *file) {
        _cleanup_close_ int fd = open(file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

        if (fd >= 0)
                (void) !write(fd, "1", 1);
}

/* The first round counts the processes, and the last ones find none. A process that was forked
 * during one round is found in the next. */
KilledProcesses process_killer_end_container(ProcessKiller *k, const RosterPod *pod, const char *container) {
        const ContainerProcesses processes = {proc_of(k), pod, container};
        _cleanup_buf_ Buf file = BUF_NULL;
        KilledProcesses ret = {0};
        Killing killing = {k, &processes, &ret};
        size_t before;

        if (container && k->cgroups)
                container_processes_each(&processes, find_cgroup, &(FindCgroup){k, &processes, &file});
        for (int i = 0; i < ROUNDS_MAX; i++) {
                before = ret.killed;
                ret.pending = 0;
                kill_all(&killing);
                if (i == 0 && file.len > 0 && buf_result(&file) == 0)
                        kill_cgroup(file.data);
                if (ret.killed == before)
                        break;
                ret.failed = 0; /* they are tried again */
        }
        return ret;
}

/* ---- an excess ---- */

static KilledContainer *container_of_excess(ProcessKiller *k, const MemoryExcess *excess) {
        char key[KEY_SIZE];
        KilledContainer *c;

        (void) snprintf(key, sizeof key, "%s/%s", excess->pod->uid, excess->container);
        HASH_FIND(hh, k->containers, key, strlen(key), c);
        if (c || !(c = calloc(1, sizeof *c)))
                return c;
        memcpy(c->key, key, sizeof key);
        HASH_ADD_KEYPTR(hh, k->containers, c->key, strlen(c->key), c);
        if (hash_added(c, hh))
                return c;
        free(c);
        return NULL;
}

/* Notes a kill of the container. Returns whether it is the third one. Out of memory it is not
 * noted. */
static bool is_third(ProcessKiller *k, const MemoryExcess *excess, usec_t now) {
        KilledContainer *c = container_of_excess(k, excess);
        bool third;

        if (!c)
                return false;
        third = c->at[0] > 0 && now - c->at[0] <= PROCESS_KILLER_SPAN;
        memmove(c->at, c->at + 1, sizeof c->at - sizeof *c->at);
        c->at[ELEMENTSOF(c->at) - 1] = now;
        forget_containers(k, now > PROCESS_KILLER_SPAN ? now - PROCESS_KILLER_SPAN : 0);
        return third;
}

/* Whether this counts as a kill. A round that found no process does, too: they had started others,
 * and ended. */
static bool is_kill(const KilledProcesses *killed) {
        return killed->killed > 0 || (killed->pending == 0 && killed->failed == 0);
}

KilledProcesses process_killer_end_excess(ProcessKiller *k, const MemoryExcess *excess, usec_t now) {
        const ContainerProcesses container = {proc_of(k), excess->pod, excess->container};
        KilledProcesses ret = {0}, more;
        Killing killing = {k, &container, &ret};

        for (size_t i = 0; i < excess->n_pids; i++)
                if (!excess->pids[i].ended)
                        kill_one(&killing, excess->pids[i].pid);
        if (excess->n_ended > 0 && excess->container)
                kill_all(&killing);
        if (!excess->container || !is_kill(&ret) || !is_third(k, excess, now))
                return ret;
        more = process_killer_end_container(k, excess->pod, excess->container);
        ret.killed += more.killed;
        ret.failed = more.failed;
        ret.all = true;
        return ret;
}
