/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What standard output is: a terminal or not, its size, and whether it shows block characters and
 * colours. */

#include <stdbool.h>
#include <stddef.h>

typedef enum ColourMode {
        COLOUR_AUTO, /* on a terminal, unless NO_COLOR is set (no-color.org) or TERM is dumb */
        COLOUR_ALWAYS,
        COLOUR_NEVER,
} ColourMode;

typedef struct Terminal {
        bool is_terminal, utf8, colour;
        size_t width, height; /* columns, or without a terminal COLUMNS or 100; rows, or 0 */
} Terminal;

Terminal terminal_look(ColourMode colour);

/* Shows one report after the other. On a terminal each is drawn over the last one; otherwise it is
 * appended if it differs from the last one. The cursor always stands on a line of its own below,
 * so that nothing needs to be restored when the program is ended by a signal. */
typedef struct TerminalFrames {
        size_t n_lines; /* lines of the last report; 0: draw below what is there */
        size_t width, height;
        const char *between; /* printed between two reports that are appended */
        char *last;
        size_t last_size;
} TerminalFrames;

/* Call it before the first output: each frame becomes one write, so that it does not flicker and a
 * signal finds it whole. */
void terminal_frames_begin(void);

/* Returns 0, -ENOMEM, or the errno of the write. A frame that is too high is cut to the
 * terminal. */
int terminal_show(TerminalFrames *f, const Terminal *t, const char *text, size_t size);
void terminal_frames_done(TerminalFrames *f);

/* Waits. Returns early, with true, when the terminal is resized or another signal is handled, and
 * with false when standard output has no reader any more. */
bool terminal_wait(unsigned seconds);
bool terminal_is_gone(void); /* standard output has no reader any more */
