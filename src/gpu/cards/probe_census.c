/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/probe-internal.h"

#include <errno.h>

enum {
        PROCESSES_MAX = 4096, /* of one card: as CARD_USAGE_MAX, for all cards */
        LIST_TRIES = 4,       /* attempts: processes may start while they are counted */
};

/* --- what processes hold ---------------------------------------------------------------------- */

typedef int (*ListProcesses)(NvmlDevice d, unsigned *count, NvmlProcess *ret);

static bool make_room(Probe *p, unsigned n) {
        NvmlProcess *more;

        if (n <= p->room)
                return true;
        if (n > PROCESSES_MAX || !(more = realloc(p->processes, n * sizeof *more)))
                return false;
        p->processes = more;
        p->room = n;
        return true;
}

/* Appends processes after the first n. When the room is too small, the library's result is not
 * reliable and the query is repeated. */
static int query_processes(Probe *p, NvmlDevice device, ListProcesses list, unsigned n, unsigned *ret_count) {
        int r = NVML_ERROR_INSUFFICIENT_SIZE;

        for (int i = 0; r == NVML_ERROR_INSUFFICIENT_SIZE && i < LIST_TRIES; i++) {
                unsigned room = p->room - n;

                *ret_count = room;
                r = list(device, ret_count, room > 0 ? p->processes + n : NULL);
                if (r == NVML_ERROR_INSUFFICIENT_SIZE &&
                    (*ret_count > PROCESSES_MAX || !make_room(p, n + *ret_count + *ret_count / 8 + 64)))
                        break;
                if (r == NVML_SUCCESS && *ret_count > room)
                        *ret_count = room;
        }
        return r;
}

/* Appends new processes to the first n. One that computes and draws is in both lists with the same
 * bytes. */
static int list_processes(Probe *p, NvmlDevice device, ListProcesses list, unsigned *n, bool *all) {
        unsigned count, found = *n;
        int r = NVML_SUCCESS;

        if (list)
                r = query_processes(p, device, list, *n, &count);
        *all = *all && list && r == NVML_SUCCESS;
        if (!list || r != NVML_SUCCESS)
                return r;
        for (unsigned i = *n; i < *n + count; i++) {
                unsigned k = 0;

                while (k < found && p->processes[k].pid != p->processes[i].pid)
                        k++;
                if (k == found)
                        p->processes[found++] = p->processes[i];
        }
        *n = found;
        return NVML_SUCCESS;
}

static void send_untold(const Probe *p, const ProbeCard *c, int r, ProbeReport *end) {
        if (r == NVML_ERROR_INSUFFICIENT_SIZE)
                (void) snprintf(end->text, sizeof end->text, "%.40s has more than %d processes", c->uuid,
                                PROCESSES_MAX);
        else
                (void) snprintf(end->text, sizeof end->text, "%.40s: %.100s", c->uuid,
                                nvml_error_text(&p->nvml, r));
}

/* An older driver counts its own part as used and does not report its size, so its cards have no
 * total. */
static int send_total(const Probe *p, const ProbeCard *c) {
        ProbeReport total = {.kind = REPORT_TOTAL, .session = p->session};
        NvmlMemory2 memory = {.version = NVML_MEMORY2_VERSION};

        if (!p->nvml.memory2 || p->nvml.memory2(c->device, &memory) != NVML_SUCCESS)
                return 0;
        total.value = memory.used;
        memcpy(total.uuid, c->uuid, sizeof total.uuid);
        return probe_send(p, &total);
}

static int send_processes(Probe *p, const ProbeCard *c, ProbeReport *end) {
        unsigned n = 0;
        bool all = true;
        int r;

        r = list_processes(p, c->device, p->nvml.compute, &n, &all);
        if (r == NVML_SUCCESS)
                r = list_processes(p, c->device, p->nvml.graphics, &n, &all);
        if (r != NVML_SUCCESS)
                send_untold(p, c, r, end);
        r = 0;
        for (unsigned i = 0; r == 0 && i < n; i++) {
                ProbeReport one = {.kind = REPORT_PROCESS,
                                   .session = p->session,
                                   .number = p->processes[i].pid,
                                   .value = p->processes[i].bytes};

                memcpy(one.uuid, c->uuid, sizeof one.uuid);
                r = probe_send(p, &one);
        }
        return r == 0 && all ? send_total(p, c) : r;
}

/* --- what processes use ----------------------------------------------------------------------- */

/* Finds or adds the card's meter. NULL: more cards were seen than CARDS_MAX. */
static ProcessUtilization *meter_of(Probe *p, const ProbeCard *c) {
        for (size_t i = 0; i < p->n_meters; i++)
                if (strcmp(p->meters[i].uuid, c->uuid) == 0)
                        return &p->meters[i].meter;
        if (p->n_meters == CARDS_MAX)
                return NULL;
        memcpy(p->meters[p->n_meters].uuid, c->uuid, sizeof c->uuid);
        return &p->meters[p->n_meters++].meter;
}

static bool make_uses_room(Probe *p, unsigned n) {
        NvmlUse *more;

        if (n > PROCESSES_MAX || !(more = realloc(p->uses, n * sizeof *more)))
                return false;
        p->uses = more;
        p->uses_room = n;
        return true;
}

/* Queries the samples since that time. No samples (NOT_FOUND) are a valid result. */
static int query_uses(Probe *p, const ProbeCard *c, uint64_t since, unsigned *ret_count) {
        int r = NVML_ERROR_INSUFFICIENT_SIZE;

        for (int i = 0; i < LIST_TRIES; i++) {
                *ret_count = p->uses_room;
                r = p->nvml.use(c->device, p->uses_room > 0 ? p->uses : NULL, ret_count, since);
                if ((r != NVML_ERROR_INSUFFICIENT_SIZE && r != NVML_SUCCESS) || *ret_count <= p->uses_room)
                        break;
                r = NVML_ERROR_INSUFFICIENT_SIZE;
                if (*ret_count > PROCESSES_MAX || !make_uses_room(p, *ret_count + *ret_count / 8 + 64))
                        break;
        }
        if (r != NVML_SUCCESS)
                *ret_count = 0;
        return r == NVML_ERROR_NOT_FOUND ? NVML_SUCCESS : r;
}

static int send_uses(Probe *p, const ProbeCard *c) {
        ProbeReport span = {.kind = REPORT_SPAN, .session = p->session};
        ProcessUtilization *meter = p->nvml.use ? meter_of(p, c) : NULL;
        unsigned n = 0;
        int r = 0;

        memcpy(span.uuid, c->uuid, sizeof span.uuid);
        if (meter)
                r = query_uses(p, c, meter->since, &n);
        if (!meter || r != NVML_SUCCESS) {
                (void) snprintf(span.text, sizeof span.text, "%.79s",
                                meter ? nvml_error_text(&p->nvml, r) : "the library has no such numbers");
                return probe_send(p, &span);
        }
        n = process_utilization_update(meter, p->uses, n, clock_monotonic_usec(),
                                       clock_realtime_nsec() / NSEC_PER_USEC, &span.value);
        for (unsigned i = 0; r == 0 && i < n; i++) {
                ProbeReport one = {.kind = REPORT_USE,
                                   .session = p->session,
                                   .number = p->uses[i].pid,
                                   .value = span.value / 100 * p->uses[i].sm};

                memcpy(one.uuid, c->uuid, sizeof one.uuid);
                r = probe_send(p, &one);
        }
        return r < 0 ? r : probe_send(p, &span);
}

int probe_census(Probe *p) {
        ProbeReport end = {.kind = REPORT_CENSUS,
                           .session = p->session,
                           .value = clock_nsec(CLOCK_BOOTTIME) / NSEC_PER_USEC};
        usec_t now = clock_monotonic_usec();
        int r = 0;

        if (p->o->census == 0 || !p->open || now - p->counted < p->o->census)
                return 0;
        p->counted = now;
        for (size_t i = 0; r == 0 && i < p->n_cards; i++)
                r = send_processes(p, &p->cards[i], &end);
        for (size_t i = 0; r == 0 && i < p->n_cards; i++)
                r = send_uses(p, &p->cards[i]);
        return r < 0 ? r : probe_send(p, &end);
}

void probe_census_done(Probe *p) {
        free(p->processes);
        free(p->uses);
}
