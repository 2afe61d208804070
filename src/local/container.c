/* SPDX-License-Identifier: Apache-2.0 */
#include "local/container.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdnoreturn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "local/sandbox.h"

#define PATIENCE_USEC (5 * USEC_PER_SEC) /* how long killed processes may take to end */

/* A message of the container on its control socket, one per change of state. When either side
 * closes the socket, the container's life ends. */
typedef struct Report {
        ContainerState state;
        int detail;
        char step[64];
} Report;

struct Container {
        pid_t pid;   /* first process of its pid namespace; 0 once reaped */
        int control; /* -1 when it is closed */
        int output;  /* -1 at end of file */
        ContainerState state;
        int detail;
        char step[64];
        Buf text;
        bool cut;
};

/* --- inside the container --------------------------------------------------------------------- */

static void report_state(int control, ContainerState state, int detail, const char *step) {
        Report message = {.state = state, .detail = detail};

        for (size_t i = 0; step && step[i] && i < sizeof message.step - 1; i++)
                message.step[i] = step[i];
        /* fails when the parent is gone, which needs no message */
        (void) send(control, &message, sizeof message, MSG_NOSIGNAL);
}

static noreturn void run_command(const ContainerSpec *spec, int control, int output) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        sigset_t none;

        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) signal(SIGPIPE, SIG_DFL);
        (void) setsid();
        if (dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
            dup2(output, STDERR_FILENO) < 0 || sandbox_limit(spec->n_mounts > 0) < 0 || chdir("/") < 0)
                _exit(126);
        if (spec->workdir && chdir(spec->workdir) < 0)
                (void) dprintf(STDOUT_FILENO, "(workingDir %s of this machine: %s; the command runs in /)\n",
                               spec->workdir, strerror(errno));
        environ = (char **) spec->envp; /* execvp() searches this PATH */
        (void) execvp(spec->argv[0], spec->argv);
        report_state(control, CONTAINER_NO_PROGRAM, errno, NULL);
        _exit(127);
}

/* Reaps all processes until the command ends. Then all others are killed, as when the first process
 * of a real container ends. */
static void await_command(pid_t command, int control) {
        int status;
        pid_t pid;

        do
                pid = waitpid(-1, &status, 0);
        while (pid != command && (pid >= 0 || errno == EINTR));
        (void) kill(-1, SIGKILL); /* in a pid namespace: all processes but the first */
        if (pid != command)
                return;
        if (WIFSIGNALED(status))
                report_state(control, CONTAINER_KILLED, WTERMSIG(status), NULL);
        else
                report_state(control, CONTAINER_EXITED, WEXITSTATUS(status), NULL);
}

/* Waits for the parent's byte, which says that our ids are mapped. End of file means that the
 * parent is gone. */
static bool await_go(int control) {
        ssize_t n;
        char go;

        do
                n = recv(control, &go, 1, 0);
        while (n < 0 && errno == EINTR);
        return n == 1;
}

/* Ends with the parent, and checks whether the parent has already ended. Called after the change of
 * ids, which would reset this. */
static bool tie_to_parent(int control) {
        char byte;

        return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 &&
               recv(control, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

static noreturn void hold_namespaces(int control) {
        char byte;

        for (;;) {
                ssize_t n = recv(control, &byte, 1, 0);

                if (n == 0 || (n < 0 && errno != EINTR))
                        _exit(0);
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        ;
        }
}

static void keep_only(int a, int b) {
        int low = a < b ? a : b, high = a < b ? b : a;

        if (low > 0)
                (void) syscall(SYS_close_range, 0U, (unsigned) low - 1, 0U);
        if (high > low + 1)
                (void) syscall(SYS_close_range, (unsigned) low + 1, (unsigned) high - 1, 0U);
        (void) syscall(SYS_close_range, (unsigned) high + 1, ~0U, 0U);
}

static noreturn void first_process(const ContainerSpec *spec, int control, int output) {
        const char *step;
        pid_t command;
        int r;

        keep_only(control, output);
        if (!await_go(control))
                _exit(1);
        r = sandbox_enter(spec->hostname, spec->mounts, spec->n_mounts, &step);
        if (r < 0)
                report_state(control, CONTAINER_NO_ISOLATION, -r, step);
        if (r < 0 || !tie_to_parent(control))
                _exit(1);
        if (!spec->argv)
                report_state(control, CONTAINER_HOLDING, 0, NULL);
        else {
                command = fork();
                if (command == 0)
                        run_command(spec, control, output);
                (void) close(output);
                if (command < 0)
                        report_state(control, CONTAINER_NO_ISOLATION, errno, "starting a process");
                else
                        await_command(command, control);
        }
        hold_namespaces(control);
}

/* --- outside ---------------------------------------------------------------------------------- */

static pid_t clone_process(void) {
        struct clone_args args = {.flags = (unsigned) sandbox_clone_flags(), .exit_signal = SIGCHLD};

        return (pid_t) syscall(SYS_clone3, &args, sizeof args);
}

static void fail_step(Container *c, const char *step, int error) {
        c->state = CONTAINER_NO_ISOLATION;
        c->detail = error;
        (void) snprintf(c->step, sizeof c->step, "%s", step);
}

static void close_end(int *fd) {
        if (*fd >= 0)
                (void) close(*fd);
        *fd = -1;
}

static void stop_process(Container *c) {
        if (c->pid > 0) {
                (void) kill(c->pid, SIGKILL);
                while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        c->pid = 0;
}

static int start_process(Container *c, const ContainerSpec *spec) {
        _cleanup_close_ int control_in = -1, output_in = -1;
        int sockets[2], pipes[2];
        int r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return -errno;
        c->control = sockets[0];
        control_in = sockets[1];
        if (pipe2(pipes, O_CLOEXEC) < 0)
                return -errno;
        c->output = pipes[0];
        output_in = pipes[1];
        if (fcntl(c->output, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        c->pid = clone_process();
        if (c->pid == 0)
                first_process(spec, control_in, output_in);
        if (c->pid < 0) {
                c->pid = 0;
                fail_step(c, "new namespaces", errno);
                return 0;
        }
        r = sandbox_map_ids(c->pid);
        if (r < 0) {
                fail_step(c, "mapping its user", -r);
                stop_process(c);
                return 0;
        }
        return send(c->control, "", 1, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int container_new(const ContainerSpec *spec, Container **ret) {
        _cleanup_(container_freep) Container *c = calloc(1, sizeof *c);
        int r;

        if (!c)
                return -ENOMEM;
        c->control = c->output = -1;
        c->state = CONTAINER_RUNNING;
        r = start_process(c, spec);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

Container *container_free(Container *c) {
        if (!c)
                return NULL;
        stop_process(c);
        close_end(&c->control);
        close_end(&c->output);
        buf_done(&c->text);
        free(c);
        return NULL;
}

ContainerState container_state(const Container *c) {
        return c->state;
}

int container_detail(const Container *c) {
        return c->detail;
}

const char *container_failed_step(const Container *c) {
        return c->step;
}

const Buf *container_output(const Container *c) {
        return &c->text;
}

bool container_output_was_cut(const Container *c) {
        return c->cut;
}

/* Output over the bound is read and dropped, so that the command does not block on a full pipe. One
 * call reads no more than the largest pipe holds: a command that writes without end must not delay
 * the deadline. */
static void drain_output(Container *c) {
        enum { CHUNK = 16 * 1024, LARGEST_PIPE = 1024 * 1024 };
        char chunk[CHUNK];

        for (unsigned i = 0; i <= LARGEST_PIPE / CHUNK && c->output >= 0; i++) {
                ssize_t n = read(c->output, chunk, sizeof chunk);
                size_t room = CONTAINER_MAX_OUTPUT - c->text.len;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n <= 0) {
                        close_end(&c->output);
                        return;
                }
                if ((size_t) n > room)
                        c->cut = true;
                buf_append(&c->text, chunk, (size_t) n < room ? (size_t) n : room);
        }
}

/* Reads a report, and then the output: the command has written all of it before its end is
 * reported. */
static void read_control(Container *c) {
        Report message;
        ssize_t n = recv(c->control, &message, sizeof message, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n != (ssize_t) sizeof message) {
                close_end(&c->control);
                if (c->state == CONTAINER_RUNNING)
                        fail_step(c, "it ended unexpectedly", ECHILD);
        } else if (c->state == CONTAINER_RUNNING) {
                c->state = message.state;
                c->detail = message.detail;
                message.step[sizeof message.step - 1] = '\0';
                (void) snprintf(c->step, sizeof c->step, "%s", message.step);
        }
        drain_output(c);
}

static size_t watch_running(Container *const *list, size_t n, struct pollfd *fds) {
        size_t running = 0;

        for (size_t i = 0; i < n; i++) {
                bool open = list[i]->state == CONTAINER_RUNNING;

                fds[2 * i] = (struct pollfd){.fd = open ? list[i]->control : -1, .events = POLLIN};
                fds[2 * i + 1] = (struct pollfd){.fd = open ? list[i]->output : -1, .events = POLLIN};
                running += open;
        }
        return running;
}

static bool is_late(Container *c) {
        if (c->state == CONTAINER_RUNNING)
                read_control(c);
        return c->state == CONTAINER_RUNNING;
}

/* Waits for killed processes. One in a call that the driver does not answer ends only with the
 * driver; it is left for container_free(). */
static void await_end(Container *c, usec_t deadline) {
        while (c->pid > 0 && waitpid(c->pid, NULL, WNOHANG) == 0) {
                if (clock_monotonic_usec() >= deadline)
                        return;
                (void) poll(NULL, 0, 5);
        }
        c->pid = 0;
}

static void give_up(Container *const *list, size_t n) {
        usec_t deadline;

        for (size_t i = 0; i < n; i++)
                if (is_late(list[i])) {
                        (void) kill(list[i]->pid, SIGKILL);
                        list[i]->state = CONTAINER_TIMED_OUT;
                }
        deadline = clock_monotonic_usec() + PATIENCE_USEC;
        for (size_t i = 0; i < n; i++)
                if (list[i]->state == CONTAINER_TIMED_OUT) {
                        await_end(list[i], deadline);
                        drain_output(list[i]);
                }
}

int container_wait_all(Container *const *list, size_t n, usec_t deadline, bool stop_late) {
        _cleanup_free_ struct pollfd *fds = calloc(n > 0 ? 2 * n : 1, sizeof *fds);

        if (!fds)
                return -ENOMEM;
        while (watch_running(list, n, fds) > 0) {
                usec_t now = clock_monotonic_usec();
                int wait_msec = now < deadline ? (int) ((deadline - now + 999) / USEC_PER_MSEC) : 0;

                if (now >= deadline)
                        break;
                if (poll(fds, 2 * (nfds_t) n, wait_msec) < 0 && errno != EINTR)
                        return -errno;
                for (size_t i = 0; i < n; i++) {
                        if (fds[2 * i + 1].revents)
                                drain_output(list[i]);
                        if (fds[2 * i].revents)
                                read_control(list[i]);
                }
        }
        if (stop_late)
                give_up(list, n);
        for (size_t i = 0; i < n; i++) {
                int r = buf_result(&list[i]->text);

                if (r < 0)
                        return r;
        }
        return 0;
}
