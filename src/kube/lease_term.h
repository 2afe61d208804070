/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long a process may act for the holder of a Lease that it reads and does not renew. Pure: no
 * clock, no I/O. All times are of one clock of the reader, and none is read out of the Lease.
 *
 * A candidate of client-go takes a Lease when it has seen the same record for the whole lease
 * (leaderelection.go: isLeaseValid). The reader does not know when a renewal was written. It knows
 * that it was written after the reader sent the last read that still returned the older record. So
 * it counts from that moment, and stops after the renew deadline: that is before any candidate can
 * begin, whatever the time of day is on either machine.
 *
 * A record that names the reader's holder may also be written by hand, over a holder that lives.
 * The reader of that holder then stops at its next read, or after its own deadline at the latest.
 * Therefore a Lease counts only after a renew deadline where it changed its holder although the
 * earlier one had neither given it back nor been silent for that long. An election is told from a
 * hand by leaseTransitions, also where no read saw the Lease without a holder.
 *
 * A holder that gives the Lease back asks for no further Binding, but its reader may have one under
 * way. A Lease that was given back therefore counts after LEASE_BINDING_SEC. So does one that was
 * ours at the first read, or one with leaseTransitions of a holder between two reads.
 *
 * A reader that takes the place of one that was killed goes on with its term after a read of its
 * own, as after a long pause between two reads. All of the above holds for it. */

#include "base/buf.h"
#include "base/clock.h"
#include "kube/lease.h"

typedef enum LeaseTermState {
        LEASE_TERM_UNREAD,  /* no read of this reader has ended yet */
        LEASE_TERM_ABSENT,  /* there is no Lease */
        LEASE_TERM_FREE,    /* it has no holder */
        LEASE_TERM_FOREIGN, /* another process holds it */
        /* our holder has it; its renewal was never seen, or its deadline passed */
        LEASE_TERM_STALE,
        LEASE_TERM_TOO_SOON, /* our holder took it, and the earlier holder may still act */
        LEASE_TERM_LEADING,  /* our holder has it, and the reader may act */
} LeaseTermState;

typedef struct LeaseTerm {
        Str prefix; /* our holderIdentity is this prefix and a UUID; borrowed */
        Buf record; /* the Lease's fields that client-go compares; empty: there is no Lease */
        Buf holder; /* holderIdentity; "": none */
        bool read;  /* a read has ended... */
        bool kept;  /* ...of an earlier reader, and none of this one */
        bool ours;
        bool stranger;       /* the last holder was another one, or may have been */
        int64_t transitions; /* leaseTransitions of the record */
        usec_t seen;         /* when the first read that returned this record ended */
        usec_t sent;         /* when the last read that returned it was sent */
        usec_t from;         /* the reader may act from this time... */
        usec_t expiry;       /* ...until this; 0: never */
} LeaseTerm;

void lease_term_done(LeaseTerm *t);

/* Takes the outcome of a read that was sent at `sent` and has ended at `now`. lease NULL: there is
 * none. Reads must be consistent ones (GET without a resourceVersion), one after another. Returns
 * 0, or -ENOMEM: then the term counts as not read. */
int lease_term_read(LeaseTerm *t, const Lease *lease, usec_t sent, usec_t now);

LeaseTermState lease_term_state(const LeaseTerm *t, usec_t now);

/* Appends the term as text, for a later reader with the same prefix. */
void lease_term_write(const LeaseTerm *t, Buf *out);

/* Takes over what lease_term_write() wrote, by a clock that has not begun anew since. The term has
 * not been read before. Returns 0, -ENOMEM, or LEASE_E_MALFORMED: the text is none, or has times
 * that no reader can have had. On failure the term stays as it was. */
int lease_term_parse(LeaseTerm *t, Str text, usec_t now);
