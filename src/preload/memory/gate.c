/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/gate.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

enum { STDERR = 2, LINE_MAX_BYTES = 640, SIGNAL_SET_BYTES = 8 };

typedef struct Line {
        size_t n;
        char text[LINE_MAX_BYTES];
} Line;

static void put_text(Line *l, const char *text, size_t most) {
        for (size_t i = 0; i < most && text[i] != '\0' && l->n < sizeof l->text - 1; i++)
                l->text[l->n++] = text[i];
}

static void put_number(Line *l, uint64_t value) {
        char digits[21];
        size_t at = sizeof digits - 1;

        digits[at] = '\0';
        do
                digits[--at] = (char) ('0' + value % 10);
        while ((value /= 10) > 0);
        put_text(l, digits + at, sizeof digits);
}

/* Whether a line can be written without waiting. A pipe that is ready takes PIPE_BUF bytes. With
 * POLLERR nothing reads it. */
static bool is_ready(void) {
        static const struct timespec now;
        struct pollfd poll = {.fd = STDERR, .events = POLLOUT};

        return sys_call(SYS_ppoll, &poll, 1, &now, 0, SIGNAL_SET_BYTES) == 1 && poll.revents == POLLOUT;
}

/* The reader of a pipe may end in between: the signal for that is kept from the program, which has
 * not written. */
static void write_line(Line *l) {
        static const struct timespec now;
        uint64_t pipe = UINT64_C(1) << (SIGPIPE - 1), before = 0;

        l->text[l->n++] = '\n';
        if (!is_ready() || sys_call(SYS_rt_sigprocmask, SIG_BLOCK, &pipe, &before, SIGNAL_SET_BYTES) < 0)
                return;
        if (sys_call(SYS_write, STDERR, l->text, l->n) == -EPIPE && !(before & pipe))
                (void) sys_call(SYS_rt_sigtimedwait, &pipe, 0, &now, SIGNAL_SET_BYTES);
        (void) sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, SIGNAL_SET_BYTES);
}

void gate_log(const Gate *g, const char *text, uint64_t a, uint64_t b) {
        Line l;

        if (!g->log)
                return;
        l.n = 0;
        put_text(&l, "aliquot: ", SIZE_MAX);
        put_text(&l, text, 100);
        put_text(&l, " ", 1);
        put_number(&l, a);
        put_text(&l, " ", 1);
        put_number(&l, b);
        write_line(&l);
}

void gate_say_rowless(Gate *g, const GateCard *card) {
        Line l;

        if (atomic_exchange(&g->said_rowless, true))
                return;
        l.n = 0;
        put_text(&l, "aliquot: memory of gpu", SIZE_MAX);
        put_number(&l, card->slice.limits->card);
        put_text(&l, " refused: the slice of ", SIZE_MAX);
        put_text(&l, card->slice.limits->container, sizeof card->slice.limits->container);
        put_text(&l, " has rows for ", SIZE_MAX);
        put_number(&l, SLICE_ROWS);
        put_text(&l, " processes, and all are taken", SIZE_MAX);
        write_line(&l);
}
