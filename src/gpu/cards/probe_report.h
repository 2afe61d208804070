/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The records between the agent and its NVML child, over a SOCK_SEQPACKET pair. Both ends are one
 * program, but the child runs the driver's code: what comes from it is looked at as if a stranger
 * had sent it.
 *
 *     agent  ProbeRequest
 *     child  READY, CARD for each card, END      or FAILED at any point: the child is of no more use
 *     child  XID, ALARM                          at any time, unasked
 *     child  PROCESS for each, TOTAL, USE for each, SPAN ..., CENSUS     once per turn, unasked, where it was wished */

#include "gpu/cards/card_list.h"

enum { REPORT_E_MALFORMED = 1 };

typedef struct ProbeRequest {
        uint32_t request; /* 1.. */
        uint32_t fresh;   /* 1: by a new session of the library's */
} ProbeRequest;

typedef enum ProbeReportKind {
        REPORT_READY = 1, /* the library is initialised */
        REPORT_CARD,
        REPORT_END,     /* text: why there are no XIDs; "" when there are */
        REPORT_FAILED,  /* text: of the whole scan */
        REPORT_XID,     /* request 0 */
        REPORT_ALARM,   /* request 0: something is wrong, a scan will tell what */
        REPORT_PROCESS, /* request 0: one of a card */
        REPORT_TOTAL,   /* request 0: of a card, all of whose processes were told */
        REPORT_USE,     /* request 0: what a process used of a card's time since the census before */
        REPORT_SPAN,    /* request 0: these were all; text: why the card does not tell, or "" */
        REPORT_CENSUS, /* request 0: these were all of them; text: why one card or another does not tell, or "" */
        REPORT_KINDS_,
} ProbeReportKind;

/* As it is sent: whole numbers and texts with their NUL, so that any bytes are a value of it. */
typedef struct ProbeReport {
        uint32_t kind, request;
        uint32_t session;  /* initialisations of the library in this child */
        uint32_t position; /* CARD: NVML's index */
        uint32_t minor, mib;
        int32_t numa;
        uint32_t
                number; /* END: cards of the driver, of which CARDS_MAX are reported at most; PROCESS, USE: its pid */
        uint64_t
                value; /* XID: which; PROCESS: bytes; TOTAL: bytes in use, without the driver's reserve; USE: ns of
                           the SMs; SPAN: ns that all USE are of */
        char uuid[64];
        char model[96];
        char pci[24];
        char text[160]; /* CARD: why it is not healthy */
} ProbeReport;

/* Any bytes. Checks size, kind and bounds; texts that are not plain ASCII are made so. 0 or
 * REPORT_E_MALFORMED. */
int probe_report_read(const void *bytes, size_t n, ProbeReport *ret);
void probe_report_card(const ProbeReport *r, MachineCard *ret); /* of a CARD */
