/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/elector.h"

#include <errno.h>

#include "base/timestamp.h"
#include "kube/lease.h"
#include "kube/random.h"

/* Why two instances never lead at once. A leader counts from the moment before it sent the renewal
 * that succeeded, and stops after renew_deadline. A candidate counts from the moment when it saw
 * the Lease change, which is later, and waits the whole lease. Since renew_deadline < lease, the
 * leader stops before the candidate begins. This holds for any time of day, as long as both clocks
 * run at the same rate. Every write carries the resourceVersion that was read: of two candidates
 * one gets a 409. */

enum {
        RETRY_SEC = 2,
        LEASE_MAX_SEC = 3600,        /* the longest lease of another instance that we wait for */
        LEASE_MAX_TEXT = 256 * 1024, /* other controllers may have annotated it */
};

typedef enum ElectorState {
        ELECTOR_FOLLOWING,
        ELECTOR_LEADING,
        ELECTOR_RELEASING,
        ELECTOR_RELEASED,
} ElectorState;

struct Elector {
        KubeClient *client;
        char *namespace_, *name, *identity;
        char *collection, *path; /* path for creating it; path of the Lease itself */
        usec_t lease, renew_deadline, retry;
        void (*on_change)(void *userdata, bool leading);
        void *userdata;

        ElectorState state;
        KubeCall *call;
        sd_event_source *next;     /* the next attempt */
        sd_event_source *deadline; /* fires when this instance must stop leading */
        /* the Lease as last read or written; empty when that is not certain */
        Buf known;
        Buf version;     /* the last resourceVersion that was seen... */
        usec_t observed; /* ...and when it was first seen */
        usec_t sent;     /* when the current write was sent */
        bool taking;     /* the write makes us leader or keeps us so; else it releases */
        usec_t renewed;  /* when the last successful write was sent */

        void (*released)(void *userdata);
        void *released_userdata;
        usec_t release_until;

        unsigned depth; /* a callback may be on the stack */
        bool doomed;
};

static void attempt_lease(Elector *e);

/* ---- the end of an elector ---- */

static void destroy_elector(Elector *e) {
        (void) kube_call_free(e->call); /* always NULL */
        sd_event_source_disable_unref(e->next);
        sd_event_source_disable_unref(e->deadline);
        buf_done(&e->known);
        buf_done(&e->version);
        free(e->namespace_);
        free(e->name);
        free(e->identity);
        free(e->collection);
        free(e->path);
        free(e);
}

static void enter_callback(Elector *e) {
        e->depth++;
}

static void leave_callback(Elector *e) {
        if (--e->depth == 0 && e->doomed)
                destroy_elector(e);
}

Elector *elector_free(Elector *e) {
        if (!e)
                return NULL;
        if (e->depth == 0) {
                destroy_elector(e);
                return NULL;
        }
        /* The client may be gone when the callback returns. */
        e->doomed = true;
        e->call = kube_call_free(e->call);
        e->next = sd_event_source_disable_unref(e->next);
        e->deadline = sd_event_source_disable_unref(e->deadline);
        return NULL;
}

/* ---- leading ---- */

bool elector_is_leading(const Elector *e) {
        return e->state == ELECTOR_LEADING && lease_now() < e->renewed + e->renew_deadline;
}

static void set_state(Elector *e, ElectorState state) {
        bool was = e->state == ELECTOR_LEADING, is = state == ELECTOR_LEADING;

        e->state = state;
        /* if it fires all the same, it finds nothing to
         * do */
        if (was && !is)
                (void) sd_event_source_set_enabled(e->deadline, SD_EVENT_OFF);
        if (was != is)
                e->on_change(e->userdata, is);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        Elector *e = userdata;

        enter_callback(e);
        if (e->state == ELECTOR_LEADING)
                set_state(e, ELECTOR_FOLLOWING);
        leave_callback(e);
        return 0;
}

/* A stored renewal counts from the moment it was sent; one that arrived too late does not count. */
static void lease_renewed(Elector *e) {
        e->renewed = e->sent;
        if (lease_now() >= e->renewed + e->renew_deadline ||
            sd_event_source_set_time(e->deadline, e->renewed + e->renew_deadline) < 0 ||
            sd_event_source_set_enabled(e->deadline, SD_EVENT_ONESHOT) < 0) {
                if (e->state == ELECTOR_LEADING)
                        set_state(e, ELECTOR_FOLLOWING);
                return;
        }
        set_state(e, ELECTOR_LEADING);
}

static void attempt_later(Elector *e) {
        usec_t wait = e->retry + random_up_to(e->retry / 5);

        if (e->doomed || sd_event_source_set_time_relative(e->next, wait) < 0)
                return;
        /* fails only for a dead source */
        (void) sd_event_source_set_enabled(e->next, SD_EVENT_ONESHOT);
}

/* ---- what is known ---- */

/* Decodes and keeps the Lease of an answer; *ret holds views of the reply. */
static int keep_lease(Elector *e, const KubeReply *reply, Arena *arena, Lease *ret) {
        int r;

        buf_clear(&e->known);
        if (reply->body.len > LEASE_MAX_TEXT)
                return -EFBIG;
        r = lease_decode(reply->body, arena, ret, NULL);
        if (r != 0)
                return r;
        buf_append_str(&e->known, reply->body);
        if (!str_eq(buf_str(&e->version), ret->resource_version)) {
                e->observed = lease_now();
                buf_clear(&e->version);
                buf_append_str(&e->version, ret->resource_version);
        }
        if (buf_result(&e->version) < 0)
                /* the version counts as new once more, so this instance waits longer */
                buf_clear(&e->version);
        return buf_result(&e->known);
}

static bool has_run_out(const Elector *e, const Lease *lease) {
        usec_t wait = e->lease;

        if (lease->duration_sec > 0 && lease->duration_sec <= LEASE_MAX_SEC &&
            (usec_t) lease->duration_sec * USEC_PER_SEC > wait)
                wait = (usec_t) lease->duration_sec * USEC_PER_SEC;
        return lease_now() - e->observed >= wait;
}

/* ---- writing ---- */

static void on_written(void *userdata, const KubeReply *reply);

static int write_lease(Elector *e, const Lease *lease, bool create, bool taking) {
        _cleanup_buf_ Buf body = BUF_NULL;
        KubeRequest request = {
                .method = create ? "POST" : "PUT",
                .path = create ? e->collection : e->path,
                .timeout = e->renew_deadline / 2,
        };

        lease_write(&body, lease, e->namespace_, e->name);
        if (buf_result(&body) < 0)
                return -ENOMEM;
        request.body = buf_str(&body);
        e->sent = lease_now();
        e->taking = taking;
        return kube_call(e->client, &request, on_written, e, &e->call);
}

/* Writes a Lease with this instance as the holder. from: the current Lease, NULL when there is
 * none. */
static int take_lease(Elector *e, const Lease *from) {
        Timestamp now = timestamp_micro(clock_realtime_nsec());
        Lease lease = from ? *from : (Lease){0};

        if (!str_eq(lease.holder, str_from(e->identity)) || str_is_empty(lease.acquire_time)) {
                lease.acquire_time = str_from(now.text);
                lease.transitions = from && from->transitions >= 0 && from->transitions < INT32_MAX
                                            ? from->transitions + 1
                                            : 0;
        }
        lease.holder = str_from(e->identity);
        lease.renew_time = str_from(now.text);
        lease.duration_sec = (int64_t) ((e->lease + USEC_PER_SEC - 1) / USEC_PER_SEC);
        return write_lease(e, &lease, from == NULL, true);
}

static int give_back(Elector *e, const Lease *from) {
        Timestamp now = timestamp_micro(clock_realtime_nsec());
        Lease lease = *from;

        lease.holder = STR("");
        lease.renew_time = str_from(now.text);
        lease.duration_sec = 1; /* no holder; the field must not be 0 */
        return write_lease(e, &lease, false, false);
}

static void lease_released(Elector *e) {
        set_state(e, ELECTOR_RELEASED);
        e->released(e->released_userdata);
}

static void on_written(void *userdata, const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Elector *e = userdata;
        bool written = reply->outcome == KUBE_DONE && (reply->status == 200 || reply->status == 201);
        bool taking = e->taking;
        Lease lease;

        enter_callback(e);
        e->call = NULL;
        e->taking = false;
        if (!written || keep_lease(e, reply, &arena, &lease) != 0)
                buf_clear(&e->known); /* it is read again before the next write */
        if (e->state == ELECTOR_RELEASING && taking)
                attempt_lease(e); /* a take-over sent before the release: undone if it succeeded */
        else if (e->state == ELECTOR_RELEASING && (written || lease_now() >= e->release_until))
                lease_released(e);
        else if (reply->outcome == KUBE_DONE && reply->status == 409 && e->state != ELECTOR_FOLLOWING)
                attempt_lease(e); /* reads at once whether the Lease is still ours */
        else {
                if (written)
                        lease_renewed(e);
                attempt_later(e);
        }
        leave_callback(e);
}

/* ---- deciding ---- */

/* Returns 0 when a request was sent, 1 when there is nothing to do now. */
static int decide_lease(Elector *e, const Lease *lease) {
        bool ours = str_eq(lease->holder, str_from(e->identity));

        if (e->state == ELECTOR_RELEASING) {
                if (ours)
                        return give_back(e, lease);
                lease_released(e);
                return 0;
        }
        if (ours || str_is_empty(lease->holder) || has_run_out(e, lease))
                return take_lease(e, lease);
        if (e->state == ELECTOR_LEADING)
                /* another instance holds it, whatever our clock says */
                set_state(e, ELECTOR_FOLLOWING);
        return 1;
}

static void on_read(void *userdata, const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Elector *e = userdata;
        Lease lease;
        int r = 1;

        enter_callback(e);
        e->call = NULL;
        if (reply->outcome == KUBE_DONE && reply->status == 404 && e->state != ELECTOR_RELEASING)
                r = take_lease(e, NULL);
        else if (reply->outcome == KUBE_DONE && reply->status == 200 &&
                 keep_lease(e, reply, &arena, &lease) == 0)
                r = decide_lease(e, &lease);
        if (r != 0 && e->state == ELECTOR_RELEASING && lease_now() >= e->release_until)
                lease_released(e);
        else if (r != 0)
                attempt_later(e);
        leave_callback(e);
}

/* The holder of the lease writes without reading first; if another instance has written since, the
 * answer is 409. */
static void attempt_lease(Elector *e) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        KubeRequest request = {.method = "GET", .path = e->path, .timeout = e->renew_deadline / 2};
        bool held = e->state == ELECTOR_LEADING || e->state == ELECTOR_RELEASING;
        Lease lease;
        int r;

        if (held && e->known.len > 0 && lease_decode(buf_str(&e->known), &arena, &lease, NULL) == 0)
                r = decide_lease(e, &lease);
        else
                r = kube_call(e->client, &request, on_read, e, &e->call);
        if (r != 0)
                attempt_later(e);
}

static int on_next(sd_event_source *source, uint64_t usec, void *userdata) {
        Elector *e = userdata;

        enter_callback(e);
        attempt_lease(e);
        leave_callback(e);
        return 0;
}

int elector_release(Elector *e, void (*done)(void *userdata), void *userdata) {
        bool asked = e->call && e->taking, held = asked || e->state == ELECTOR_LEADING;

        if (e->state == ELECTOR_RELEASING || e->state == ELECTOR_RELEASED)
                return 1;
        /* a read is cancelled; a take-over may be carried out, so its answer is awaited */
        if (!asked)
                e->call = kube_call_free(e->call);
        /* fails only for a dead source */
        (void) sd_event_source_set_enabled(e->next, SD_EVENT_OFF);
        e->released = done;
        e->released_userdata = userdata;
        e->release_until = lease_now() + e->renew_deadline;
        enter_callback(e);
        set_state(e, held ? ELECTOR_RELEASING : ELECTOR_RELEASED);
        if (held && !asked && !e->doomed)
                attempt_lease(e);
        leave_callback(e);
        return held ? 0 : 1;
}

/* ---- beginning ---- */

static int set_texts(Elector *e, const ElectorOptions *o) {
        _cleanup_buf_ Buf collection = BUF_NULL, path = BUF_NULL;

        lease_path(&collection, o->namespace_, NULL);
        lease_path(&path, o->namespace_, o->name);
        e->collection = buf_take(&collection);
        e->path = buf_take(&path);
        e->namespace_ = str_dup(str_from(o->namespace_));
        e->name = str_dup(str_from(o->name));
        e->identity = str_dup(str_from(o->identity));
        return e->collection && e->path && e->namespace_ && e->name && e->identity ? 0 : -ENOMEM;
}

static int set_times(Elector *e, const ElectorOptions *o) {
        e->lease = o->lease > 0 ? o->lease : LEASE_SEC * USEC_PER_SEC;
        e->renew_deadline =
                o->renew_deadline > 0 ? o->renew_deadline : LEASE_RENEW_DEADLINE_SEC * USEC_PER_SEC;
        e->retry = o->retry > 0 ? o->retry : RETRY_SEC * USEC_PER_SEC;
        return e->retry < e->renew_deadline && e->renew_deadline < e->lease ? 0 : -EINVAL;
}

int elector_new(KubeClient *c, const ElectorOptions *options, void (*on_change)(void *userdata, bool leading),
                void *userdata, Elector **ret) {
        _cleanup_(elector_freep) Elector *e = calloc(1, sizeof *e);
        int r;

        if (!e)
                return -ENOMEM;
        e->client = c;
        e->on_change = on_change;
        e->userdata = userdata;
        r = set_times(e, options);
        if (r == 0)
                r = set_texts(e, options);
        if (r == 0)
                r = lease_timers(kube_client_event(c), on_next, on_deadline, e, &e->next, &e->deadline);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(e);
        return 0;
}
