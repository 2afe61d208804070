/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#define MIB (UINT64_C(1) << 20)

enum { STDOUT = 1, STDERR = 2, LINE_MAX_BYTES = 640, SIGNAL_SET_BYTES = 8 };
enum { LOG_SENTENCES = 1, LOG_ALL = 2 };

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

/* The reader of a pipe may end in between, and a terminal may stop processes in the background that
 * write (tostop). The signals for that are kept from the program, which has not written. */
static void write_line(Line *l) {
        static const struct timespec now;
        uint64_t pipe = UINT64_C(1) << (SIGPIPE - 1), before = 0;
        uint64_t kept = pipe | UINT64_C(1) << (SIGTTOU - 1);

        l->text[l->n++] = '\n';
        if (!is_ready() || sys_call(SYS_rt_sigprocmask, SIG_BLOCK, &kept, &before, SIGNAL_SET_BYTES) < 0)
                return;
        if (sys_call(SYS_write, STDERR, l->text, l->n) == -EPIPE && !(before & pipe))
                (void) sys_call(SYS_rt_sigtimedwait, &pipe, 0, &now, SIGNAL_SET_BYTES);
        (void) sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, SIGNAL_SET_BYTES);
}

void gate_log(const Gate *g, const char *text, uint64_t a, uint64_t b) {
        Line l;

        if (g->log < LOG_ALL)
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

/* Whether stderr is a log that is read. A descriptor that closes on exec was not inherited: the
 * program has opened a file of its own. The same holds for a file of which nothing else is
 * known. */
static bool is_log(const GateCard *card) {
        const SliceFile *log = &card->slice.limits->log;
        struct stat st = {.st_mode = 0}, out = {.st_mode = 0};

        if (sys_call(SYS_fcntl, STDERR, F_GETFD) != 0 || sys_call(SYS_fstat, STDERR, &st) != 0)
                return false;
        if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
                return true;
        if (log->ino != 0 && log->ino == st.st_ino && log->dev == st.st_dev)
                return true;
        return sys_call(SYS_fstat, STDOUT, &out) == 0 && out.st_ino == st.st_ino && out.st_dev == st.st_dev;
}

void gate_say_rowless(Gate *g, const GateCard *card) {
        Line l;

        if (g->log < LOG_SENTENCES || atomic_exchange(&g->said_rowless, true) || !is_log(card))
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

static void put_mib(Line *l, uint64_t bytes) {
        put_number(l, bytes / MIB + (bytes % MIB != 0));
}

/* The texts and numbers together are shorter than 200 bytes, so the line has room for the names. */
void gate_say_refused(Gate *g, GateCard *card, uint64_t bytes) {
        const SliceLimits *limits = card->slice.limits;
        uint64_t limit = slice_limit(&card->slice);
        Line l;

        if (!(limits->flags & SLICE_FLAG_SAY) || g->log < LOG_SENTENCES ||
            atomic_exchange(&g->said_refused, true) || !is_log(card))
                return;
        (void) slice_refresh(&card->slice); /* killed processes are not "in use" */
        l.n = 0;
        put_text(&l, "aliquot: ", SIZE_MAX);
        if (bytes > 0)
                put_mib(&l, bytes);
        put_text(&l, bytes > 0 ? " MiB" : "memory", SIZE_MAX);
        put_text(&l, " refused: this container's slice of gpu", SIZE_MAX);
        put_number(&l, limits->card);
        put_text(&l, " is ", SIZE_MAX);
        put_mib(&l, limit);
        put_text(&l, " MiB, ", SIZE_MAX);
        put_mib(&l, slice_used(&card->slice));
        put_text(&l, " in use", SIZE_MAX);
        if (limits->asked[0] != '\0' && limits->asked_limit == limit) {
                put_text(&l, " (", SIZE_MAX);
                put_text(&l, limits->asked, sizeof limits->asked);
                put_text(&l, ")", SIZE_MAX);
        }
        write_line(&l);
}
