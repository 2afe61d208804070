/* SPDX-License-Identifier: Apache-2.0 */

/* Several processes: forks, exported memory, and crowds that race for the last bytes. The first
 * process waits for the suite. Children are made before the driver is opened, and get their orders
 * through pipes. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "sim/user/driver.h"

static size_t mib(const char *text) {
        return strtoull(text, NULL, 10) * MIB;
}

typedef struct Child {
        pid_t pid;
        int to, from; /* of the parent */
} Child;

static void put(int fd, const void *data, size_t n) {
        if (write(fd, data, n) != (ssize_t) n)
                case_fail("a process of the case is gone: %s", strerror(errno));
}

/* false: the other process has ended. */
static int get(int fd, void *data, size_t n) {
        return read(fd, data, n) == (ssize_t) n;
}

static void must_get(int fd, void *data, size_t n) {
        if (!get(fd, data, n))
                case_fail("a process of the case has ended");
}

static Child start(void (*run)(int from, int to, void *data), void *data) {
        int down[2], up[2];
        Child child;

        OK(pipe(down));
        OK(pipe(up));
        (void) fflush(stdout);
        child = (Child){.pid = fork(), .to = down[1], .from = up[0]};
        if (child.pid < 0)
                case_fail("fork: %s", strerror(errno));
        if (child.pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) close(down[1]);
                (void) close(up[0]);
                run(down[0], up[1], data);
                (void) fflush(stdout);
                _exit(0);
        }
        (void) close(down[0]);
        (void) close(up[1]);
        return child;
}

/* By a message, not by the end of the pipe: later children have the other end, too. */
static int finish(const Child *child) {
        int status = 0;

        (void) !write(child->to, "x", 1);
        (void) close(child->to);
        (void) close(child->from);
        (void) waitpid(child->pid, &status, 0);
        return status;
}

/* ---- fork ---- */

static void hold_in_child(int from, int to, void *data) {
        static Held h;
        char go;

        must_get(from, &go, 1);
        (void) case_begin();
        h.bytes = *(size_t *) data;
        OK(family_find("plain")->take(&h));
        put(to, "h", 1);
        (void) get(from, &go, 1);
}

/* Two processes of one family hold the same amount; a later child has no driver. */
int case_forked(char **arguments) {
        static Held h;
        size_t bytes = mib(arguments[0]);
        Child child = start(hold_in_child, &bytes);
        int status;
        pid_t late;
        char held;

        put(child.to, "g", 1);
        (void) case_begin();
        h.bytes = bytes;
        OK(family_find("plain")->take(&h));
        must_get(child.from, &held, 1);
        case_mark("held");
        late = fork();
        if (late == 0)
                _exit((int) CU(cuInit)(0) & 0x7F);
        (void) waitpid(late, &status, 0);
        case_say("init-after-fork", (unsigned long long) WEXITSTATUS(status));
        if (finish(&child) != 0)
                case_fail("the child ended badly");
        case_mark("one");
        family_find("plain")->give(&h);
        OK(family_find("plain")->take(&h)); /* it still works */
        return 0;
}

/* ---- by IPC handle ---- */

static void open_in_child(int from, int to, void *data) {
        CUipcMemHandle handle;
        CUdeviceptr at;
        char go;

        (void) data;
        must_get(from, &handle, sizeof handle);
        (void) case_begin();
        put(to, "c", 1);
        must_get(from, &go, 1);
        OK(CU(cuIpcOpenMemHandle_v2)(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        put(to, "o", 1);
        must_get(from, &go, 1);
        OK(CU(cuIpcCloseMemHandle)(at));
        put(to, "x", 1);
        (void) get(from, &go, 1);
}

static void step(const Child *child, const char *place) {
        char done;

        put(child->to, "g", 1);
        must_get(child->from, &done, 1);
        case_mark(place);
}

int case_ipc(char **arguments) {
        static Held h;
        Child child = start(open_in_child, NULL);
        CUipcMemHandle handle;
        char done;

        (void) case_begin();
        h.bytes = mib(arguments[0]);
        OK(family_find("plain")->take(&h));
        OK(CU(cuIpcGetMemHandle)(&handle, h.at[0]));
        put(child.to, &handle, sizeof handle);
        must_get(child.from, &done, 1);
        case_mark("held");
        step(&child, "opened");
        step(&child, "closed");
        return finish(&child) == 0 ? 0 : 1;
}

/* ---- by descriptor ---- */

typedef union Control {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
} Control;

static void send_fd(int socket, int fd) {
        Control control = {.header = {.cmsg_len = CMSG_LEN(sizeof fd),
                                      .cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS}};
        char byte = 'f';
        struct iovec one = {&byte, 1};
        struct msghdr m = {
                .msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};

        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
        if (sendmsg(socket, &m, 0) != 1)
                case_fail("sendmsg: %s", strerror(errno));
}

static int receive_fd(int socket) {
        Control control = {.header = {.cmsg_len = 0}};
        char byte;
        struct iovec one = {&byte, 1};
        struct msghdr m = {
                .msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        int fd;

        if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC) != 1)
                case_fail("recvmsg: %s", strerror(errno));
        memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
        return fd;
}

static void import_in_child(int from, int to, void *data) {
        CUmemGenericAllocationHandle handle;
        char go;
        int fd;

        (void) case_begin();
        put(to, "c", 1);
        must_get(from, &go, 1);
        fd = receive_fd(*(int *) data);
        OK(CU(cuMemImportFromShareableHandle)(&handle, (void *) (intptr_t) fd,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
        (void) close(fd);
        put(to, "o", 1);
        must_get(from, &go, 1);
        OK(CU(cuMemRelease)(handle));
        put(to, "x", 1);
        (void) get(from, &go, 1);
}

int case_shared(char **arguments) {
        static Held h;
        int sockets[2], fd = -1;
        Child child;
        char done;

        OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
        child = start(import_in_child, &sockets[1]);
        (void) case_begin();
        h.bytes = mib(arguments[0]);
        OK(family_find("vmm")->take(&h));
        OK(CU(cuMemExportToShareableHandle)(&fd, h.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        must_get(child.from, &done, 1);
        case_mark("held");
        send_fd(sockets[0], fd);
        step(&child, "opened");
        step(&child, "closed");
        (void) close(fd);
        return finish(&child) == 0 ? 0 : 1;
}

/* ---- crowds ---- */

enum { CROWD_MAX = 256 };

typedef struct Share {                          /* result of a process of a crowd */
        unsigned long long bytes, pieces, last; /* last: the status of the refusal */
} Share;

static void take_by_cuda(size_t piece, Share *share) {
        CUdeviceptr at;
        CUresult r;

        while ((r = CU(cuMemAlloc_v2)(&at, piece)) == CUDA_SUCCESS) {
                share->bytes += piece;
                share->pieces++;
        }
        share->last = r;
}

static void race_by_cuda(int from, int to, void *data) {
        Share share = {0};
        char go;

        (void) case_begin();
        put(to, "r", 1);
        must_get(from, &go, 1);
        take_by_cuda(*(size_t *) data, &share);
        put(to, &share, sizeof share);
        (void) get(from, &go, 1);
}

/* The driver itself, without CUDA: no context, so that only the pieces take memory. */
static void race_by_driver(int from, int to, void *data) {
        Share share = {0};
        Driver d;
        uint32_t status = driver_open(&d), object;
        uint64_t size;
        char go;

        if (status != RM_OK || d.n == 0)
                case_skip("the driver, asked directly, says 0x%x", status);
        put(to, "r", 1);
        must_get(from, &go, 1);
        while ((size = *(size_t *) data, status = driver_alloc_memory(&d, &d.cards[0], &size, &object)) ==
               RM_OK) {
                share.bytes += size;
                share.pieces++;
        }
        share.last = status;
        put(to, &share, sizeof share);
        (void) get(from, &go, 1);
}

static void collect(const Child *crowd, size_t n) {
        Share sum = {0}, one;

        for (size_t i = 0; i < n; i++)
                put(crowd[i].to, "g", 1);
        for (size_t i = 0; i < n; i++) {
                must_get(crowd[i].from, &one, sizeof one);
                sum.bytes += one.bytes;
                sum.pieces += one.pieces;
                if (sum.last != 0 && one.last != sum.last)
                        case_fail("one is refused with %llu, another with %llu", sum.last, one.last);
                sum.last = one.last;
        }
        case_say("bytes", sum.bytes);
        case_say("pieces", sum.pieces);
        case_say("error", sum.last);
}

/* All allocate until they are refused. Then every other process is killed, and the rest end by
 * themselves. */
static int run_crowd(void (*run)(int from, int to, void *data), size_t n, size_t piece) {
        static Child crowd[CROWD_MAX];
        char ready;

        n = n < CROWD_MAX ? n : CROWD_MAX;
        for (size_t i = 0; i < n; i++)
                crowd[i] = start(run, &piece);
        for (size_t i = 0; i < n; i++)
                if (!get(crowd[i].from, &ready, 1) || ready != 'r')
                        case_skip("a process of the crowd did not get ready");
        case_mark("ready");
        collect(crowd, n);
        case_mark("full");
        for (size_t i = 0; i < n; i += 2) {
                (void) kill(crowd[i].pid, SIGKILL);
                (void) finish(&crowd[i]);
        }
        case_mark("half");
        for (size_t i = 1; i < n; i += 2)
                (void) finish(&crowd[i]);
        case_mark("none");
        return 0;
}

/* N processes, pieces of so many MiB: by CUDA, and by the driver itself. */
int case_race(char **arguments) {
        return run_crowd(race_by_cuda, strtoull(arguments[0], NULL, 10), mib(arguments[1]));
}

int case_crowd(char **arguments) {
        return run_crowd(race_by_driver, strtoull(arguments[0], NULL, 10), mib(arguments[1]));
}
