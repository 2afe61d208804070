/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* A pipe as standard error. Returns its other end. */
static int as_log(int *ret_old) {
        int ends[2];

        *ret_old = dup(STDERR_FILENO);
        ASSERT_TRUE(*ret_old >= 0);
        ASSERT_OK(pipe2(ends, O_CLOEXEC));
        ASSERT_TRUE(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
        ASSERT_OK(close(ends[1]));
        return ends[0];
}

static void end_log(int end, int old) {
        ASSERT_TRUE(dup2(old, STDERR_FILENO) == STDERR_FILENO);
        ASSERT_OK(close(old));
        ASSERT_OK(close(end));
}

/* What the pipe has now. */
static size_t take(int end, char *text, size_t size) {
        size_t n = 0;
        ssize_t r;

        ASSERT_OK(fcntl(end, F_SETFL, O_NONBLOCK));
        while (n < size - 1 && (r = read(end, text + n, size - 1 - n)) > 0)
                n += (size_t) r;
        text[n] = '\0';
        return n;
}

/* The writer would wait for ever: the test is its only reader. */
static void a_full_pipe_takes_no_line(void) {
        static char text[1 << 20];
        int old, end = as_log(&old);

        for (unsigned i = 0; i < 150; i++) /* fewer than the limit of a second */
                log_info("%01000u", i);
        ASSERT_TRUE(take(end, text, sizeof text) <= 1 << 16);
        ASSERT_CONTAINS(text, " info 000");
        do { /* the next second's first line says it */
                log_info("again");
                (void) take(end, text, sizeof text);
        } while (!strstr(text, "log lines lost"));
        end_log(end, old);
}

/* Each of these bytes becomes six, and a pipe takes PIPE_BUF of them without waiting. */
static void an_object_is_cut_to_what_a_pipe_takes(void) {
        char text[2000], line[1 << 16];
        int old, end;
        size_t n;

        memset(text, '\x01', sizeof text - 1);
        text[sizeof text - 1] = '\0';
        log_set_json(true);
        end = as_log(&old);
        log_info("%s", text);
        n = take(end, line, sizeof line);
        log_set_json(false);
        end_log(end, old);
        ASSERT_TRUE(n > PIPE_BUF / 4 && n <= PIPE_BUF);
        ASSERT_TEXT(line + n - 3, "\"}\n");
}

int main(void) {
        return TEST_MAIN(TEST(a_full_pipe_takes_no_line), TEST(an_object_is_cut_to_what_a_pipe_takes));
}
