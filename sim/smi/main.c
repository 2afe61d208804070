/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "sim/smi/smi.h"

enum { EXIT_INVALID = 2 };
enum { KEY_QUERY_CARDS = 0x100, KEY_QUERY_APPS, KEY_FORMAT };

static const struct option options[] = {
        {"list-gpus", no_argument, NULL, 'L'},
        {"id", required_argument, NULL, 'i'},
        {"query-gpu", required_argument, NULL, KEY_QUERY_CARDS},
        {"query-compute-apps", required_argument, NULL, KEY_QUERY_APPS},
        {"format", required_argument, NULL, KEY_FORMAT},
        {"help", no_argument, NULL, 'h'},
        {0},
};

static const char help[] = "nvidia-smi of Aliquot's simulated driver: a part of what NVIDIA's can do.\n\n"
                           "    nvidia-smi [-i N|UUID]             the table\n"
                           "    -L, --list-gpus                    one line per card\n"
                           "    --query-gpu=FIELD,...              with --format=csv[,noheader][,nounits]\n"
                           "    --query-compute-apps=FIELD,...     the same\n";

/* "csv", then the parts to leave out, in any order. */
static bool parse_format(const char *text, SmiQuery *q) {
        bool csv = false;

        while (*text != '\0') {
                size_t n = strcspn(text, ",");

                if (n == 3 && strncmp(text, "csv", n) == 0)
                        csv = true;
                else if (n == 8 && strncmp(text, "noheader", n) == 0)
                        q->noheader = true;
                else if (n == 7 && strncmp(text, "nounits", n) == 0)
                        q->nounits = true;
                else
                        return false;
                text += n;
                text += *text == ',' ? 1 : 0;
        }
        return csv;
}

static int print(Smi *s, const SmiQuery *q, bool list) {
        if (q->cards || q->apps)
                return smi_print_query(s, q, stdout);
        if (list)
                smi_print_list(s, stdout);
        else
                smi_print_table(s, stdout);
        return 0;
}

int main(int argc, char **argv) {
        static Smi s;
        SmiQuery q = {.cards = NULL};
        const char *id = NULL;
        bool list = false, formatted = false;
        int c, status;

        while ((c = getopt_long(argc, argv, "Li:h", options, NULL)) >= 0) {
                if (c == 'L')
                        list = true;
                else if (c == 'i')
                        id = optarg;
                else if (c == KEY_QUERY_CARDS)
                        q.cards = optarg;
                else if (c == KEY_QUERY_APPS)
                        q.apps = optarg;
                else if (c == KEY_FORMAT)
                        formatted = parse_format(optarg, &q);
                else
                        return fputs(help, c == 'h' ? stdout : stderr) < 0 || c != 'h' ? EXIT_INVALID : 0;
        }
        if (optind < argc || ((q.cards || q.apps) && !formatted))
                return puts("\"--format=\" switch is missing or not valid: csv[,noheader][,nounits].") < 0
                               ? 1
                               : EXIT_INVALID;
        status = smi_read(&s);
        if (status == 0 && id && !smi_select(&s, id))
                return puts("No devices were found") < 0 ? 1 : NVML_ERROR_NOT_FOUND;
        if (status == 0)
                status = print(&s, &q, list);
        return fflush(stdout) == 0 ? status : 1;
}
