/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/probe_report.h"

/* The texts of a record have the sizes of a card's texts. */
_Static_assert(sizeof(((ProbeReport *) NULL)->uuid) == sizeof(((MachineCard *) NULL)->uuid), "uuid");
_Static_assert(sizeof(((ProbeReport *) NULL)->model) == sizeof(((MachineCard *) NULL)->model), "model");
_Static_assert(sizeof(((ProbeReport *) NULL)->pci) == sizeof(((MachineCard *) NULL)->pci), "pci");
_Static_assert(sizeof(((ProbeReport *) NULL)->text) == sizeof(((MachineCard *) NULL)->trouble), "trouble");

static bool clean(char *text, size_t size) {
        if (!memchr(text, '\0', size))
                return false;
        for (; *text != '\0'; text++)
                if (*text < ' ' || *text > '~')
                        *text = '?';
        return true;
}

static bool has_sound_peers(const ProbeReport *r) {
        for (size_t i = 0; i < CARD_PEERS_MAX; i++)
                if (r->peers[i].path >= PEER_PATHS_ || r->peers[i].links > CARD_PEER_LINKS_MAX)
                        return false;
        return r->switch_links <= CARD_PEER_LINKS_MAX;
}

static bool is_sound(const ProbeReport *r) {
        if (r->kind < REPORT_READY || r->kind >= REPORT_KINDS_)
                return false;
        if (r->kind == REPORT_CARD && (r->position >= CARDS_MAX || r->numa < -1))
                return false;
        if (r->kind == REPORT_LINKS && (r->position >= CARD_PEERS_MAX || !has_sound_peers(r)))
                return false;
        return r->uuid[0] == '\0' || card_uuid_is_valid(r->uuid);
}

int probe_report_read(const void *bytes, size_t n, ProbeReport *ret) {
        ProbeReport r;

        if (n != sizeof r)
                return REPORT_E_MALFORMED;
        memcpy(&r, bytes, sizeof r);
        if (!clean(r.uuid, sizeof r.uuid) || !clean(r.model, sizeof r.model) || !clean(r.pci, sizeof r.pci) ||
            !clean(r.text, sizeof r.text) || !is_sound(&r))
                return REPORT_E_MALFORMED;
        *ret = r;
        return 0;
}

void probe_report_card(const ProbeReport *r, MachineCard *ret) {
        *ret = (MachineCard){.index = r->position,
                             .minor = r->minor,
                             .mib = r->mib,
                             .numa = r->numa,
                             .healthy = r->text[0] == '\0'};
        memcpy(ret->uuid, r->uuid, sizeof ret->uuid);
        memcpy(ret->model, r->model, sizeof ret->model);
        memcpy(ret->pci, r->pci, sizeof ret->pci);
        memcpy(ret->trouble, r->text, sizeof ret->trouble);
}

void probe_report_links(const ProbeReport *r, MachineCard *ret) {
        ret->link_rate = r->link_rate;
        ret->switch_links = r->switch_links;
        memcpy(ret->peers, r->peers, sizeof ret->peers);
}
