/* SPDX-License-Identifier: Apache-2.0 */
#include "base/message.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A pipe whose reader is gone would end the program by SIGPIPE, which is taken back here. */
static void write_quietly(const char *line, size_t n) {
        const struct timespec now = {0};
        sigset_t pipe, pending, old;
        bool before;

        (void) sigemptyset(&pipe);
        (void) sigaddset(&pipe, SIGPIPE);
        (void) sigpending(&pending);
        before = sigismember(&pending, SIGPIPE) == 1;
        (void) pthread_sigmask(SIG_BLOCK, &pipe, &old);
        if (write(STDERR_FILENO, line, n) < 0 && !before)
                (void) sigtimedwait(&pipe, NULL, &now);
        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
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
                write_quietly(line, n);
}
