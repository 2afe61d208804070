/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The records between the agent and its NVML child, over a SOCK_SEQPACKET pair. Both ends are one
 * program, but the child runs the driver's code, so the agent validates every record.
 *
 *     agent  ProbeRequest
 *     child  READY, CARD for each card,
 *            LINKS for each that has some, END or FAILED at any point: the child is of no more use
 *     child  LIMIT                             for a request with a path
 *     child  XID, ALARM                        at any time, unrequested
 *     child  PROCESS for each, TOTAL,          once per census, unrequested, if it is enabled
 *            USE for each, SPAN ..., CENSUS */

#include "gpu/cards/card_limit.h"
#include "gpu/cards/card_list.h"

enum { REPORT_E_MALFORMED = 1 };

typedef struct ProbeRequest {
        uint32_t request; /* counts from 1; of limits by themselves */
        uint32_t fresh;   /* 1: with a new session of the library */
        CardLimit limit;  /* path "": a scan is asked for */
} ProbeRequest;

typedef enum ProbeReportKind {
        /* the library is initialised; text: the driver's version, or ""; number: 1 when its files
         * cannot be locked; value: 1 with confidential computing */
        REPORT_READY = 1,
        REPORT_CARD,
        REPORT_LINKS,   /* of a card that was reported, and has known peers */
        REPORT_END,     /* text: why XIDs are not reported; "" when they are */
        REPORT_FAILED,  /* text: why the whole scan failed */
        REPORT_XID,     /* request 0 */
        REPORT_ALARM,   /* request 0: an error, a scan will find which */
        REPORT_PROCESS, /* request 0: a process on a card */
        REPORT_TOTAL,   /* request 0: of a card whose processes are all reported */
        /* request 0: a process's use of a card's time since the last census */
        REPORT_USE,
        REPORT_SPAN, /* request 0: no more USE of this card; text: why it reports none, or "" */
        /* request 0: the census is complete; text: why some card reports nothing, or "" */
        REPORT_CENSUS,
        /* number: NVML's code, or CARD_LIMIT_NO_...; value: hard limit, as it was read; used; text:
         * what failed */
        REPORT_LIMIT,
        REPORT_KINDS_,
} ProbeReportKind;

/* As sent: whole numbers and NUL-terminated texts, so that any bytes are a value of the type. */
typedef struct ProbeReport {
        uint32_t kind, request;
        uint32_t session;  /* number of initialisations of the library in this child */
        uint32_t position; /* CARD, LINKS: NVML's index */
        uint32_t minor, mib;
        int32_t numa;
        /* END: cards of the driver, of which CARDS_MAX are reported; PROCESS, USE:
         * the pid */
        uint32_t number;
        /* XID: its number; PROCESS: bytes; TOTAL: bytes in use, without the driver's own;
         * USE: ns of the SMs; SPAN: ns that USE refers to. CENSUS: when the driver was asked, in us
         * of CLOCK_BOOTTIME */
        uint64_t value;
        uint64_t used; /* LIMIT: bytes that are charged */
        char uuid[64];
        char model[96];
        char pci[24];
        char text[160]; /* CARD: why it is not healthy */
        /* LINKS; peers by NVML's index of the other card */
        uint8_t link_rate, switch_links;
        CardPeer peers[CARD_PEERS_MAX];
} ProbeReport;

/* Accepts any bytes: checks size, kind and bounds, and replaces bytes that are not plain ASCII.
 * Returns 0 or REPORT_E_MALFORMED. */
int probe_report_read(const void *bytes, size_t n, ProbeReport *ret);
void probe_report_card(const ProbeReport *r, MachineCard *ret); /* of a CARD */
/* Adds LINKS to the CARD of its position. */
void probe_report_links(const ProbeReport *r, MachineCard *ret);
