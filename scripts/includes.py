#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file includes the system header of what it uses, itself or through headers of ours. What other system headers a system header
brings along differs between versions of the C library."""
import fnmatch
import os
import re
import subprocess
import sys

# Names, name() for calls, and the headers of which one is enough.
TABLE = [
    ("AT_EMPTY_PATH AT_FDCWD AT_SYMLINK_* AT_REMOVEDIR O_???* F_GET* F_SET* F_OFD_* F_ADD_* F_DUPFD* FD_CLOEXEC open() openat() fcntl() fallocate()",
     "fcntl.h"),
    ("STATX_* S_IS*() S_IF* stat() fstat() lstat() fstatat() statx() mkdir() mkdirat() chmod() fchmod() umask() futimens()", "sys/stat.h"),
    ("memcpy() memmove() memset() memcmp() memchr() memmem() strlen() strcmp() strncmp() strchr() strrchr() strstr() strdup() strndup() strerror()",
     "string.h"),
    ("strcasecmp() strncasecmp()", "strings.h"),
    ("malloc() calloc() realloc() free() getenv() setenv() strtol() strtoul() strtoull() qsort() bsearch() mkdtemp() mkstemp() exit() EXIT_*", "stdlib.h"),
    ("F_OK R_OK X_OK close() unlink() unlinkat() fork() execve() execvp() getpid() getuid() geteuid() dup2() pipe2() ftruncate() readlink() symlink() "
     "access() sysconf() _exit() syscall() lseek() STDIN_FILENO STDOUT_FILENO STDERR_FILENO _SC_*", "unistd.h"),
    ("printf() fprintf() snprintf() vsnprintf() puts() fputs() fopen() fclose() FILE stdin stdout stderr rename()", "stdio.h"),
    ("errno EINVAL ENOENT EEXIST EINTR EAGAIN EPERM EACCES ENOMEM EIO EBUSY ERANGE ENOSYS EPIPE ESRCH ENOTDIR ENOSPC", "errno.h"),
    ("INT*_MAX INT*_C() UINT*_MAX UINT*_C() SIZE_MAX int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t intptr_t",
     "stdint.h inttypes.h"),
    ("PRI[diux]* strtoimax() strtoumax()", "inttypes.h"),
    ("INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX LLONG_MAX ULLONG_MAX CHAR_BIT PATH_MAX NAME_MAX IOV_MAX", "limits.h"),
    ("bool", "stdbool.h"),
    ("offsetof()", "stddef.h"),
    ("va_list va_start()", "stdarg.h"),
    ("assert()", "assert.h"),
    ("isdigit() isalpha() isalnum() isspace() isxdigit() isprint() toupper() tolower()", "ctype.h"),
    ("major() minor() makedev()", "sys/sysmacros.h"),
    ("SYS_*", "sys/syscall.h"),
    ("clock_gettime() nanosleep() gmtime_r() localtime_r() strftime() CLOCK_REALTIME CLOCK_MONOTONIC CLOCK_BOOTTIME", "time.h"),
    ("sigaction() raise() sigemptyset() pthread_sigmask() SIGTERM SIGKILL SIGINT SIGCHLD SIGPIPE SIGSEGV sigset_t", "signal.h"),
    ("pthread_create() pthread_mutex_*() pthread_t PTHREAD_*", "pthread.h"),
    ("mmap() munmap() mprotect() madvise() memfd_create() MAP_SHARED MAP_PRIVATE MAP_FAILED PROT_READ MFD_*", "sys/mman.h"),
    ("socket() sendmsg() recvmsg() setsockopt() getsockopt() socketpair() AF_UNIX AF_INET AF_INET6 SOCK_* SOL_SOCKET MSG_* SCM_*", "sys/socket.h"),
    ("waitpid() WIFEXITED() WIFSIGNALED() WEXITSTATUS() WTERMSIG() WNOHANG", "sys/wait.h"),
    ("umount2() MS_* MNT_DETACH", "sys/mount.h"),
    ("unshare() setns() sched_yield() CLONE_NEW*", "sched.h"),
    ("prctl() PR_SET_* PR_GET_* PR_CAP*", "sys/prctl.h"),
    ("epoll_*() EPOLLIN EPOLLOUT EPOLLHUP EPOLLERR EPOLL_*", "sys/epoll.h"),
    ("inotify_*()", "sys/inotify.h"),
    ("timerfd_*()", "sys/timerfd.h"),
    ("signalfd()", "sys/signalfd.h"),
    ("eventfd()", "sys/eventfd.h"),
    ("poll() POLLIN POLLOUT POLLHUP", "poll.h"),
    ("ioctl() _IOWR()", "sys/ioctl.h linux/ioctl.h"),
    ("getrlimit() setrlimit() prlimit() getrusage() RLIMIT_* RLIM_INFINITY", "sys/resource.h"),
    ("opendir() fdopendir() readdir() closedir() DT_DIR DT_REG DT_LNK", "dirent.h"),
    ("dlopen() dlsym() dladdr() RTLD_*", "dlfcn.h"),
    ("dl_iterate_phdr() ElfW()", "link.h"),
    ("flock() LOCK_EX LOCK_SH LOCK_NB", "sys/file.h"),
    ("statfs() fstatfs()", "sys/vfs.h sys/statfs.h"),
    ("readv() writev() preadv() pwritev()", "sys/uio.h"),
    ("getrandom()", "sys/random.h"),
    ("FUTEX_*", "linux/futex.h"),
    ("TCP_NODELAY TCP_USER_TIMEOUT", "netinet/tcp.h linux/tcp.h"),
    ("struct?stat struct?statx", "sys/stat.h"),
    ("struct?timespec struct?tm", "time.h"),
    ("struct?iovec", "sys/uio.h sys/socket.h"),
    ("struct?sockaddr struct?msghdr struct?ucred", "sys/socket.h"),
    ("struct?sockaddr_in struct?sockaddr_in6", "netinet/in.h"),
    ("struct?sockaddr_un", "sys/un.h"),
]
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]+([<\"])([^>\"]+)[>\"]", re.MULTILINE)
SKIPPED = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|^[ \t]*#[ \t]*include[^\n]*", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"(?<![\w.>])(?:struct )?[A-Za-z_]\w*\(?")
DECLARED = re.compile(r"^(?:[a-z_][\w *]*?\b(\w+\()|(struct \w+);)", re.MULTILINE)
RULES = [(re.compile("|".join(fnmatch.translate(name.replace("()", "(")) for name in names.split())), headers.split()) for names, headers in TABLE]


class Files:
    def __init__(self, paths):
        self.text, self.headers = {}, {}
        for path in paths:
            with open(path, encoding="utf-8") as f:
                self.text[path] = f.read()

    def ours(self, path, name):
        for folder in (os.path.dirname(path), "src", ".", "tests/unit"):
            other = os.path.normpath(os.path.join(folder, name))
            if other in self.text:
                return other
        return None

    def system(self, path):
        """The system headers that a file includes, itself or through headers of ours."""
        if path not in self.headers:
            self.headers[path] = found = set()  # known from now on, which ends a circle
            for kind, name in INCLUDE.findall(self.text[path]):
                other = self.ours(path, name) if kind == '"' else None
                found |= self.system(other) if other else {name}
        return self.headers[path]

    def faults(self, path):
        text = SKIPPED.sub(lambda m: "\n" * m[0].count("\n") + " ", self.text[path])
        names = {}
        for match in NAME.finditer(text):
            names.setdefault(match[0], match.start())
        for match in DECLARED.finditer(text):  # by the file itself
            names.pop(match[1] or match[2], None)
        for rule, headers in RULES:
            if not self.system(path) & set(headers):
                for name, at in names.items():
                    if rule.fullmatch(name):
                        yield f"{path}:{text.count(chr(10), 0, at) + 1}: {name.rstrip('(')} is used without <{headers[0]}>"
                        break


def main():
    paths = subprocess.run([os.path.join(os.path.dirname(__file__), "sources.sh"), "c", "h"], check=True, stdout=subprocess.PIPE,
                           text=True).stdout.split()
    files = Files(paths)
    faults = [fault for path in paths for fault in files.faults(path)]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
