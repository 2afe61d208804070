/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/complain.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define PROGRAM "kubectl inspect cgpu"

void complain_line(const char *before, const char *text) {
        (void) fputs(before, stderr);
        for (; *text; text++)
                (void) fputc(*text >= ' ' && *text <= '~' ? *text : '?', stderr);
        (void) fputc('\n', stderr);
}

int complain(int status, const Fault *fault, int r) {
        const char *text = fault->text[0] ? fault->text : strerror(r < 0 ? -r : EINVAL);

        complain_line(PROGRAM ": ", text);
        return status;
}

int complain_usage(const char *text, const char *value) {
        Fault fault = FAULT_NULL;
        const char *last = value[0] ? value : text;
        bool asks = last[0] && last[strlen(last) - 1] == '?';

        return complain(
                EXIT_USAGE, &fault,
                fault_set(&fault, 0, "%s%s%s `" PROGRAM " --help`", text, value, asks ? " See" : "; see"));
}

int complain_no_memory(void) {
        complain_line(PROGRAM ": ", strerror(ENOMEM));
        return EXIT_BROKEN;
}
