/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/smi_cards.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/run/programs.h"

typedef struct Answer {
        int result;
        HostCards cards;
        Fault fault;
} Answer;

static void answer(const char *devices, const char *library, int fd) {
        static Answer a;
        const char *at = (const char *) &a;

        a.result = host_cards_read(devices, library, &a.cards, &a.fault);
        for (size_t left = sizeof a; left > 0;) {
                ssize_t n = write(fd, at + (sizeof a - left), left);

                if (n <= 0)
                        _exit(1);
                left -= (size_t) n;
        }
        _exit(0);
}

/* Returns whether the whole answer came in time. */
static bool wait_for(int fd, Answer *ret) {
        uint64_t end = clock_monotonic_usec() + SMI_CARDS_MSEC * USEC_PER_MSEC;
        size_t got = 0;

        while (got < sizeof *ret) {
                struct pollfd p = {.fd = fd, .events = POLLIN};
                uint64_t now = clock_monotonic_usec();
                ssize_t n;

                if (now >= end)
                        return false;
                if (poll(&p, 1, (int) ((end - now) / USEC_PER_MSEC) + 1) < 0 && errno != EINTR)
                        return false;
                n = p.revents ? read(fd, (char *) ret + got, sizeof *ret - got) : -1;
                if (n == 0)
                        return false;
                got += n > 0 ? (size_t) n : 0;
        }
        return true;
}

static int ask(const char *devices, const char *library, Answer *ret, Fault *fault) {
        int ends[2];
        bool good;
        pid_t child;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return fault_set(fault, -errno, "pipe: %s", strerror(errno));
        child = fork();
        if (child == 0)
                answer(devices, library, ends[1]);
        (void) close(ends[1]);
        if (child < 0) {
                (void) close(ends[0]);
                return fault_set(fault, -errno, "fork: %s", strerror(errno));
        }
        good = wait_for(ends[0], ret);
        (void) close(ends[0]);
        (void) kill(child, SIGKILL);
        /* a process that hangs in the driver does not end, and is not waited for */
        (void) waitpid(child, NULL, good ? 0 : WNOHANG);
        return good ? 0
                    : fault_set(fault, HOST_CARDS_E_NONE, "the driver does not answer within %d seconds",
                                SMI_CARDS_MSEC / 1000);
}

int smi_cards_read(HostCards *ret, Fault *fault) {
        /* the simulator's libraries use the same variable */
        const char *named = secure_getenv("ALIQUOT_SIM_DIR");
        const char *devices = named && named[0] != '\0' ? named : "/dev";
        static Answer a;
        char path[512], library[LOCATE_PATH];
        int r;

        if ((size_t) snprintf(path, sizeof path, "%s/nvidiactl", devices) < sizeof path &&
            access(path, F_OK) < 0)
                return fault_set(fault, HOST_CARDS_E_NONE, "%s is not there: no NVIDIA driver is loaded",
                                 path);
        r = ask(devices, programs_find_simulated(named, library), &a, fault);
        if (r != 0)
                return r;
        if (a.result != 0)
                return fault_set(fault, a.result, "%s", a.fault.text);
        *ret = a.cards;
        return 0;
}
