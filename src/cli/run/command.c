/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/locate.h"
#include "base/message.h"
#include "base/str.h"
#include "cli/run/gate_probe.h"

#define MIB (UINT64_C(1) << 20)

enum { OWNER_FD = 100 };

/* ---- the environment ---- */

typedef struct Variables {
        int (*set)(void *userdata, const char *name, const char *value);
        void *userdata;
        int r;
} Variables;

static void set_text(Variables *v, const char *name, const char *value) {
        if (v->r == 0)
                v->r = v->set(v->userdata, name, value);
}

static void set_number(Variables *v, const char *name, uint64_t value) {
        char text[24];

        (void) snprintf(text, sizeof text, "%llu", (unsigned long long) value);
        set_text(v, name, text);
}

static void list_cards(const Command *c, char ret[static SLICEDIR_CARDS_MAX * (SLICE_UUID + 1)]) {
        size_t at = 0;

        ret[0] = '\0';
        for (uint32_t i = 0; i < c->n_cards; i++)
                at += (size_t) snprintf(ret + at, SLICEDIR_CARDS_MAX * (SLICE_UUID + 1) - at, "%s%s",
                                        i > 0 ? "," : "", c->cards[i]->uuid);
}

int command_variables(const Command *c, int (*set)(void *userdata, const char *name, const char *value),
                      void *userdata) {
        Variables v = {.set = set, .userdata = userdata};
        char cards[SLICEDIR_CARDS_MAX * (SLICE_UUID + 1)];

        list_cards(c, cards);
        set_number(&v, "ALIYUN_COM_GPU_MEM_CONTAINER", c->request->mem);
        set_number(&v, "ALIYUN_COM_GPU_MEM_DEV", c->cards[0]->bytes / MIB / c->request->unit_mib);
        set_number(&v, "ALIYUN_COM_GPU_MEM_POD", c->request->mem * c->n_cards);
        set_text(&v, "ALIYUN_COM_GPU_MEM_UNIT", c->unit);
        set_text(&v, "NVIDIA_VISIBLE_DEVICES", cards);
        if (c->n_cards == 1)
                set_number(&v, "ALIYUN_COM_GPU_MEM_IDX", c->cards[0]->index);
        return v.r;
}

static int set_own(void *userdata, const char *name, const char *value) {
        (void) userdata;
        return setenv(name, value, 1) < 0 ? -ENOMEM : 0;
}

/* Puts the library before others in LD_PRELOAD. */
static int set_preload(const Command *c) {
        const char *others = getenv("LD_PRELOAD");
        _cleanup_free_ char *text = NULL;

        if (asprintf(&text, "%s%s%s", c->gate, others && others[0] ? ":" : "", others ? others : "") < 0)
                return -1;
        return setenv("LD_PRELOAD", text, 1);
}

static int set_environment(const Command *c) {
        char cards[SLICEDIR_CARDS_MAX * (SLICE_UUID + 1)];

        list_cards(c, cards);
        /* the other cards have no slice here, and calls on them are refused */
        return command_variables(c, set_own, NULL) < 0 || setenv("CUDA_VISIBLE_DEVICES", cards, 1) < 0 ||
                               set_preload(c) < 0 || setenv("ALIQUOT_SLICES", c->slices, 1) < 0
                       ? -ENOMEM
                       : 0;
}

/* ---- the process ---- */

static volatile sig_atomic_t child;

static void forward_signal(int signal) {
        if (child > 0)
                (void) kill((pid_t) child, signal);
}

static const int signals[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT};

typedef struct Signals {
        struct sigaction actions[ELEMENTSOF(signals)];
        sigset_t mask;
} Signals;

/* Passes signals on to the command. The terminal sends its own to the whole process group, and so
 * to the command as well. This process only has to survive them. */
static void redirect_signals(Signals *ret_old) {
        sigset_t all;

        (void) sigfillset(&all);
        /* blocked until there is a process to pass signals to */
        (void) sigprocmask(SIG_BLOCK, &all, &ret_old->mask);
        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                bool from_terminal = signals[i] == SIGINT || signals[i] == SIGQUIT;
                struct sigaction action = {.sa_flags = SA_RESTART};

                action.sa_handler = from_terminal ? SIG_IGN : forward_signal;
                (void) sigaction(signals[i], &action, &ret_old->actions[i]);
        }
}

static void restore_signals(const Signals *old) {
        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void) sigaction(signals[i], &old->actions[i], NULL);
        (void) sigprocmask(SIG_SETMASK, &old->mask, NULL);
}

/* Lets the command inherit the owner descriptor, away from the numbers that scripts use. A command
 * that closes it holds its slice only through the library, after its first driver call. */
static void inherit_owner(int owner) {
        if (fcntl(owner, F_DUPFD, OWNER_FD) < 0)
                (void) fcntl(owner, F_SETFD, 0); /* too few descriptors: it stays at its number */
}

/* Runs a program of a build tree, as aliquot-sample, which PATH does not have. */
static void exec_own_program(const Command *c) {
        char path[LOCATE_PATH];

        if (str_has_prefix(str_from(c->command[0]), STR("aliquot-")) && !strchr(c->command[0], '/') &&
            locate_file(c->command[0], path, sizeof path, NULL) == 0)
                (void) execv(path, c->command);
}

static _Noreturn void exec_command(const Command *c, const Signals *old) {
        int error;

        inherit_owner(c->owner);
        restore_signals(old);
        (void) execvp(c->command[0], c->command);
        error = errno;
        exec_own_program(
                c); /* whatever the errno is: one entry of PATH that may not be searched decides it */
        message_write("aliquot run: cannot run %s: %s", c->command[0][0] ? c->command[0] : "\"\"",
                      strerror(error));
        _exit(error == ENOENT ? 127 : 126);
}

static int wait_for(pid_t pid) {
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int enter_slice(const Command *c, Fault *fault) {
        int r = set_environment(c);

        return r < 0 ? fault_set(fault, r, "out of memory")
                     : gate_probe_run(c->gate, c->slices, c->devices, fault);
}

int command_run(const Command *c, Fault *fault) {
        int r = c->outside ? 0 : enter_slice(c, fault);
        Signals old;
        pid_t pid;

        if (r < 0)
                return r;
        redirect_signals(&old);
        pid = fork();
        if (pid < 0)
                return fault_set(fault, -errno, "cannot fork: %s", strerror(errno));
        if (pid == 0)
                exec_command(c, &old);
        child = pid;
        (void) sigprocmask(SIG_SETMASK, &old.mask, NULL);
        r = wait_for(pid);
        child = 0;
        restore_signals(&old); /* the run may wait for others */
        return r;
}
