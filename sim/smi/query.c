/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "sim/smi/smi.h"

enum { EXIT_INVALID = 2, VALUE = 300, FIELDS = 64 };

/* What a field belongs to: a card, or a process where processes are listed. */
typedef struct Row {
        const Smi *smi;
        const SmiCard *card;
        unsigned index;
        const NvmlProcess2 *process;
} Row;

typedef struct Field {
        const char *name, *unit; /* unit: "" when it has none */
        void (*print)(const Row *r, char (*ret)[VALUE]);
} Field;

/* ---- values ---- */

#define TEXT(name, value)                                                                                    \
        static void name(const Row *r, char(*ret)[VALUE]) {                                                  \
                (void) snprintf(*ret, sizeof *ret, "%s", value);                                             \
        }
#define NUMBER(name, value)                                                                                  \
        static void name(const Row *r, char(*ret)[VALUE]) {                                                  \
                (void) snprintf(*ret, sizeof *ret, "%llu", (unsigned long long) (value));                    \
        }

NUMBER(value_index, r->index)
NUMBER(value_count, r->smi->n)
TEXT(value_name, r->card->name)
TEXT(value_uuid, r->card->uuid)
TEXT(value_bus, r->card->pci.bus_id)
TEXT(value_driver, r->smi->version)
NUMBER(value_total, r->card->memory.total >> 20)
NUMBER(value_used, (r->card->memory.used + r->card->memory.reserved) >> 20)
NUMBER(value_free, r->card->memory.free >> 20)
NUMBER(value_reserved, r->card->memory.reserved >> 20)
NUMBER(value_utilization, r->card->utilization.gpu)
NUMBER(value_memory_utilization, r->card->utilization.memory)
NUMBER(value_temperature, r->card->celsius)
TEXT(value_persistence, "Enabled")
TEXT(value_compute_mode, "Default")
TEXT(value_state, "P0")
TEXT(value_mig, "[N/A]")
NUMBER(value_pid, r->process->pid)
NUMBER(value_process_memory, r->process->memory >> 20)

static void value_power(const Row *r, char (*ret)[VALUE]) {
        (void) snprintf(*ret, sizeof *ret, "%u.%02u", r->card->milliwatts / 1000,
                        r->card->milliwatts % 1000 / 10);
}

static void value_power_limit(const Row *r, char (*ret)[VALUE]) {
        (void) snprintf(*ret, sizeof *ret, "%u.%02u", r->card->milliwatts_limit / 1000,
                        r->card->milliwatts_limit % 1000 / 10);
}

static void value_process_name(const Row *r, char (*ret)[VALUE]) {
        char name[SMI_NAME];

        smi_name_of(r->smi, r->process->pid, &name);
        (void) snprintf(*ret, sizeof *ret, "%s", name);
}

static const Field card_fields[] = {
        {"index", "", value_index},
        {"count", "", value_count},
        {"name", "", value_name},
        {"gpu_name", "", value_name},
        {"uuid", "", value_uuid},
        {"gpu_uuid", "", value_uuid},
        {"pci.bus_id", "", value_bus},
        {"gpu_bus_id", "", value_bus},
        {"driver_version", "", value_driver},
        {"memory.total", "MiB", value_total},
        {"memory.used", "MiB", value_used},
        {"memory.free", "MiB", value_free},
        {"memory.reserved", "MiB", value_reserved},
        {"utilization.gpu", "%", value_utilization},
        {"utilization.memory", "%", value_memory_utilization},
        {"temperature.gpu", "", value_temperature},
        {"power.draw", "W", value_power},
        {"power.limit", "W", value_power_limit},
        {"persistence_mode", "", value_persistence},
        {"compute_mode", "", value_compute_mode},
        {"pstate", "", value_state},
        {"mig.mode.current", "", value_mig},
};

static const Field process_fields[] = {
        {"pid", "", value_pid},
        {"process_name", "", value_process_name},
        {"name", "", value_process_name},
        {"used_memory", "MiB", value_process_memory},
        {"used_gpu_memory", "MiB", value_process_memory},
        {"gpu_uuid", "", value_uuid},
        {"gpu_name", "", value_name},
        {"gpu_bus_id", "", value_bus},
};

/* ---- lists of fields ---- */

typedef struct Columns {
        size_t n;
        const Field *list[FIELDS];
} Columns;

static const Field *find(const Field *known, size_t n, const char *name, size_t length) {
        for (size_t i = 0; i < n; i++)
                if (strlen(known[i].name) == length && strncmp(known[i].name, name, length) == 0)
                        return &known[i];
        return NULL;
}

static int parse(const char *text, const Field *known, size_t n, Columns *ret, FILE *out) {
        while (*text != '\0') {
                size_t length;

                text += strspn(text, " ");
                length = strcspn(text, ", ");
                if (ret->n == FIELDS)
                        return EXIT_INVALID;
                ret->list[ret->n] = find(known, n, text, length);
                if (!ret->list[ret->n++]) {
                        (void) fprintf(out, "Field \"%.*s\" is not a valid field to query.\n\n", (int) length,
                                       text);
                        return EXIT_INVALID;
                }
                text += length;
                text += strspn(text, " ");
                text += *text == ',' ? 1 : 0;
        }
        return ret->n > 0 ? 0 : EXIT_INVALID;
}

static void print_header(const Columns *c, const SmiQuery *q, FILE *out) {
        for (size_t i = 0; i < c->n; i++) {
                const Field *f = c->list[i];

                (void) fprintf(out, "%s%s", i > 0 ? ", " : "", f->name);
                if (f->unit[0] != '\0')
                        (void) fprintf(out, " [%s]", f->unit);
        }
        (void) fputc('\n', out);
}

static void print_row(const Columns *c, const SmiQuery *q, const Row *r, FILE *out) {
        for (size_t i = 0; i < c->n; i++) {
                const Field *f = c->list[i];
                char value[VALUE];

                f->print(r, &value);
                (void) fprintf(out, "%s%s", i > 0 ? ", " : "", value);
                if (!q->nounits && f->unit[0] != '\0')
                        (void) fprintf(out, " %s", f->unit);
        }
        (void) fputc('\n', out);
}

int smi_print_query(const Smi *s, const SmiQuery *q, FILE *out) {
        Columns c = {.n = 0};
        int status = q->apps ? parse(q->apps, process_fields, ELEMENTSOF(process_fields), &c, out)
                             : parse(q->cards, card_fields, ELEMENTSOF(card_fields), &c, out);

        if (status != 0)
                return status;
        if (!q->noheader)
                print_header(&c, q, out);
        for (unsigned i = 0; i < s->n; i++) {
                Row r = {s, &s->cards[i], s->cards[i].index, NULL};

                for (unsigned j = 0; q->apps && j < s->cards[i].n; j++) {
                        r.process = &s->cards[i].processes[j];
                        print_row(&c, q, &r, out);
                }
                if (!q->apps)
                        print_row(&c, q, &r, out);
        }
        return 0;
}
