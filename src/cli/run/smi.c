/* SPDX-License-Identifier: Apache-2.0 */

/* aliquot-smi: the cards and slices of this machine; inside a slice only the process's own
 * slices. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/message.h"
#include "base/options.h"
#include "base/terminal.h"
#include "cli/run/smi_cards.h"
#include "cli/run/smi_print.h"
#include "gpu/cards/out_of_service.h"

enum { EXIT_BROKEN = 3, LOOP_MAX = 86400, WIDTH_UNLIMITED = 1000 };

typedef struct Options {
        bool json;
        const char *slicedir;
        uint32_t seconds; /* 0: prints once */
} Options;

static const Option option_list[] = {
        {"output", "table|json", "how it is printed (default table)", OPTION_TO_CHOICE(Options, json),
         .letter = 'o'},
        {"loop", "SECONDS", "print again after so many seconds, until Ctrl-C",
         OPTION_TO_NUMBER(Options, seconds, 1, LOOP_MAX), .letter = 'l'},
        {"slices", "DIR", "where slices are counted (default " SLICEDIR_DEFAULT ")",
         OPTION_TO_TEXT(Options, slicedir)},
};

static const OptionsTable table = {
        .program = "aliquot smi",
        .usage = "[OPTION...]",
        .about = "The cards of this machine: model, memory in all, allocated to slices, free, and used. Then "
                 "its "
                 "slices: container, user, memory used and limit, compute used over the last moment and "
                 "limit. "
                 "Inside a container, or inside `aliquot run`, its own slices only.",
        .end = "Exit status: 0 done, 2 wrong usage, 3 something broke.",
        .options = option_list,
        .n = ELEMENTSOF(option_list),
};

static int print_broken(const Fault *fault, int r) {
        (void) fprintf(stderr, "aliquot smi: %s\n", fault->text[0] ? fault->text : strerror(-r));
        return EXIT_BROKEN;
}

static int read_slices(const Options *o, const char *own, SmiSlices *ret, Fault *fault) {
        return own ? smi_slices_read_own(own, ret) : smi_slices_read(o->slicedir, ret, fault);
}

/* Prints the time, which separates the reports of a loop. */
static void print_time(Buf *out) {
        time_t now = time(NULL);
        char text[32] = "";
        struct tm tm;

        if (localtime_r(&now, &tm))
                (void) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S\n", &tm);
        buf_append_str(out, str_from(text));
}

/* Reads the cards that are out of service, as the node agent wrote them. Without an agent there is
 * no such file. */
static int read_out_of_service(const Options *o, Buf *into) {
        _cleanup_buf_ Buf path = BUF_NULL;
        int r;

        out_of_service_path(o->slicedir ? o->slicedir : SLICEDIR_DEFAULT, &path);
        r = buf_result(&path);
        if (r == 0)
                r = file_read(path.data, OUT_OF_SERVICE_MAX, into);
        if (r < 0 && r != -ENOENT && r != -ENOMEM) {
                (void) fprintf(stderr, "aliquot smi: %s: %s\n", path.data, strerror(-r));
                buf_clear(into);
        }
        return r == -ENOMEM ? r : 0;
}

/* Prints a report. cards: NULL inside a slice. */
static int print_report(const Options *o, const HostCards *cards, const SmiSlices *slices,
                        TerminalFrames *frames) {
        const Terminal t = terminal_look(COLOUR_AUTO);
        const GridStyle style = {t.is_terminal ? t.width : WIDTH_UNLIMITED, t.utf8, t.colour};
        Terminal shown = t;
        _cleanup_buf_ Buf out = BUF_NULL, out_of_service = BUF_NULL;
        int r = cards ? read_out_of_service(o, &out_of_service) : 0;

        if (r < 0)
                return r;
        if (o->seconds > 0 && !o->json)
                print_time(&out);
        r = o->json ? smi_print_json(cards, buf_str(&out_of_service), slices, &out)
                    : smi_print_table(cards, buf_str(&out_of_service), slices, &style, &out);
        if (r < 0)
                return r;
        shown.is_terminal &= o->seconds > 0 && !o->json;
        return terminal_show(frames, &shown, out.data, out.len);
}

/* Reads the cards. A driver that does not answer, or not for the cards, is reported once, and the
 * slices are shown without it. */
static void read_cards(HostCards *ret, bool *told) {
        Fault fault = FAULT_NULL;

        *ret = (HostCards){.n = 0};
        if (smi_slices_own())
                (void) fault_set(&fault, 0, "in a slice the driver tells the slice's size, not the card's");
        else if (smi_cards_read(ret, &fault) == 0)
                return;
        if (*told)
                return;
        (void) fprintf(stderr, "aliquot smi: cards: %s\n", fault.text);
        *told = true;
}

static int report_once(const Options *o, TerminalFrames *frames, bool *told) {
        const char *own = o->slicedir ? NULL : smi_slices_own();
        Fault fault = FAULT_NULL;
        SmiSlices slices;
        HostCards cards;
        int r;

        r = read_slices(o, own, &slices, &fault);
        if (r < 0)
                return print_broken(&fault, r);
        if (!own)
                read_cards(&cards, told);
        r = print_report(o, own ? NULL : &cards, &slices, frames);
        smi_slices_done(&slices);
        return r < 0 ? print_broken(&fault, r) : 0;
}

int main(int argc, char **argv) {
        Options o = {.json = false};
        TerminalFrames frames = {0};
        bool told = false;
        int r;

        if (file_hold_standard() < 0)
                return EXIT_BROKEN;
        message_guard();
        r = options_parse(&table, argc, argv, &o, NULL);
        if (r != OPTIONS_GO)
                return r;
        frames.between = o.json ? "" : "\n";
        if (o.seconds > 0)
                terminal_frames_begin();
        r = report_once(&o, &frames, &told);
        while (r == 0 && o.seconds > 0) {
                (void) terminal_wait(o.seconds);
                r = report_once(&o, &frames, &told);
        }
        terminal_frames_done(&frames);
        return r;
}
