/* SPDX-License-Identifier: Apache-2.0 */
#include "node/supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"

#define SHORT_LIFE  (1 * USEC_PER_SEC)
#define PAUSE_FIRST (10 * USEC_PER_MSEC)
#define PAUSE_MAX   (10 * USEC_PER_SEC)

enum { FAST_STARTS = 16 }; /* short lives in a row before restarts are delayed */

enum { EXIT_BROKEN = 3 };

static void (*on_other)(void *userdata, pid_t pid);

void supervise_on_other_child(void (*ended)(void *userdata, pid_t pid)) {
        on_other = ended;
}

static pid_t start(SupervisedMain run, void *userdata, const sigset_t *before) {
        pid_t parent = getpid(), child = fork();

        if (child != 0)
                return child;
        (void) sigprocmask(SIG_SETMASK, before, NULL); /* cannot fail with this set */
        /* SIGKILL and not SIGTERM: another supervisor may start the next agent at once. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(EXIT_BROKEN);
        _exit(run(userdata));
}

/* Waits for the child's end and forwards SIGTERM and SIGINT to it. Returns its wait status, or
 * -1. */
static int wait_for(pid_t child, const sigset_t *signals, void *userdata, bool *ret_asked) {
        for (;;) {
                siginfo_t info;
                int status, signal;
                pid_t ended;

                /* Reaps first: other children may have ended before this call. */
                while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
                        if (ended == child)
                                return status;
                        if (on_other)
                                on_other(userdata, ended);
                }
                if (ended < 0 && errno == ECHILD)
                        return -1;
                signal = sigwaitinfo(signals, &info);
                if (signal == SIGTERM || signal == SIGINT) {
                        *ret_asked = true;
                        (void) kill(child, signal); /* it may have ended already */
                }
        }
}

static usec_t pause_before(usec_t life, unsigned *short_lives) {
        usec_t pause = PAUSE_FIRST;

        if (life >= SHORT_LIFE) {
                *short_lives = 0;
                return 0;
        }
        for (unsigned i = FAST_STARTS; i < *short_lives && pause < PAUSE_MAX; i++)
                pause *= 2;
        ++*short_lives;
        return pause > PAUSE_MAX ? PAUSE_MAX : pause;
}

/* Returns false when SIGTERM or SIGINT comes meanwhile. */
static bool pause_for(usec_t pause, const sigset_t *signals) {
        struct timespec ts = {.tv_sec = (time_t) (pause / USEC_PER_SEC),
                              .tv_nsec = (long) (pause % USEC_PER_SEC * NSEC_PER_USEC)};
        int signal = pause > 0 ? sigtimedwait(signals, NULL, &ts) : 0;

        return signal != SIGTERM && signal != SIGINT;
}

int supervise(SupervisedMain run, void *userdata) {
        sigset_t signals, before;
        unsigned short_lives = 0;
        usec_t pause;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigaddset(&signals, SIGINT);
        (void) sigaddset(&signals, SIGCHLD);
        if (sigprocmask(SIG_BLOCK, &signals, &before) < 0)
                return EXIT_BROKEN;
        for (;;) {
                usec_t began = clock_monotonic_usec();
                pid_t child = start(run, userdata, &before);
                bool asked = false;
                int status;

                if (child < 0) {
                        log_error("cannot start the agent: %s", strerror(errno));
                        return EXIT_BROKEN;
                }
                status = wait_for(child, &signals, userdata, &asked);
                if (status != -1 && WIFEXITED(status))
                        return WEXITSTATUS(status);
                if (asked)
                        return 128 + (status != -1 ? WTERMSIG(status) : 0);
                pause = pause_before(clock_monotonic_usec() - began, &short_lives);
                log_error("the agent was ended by signal %d: started again in %llu ms",
                          status != -1 ? WTERMSIG(status) : 0, (unsigned long long) (pause / USEC_PER_MSEC));
                if (!pause_for(pause, &signals))
                        return 0;
        }
}
