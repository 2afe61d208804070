/* SPDX-License-Identifier: Apache-2.0 */
#include "base/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { FRAME_SIZE = 1 << 18 };
enum { WIDTH_DEFAULT = 100, WIDTH_LEAST = 20, WIDTH_MOST = 1000, HEIGHT_DEFAULT = 24 };

static bool is_set(const char *variable) {
        const char *value = getenv(variable);

        return value && value[0] != '\0';
}

/* Whether the locale's encoding is UTF-8. The first of the three that is set decides (POSIX, 8.2).
 * The locale need not be installed. */
static bool is_utf8(void) {
        static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

        for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
                if (is_set(variables[i])) {
                        const char *codeset = strchr(getenv(variables[i]), '.');

                        return codeset && (strncasecmp(codeset, ".utf-8", 6) == 0 ||
                                           strncasecmp(codeset, ".utf8", 5) == 0);
                }
        return false;
}

static bool has_colour(ColourMode mode, bool is_terminal) {
        const char *term = getenv("TERM");

        if (mode != COLOUR_AUTO)
                return mode == COLOUR_ALWAYS;
        return is_terminal && !is_set("NO_COLOR") && term && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

static size_t columns_variable(void) {
        long n = is_set("COLUMNS") ? strtol(getenv("COLUMNS"), NULL, 10) : 0;

        return n > 0 && n <= WIDTH_MOST ? (size_t) n : WIDTH_DEFAULT;
}

Terminal terminal_look(ColourMode colour) {
        Terminal t = {.is_terminal = isatty(STDOUT_FILENO) == 1, .utf8 = is_utf8()};
        struct winsize size = {.ws_col = 0};

        t.colour = has_colour(colour, t.is_terminal);
        if (t.is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
                size.ws_col = size.ws_row = 0;
        t.width = size.ws_col > 0 ? size.ws_col : columns_variable();
        if (t.width < WIDTH_LEAST)
                t.width = WIDTH_LEAST;
        if (t.is_terminal)
                t.height = size.ws_row > 0 ? size.ws_row : HEIGHT_DEFAULT;
        return t;
}

/* ---- frames ---- */

static int write_all(const char *text, size_t size) {
        errno = 0;
        if (fwrite(text, 1, size, stdout) != size || fflush(stdout) != 0)
                return errno > 0 ? -errno : -EIO;
        return 0;
}

static int append_frame(TerminalFrames *f, const char *text, size_t size) {
        char *copy;
        int r;

        if (f->last && f->last_size == size && memcmp(f->last, text, size) == 0)
                return 0;
        copy = malloc(size + 1);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, text, size);
        r = f->last ? write_all(f->between, strlen(f->between)) : 0;
        terminal_frames_done(f);
        f->last = copy;
        f->last_size = size;
        return r < 0 ? r : write_all(text, size);
}

/* Draws over the last frame: clears each line behind its text, and the rest of an earlier, longer
 * frame below. */
static int draw_frame(TerminalFrames *f, const Terminal *t, const char *text, size_t size) {
        bool same_size = f->width == t->width && f->height == t->height;
        const char *end = text + size;
        size_t n = 0;

        if (f->n_lines > 0 && same_size)
                (void) printf("\033[%zuA\r", f->n_lines);
        else if (f->n_lines > 0)
                (void) fputs("\033[H\033[2J", stdout);
        for (const char *line = text; line < end && n + 1 < t->height; n++) {
                const char *next = memchr(line, '\n', (size_t) (end - line));
                size_t length = (size_t) ((next ? next : end) - line);

                (void) fwrite(line, 1, length, stdout);
                (void) fputs("\033[K\n", stdout);
                line += length + 1;
        }
        f->n_lines = n;
        f->width = t->width;
        f->height = t->height;
        return write_all("\033[J", 3);
}

void terminal_frames_begin(void) {
        (void) setvbuf(stdout, NULL, _IOFBF, FRAME_SIZE);
}

int terminal_show(TerminalFrames *f, const Terminal *t, const char *text, size_t size) {
        return t->is_terminal ? draw_frame(f, t, text, size) : append_frame(f, text, size);
}

void terminal_frames_done(TerminalFrames *f) {
        free(f->last);
        f->last = NULL;
}

static void on_resize(int signal_number) {
        (void) signal_number; /* it ends the sleep, and that is all */
}

/* An error or hang-up is told without being asked for (poll(2)). */
static int poll_output(const struct timespec *time) {
        struct pollfd p = {.fd = STDOUT_FILENO};

        return ppoll(&p, 1, time, NULL);
}

bool terminal_wait(unsigned seconds) {
        const struct sigaction action = {.sa_handler = on_resize, .sa_flags = SA_RESTART};

        (void) sigaction(SIGWINCH, &action, NULL);
        return poll_output(&(struct timespec){.tv_sec = seconds}) < 0 && errno == EINTR;
}

bool terminal_is_gone(void) {
        return poll_output(&(struct timespec){0}) > 0;
}
