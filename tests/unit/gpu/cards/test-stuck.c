/* SPDX-License-Identifier: Apache-2.0 */

/* Children that SIGKILL does not end, because they are in a call of the driver's. No test can make
 * such a process, so the linker puts a waitpid() in front that does not report their end. */

#include <signal.h>
#include <sys/wait.h>

#include "gpu/cards/card_source.h"
#include "test.h"

pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
pid_t __real_fork(void);
pid_t __wrap_fork(void);

static bool stuck;
static unsigned forks;
static char last[sizeof((Fault *) NULL)->text];

pid_t __wrap_waitpid(pid_t pid, int *status, int options) {
        return stuck ? 0 : __real_waitpid(pid, status, options);
}

pid_t __wrap_fork(void) {
        forks++;
        return __real_fork();
}

static void on_cards(void *userdata, const CardList *cards) {
        TEST_FAIL_("cards without a driver");
}

static void on_trouble(void *userdata, const Fault *fault) {
        (void) snprintf(last, sizeof last, "%s", fault->text);
}

static void run_until(sd_event *event, const char *words, unsigned least_forks) {
        usec_t end = clock_monotonic_usec() + 300 * USEC_PER_SEC;

        while (!strstr(last, words) || forks < least_forks) {
                ASSERT_TRUE(sd_event_run(event, USEC_PER_SEC) >= 0);
                ASSERT_TRUE(clock_monotonic_usec() < end);
        }
}

static void only_so_many_are_left_behind(void) {
        static const CardSourceHandler handler = {on_cards, on_trouble};
        CardSourceOptions o = {.library = "/proc/self/absent", .backoff = USEC_PER_MSEC};
        sd_event *event;
        CardSource *s;

        ASSERT_TRUE(sd_event_new(&event) >= 0);
        stuck = true;
        ASSERT_OK(card_source_new(event, &o, &handler, NULL, &s));
        run_until(event, "4 processes cannot be ended", 4);
        for (int i = 0; i < 10; i++) {
                card_source_rescan(s);
                ASSERT_TRUE(sd_event_run(event, USEC_PER_SEC / 100) >= 0);
        }
        ASSERT_INT(forks, 4);
        stuck = false; /* the driver returns */
        run_until(event, "no NVIDIA driver", 5);
        card_source_free(s);
        sd_event_unref(event);
        while (waitpid(-1, NULL, 0) > 0)
                ;
}

int main(void) {
        return TEST_MAIN(TEST(only_so_many_are_left_behind));
}
