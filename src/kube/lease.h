/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Lease object: its text, and the fields that an elector decides on. */

#include <systemd/sd-event.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"

typedef struct Lease {
        /* JSON text of the whole metadata, written back so that labels and annotations of other
         * programs stay */
        Str metadata;
        Str resource_version;
        Str holder; /* "" when it has no holder */
        int64_t duration_sec;
        int64_t transitions;
        Str acquire_time, renew_time; /* for people; compared only for equality */
} Lease;

enum { LEASE_E_MALFORMED = 1 };

/* The defaults of client-go and kube-scheduler: a candidate waits LEASE_SEC without a renewal, a
 * leader that cannot renew stops after LEASE_RENEW_DEADLINE_SEC. */
enum { LEASE_SEC = 15, LEASE_RENEW_DEADLINE_SEC = 10 };

/* A Binding is answered or given up after this time. That is less than from a leader's renew
 * deadline to the end of its lease, so it ends before another instance can lead. */
enum { LEASE_BINDING_SEC = 4 };

/* *ret holds views of json and arena. Returns 0, LEASE_E_MALFORMED or -ENOMEM. */
int lease_decode(Str json, Arena *arena, Lease *ret, Fault *fault);

/* Writes the whole object for POST and PUT. metadata empty: a new Lease of this name. */
void lease_write(Buf *out, const Lease *lease, const char *namespace_, const char *name);

/* Appends the path of the Lease; name NULL: of all Leases of the namespace. */
void lease_path(Buf *out, const char *namespace_, const char *name);

/* CLOCK_BOOTTIME goes on while the machine sleeps, as the lease does. */
static inline usec_t lease_now(void) {
        return clock_nsec(CLOCK_BOOTTIME) / NSEC_PER_USEC;
}

/* Makes two timers: *next, which is due at once, and *deadline, by the clock of lease_now(), which
 * is off. Returns a negative errno on failure. */
int lease_timers(sd_event *event, sd_event_time_handler_t on_next, sd_event_time_handler_t on_deadline,
                 void *userdata, sd_event_source **next, sd_event_source **deadline);
