/* SPDX-License-Identifier: Apache-2.0 */

/* A statically linked program that executes commands from stdin, a line each, by raw system calls:
 * nothing can be interposed between it and the kernel. Used by tests/blackbox/sim.py.
 *
 *     rm-raw DIR            prints the address of its memory, then answers each line with one
 *     open NAME             a descriptor of DIR/NAME
 *     close FD
 *     ioctl FD REQUEST ADDRESS
 *     put ADDRESS HEX       writes bytes
 *     get ADDRESS LENGTH    shows them
 *     protect ADDRESS LENGTH PROT
 *     map FD FLAGS          the address at which one page of the file is mapped
 *     fork                  the pid of a child that has everything open and waits
 *     thread                another thread executes the rest
 *     leave                 the same, and the first thread ends
 *     send SOCKET FD, receive SOCKET
 *
 * Numbers are in the form of strtoull(). Answers are numbers, a negative errno, or bytes in hex. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sys.h"

enum { MEMORY = 1 << 20, LINE = 1 << 16, WORDS = 4 };

static const char *directory;

static long put_bytes(uint8_t *at, const char *hex) {
        for (; hex[0] && hex[1]; hex += 2) {
                char byte[3] = {hex[0], hex[1], 0};

                *at++ = (uint8_t) strtoul(byte, NULL, 16);
        }
        return 0;
}

static void get_bytes(const uint8_t *at, size_t n) {
        while (n-- > 0)
                (void) printf("%02x", *at++);
}

static long open_in(const char *name) {
        char path[512];

        (void) snprintf(path, sizeof path, "%s/%s", directory, name);
        return sys_call(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
}

static long send_fd(int socket, int fd) {
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control = {0};
        char byte = 'x';
        struct iovec one = {&byte, 1};
        struct msghdr m = {
                .msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};

        control.header = (struct cmsghdr){
                .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
        return sys_call(SYS_sendmsg, socket, &m, 0);
}

static long receive_fd(int socket) {
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control = {0};
        char byte;
        struct iovec one = {&byte, 1};
        struct msghdr m = {
                .msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        long r = sys_call(SYS_recvmsg, socket, &m, 0);
        int fd;

        if (r < 0)
                return r;
        memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
        return fd;
}

static long fork_child(void) {
        pid_t pid = fork();

        if (pid != 0)
                return pid;
        for (;;)
                (void) pause();
}

static uint64_t number(const char *text) {
        return text ? strtoull(text, NULL, 0) : 0;
}

static long obey(char *const words[WORDS]) {
        uint64_t a = number(words[1]), b = number(words[2]), c = number(words[3]);

        if (strcmp(words[0], "open") == 0)
                return open_in(words[1]);
        if (strcmp(words[0], "close") == 0)
                return sys_call(SYS_close, a);
        if (strcmp(words[0], "ioctl") == 0)
                return sys_call(SYS_ioctl, a, b, c);
        if (strcmp(words[0], "put") == 0)
                return put_bytes((uint8_t *) a, words[2] ? words[2] : "");
        if (strcmp(words[0], "protect") == 0)
                return sys_call(SYS_mprotect, a, b, c);
        if (strcmp(words[0], "map") == 0)
                return sys_call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, b, a, 0);
        if (strcmp(words[0], "fork") == 0)
                return fork_child();
        if (strcmp(words[0], "send") == 0)
                return send_fd((int) a, (int) b);
        if (strcmp(words[0], "receive") == 0)
                return receive_fd((int) a);
        return -ENOSYS;
}

static void *loop(void *unused) {
        static char line[LINE];

        while (fgets(line, sizeof line, stdin)) {
                char *words[WORDS] = {0}, *rest = line;
                int n = 0;

                line[strcspn(line, "\n")] = '\0';
                while (n < WORDS && (words[n] = strsep(&rest, " ")))
                        n++;
                if (strcmp(words[0], "thread") == 0 || strcmp(words[0], "leave") == 0) {
                        pthread_t thread;

                        (void) printf("%d\n", pthread_create(&thread, NULL, loop, NULL));
                        (void) fflush(stdout);
                        if (words[0][0] == 'l')
                                (void) sys_call(SYS_exit, 0);
                        (void) pthread_join(thread, NULL);
                        return NULL;
                }
                if (strcmp(words[0], "get") == 0)
                        get_bytes((const uint8_t *) number(words[1]), number(words[2]));
                else
                        (void) printf("%ld", obey(words));
                (void) putchar('\n');
                (void) fflush(stdout);
        }
        return NULL;
}

int main(int argc, char **argv) {
        void *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (argc != 2 || memory == MAP_FAILED)
                return 2;
        directory = argv[1];
        (void) printf("%lld\n", (long long) (uintptr_t) memory);
        (void) fflush(stdout);
        (void) loop(NULL);
        return 0;
}
