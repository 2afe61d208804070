/* SPDX-License-Identifier: Apache-2.0 */
#include "base/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { LONG = 1 << 20 };

/* What a test reads, in one text. */
static char taken[2 * LONG];

static void fill(int fd) {
        char some[4096];

        memset(some, 'x', sizeof some);
        ASSERT_OK(fcntl(fd, F_SETFL, O_NONBLOCK));
        while (write(fd, some, sizeof some) > 0)
                ;
        ASSERT_TRUE(errno == EAGAIN);
        ASSERT_OK(fcntl(fd, F_SETFL, 0));
}

/* Runs the function in a child with the descriptor as standard error. */
static pid_t run_with(int fd, int other, void (*function)(int other)) {
        pid_t pid = fork();

        ASSERT_TRUE(pid >= 0);
        if (pid > 0)
                return pid;
        if (dup2(fd, STDERR_FILENO) < 0 || close(fd) < 0)
                _exit(1);
        message_guard();
        function(other);
        _exit(0);
}

static void ends_well(pid_t pid) {
        int status;

        ASSERT_TRUE(waitpid(pid, &status, 0) == pid);
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void drain(int fd) {
        if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                _exit(2);
        while (read(fd, taken, sizeof taken) > 0)
                ;
}

/* Two texts are lost, one has room again, and the last one has no loss before it. */
static void write_and_lose(int reader) {
        if (fputs("lost\n", stderr) < 0 || fprintf(stderr, "%s %d\n", "lost", 2) != 7)
                _exit(3);
        drain(reader);
        (void) fputs("there\n", stderr);
        (void) fputs("and here\n", stderr);
}

static void what_is_not_read_is_lost_and_said(void) {
        int ends[2];
        ssize_t n;

        ASSERT_OK(pipe(ends));
        fill(ends[1]);
        ends_well(run_with(ends[1], ends[0], write_and_lose));
        n = read(ends[0], taken, sizeof taken - 1);
        ASSERT_TRUE(n > 0);
        taken[n] = '\0';
        ASSERT_TEXT(taken, "(12 bytes of messages were lost: nothing read them)\nthere\nand here\n");
        ASSERT_OK(close(ends[0]));
        ASSERT_OK(close(ends[1]));
}

static void write_long(int other) {
        char *text = malloc(LONG + 1);

        if (!text || (other >= 0 && close(other) < 0))
                _exit(1);
        memset(text, 'y', LONG);
        text[LONG] = '\0';
        (void) fputs(text, stderr);
        free(text);
}

static void a_text_that_is_read_arrives_whole(void) {
        for (int is_socket = 0; is_socket < 2; is_socket++) {
                size_t n = 0;
                int ends[2];
                ssize_t r;
                pid_t pid;

                ASSERT_OK(is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends));
                pid = run_with(ends[1], ends[0], write_long);
                ASSERT_OK(close(ends[1]));
                while ((r = read(ends[0], taken + n, sizeof taken - n)) > 0)
                        n += (size_t) r;
                ends_well(pid);
                ASSERT_TRUE(n == LONG && memchr(taken, 'x', n) == NULL);
                ASSERT_OK(close(ends[0]));
        }
}

static void a_socket_that_is_full_does_not_hold_up(void) {
        int ends[2];

        ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
        ends_well(run_with(ends[1], -1, write_long));
        ASSERT_OK(close(ends[0]));
        ASSERT_OK(close(ends[1]));
}

/* The reader is gone: no signal ends the program. */
static void a_pipe_without_a_reader_ends_nothing(void) {
        int ends[2];

        ASSERT_OK(pipe(ends));
        ASSERT_OK(close(ends[0]));
        ends_well(run_with(ends[1], -1, write_long));
        ASSERT_OK(close(ends[1]));
}

int main(void) {
        return TEST_MAIN(TEST(what_is_not_read_is_lost_and_said), TEST(a_text_that_is_read_arrives_whole),
                         TEST(a_socket_that_is_full_does_not_hold_up),
                         TEST(a_pipe_without_a_reader_ends_nothing));
}
