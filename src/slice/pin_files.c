/* SPDX-License-Identifier: Apache-2.0 */
#include "slice/pin_files.h"

#include <errno.h>
#include <fcntl.h>

#include "base/sys.h"

void pin_files_fd_path(const char *prefix, int fd, char ret[static PIN_FD_PATH]) {
        unsigned number = (unsigned) fd;
        char digits[10];
        size_t n = 0, at = 0;

        for (; prefix[at] != '\0'; at++)
                ret[at] = prefix[at];
        do
                digits[n++] = (char) ('0' + number % 10);
        while ((number /= 10) > 0);
        while (n > 0)
                ret[at++] = digits[--n];
        ret[at] = '\0';
}

int pin_files_path(int fd, char ret[static PIN_PATH]) {
        char link[PIN_FD_PATH];
        long n;

        if (fd < 0)
                return -EBADF;
        pin_files_fd_path("/proc/self/fd/", fd, link);
        n = sys_call(SYS_readlinkat, AT_FDCWD, link, ret, PIN_PATH);
        if (n < 0)
                return (int) n;
        if (n == PIN_PATH)
                return -ENAMETOOLONG;
        ret[n] = '\0';
        return 0;
}

/* O_NONBLOCK, because opening another kind of file, such as a FIFO, may block. */
int pin_files_open(const char *path) {
        return (int) sys_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
}

/* Replaces the last name of the path. */
static int name_beside(const char *name, char path[static PIN_PATH]) {
        size_t n = 0;

        for (size_t i = 0; path[i] != '\0'; i++)
                if (path[i] == '/')
                        n = i + 1;
        for (size_t i = 0; n < PIN_PATH; i++, n++) {
                path[n] = name[i];
                if (name[i] == '\0')
                        return 0;
        }
        return -ENAMETOOLONG;
}

int pin_files_get(PinFiles *files, PinFileKind kind) {
        static const char *const names[] = {[PIN_RM] = "nvidiactl", [PIN_UVM] = "nvidia-uvm"};
        char path[PIN_PATH];
        int fd = -1;

        if (files->opened[kind] != -1)
                return files->opened[kind];
        if (pin_files_path(files->file, path) == 0 && name_beside(names[kind], path) == 0)
                fd = pin_files_open(path);
        if (fd < 0)
                fd = pin_files_open(kind == PIN_RM ? "/dev/nvidiactl" : "/dev/nvidia-uvm");
        files->opened[kind] = fd < 0 ? -2 : fd;
        return files->opened[kind];
}

void pin_files_close(PinFiles *files) {
        for (PinFileKind kind = PIN_RM; kind < PIN_OTHER; kind++)
                if (files->opened[kind] >= 0)
                        (void) sys_call(SYS_close, files->opened[kind]);
}
