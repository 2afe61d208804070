/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/log_json.h"

enum { LINES_PER_SECOND = 200, TEXT_MAX = 2048 };

/* The only global state: every line goes to the same place, whichever function writes it. Only one
 * thread writes. */
static struct {
        LogLevel level;
        bool json;
        time_t second;
        unsigned lines, lost;
} log_state = {.level = LOG_LEVEL_INFO};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

void log_set_level(LogLevel level) {
        log_state.level = level;
}

void log_set_json(bool json) {
        log_state.json = json;
}

/* Whether a line can be written without waiting: a pipe that poll(2) reports as writable takes
 * PIPE_BUF bytes at once (pipe(7)). */
static bool can_write(void) {
        struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

        return poll(&fd, 1, 0) == 1;
}

/* Returns false where the write would have to wait for the log's reader. Halves the text of a JSON
 * object until the line fits PIPE_BUF. */
static bool write_line(const struct timespec *now, LogLevel level, char *text) {
        char line[LOG_JSON_SIZE(TEXT_MAX) + 64], stamp[sizeof "2026-11-21T08:00:00.123Z"];
        struct tm utc;
        size_t n;

        if (!can_write())
                return false;
        if (!gmtime_r(&now->tv_sec, &utc))
                return true;
        n = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
        (void) snprintf(stamp + n, sizeof stamp - n, ".%03uZ", (unsigned) (now->tv_nsec / 1000000) % 1000);
        while (log_state.json &&
               (n = log_json_format(line, sizeof line, stamp, level_names[level], text)) > PIPE_BUF)
                text[strlen(text) / 2] = '\0';
        if (!log_state.json)
                n = (size_t) snprintf(line, sizeof line, "%s %s %s\n", stamp, level_names[level], text);
        (void) !write(STDERR_FILENO, line, n); /* nothing can be done when stderr is closed */
        return true;
}

/* Limits the rate: a noisy peer cannot fill the disk. `lost` also counts lines that standard error
 * could not take. */
static bool log_allowed(const struct timespec *now) {
        if (now->tv_sec != log_state.second) {
                unsigned lost = log_state.lost;
                char text[48];

                log_state.second = now->tv_sec;
                log_state.lines = 0;
                (void) snprintf(text, sizeof text, "%u log lines lost", lost);
                if (lost > 0 && write_line(now, LOG_LEVEL_WARNING, text))
                        log_state.lost = 0;
        }
        if (log_state.lines >= LINES_PER_SECOND) {
                log_state.lost++;
                return false;
        }
        log_state.lines++;
        return true;
}

void log_write(LogLevel level, const char *format, ...) {
        char text[TEXT_MAX];
        struct timespec now;
        va_list args;
        int k;

        if (level > log_state.level)
                return;
        (void) clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
        if (!log_allowed(&now))
                return;
        va_start(args, format);
        k = vsnprintf(text, sizeof text, format, args);
        va_end(args);
        if (k >= 0 && !write_line(&now, level, text))
                log_state.lost++;
}
