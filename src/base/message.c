/* SPDX-License-Identifier: Apache-2.0 */
#include "base/message.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* As write(2), but without SIGPIPE, which would end the program: it is blocked, and consumed if the
 * write raised it. */
static ssize_t write_quietly(const char *line, size_t n) {
        const struct timespec now = {0};
        sigset_t pipe, pending, old;
        ssize_t written;
        bool before;
        int error;

        (void) sigemptyset(&pipe);
        (void) sigaddset(&pipe, SIGPIPE);
        (void) sigpending(&pending);
        before = sigismember(&pending, SIGPIPE) == 1;
        (void) pthread_sigmask(SIG_BLOCK, &pipe, &old);
        written = write(STDERR_FILENO, line, n);
        error = errno;
        if (written < 0 && error == EPIPE && !before)
                (void) sigtimedwait(&pipe, NULL, &now);
        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
        errno = error;
        return written;
}

enum { WAIT_MS = 1000 };

/* What the guard lost, and whether the reader is still taken for one that does not read. */
static struct {
        size_t lost;
        bool is_stuck;
} guard_state;

/* Whether a write waits for a reader: pipes and sockets. A terminal that is held by Ctrl-S waits
 * for its user. */
static bool has_reader(void) {
        struct stat st;

        return fstat(STDERR_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* False: nothing was read for WAIT_MS, and the next call does not wait. */
static bool wait_for_room(void) {
        struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
        int r;

        do
                r = poll(&fd, 1, guard_state.is_stuck ? 0 : WAIT_MS);
        while (r < 0 && errno == EINTR);
        guard_state.is_stuck = r == 0;
        return !guard_state.is_stuck;
}

/* Writes at most `n` bytes, and not more than a pipe that poll(2) reports as writable takes at once
 * (pipe(7)). Returns 0 where the text must be given up. */
static size_t write_piece(const char *text, size_t n, bool waits) {
        struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

        for (;;) {
                ssize_t written = -1;

                if (waits && !wait_for_room())
                        return 0;
                written = write_quietly(text, waits && n > PIPE_BUF ? PIPE_BUF : n);
                if (written > 0)
                        return (size_t) written;
                if (written == 0 || (errno != EAGAIN && errno != EINTR))
                        return 0;
                if (errno == EAGAIN && !waits)
                        (void) poll(&fd, 1, -1); /* another program made the terminal non-blocking */
        }
}

/* The first text after a loss begins with a line about it. */
static bool tell_loss(bool waits) {
        char line[80];
        int n = snprintf(line, sizeof line, "(%zu bytes of messages were lost: nothing read them)\n",
                         guard_state.lost);

        if (guard_state.lost == 0)
                return true;
        if (write_piece(line, (size_t) n, waits) == 0)
                return false;
        guard_state.lost = 0;
        return true;
}

/* For fopencookie(3). Reports all bytes as written, also those that standard error did not take. */
static ssize_t write_all(void *userdata, const char *text, size_t n) {
        bool waits = has_reader(), goes_on = tell_loss(waits);
        size_t done = 0;

        while (goes_on && done < n) {
                size_t written = write_piece(text + done, n - done, waits);

                goes_on = written > 0;
                done += written;
        }
        guard_state.lost += n - done;
        return (ssize_t) n;
}

void message_guard(void) {
        FILE *guarded = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_all});

        if (!guarded)
                return;
        (void) setvbuf(guarded, NULL, _IONBF, 0);
        stderr = guarded;
}

void message_write(const char *format, ...) {
        struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
        char line[MESSAGE_MAX + 1];
        va_list arguments;
        size_t n;

        va_start(arguments, format);
        (void) vsnprintf(line, MESSAGE_MAX, format, arguments);
        va_end(arguments);
        n = strlen(line);
        line[n++] = '\n';
        /* a pipe that can be written takes PIPE_BUF bytes at once (pipe(7)), more than a line */
        if (poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0)
                (void) write_quietly(line, n);
}
