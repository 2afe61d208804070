/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FD_FIRST = 900 }; /* above what programs close or count on */

/* A descriptor of the file, opened once; -1: there is none. */
static int trace_file(void) {
        static int file = -2;
        const char *path;
        long fd;

        if (file != -2)
                return file;
        path = getenv("NATIVE_TRACE");
        fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
        file = fd < 0 ? -1 : (int) syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_FIRST);
        if (fd >= 0)
                (void) syscall(SYS_close, fd); /* the copy stays */
        return file;
}

void trace(const char *format, ...) {
        int error = errno, file = trace_file(), n;
        char line[512];
        va_list more;

        if (file >= 0) {
                va_start(more, format);
                n = vsnprintf(line, sizeof line - 1, format, more);
                va_end(more);
                n = n < (int) sizeof line - 1 ? n : (int) sizeof line - 2;
                line[n] = '\n';
                (void) !write(file, line, (size_t) n + 1); /* a trace may be lost, the program goes on */
        }
        errno = error;
}
