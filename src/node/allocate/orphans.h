/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Slices of the dead. A pod whose object is gone may still have processes: deletion by force takes
 * the object away at once. As long as they live its record stays, is published in the node's
 * annotation aliquot.dev/held-slices, and whoever gets the same devices waits at PreStart. */

#include <systemd/sd-event.h>

#include "base/buf.h"
#include "node/records/records.h"
#include "node/records/roster.h"

typedef struct Orphans Orphans;

typedef struct OrphansOptions {
        sd_event *event; /* all of these outlive it */
        const Roster *roster;
        Records *records;
        const char *cgroup_root;
        void (*on_change)(void *userdata); /* the list of dying pods is another one */
        void *userdata;
} OrphansOptions;

int orphans_new(const OrphansOptions *options, Orphans **ret); /* 0 or -ENOMEM */
Orphans *orphans_free(Orphans *d);

/* A pod came, changed or went (pod NULL): its record ends, or is dying, or lives. */
void orphans_look(Orphans *d, Str uid, const RosterPod *pod);

/* Of a pod that is gone: has its last process ended? Then its record is dropped. */
bool orphans_ended(Orphans *d, Record *record);

/* All records, once the pods have been listed: who is not among them is gone. */
void orphans_sweep(Orphans *d);

size_t orphans_count(const Orphans *d);
/* The annotation's text, "" when nobody is dying: share/held.h has the format. */
void orphans_write(const Orphans *d, Buf *out);

DEFINE_CLEANUP(Orphans *, orphans_free)
