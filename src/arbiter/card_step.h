/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One card at the arbiter: its engine, and the channels of the tenants that have a slice of it. A
 * step reads what they report, steps the engine and writes the windows. The caller keeps the time
 * and hears the doorbells, so the same code runs in the daemon and on a virtual clock. */

#include "arbiter/joined.h"
#include "arbiter/overrun_report.h"
#include "arbiter/slice_channel.h"

typedef struct ArbiterTenant {
        SliceChannel channel;
        uint32_t tenant;  /* its number in the engine */
        bool rung;        /* its doorbell, since the last step */
        bool needs_sweep; /* it rang, and no known row has work: all rows are read SWEEP_RUNG_NS after
                           * the last time */
} ArbiterTenant;

typedef struct ArbiterCard {
        Engine engine;
        ArbiterTenant *tenants[ENGINE_TENANTS]; /* of the caller */
        uint32_t n;
        uint64_t next; /* when the next step is due */
} ArbiterCard;

/* Enters a tenant whose channel is open. A window that another arbiter opened is waited for. False:
 * the card has ENGINE_TENANTS already. now: ns of CLOCK_MONOTONIC, here and below. */
bool card_step_add(ArbiterCard *c, ArbiterTenant *t, uint64_t now);
void card_step_remove(ArbiterCard *c, const ArbiterTenant *t);

/* One step. heartbeat: the arbiter's time is written into each page, also where nothing changed.
 * Sets c->next. Overruns are the caller's to ask for (overrun_report_next()). */
void card_step(ArbiterCard *c, uint64_t now, bool heartbeat);

/* The same for all cards that are due, and for those that joined windows concern. stepped[i] says
 * which. n: at most JOINED_CARDS. j->next is when to come again even if no card's `next` has come. */
void card_step_all(ArbiterCard *const cards[], uint32_t n, Joined *j, uint64_t now, bool heartbeat,
                   bool stepped[]);
