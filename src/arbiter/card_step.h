/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One card at the arbiter: its engine and the channels of the tenants with a slice of it. A step
 * reads the tenants' reports, steps the engine and writes the windows to the pages. The caller
 * supplies the time and receives the doorbells, so the daemon and the tests on a virtual clock run
 * the same code. All times are ns of CLOCK_MONOTONIC. */

#include "arbiter/joined.h"
#include "arbiter/overrun_report.h"
#include "arbiter/slice_channel.h"

typedef struct ArbiterTenant {
        SliceChannel channel;
        uint32_t tenant; /* index in Engine.tenants */
        bool rung;       /* its doorbell rang since the last step */
        bool needs_sweep; /* it rang, and no row that is known has work: all rows are read SWEEP_RUNG_NS after the last such read */
} ArbiterTenant;

typedef struct ArbiterCard {
        Engine engine;
        ArbiterTenant *tenants[ENGINE_TENANTS]; /* owned by the caller */
        uint32_t n;
        uint64_t next; /* the next step is due then */
} ArbiterCard;

/* Adds a tenant whose channel is open. If another arbiter left a window open, it has to drain
 * first. Returns false if the card has ENGINE_TENANTS tenants. */
bool card_step_add(ArbiterCard *c, ArbiterTenant *t, uint64_t now);
void card_step_remove(ArbiterCard *c, const ArbiterTenant *t);

/* One step; sets c->next. heartbeat: write the arbiter's time into each page, even if its window
 * did not change. The caller then asks for overruns (overrun_report_next()). */
void card_step(ArbiterCard *c, uint64_t now, bool heartbeat);

/* Steps all cards that are due and those whose joined windows change; sets stepped[i] for each
 * card i that was stepped. n: at most JOINED_CARDS. j->next: call again by then, even if no card
 * is due. */
void card_step_all(ArbiterCard *const cards[], uint32_t n, Joined *j, uint64_t now, bool heartbeat,
                   bool stepped[]);
