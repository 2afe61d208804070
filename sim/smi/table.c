/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <time.h>

#include "sim/smi/smi.h"

/* The table of the 5xx drivers, 91 columns wide. Scripts cut it up by columns. */

enum { NAME_WIDTH = 25, PROCESS_WIDTH = 37 };

static unsigned long long mib(unsigned long long bytes) {
        return bytes >> 20;
}

static void rule(FILE *out, const char *left, char fill, const char *middle) {
        (void) fputs(left, out);
        for (int i = 0; i < 89; i++)
                (void) fputc(middle && (i == 41 || i == 66) ? middle[0] : fill, out);
        (void) fprintf(out, "%c\n", fill == '=' ? '|' : '+');
}

static void print_head(const Smi *s, FILE *out) {
        char now[64] = "", cuda[16];
        time_t t = time(NULL);
        struct tm tm;

        if (localtime_r(&t, &tm))
                (void) strftime(now, sizeof now, "%a %b %e %H:%M:%S %Y", &tm);
        (void) snprintf(cuda, sizeof cuda, "%d.%d", s->cuda / 1000, s->cuda % 1000 / 10);
        (void) fprintf(out, "%s\n", now);
        rule(out, "+", '-', NULL);
        (void) fprintf(out, "| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n", s->version,
                       s->version, cuda);
        rule(out, "|", '-', "+");
        (void) fputs("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. "
                     "ECC |\n"
                     "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute "
                     "M. |\n"
                     "|                                         |                        |               MIG "
                     "M. |\n",
                     out);
        rule(out, "|", '=', "+");
}

static void print_card(const SmiCard *c, unsigned index, FILE *out) {
        char name[NAME_WIDTH + 1], power[32], memory[48];

        (void) snprintf(name, sizeof name, "%s", c->name);
        (void) snprintf(power, sizeof power, "%uW / %4uW", c->milliwatts / 1000, c->milliwatts_limit / 1000);
        (void) snprintf(memory, sizeof memory, "%lluMiB / %6lluMiB", mib(c->memory.used + c->memory.reserved),
                        mib(c->memory.total));
        (void) fprintf(out, "| %3u  %-25s      On  |   %-16.16s Off |                  N/A |\n", index, name,
                       c->pci.bus_id);
        (void) fprintf(out, "| N/A  %3uC    P0         %15s | %22s | %6u%%      Default |\n", c->celsius,
                       power, memory, c->utilization.gpu);
        (void) fputs("|                                         |                        |                  "
                     "N/A |\n",
                     out);
        rule(out, "+", '-', "+");
}

static void print_process(const Smi *s, unsigned index, const NvmlProcess2 *p, FILE *out) {
        char name[SMI_NAME], shown[PROCESS_WIDTH + 1], memory[32];
        size_t n;

        smi_name_of(s, p->pid, &name);
        n = strlen(name);
        if (n > PROCESS_WIDTH)
                (void) snprintf(shown, sizeof shown, "...%s", name + n - PROCESS_WIDTH + 3);
        else
                (void) snprintf(shown, sizeof shown, "%s", name);
        (void) snprintf(memory, sizeof memory, "%lluMiB", mib(p->memory));
        (void) fprintf(out, "| %4u   N/A  N/A %15u      C   %-37s %8s |\n", index, p->pid, shown, memory);
}

void smi_print_table(const Smi *s, FILE *out) {
        unsigned n = 0;

        print_head(s, out);
        for (unsigned i = 0; i < s->n; i++)
                print_card(&s->cards[i], s->cards[i].index, out);
        (void) fputc('\n', out);
        rule(out, "+", '-', NULL);
        (void) fprintf(out, "| %-88s|\n", "Processes:");
        (void) fprintf(
                out, "| %-87s |\n",
                " GPU   GI   CI              PID   Type   Process name                        GPU Memory");
        (void) fprintf(out, "| %-87s |\n",
                       "       ID   ID                                                               Usage");
        rule(out, "|", '=', NULL);
        for (unsigned i = 0; i < s->n; i++)
                for (unsigned j = 0; j < s->cards[i].n; j++, n++)
                        print_process(s, s->cards[i].index, &s->cards[i].processes[j], out);
        if (n == 0)
                (void) fprintf(out, "| %-87s |\n", " No running processes found");
        rule(out, "+", '-', NULL);
}

void smi_print_list(const Smi *s, FILE *out) {
        for (unsigned i = 0; i < s->n; i++)
                (void) fprintf(out, "GPU %u: %s (UUID: %s)\n", s->cards[i].index, s->cards[i].name,
                               s->cards[i].uuid);
}
