/* SPDX-License-Identifier: Apache-2.0 */

/* A wall clock that jumps, for LD_PRELOAD: CLOCK_REALTIME is off by as many seconds as stand in the
 * file CLOCK_SHIM_FILE. The other clocks are left alone, as a clock that is set leaves them
 * alone. */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The symbols of libc, under names of our own for the compiler. */
int shim_clock_gettime(clockid_t clock, struct timespec *ts) __asm__("clock_gettime");
int shim_gettimeofday(struct timeval *tv, void *zone) __asm__("gettimeofday");
time_t shim_time(time_t *ret) __asm__("time");

static time_t offset(void) {
        const char *path = getenv("CLOCK_SHIM_FILE");
        char text[32] = "";
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

        if (fd < 0)
                return 0;
        if (read(fd, text, sizeof text - 1) < 0)
                text[0] = '\0';
        (void) close(fd);
        return (time_t) strtoll(text, NULL, 10);
}

int shim_clock_gettime(clockid_t clock, struct timespec *ts) {
        long r = syscall(SYS_clock_gettime, clock, ts);

        if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
                ts->tv_sec += offset();
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
