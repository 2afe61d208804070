/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/probe.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/file.h"
#include "gpu/cards/nvml.h"
#include "gpu/cards/probe_links.h"
#include "gpu/cards/probe_report.h"
#include "gpu/cards/process_utilization.h"

enum {
        EVENTS_PER_TURN = 64,
        EVENT_WAIT_MSEC = 10, /* per look for events; between looks the socket is polled */
        NUMA_FILE_MAX = 64,
        PROCESSES_MAX = 4096, /* of one card: CARD_USAGE_MAX of all */
        LIST_TRIES = 4,       /* processes may start while they are counted */
};

typedef struct ProbeCard {
        NvmlDevice device;
        char uuid[64];
        uint32_t position;
        unsigned domain, bus, slot; /* PCI address */
        bool sound;                 /* every query about it succeeded */
} ProbeCard;

typedef struct ProbeMeter {
        char uuid[64];
        ProcessUtilization meter;
} ProbeMeter;

typedef struct Probe {
        int fd;
        const ProbeOptions *o;
        Nvml nvml;
        bool loaded, open;
        uint32_t session;
        int listed; /* cards in /proc when the session began */
        NvmlEventSet events;
        NvmlDevice watched[CARDS_MAX];
        size_t n_watched;
        bool watching, alarmed;
        char no_events[160];        /* why no card is watched for events */
        ProbeCard cards[CARDS_MAX]; /* of the last scan, to identify the cards of events */
        size_t n_cards;
        usec_t counted;         /* time of the last census */
        NvmlProcess *processes; /* `room` entries; owned */
        unsigned room;
        ProbeMeter meters[CARDS_MAX]; /* kept over scans, which list the cards anew */
        size_t n_meters;
        NvmlUse *uses; /* owned */
        unsigned uses_room;
} Probe;

static int send_report(const Probe *p, const ProbeReport *r) {
        ssize_t n;

        do
                n = send(p->fd, r, sizeof *r, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

static int send_failed(const Probe *p, uint32_t request, const char *what, const char *words) {
        ProbeReport r = {.kind = REPORT_FAILED, .request = request, .session = p->session};

        (void) snprintf(r.text, sizeof r.text, "%s%s%.140s", what, what[0] != '\0' ? ": " : "", words);
        return send_report(p, &r);
}

/* --- sessions --------------------------------------------------------------------------------- */

static int count_listed(const Probe *p) {
        _cleanup_buf_ Buf path = BUF_NULL;
        const struct dirent *entry;
        DIR *folder;
        int n = 0;

        buf_appendf(&path, "%s/proc/driver/nvidia/gpus", p->o->host_root);
        folder = buf_result(&path) == 0 ? opendir(path.data) : NULL;
        if (!folder)
                return -1;
        while ((entry = readdir(folder)))
                if (entry->d_name[0] != '.')
                        n++;
        (void) closedir(folder);
        return n;
}

static void close_session(Probe *p) {
        if (p->watching && p->nvml.events_free)
                (void) p->nvml.events_free(p->events); /* the session frees it in any case */
        if (p->open)
                /* nothing can be done about it; a lasting error shows at the next init */
                (void) p->nvml.shutdown();
        p->open = p->watching = p->alarmed = false;
        p->n_cards = p->n_watched = 0;
}

/* Returns 0, or NVML_E_NONE with a fault. */
static int open_session(Probe *p, Fault *fault) {
        int r;

        if (!p->loaded && nvml_load(p->o->library, p->o->host_root, &p->nvml, fault) != 0)
                return NVML_E_NONE;
        p->loaded = true;
        p->listed = count_listed(p); /* read first, so that a card that appears now is a change */
        r = p->nvml.init();
        if (r != NVML_SUCCESS)
                return fault_set(fault, NVML_E_NONE, "NVML cannot be initialised: %s",
                                 nvml_error_text(&p->nvml, r));
        p->open = true;
        p->session++;
        return 0;
}

static bool is_watched(const Probe *p, NvmlDevice device) {
        for (size_t i = 0; i < p->n_watched; i++)
                if (p->watched[i] == device)
                        return true;
        return false;
}

/* Registers cards that are not watched yet: all at first, later those that the first scan could not
 * identify. */
static int watch_cards(Probe *p) {
        int r = NVML_SUCCESS;

        for (size_t i = 0; i < p->n_cards && p->n_watched < CARDS_MAX; i++) {
                int added;

                if (is_watched(p, p->cards[i].device))
                        continue;
                added = p->nvml.events_add(p->cards[i].device, NVML_EVENT_XID, p->events);
                if (added == NVML_SUCCESS)
                        p->watched[p->n_watched++] = p->cards[i].device;
                else
                        r = added;
        }
        return r;
}

static void watch(Probe *p) {
        int r = NVML_SUCCESS;

        p->no_events[0] = '\0';
        if (!p->nvml.events_new || !p->nvml.events_add || !p->nvml.events_wait) {
                (void) snprintf(p->no_events, sizeof p->no_events, "the library has no events");
                return;
        }
        if (!p->watching)
                r = p->nvml.events_new(&p->events);
        p->watching = r == NVML_SUCCESS;
        if (p->watching)
                r = watch_cards(p);
        if (r != NVML_SUCCESS && p->n_watched == 0)
                (void) snprintf(p->no_events, sizeof p->no_events, "%s", nvml_error_text(&p->nvml, r));
}

/* --- one scan --------------------------------------------------------------------------------- */

static int32_t read_numa(const Probe *p, const NvmlPci *pci) {
        _cleanup_buf_ Buf path = BUF_NULL, text = BUF_NULL;
        uint32_t node;

        buf_appendf(&path, "%s/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node", p->o->host_root, pci->domain,
                    pci->bus, pci->device);
        if (buf_result(&path) < 0 || file_read(path.data, NUMA_FILE_MAX, &text) < 0)
                return -1;
        if (!str_to_u32(str_trim(buf_str(&text)), &node) || node > INT32_MAX)
                return -1; /* "-1" on machines with one node */
        return (int32_t) node;
}

/* One query of a card. After the first error no further query is made, because each could hang. */
static bool step(const Probe *p, ProbeReport *c, const char *what, int r) {
        if (r == NVML_SUCCESS)
                return true;
        (void) snprintf(c->text, sizeof c->text, "NVML cannot tell its %s: %s", what,
                        nvml_error_text(&p->nvml, r));
        return false;
}

static bool query_uuid(const Probe *p, NvmlDevice device, ProbeReport *c) {
        char uuid[NVML_TEXT_SIZE] = "";

        if (!step(p, c, "UUID", p->nvml.uuid(device, uuid, sizeof uuid)))
                return false;
        uuid[sizeof uuid - 1] = '\0';
        if (!card_uuid_is_valid(uuid)) {
                (void) snprintf(c->text, sizeof c->text, "NVML gives it a malformed UUID");
                return false;
        }
        (void) snprintf(c->uuid, sizeof c->uuid, "%s", uuid);
        return true;
}

static bool query_place(const Probe *p, ProbeCard *card, ProbeReport *c) {
        NvmlPci pci = {.bus_id = ""};
        NvmlDevice device = card->device;
        unsigned minor = 0;

        if (!step(p, c, "PCI address", p->nvml.pci(device, &pci)))
                return false;
        card->domain = pci.domain;
        card->bus = pci.bus;
        card->slot = pci.device;
        (void) snprintf(c->pci, sizeof c->pci, "%08X:%02X:%02X.0", pci.domain, pci.bus & 0xff,
                        pci.device & 0xff);
        c->numa = read_numa(p, &pci);
        if (!step(p, c, "minor number", p->nvml.minor(device, &minor)))
                return false;
        c->minor = minor;
        return true;
}

static bool query_size(const Probe *p, NvmlDevice device, ProbeReport *c) {
        NvmlMemory memory = {0};
        unsigned now = 0, pending = 0;

        if (!step(p, c, "name", p->nvml.name(device, c->model, sizeof c->model)))
                return false;
        c->model[sizeof c->model - 1] = '\0';
        if (!step(p, c, "memory", p->nvml.memory(device, &memory)))
                return false;
        c->mib = (uint32_t) (memory.total >> 20 > UINT32_MAX ? UINT32_MAX : memory.total >> 20);
        if (c->mib == 0)
                (void) snprintf(c->text, sizeof c->text, "NVML says that it has no memory");
        /* Most cards do not support this and return an error. */
        else if (p->nvml.mig && p->nvml.mig(device, &now, &pending) == NVML_SUCCESS && now == 1)
                (void) snprintf(c->text, sizeof c->text,
                                "MIG is on; a card is shared only as a whole (nvidia-smi -mig 0)");
        return true;
}

static void query_card(Probe *p, unsigned position, ProbeReport *c) {
        ProbeCard *card = &p->cards[p->n_cards];
        NvmlDevice device = NULL;

        if (!step(p, c, "handle", p->nvml.handle(position, &device)) || !query_uuid(p, device, c))
                return;
        *card = (ProbeCard){.device = device, .position = position};
        memcpy(card->uuid, c->uuid, sizeof c->uuid);
        p->n_cards++;
        if (query_place(p, card, c))
                (void) query_size(p, device, c);
        card->sound = c->text[0] == '\0';
}

static int scan_cards(Probe *p, uint32_t request, unsigned total) {
        int r = 0;

        p->n_cards = 0;
        for (unsigned i = 0; r == 0 && i < total && i < CARDS_MAX; i++) {
                ProbeReport c = {.kind = REPORT_CARD,
                                 .request = request,
                                 .session = p->session,
                                 .position = i,
                                 .numa = -1};

                query_card(p, i, &c);
                r = send_report(p, &c);
        }
        return r;
}

static bool has_links(const LinkedCard *c) {
        for (size_t i = 0; i < CARD_PEERS_MAX; i++)
                if (c->peers[i].path != PEER_PATH_UNKNOWN || c->peers[i].links > 0)
                        return true;
        return c->switch_links > 0;
}

/* LinkedCard has peers by its array, a report by NVML's index. */
static int send_links(const Probe *p, uint32_t request, const LinkedCard *c, const uint32_t positions[],
                      size_t at, size_t n) {
        ProbeReport r = {.kind = REPORT_LINKS,
                         .request = request,
                         .session = p->session,
                         .position = positions[at],
                         .link_rate = c->link_rate,
                         .switch_links = c->switch_links};

        for (size_t i = 0; i < n; i++)
                r.peers[positions[i]] = c->peers[i];
        return send_report(p, &r);
}

static int scan_links(const Probe *p, uint32_t request) {
        LinkedCard cards[CARD_PEERS_MAX] = {{0}};
        uint32_t positions[CARD_PEERS_MAX];
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; i < p->n_cards && n < CARD_PEERS_MAX; i++) {
                const ProbeCard *c = &p->cards[i];

                if (!c->sound || c->position >= CARD_PEERS_MAX)
                        continue;
                positions[n] = c->position;
                cards[n++] = (LinkedCard){
                        .device = c->device, .domain = c->domain, .bus = c->bus, .slot = c->slot};
        }
        probe_links_query(&p->nvml, cards, n);
        for (size_t i = 0; r == 0 && i < n; i++)
                if (has_links(&cards[i]))
                        r = send_links(p, request, &cards[i], positions, i, n);
        return r;
}

/* An error leaves "": the cards are worth more than the version. */
static void query_driver(const Probe *p, char ret[static NVML_TEXT_SIZE]) {
        if (!p->nvml.driver || p->nvml.driver(ret, NVML_TEXT_SIZE) != NVML_SUCCESS)
                ret[0] = '\0';
        ret[NVML_TEXT_SIZE - 1] = '\0';
}

static bool has_conf_compute(const Probe *p) {
        NvmlConfComputeState state = {0};

        return p->nvml.conf_compute && p->nvml.conf_compute(&state) == NVML_SUCCESS && state.feature == 1;
}

/* A file that cannot be opened is no answer. */
static bool lacks_locks(const Probe *p) {
        int r = file_check_locks(p->o->ctl);

        return r == -ENOLCK || r == -EINVAL;
}

static int scan(Probe *p, const ProbeRequest *q) {
        ProbeReport ready = {.kind = REPORT_READY, .request = q->request}, end;
        Fault fault = FAULT_NULL;
        unsigned total = 0;
        int r;

        if (p->open && (q->fresh || count_listed(p) != p->listed))
                close_session(p);
        if (!p->open && open_session(p, &fault) != 0)
                return send_failed(p, q->request, "", fault.text);
        ready.session = p->session;
        query_driver(p, ready.text);
        ready.number = lacks_locks(p);
        ready.value = has_conf_compute(p);
        r = send_report(p, &ready);
        if (r < 0)
                return r;
        r = p->nvml.count(&total);
        if (r != NVML_SUCCESS)
                return send_failed(p, q->request, "NVML cannot count the cards",
                                   nvml_error_text(&p->nvml, r));
        r = scan_cards(p, q->request, total);
        if (r == 0)
                r = scan_links(p, q->request);
        if (r < 0)
                return r;
        watch(p);
        end = (ProbeReport){
                .kind = REPORT_END, .request = q->request, .session = p->session, .number = total};
        (void) snprintf(end.text, sizeof end.text, "%s", p->no_events);
        return send_report(p, &end);
}

/* --- events ----------------------------------------------------------------------------------- */

static int send_xid(const Probe *p, const NvmlEvent *e) {
        ProbeReport r = {.kind = REPORT_XID, .session = p->session, .value = e->data};

        for (size_t i = 0; i < p->n_cards; i++)
                if (p->cards[i].device == e->device) {
                        memcpy(r.uuid, p->cards[i].uuid, sizeof r.uuid);
                        return send_report(p, &r);
                }
        return 0; /* a card that the scan could not identify; scans report it */
}

static int look_for_events(Probe *p) {
        for (int i = 0; i < EVENTS_PER_TURN; i++) {
                NvmlEvent e = {0};
                int r = p->nvml.events_wait(p->events, &e, EVENT_WAIT_MSEC);

                if (r == NVML_ERROR_TIMEOUT)
                        return 0;
                /* usually a lost card. Reported once per session, because the error may persist */
                if (r != NVML_SUCCESS) {
                        ProbeReport alarm = {.kind = REPORT_ALARM, .session = p->session};
                        bool first = !p->alarmed;

                        p->alarmed = true;
                        return first ? send_report(p, &alarm) : 0;
                }
                r = e.type == NVML_EVENT_XID ? send_xid(p, &e) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

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

/* Appends after the first n. When the room is too small, the library's result is not reliable and
 * the query is repeated. */
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

/* Adds to the first n. A process that computes and draws is in both lists with the same bytes. */
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
        return send_report(p, &total);
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
                r = send_report(p, &one);
        }
        return r == 0 && all ? send_total(p, c) : r;
}

/* --- what processes use ----------------------------------------------------------------------- */

/* NULL: more cards were seen than CARDS_MAX. */
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

/* No samples are a valid result. */
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
                return send_report(p, &span);
        }
        n = process_utilization_update(meter, p->uses, n, clock_monotonic_usec(),
                                       clock_realtime_nsec() / NSEC_PER_USEC, &span.value);
        for (unsigned i = 0; r == 0 && i < n; i++) {
                ProbeReport one = {.kind = REPORT_USE,
                                   .session = p->session,
                                   .number = p->uses[i].pid,
                                   .value = span.value / 100 * p->uses[i].sm};

                memcpy(one.uuid, c->uuid, sizeof one.uuid);
                r = send_report(p, &one);
        }
        return r < 0 ? r : send_report(p, &span);
}

static int count_processes(Probe *p) {
        ProbeReport end = {.kind = REPORT_CENSUS, .session = p->session};
        usec_t now = clock_monotonic_usec();
        int r = 0;

        if (p->o->census == 0 || !p->open || now - p->counted < p->o->census)
                return 0;
        p->counted = now;
        for (size_t i = 0; r == 0 && i < p->n_cards; i++)
                r = send_processes(p, &p->cards[i], &end);
        for (size_t i = 0; r == 0 && i < p->n_cards; i++)
                r = send_uses(p, &p->cards[i]);
        return r < 0 ? r : send_report(p, &end);
}

/* --- the loop --------------------------------------------------------------------------------- */

/* Milliseconds until the next periodic task; -1: none. */
static int next_timeout(const Probe *p) {
        usec_t turn = p->watching ? p->o->turn : 0;

        if (p->open && p->o->census > 0 && (turn == 0 || p->o->census < turn))
                turn = p->o->census;
        return turn > 0 ? (int) (turn / USEC_PER_MSEC) : -1;
}

/* Returns 1 when a request was answered, 0 when none came. Negative: the other end is gone, or its
 * request is invalid. */
static int serve(Probe *p) {
        struct pollfd ready = {.fd = p->fd, .events = POLLIN};
        ProbeRequest q;
        ssize_t n;
        int r;

        r = poll(&ready, 1, next_timeout(p));
        if (r <= 0)
                return r < 0 && errno != EINTR ? -errno : 0;
        n = recv(p->fd, &q, sizeof q, 0);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (n != sizeof q)
                return -EPIPE;
        r = scan(p, &q);
        return r < 0 ? r : 1;
}

int probe_run(int fd, const ProbeOptions *options) {
        _cleanup_free_ Probe *p = calloc(1, sizeof *p);
        int r = 0;

        if (!p)
                return 1;
        p->fd = fd;
        p->o = options;
        while (r >= 0) {
                r = serve(p);
                if (r == 0 && p->watching)
                        r = look_for_events(p);
                if (r == 0)
                        r = count_processes(p);
        }
        free(p->processes);
        free(p->uses);
        return r == -EPIPE ? 0 : 1;
}
