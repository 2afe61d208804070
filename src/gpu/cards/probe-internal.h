/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the child share. probe.c has the sessions of the library, their events and the
 * loop. probe_scan.c asks for the cards, probe_census.c what processes hold and use of them, and
 * probe_limit.c for limits of memory.
 *
 * Functions that send return 0, or negative errno when the other end is gone. */

#include "gpu/cards/nvml.h"
#include "gpu/cards/probe.h"
#include "gpu/cards/probe_report.h"
#include "gpu/cards/process_utilization.h"

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

int probe_send(const Probe *p, const ProbeReport *r);

/* Sends a CARD for each of the `total` cards, and keeps those that could be identified in p->cards;
 * then LINKS for each that has some. p: with an open session. */
int probe_scan_cards(Probe *p, uint32_t request, unsigned total);
int probe_scan_links(const Probe *p, uint32_t request);

/* Sets the limit if the request says so, reads it, and sends a LIMIT. */
int probe_limit(const Probe *p, const ProbeRequest *q);

/* Sends a census if one is due. */
int probe_census(Probe *p);
void probe_census_done(Probe *p);
