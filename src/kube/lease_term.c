/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease_term.h"

#include <errno.h>

#include "base/minmax.h"

#define DEADLINE (LEASE_RENEW_DEADLINE_SEC * USEC_PER_SEC)
#define BINDING  (LEASE_BINDING_SEC * USEC_PER_SEC)

/* "2026-11-29T12:00:00": client-go compares the times of a record by the second
 * (LeaderElectionRecord has metav1.Time), so that a candidate does not see a renewal within the
 * same second. */
enum { WHOLE_SECONDS = 19 };

static Str seconds_of(Str time) {
        return (Str){time.data, time.len < WHOLE_SECONDS ? time.len : WHOLE_SECONDS};
}

/* Whether the holderIdentity is PREFIX and a UUID. An elector on the same host has the prefix and a
 * number. */
static bool is_ours(const LeaseTerm *t, Str holder) {
        static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
        const char *uuid;

        if (!str_has_prefix(holder, t->prefix) || holder.len != t->prefix.len + sizeof form - 1)
                return false;
        uuid = holder.data + t->prefix.len;
        for (size_t i = 0; i < sizeof form - 1; i++)
                if ((form[i] == '-') != (uuid[i] == '-'))
                        return false;
        return true;
}

/* The parts that a candidate compares. The resourceVersion is none of them: it also changes with
 * the metadata of the Lease. */
static void write_record(Buf *out, const Lease *lease) {
        buf_appendf(out, STR_FMT "\n" STR_FMT "\n" STR_FMT "\n%lld\n%lld", STR_ARG(lease->holder),
                    STR_ARG(seconds_of(lease->acquire_time)), STR_ARG(seconds_of(lease->renew_time)),
                    (long long) lease->duration_sec, (long long) lease->transitions);
}

/* How long a renewal lets the reader act: DEADLINE, and less in proportion for a Lease shorter than
 * LEASE_SEC. */
static usec_t term_of(const Lease *lease) {
        if (lease->duration_sec <= 0)
                return 0;
        if (lease->duration_sec >= LEASE_SEC)
                return DEADLINE;
        return (usec_t) lease->duration_sec * DEADLINE / LEASE_SEC;
}

void lease_term_done(LeaseTerm *t) {
        buf_done(&t->record);
        buf_done(&t->holder);
        *t = (LeaseTerm){.prefix = t->prefix};
}

/* leaseTransitions of a Lease that is absent: the first holder writes 0. */
enum { ABSENT = -1 };

/* How many holders came since the last read: each one but the first adds 1. A Lease that was
 * given back keeps the number. */
static uint64_t holders_since(const LeaseTerm *t, const Lease *lease) {
        return (uint64_t) lease->transitions - (uint64_t) t->transitions;
}

/* When our new holder may act, so that the holder before it has certainly stopped. 0: at once, for
 * that one did not renew the Lease for DEADLINE. After one of ours it is the time of that one. */
static usec_t begin_of(const LeaseTerm *t, const Lease *lease, usec_t now) {
        usec_t from;

        if (!t->read)
                return now + BINDING; /* another one may have given it back just before */
        if (!t->stranger)
                from = t->from;
        else if (t->sent > t->seen && t->sent - t->seen >= DEADLINE)
                from = 0;
        else if (t->holder.len == 0)
                from = t->seen + BINDING;
        else /* by an election, after it was given back; or by hand */
                from = now + (holders_since(t, lease) > 0 ? BINDING : DEADLINE);
        return holders_since(t, lease) <= 1 ? from : max_u64(from, now + BINDING);
}

int lease_term_read(LeaseTerm *t, const Lease *lease, usec_t sent, usec_t now) {
        _cleanup_buf_ Buf record = BUF_NULL, holder = BUF_NULL;
        bool ours = lease && is_ours(t, lease->holder);

        if (lease) {
                write_record(&record, lease);
                buf_append_str(&holder, lease->holder);
        }
        if (buf_result(&record) < 0 || buf_result(&holder) < 0) {
                lease_term_done(t);
                return -ENOMEM;
        }
        t->kept = false;
        if (t->read && str_eq(buf_str(&t->record), buf_str(&record))) {
                t->sent = sent;
                return 0;
        }
        if (ours)
                t->from = begin_of(t, lease, now);
        if (holder.len > 0 || (lease && (!t->read || holders_since(t, lease) > 0)))
                t->stranger = !ours;
        t->transitions = lease ? lease->transitions : ABSENT;
        t->expiry = ours && t->read ? t->sent + term_of(lease) : 0;
        t->read = true;
        t->ours = ours;
        t->seen = now;
        t->sent = sent;
        buf_done(&t->record);
        buf_done(&t->holder);
        t->record = record;
        t->holder = holder;
        record = holder = BUF_NULL;
        return 0;
}

/* ---- for the next reader ---- */

void lease_term_write(const LeaseTerm *t, Buf *out) {
        const usec_t times[] = {t->seen, t->sent, t->from, t->expiry, (uint64_t) t->transitions};

        for (size_t i = 0; i < ELEMENTSOF(times); i++)
                buf_appendf(out, "%llu ", (unsigned long long) times[i]);
        buf_appendf(out, "%d %zu\n", t->stranger, t->holder.len);
        buf_append_str(out, buf_str(&t->holder));
        buf_append_str(out, buf_str(&t->record));
}

int lease_term_parse(LeaseTerm *t, Str text, usec_t now) {
        _cleanup_buf_ Buf record = BUF_NULL, holder = BUF_NULL;
        Str line = str_split(&text, '\n');
        uint64_t n[7];

        for (size_t i = 0; i < ELEMENTSOF(n); i++)
                if (!str_to_u64(str_split(&line, ' '), &n[i]))
                        return LEASE_E_MALFORMED;
        if (line.len > 0 || n[0] > now || n[1] > now || n[2] > now + DEADLINE || n[3] > now + DEADLINE ||
            n[5] > 1 || n[6] > text.len)
                return LEASE_E_MALFORMED;
        buf_append_str(&holder, (Str){text.data, n[6]});
        buf_append_str(&record, (Str){text.data + n[6], text.len - n[6]});
        if (buf_result(&record) < 0 || buf_result(&holder) < 0)
                return -ENOMEM;
        *t = (LeaseTerm){.prefix = t->prefix,
                         .record = record,
                         .holder = holder,
                         .read = true,
                         .kept = true,
                         .ours = is_ours(t, buf_str(&holder)),
                         .stranger = n[5] == 1,
                         .seen = n[0],
                         .sent = n[1],
                         .from = n[2],
                         .expiry = n[3],
                         .transitions = (int64_t) n[4]};
        record = holder = BUF_NULL;
        return 0;
}

LeaseTermState lease_term_state(const LeaseTerm *t, usec_t now) {
        if (!t->read || t->kept)
                return LEASE_TERM_UNREAD;
        if (t->record.len == 0)
                return LEASE_TERM_ABSENT;
        if (t->holder.len == 0)
                return LEASE_TERM_FREE;
        if (!t->ours)
                return LEASE_TERM_FOREIGN;
        if (now >= t->expiry)
                return LEASE_TERM_STALE;
        return now < t->from ? LEASE_TERM_TOO_SOON : LEASE_TERM_LEADING;
}
