/* SPDX-License-Identifier: Apache-2.0 */
#include "base/message.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

/* For fopencookie(3). Reports all bytes as written, also those that standard error refused. */
static ssize_t write_all(void *userdata, const char *text, size_t n) {
        struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

        for (size_t done = 0; done < n;) {
                ssize_t written = write_quietly(text + done, n - done);

                if (written >= 0)
                        done += (size_t) written;
                else if (errno == EAGAIN)
                        (void) poll(&fd, 1, -1); /* another program made it non-blocking */
                else if (errno != EINTR)
                        break;
        }
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
