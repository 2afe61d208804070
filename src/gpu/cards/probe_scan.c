/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/probe-internal.h"

#include "base/file.h"
#include "gpu/cards/probe_links.h"

enum { NUMA_FILE_MAX = 64 };

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

/* Checks the result of one query of a card. After the first error no further query is made, because
 * each could hang. */
static bool query_ok(const Probe *p, ProbeReport *c, const char *what, int r) {
        if (r == NVML_SUCCESS)
                return true;
        (void) snprintf(c->text, sizeof c->text, "NVML cannot tell its %s: %s", what,
                        nvml_error_text(&p->nvml, r));
        return false;
}

static bool query_uuid(const Probe *p, NvmlDevice device, ProbeReport *c) {
        char uuid[NVML_TEXT_SIZE] = "";

        if (!query_ok(p, c, "UUID", p->nvml.uuid(device, uuid, sizeof uuid)))
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

        if (!query_ok(p, c, "PCI address", p->nvml.pci(device, &pci)))
                return false;
        card->domain = pci.domain;
        card->bus = pci.bus;
        card->slot = pci.device;
        (void) snprintf(c->pci, sizeof c->pci, "%08X:%02X:%02X.0", pci.domain, pci.bus & 0xff,
                        pci.device & 0xff);
        c->numa = read_numa(p, &pci);
        if (!query_ok(p, c, "minor number", p->nvml.minor(device, &minor)))
                return false;
        c->minor = minor;
        return true;
}

static bool query_size(const Probe *p, NvmlDevice device, ProbeReport *c) {
        NvmlMemory memory = {0};
        unsigned now = 0, pending = 0;

        if (!query_ok(p, c, "name", p->nvml.name(device, c->model, sizeof c->model)))
                return false;
        c->model[sizeof c->model - 1] = '\0';
        if (!query_ok(p, c, "memory", p->nvml.memory(device, &memory)))
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

        if (!query_ok(p, c, "handle", p->nvml.handle(position, &device)) || !query_uuid(p, device, c))
                return;
        *card = (ProbeCard){.device = device, .position = position};
        memcpy(card->uuid, c->uuid, sizeof c->uuid);
        p->n_cards++;
        if (query_place(p, card, c))
                (void) query_size(p, device, c);
        card->sound = c->text[0] == '\0';
}

int probe_scan_cards(Probe *p, uint32_t request, unsigned total) {
        int r = 0;

        p->n_cards = 0;
        for (unsigned i = 0; r == 0 && i < total && i < CARDS_MAX; i++) {
                ProbeReport c = {.kind = REPORT_CARD,
                                 .request = request,
                                 .session = p->session,
                                 .position = i,
                                 .numa = -1};

                query_card(p, i, &c);
                r = probe_send(p, &c);
        }
        return r;
}

/* --- links ------------------------------------------------------------------------------------ */

static bool has_links(const LinkedCard *c) {
        for (size_t i = 0; i < CARD_PEERS_MAX; i++)
                if (c->peers[i].path != PEER_PATH_UNKNOWN || c->peers[i].links > 0)
                        return true;
        return c->switch_links > 0;
}

/* Converts the peers from positions in the array of LinkedCard to NVML's indexes, and sends
 * them. */
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
        return probe_send(p, &r);
}

int probe_scan_links(const Probe *p, uint32_t request) {
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
