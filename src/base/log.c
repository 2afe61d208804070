/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

enum { LINES_PER_SECOND = 200 };

/* The only global state: every line goes to the same place, whichever function writes it. Only one
 * thread writes. */
static struct {
        LogLevel level;
        time_t second;
        unsigned lines, lost;
} log_state = {.level = LOG_LEVEL_INFO};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

void log_set_level(LogLevel level) {
        log_state.level = level;
}

LogLevel log_get_level(void) {
        return log_state.level;
}

/* Limits the rate, so that a noisy peer cannot fill the disk. */
static bool log_allowed(time_t now) {
        if (now != log_state.second) {
                if (log_state.lost > 0)
                        (void) dprintf(STDERR_FILENO, "%u log lines lost\n", log_state.lost);
                log_state.second = now;
                log_state.lines = log_state.lost = 0;
        }
        if (log_state.lines >= LINES_PER_SECOND) {
                log_state.lost++;
                return false;
        }
        log_state.lines++;
        return true;
}

void log_write(LogLevel level, const char *format, ...) {
        char line[2048];
        struct timespec now;
        struct tm utc;
        va_list args;
        size_t n;
        int k;

        if (level > log_state.level)
                return;
        (void) clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
        if (!log_allowed(now.tv_sec) || !gmtime_r(&now.tv_sec, &utc))
                return;
        n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &utc);
        n += (size_t) snprintf(line + n, sizeof line - n, ".%03ldZ %s ", now.tv_nsec / 1000000,
                               level_names[level]);
        va_start(args, format);
        k = vsnprintf(line + n, sizeof line - n - 1, format, args);
        va_end(args);
        if (k < 0)
                return;
        n = strnlen(line, sizeof line - 2);
        line[n++] = '\n';
        (void) !write(STDERR_FILENO, line, n); /* nothing can be done when stderr is closed */
}
