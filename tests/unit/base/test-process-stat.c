/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_stat.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static void states(void) {
        static const char *const stopped[] = {"7 (a) T 1 1\n", "7 (a) S) (b) t 1 1\n"};
        static const char *const others[] = {"",          ")",         ") ", "7 (T) S 1\n", "7 (a) T) R 1\n",
                                             "7 a T 1\n", "7 (a)T 1\n"};

        for (size_t i = 0; i < ELEMENTSOF(stopped); i++)
                ASSERT_TRUE(process_stat_parse_stopped(str_from(stopped[i])));
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                ASSERT_FALSE(process_stat_parse_stopped(str_from(others[i])));
}

static void tells_that_the_first_thread_has_ended(void) {
        siginfo_t info;
        pid_t pid;

        ASSERT_TRUE(process_stat_parse_ended(STR("7 (a) S) Z 1 1\n")));
        ASSERT_TRUE(process_stat_parse_ended(STR("7 (a) X 1 1\n")));
        ASSERT_FALSE(process_stat_parse_ended(STR("7 (a) Z) S 1 1\n")));
        ASSERT_FALSE(process_stat_parse_ended(STR("")));
        ASSERT_FALSE(process_stat_first_thread_has_ended("/proc", (uint32_t) getpid()));
        pid = fork();
        ASSERT_TRUE(pid >= 0);
        if (pid == 0)
                _exit(0);
        ASSERT_OK(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT));
        ASSERT_TRUE(process_stat_first_thread_has_ended("/proc", (uint32_t) pid));
        ASSERT_INT(waitpid(pid, NULL, 0), pid);
        ASSERT_FALSE(process_stat_first_thread_has_ended("/proc", (uint32_t) pid));
}

static bool starts_at(const char *text, uint64_t *ret) {
        return process_stat_parse_start_time(str_from(text), ret);
}

/* A process can choose any name. */
static void reads_the_start_time(void) {
        uint64_t start = 7, self = 0;

#define FIELDS "S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 "
        ASSERT_TRUE(starts_at("10 (python3) " FIELDS "8812 1 1\n", &start));
        ASSERT_INT(start, 8812);
        ASSERT_TRUE(starts_at("10 (a) S 1 1 (b) 2 3) " FIELDS "99 1\n", &start));
        ASSERT_INT(start, 99);
        for (size_t i = 0; i < 2; i++) {
                static const char *const none[] = {"", "10 python3 " FIELDS "8812 1\n"};

                ASSERT_TRUE(!starts_at(none[i], &start));
        }
        ASSERT_TRUE(!starts_at("10 (a) S 1 2 3", &start));
        ASSERT_TRUE(!starts_at("10 (a) " FIELDS "x 1", &start));
        ASSERT_INT(start, 99);
        ASSERT_TRUE(process_stat_start_time("/proc", (uint32_t) getpid(), &self) && self > 0);
        ASSERT_TRUE(!process_stat_start_time("/proc", 0, &self));
}

int main(void) {
        return TEST_MAIN(TEST(states), TEST(tells_that_the_first_thread_has_ended),
                         TEST(reads_the_start_time));
}
