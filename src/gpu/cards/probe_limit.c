/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "gpu/cards/probe-internal.h"

static const ProbeCard *find_card(const Probe *p, const char *uuid) {
        for (size_t i = 0; i < p->n_cards; i++)
                if (strcmp(p->cards[i].uuid, uuid) == 0)
                        return &p->cards[i];
        return NULL;
}

static void take_error(const Probe *p, ProbeReport *r, const char *call, int code) {
        r->number = (uint32_t) code;
        (void) snprintf(r->text, sizeof r->text, "%s: %.100s (%d)", call, nvml_error_text(&p->nvml, code),
                        code);
}

/* The soft limit is always 0: only MPS acts on it, by ending clients. */
static bool set_limit(const Probe *p, NvmlDevice device, const CardLimit *l, ProbeReport *r) {
        NvmlSetLimits set = {.path = l->path, .hard = l->hard};
        int code = p->nvml.set_limits(device, &set);

        if (code != NVML_SUCCESS)
                take_error(p, r, "NVML cannot set a memory limit", code);
        return code == NVML_SUCCESS;
}

static void read_limit(const Probe *p, NvmlDevice device, const CardLimit *l, ProbeReport *r) {
        NvmlGetLimits get = {.path = l->path};
        int code = p->nvml.get_limits(device, &get);

        if (code != NVML_SUCCESS)
                take_error(p, r, "NVML cannot read a memory limit", code);
        r->value = get.hard;
        r->used = get.used;
}

int probe_limit(const Probe *p, const ProbeRequest *q) {
        ProbeReport r = {.kind = REPORT_LIMIT, .request = q->request, .session = p->session};
        const ProbeCard *card = p->open ? find_card(p, q->limit.uuid) : NULL;

        if (p->open && (!p->nvml.set_limits || !p->nvml.get_limits)) {
                r.number = CARD_LIMIT_NO_CALLS;
                (void) snprintf(r.text, sizeof r.text,
                                "the driver's library has no memory limits, which 615 and later have");
        } else if (!card) {
                r.number = CARD_LIMIT_NO_CARD;
                (void) snprintf(r.text, sizeof r.text, "the driver does not have the card %.64s",
                                q->limit.uuid);
        } else if (!q->limit.set || set_limit(p, card->device, &q->limit, &r)) {
                read_limit(p, card->device, &q->limit, &r);
        }
        return probe_send(p, &r);
}
