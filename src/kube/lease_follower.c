/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease_follower.h"

#include <errno.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/state_file.h"
#include "kube/lease_term.h"

#define READ_EVERY   (1 * USEC_PER_SEC)
#define READ_PAUSE   (200 * USEC_PER_MSEC) /* between two reads, however often a look is asked for */
#define READ_TIMEOUT (3 * USEC_PER_SEC)    /* three of them fit into the deadline */

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

enum { HOLDER_SHOWN = 128, BOOT_ID_MAX = 64, FILE_MAX = 64 * 1024 /* bytes */ };

struct LeaseFollower {
        KubeClient *client;
        char *path, *label, *prefix; /* label: "NAMESPACE/NAME" */
        char *file;                  /* NULL: nothing is kept */
        Buf boot;                    /* of the machine, one line; its clock began with it */
        bool file_fails;             /* the last write did, and was logged */
        void (*on_change)(void *userdata, bool leading);
        void *userdata;

        LeaseTerm term;
        bool leading; /* what on_change was last called with */
        KubeCall *call;
        usec_t sent;
        bool look_again;           /* a look was asked for while a read was under way */
        sd_event_source *next;     /* the next read */
        sd_event_source *deadline; /* fires when leading must end, or may begin */
        Fault trouble;             /* why the last read failed; "": it did not */
        Fault why_not;
};

bool lease_follower_is_leading(const LeaseFollower *f) {
        return lease_term_state(&f->term, lease_now()) == LEASE_TERM_LEADING;
}

/* ---- the state ---- */

/* Sets the time at which the state changes although no read ends. */
static void arm_deadline(LeaseFollower *f, LeaseTermState state) {
        usec_t at = state == LEASE_TERM_LEADING ? f->term.expiry : f->term.from;

        if (state != LEASE_TERM_LEADING && state != LEASE_TERM_TOO_SOON) {
                (void) sd_event_source_set_enabled(f->deadline, SD_EVENT_OFF);
                return;
        }
        /* fail only for a dead source */
        (void) sd_event_source_set_time(f->deadline, at);
        (void) sd_event_source_set_enabled(f->deadline, SD_EVENT_ONESHOT);
}

static void settle_term(LeaseFollower *f) {
        LeaseTermState state = lease_term_state(&f->term, lease_now());
        bool leading = state == LEASE_TERM_LEADING;

        arm_deadline(f, state);
        if (leading == f->leading)
                return;
        f->leading = leading;
        f->on_change(f->userdata, leading);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        settle_term(userdata);
        return 0;
}

static void explain_term(const LeaseFollower *f, Fault *ret) {
        const char *lease = f->label;
        Str holder = buf_str(&f->term.holder);

        switch (lease_term_state(&f->term, lease_now())) {
        case LEASE_TERM_UNREAD:
                (void) fault_set(ret, 0, "Lease %s was not read yet", lease);
                break;
        case LEASE_TERM_ABSENT:
                (void) fault_set(ret, 0, "Lease %s does not exist: no kube-scheduler leads", lease);
                break;
        case LEASE_TERM_FREE:
                (void) fault_set(ret, 0, "Lease %s has no holder", lease);
                break;
        case LEASE_TERM_FOREIGN:
                (void) fault_set(
                        ret, 0, "Lease %s is held by %.*s, and not by the kube-scheduler of host %.*s", lease,
                        STR_CUT(holder, HOLDER_SHOWN), (int) strlen(f->prefix) - 1, f->prefix);
                break;
        case LEASE_TERM_STALE:
                (void) fault_set(ret, 0, "Lease %s was not seen renewed in time by %.*s", lease,
                                 STR_CUT(holder, HOLDER_SHOWN));
                break;
        case LEASE_TERM_TOO_SOON:
                (void) fault_set(ret, 0, "Lease %s went to %.*s from a holder that may still act", lease,
                                 STR_CUT(holder, HOLDER_SHOWN));
                break;
        case LEASE_TERM_LEADING:
                break;
        }
}

const char *lease_follower_why_not(LeaseFollower *f) {
        Fault said = FAULT_NULL;

        explain_term(f, &said);
        if (!said.text[0])
                return NULL;
        (void) fault_set(&f->why_not, 0, "%.600s%s%.300s", said.text, f->trouble.text[0] ? "; " : "",
                         f->trouble.text);
        return f->why_not.text;
}

/* ---- what is kept for the next process ---- */

/* An older text may name a term that was lost since, so a failure leaves none. */
static void keep_term(LeaseFollower *f) {
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL;
        int r;

        if (!f->file)
                return;
        if (!f->term.read) {
                (void) unlink(f->file);
                return;
        }
        buf_append_str(&text, buf_str(&f->boot));
        lease_term_write(&f->term, &text);
        r = state_file_write(f->file, &text, 0600, &fault);
        if (r < 0) {
                (void) unlink(f->file);
                if (!f->file_fails)
                        log_warning("%s; after a restart this replica waits for a renewal of the Lease",
                                    fault.text);
        }
        f->file_fails = r < 0;
}

/* Nothing is taken over when it cannot be read, or is of another boot. */
static void take_kept_term(LeaseFollower *f) {
        _cleanup_buf_ Buf text = BUF_NULL;
        Str rest;
        int r = file_read(BOOT_ID, BOOT_ID_MAX, &f->boot);

        if (r < 0 || f->boot.len == 0 || f->boot.data[f->boot.len - 1] != '\n') {
                log_warning("cannot read " BOOT_ID ": a restart is not told from a boot, and nothing is "
                            "kept in %s",
                            f->file);
                free(f->file);
                f->file = NULL;
                return;
        }
        r = file_read(f->file, FILE_MAX, &text);
        if (r < 0) {
                if (r != -ENOENT)
                        log_warning("cannot read %s: %s", f->file, strerror(-r));
                return;
        }
        rest = buf_str(&text);
        if (!str_has_prefix(rest, buf_str(&f->boot)))
                return;
        rest = (Str){rest.data + f->boot.len, rest.len - f->boot.len};
        if (lease_term_parse(&f->term, rest, lease_now()) != 0)
                log_warning("%s is not what this program writes", f->file);
}

/* ---- reading ---- */

static void read_after(LeaseFollower *f, usec_t delay) {
        /* fail only for a dead source */
        (void) sd_event_source_set_time_relative(f->next, delay);
        (void) sd_event_source_set_enabled(f->next, SD_EVENT_ONESHOT);
}

static void read_soon(LeaseFollower *f) {
        usec_t since = lease_now() - f->sent;

        read_after(f, since < READ_PAUSE ? READ_PAUSE - since : 0);
}

static void take_reply(LeaseFollower *f, const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Lease lease;
        int r;

        f->trouble = reply->fault;
        if (reply->outcome != KUBE_DONE)
                return;
        if (reply->status == 404)
                r = lease_term_read(&f->term, NULL, f->sent, lease_now());
        else if (reply->status != 200)
                return;
        else {
                r = lease_decode(reply->body, &arena, &lease, &f->trouble);
                if (r == 0)
                        r = lease_term_read(&f->term, &lease, f->sent, lease_now());
        }
        if (r == 0)
                f->trouble = FAULT_NULL;
        else if (r < 0)
                (void) fault_set(&f->trouble, r, "out of memory");
}

static void on_read(void *userdata, const KubeReply *reply) {
        LeaseFollower *f = userdata;
        bool again = f->look_again;
        usec_t seen = f->term.seen;

        f->call = NULL;
        f->look_again = false;
        take_reply(f, reply);
        if (f->term.seen != seen)
                keep_term(f);
        if (again)
                read_soon(f);
        else
                read_after(f, READ_EVERY);
        settle_term(f);
}

static int on_next(sd_event_source *source, uint64_t usec, void *userdata) {
        LeaseFollower *f = userdata;
        KubeRequest request = {.method = "GET", .path = f->path, .timeout = READ_TIMEOUT};

        f->sent = lease_now();
        if (kube_call(f->client, &request, on_read, f, &f->call) < 0)
                read_after(f, READ_EVERY);
        return 0;
}

void lease_follower_look(LeaseFollower *f) {
        if (f->leading)
                return;
        if (f->call)
                f->look_again = true; /* it may have been sent before the Lease was taken */
        else
                read_soon(f);
}

/* ---- beginning and end ---- */

static int set_texts(LeaseFollower *f, const LeaseFollowerOptions *o) {
        _cleanup_buf_ Buf path = BUF_NULL, label = BUF_NULL, prefix = BUF_NULL;

        lease_path(&path, o->namespace_, o->name);
        buf_appendf(&label, "%s/%s", o->namespace_, o->name);
        buf_appendf(&prefix, "%s_", o->host);
        f->path = buf_take(&path);
        f->label = buf_take(&label);
        f->prefix = buf_take(&prefix);
        f->file = o->file ? strdup(o->file) : NULL;
        f->term.prefix = str_from(f->prefix);
        return f->path && f->label && f->prefix && !f->file == !o->file ? 0 : -ENOMEM;
}

int lease_follower_new(KubeClient *c, const LeaseFollowerOptions *options,
                       void (*on_change)(void *userdata, bool leading), void *userdata, LeaseFollower **ret) {
        _cleanup_(lease_follower_freep) LeaseFollower *f = calloc(1, sizeof *f);
        int r;

        if (!f)
                return -ENOMEM;
        f->client = c;
        f->on_change = on_change;
        f->userdata = userdata;
        r = set_texts(f, options);
        if (r == 0)
                r = lease_timers(kube_client_event(c), on_next, on_deadline, f, &f->next, &f->deadline);
        if (r < 0)
                return r;
        if (f->file)
                take_kept_term(f);
        *ret = TAKE_PTR(f);
        return 0;
}

LeaseFollower *lease_follower_free(LeaseFollower *f) {
        if (!f)
                return NULL;
        kube_call_free(f->call);
        sd_event_source_disable_unref(f->next);
        sd_event_source_disable_unref(f->deadline);
        lease_term_done(&f->term);
        free(f->path);
        free(f->label);
        free(f->prefix);
        free(f->file);
        buf_done(&f->boot);
        free(f);
        return NULL;
}
