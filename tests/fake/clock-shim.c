/* SPDX-License-Identifier: Apache-2.0 */

/* Clocks that jump, for LD_PRELOAD. The file CLOCK_SHIM_FILE has one or two numbers of seconds. The
 * first is how far CLOCK_REALTIME is off; the other clocks are left alone by it, as a clock that is
 * set leaves them alone. The second is how far the steady clocks, CLOCK_MONOTONIC and
 * CLOCK_BOOTTIME, are ahead; it must only grow.
 *
 * Timers of steady clocks that are armed before a jump end by the time of that moment. sd-event
 * looks for timers that are due whenever it wakes, so that a request makes a jump felt. */

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* The symbols of libc, under names of our own for the compiler. */
int shim_clock_gettime(clockid_t clock, struct timespec *ts) __asm__("clock_gettime");
int shim_gettimeofday(struct timeval *tv, void *zone) __asm__("gettimeofday");
time_t shim_time(time_t *ret) __asm__("time");
int shim_timerfd_create(int clock, int flags) __asm__("timerfd_create");
int shim_timerfd_settime(int fd, int flags, const struct itimerspec *new,
                         struct itimerspec *old) __asm__("timerfd_settime");

enum { FDS = 1024 };
static bool is_steady[FDS]; /* by descriptor: a timer of a steady clock */

typedef struct Offsets {
        time_t wall, steady;
} Offsets;

static Offsets offsets(void) {
        const char *path = getenv("CLOCK_SHIM_FILE");
        char text[64] = "", *rest = text;
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        Offsets found = {0, 0};

        if (fd < 0)
                return found;
        if (read(fd, text, sizeof text - 1) < 0)
                text[0] = '\0';
        (void) close(fd);
        found.wall = (time_t) strtoll(text, &rest, 10);
        found.steady = (time_t) strtoll(rest, NULL, 10);
        return found;
}

static bool clock_is_steady(clockid_t clock) {
        return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_MONOTONIC_RAW ||
               clock == CLOCK_BOOTTIME;
}

int shim_clock_gettime(clockid_t clock, struct timespec *ts) {
        long r = syscall(SYS_clock_gettime, clock, ts);

        if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
                ts->tv_sec += offsets().wall;
        if (r == 0 && clock_is_steady(clock))
                ts->tv_sec += offsets().steady;
        return (int) r;
}

int shim_gettimeofday(struct timeval *tv, void *zone) {
        struct timespec ts;
        int r = shim_clock_gettime(CLOCK_REALTIME, &ts);

        *tv = (struct timeval){ts.tv_sec, (suseconds_t) (ts.tv_nsec / 1000)};
        return r;
}

time_t shim_time(time_t *ret) {
        struct timespec ts;

        (void) shim_clock_gettime(CLOCK_REALTIME, &ts);
        if (ret)
                *ret = ts.tv_sec;
        return ts.tv_sec;
}

int shim_timerfd_create(int clock, int flags) {
        long fd = syscall(SYS_timerfd_create, clock, flags);

        if (fd >= 0 && fd < FDS)
                is_steady[fd] = clock_is_steady(clock);
        return (int) fd;
}

int shim_timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old) {
        struct itimerspec moved = *new;
        time_t ahead = offsets().steady;

        if ((flags & TFD_TIMER_ABSTIME) != 0 && fd >= 0 && fd < FDS && is_steady[fd] &&
            moved.it_value.tv_sec > 0)
                moved.it_value.tv_sec = moved.it_value.tv_sec > ahead ? moved.it_value.tv_sec - ahead : 1;
        return (int) syscall(SYS_timerfd_settime, fd, flags, &moved, old);
}
