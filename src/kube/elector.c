/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/elector.h"

#include <errno.h>
#include <time.h>

#include "kube/lease.h"

/* Every `retry` one attempt: read the lease, and take or renew it by an update under the resourceVersion that was read,
 * so that two cannot both succeed. Whether somebody else's lease has run out is judged by how long *we* have seen it
 * unchanged. Our own is counted from the moment the successful update was sent, which is earlier than the moment it was
 * stored: we stop before anybody who waits a whole lease can begin. */

struct Elector {
        KubeClient *client;
        char *namespace_, *name, *identity, *path;
        usec_t lease, renew_deadline, retry;
        void (*on_change)(void *userdata, bool leading);
        void *userdata;
        KubeCall *call;
        sd_event_source *attempt_timer, *deadline_timer;
        bool leading, stopped;
        usec_t sent_at;     /* of the update in flight */
        usec_t observed_at; /* when the lease last changed before our eyes */
        Lease observed;     /* texts owned */
        void (*released)(void *userdata);
        void *released_userdata;
};

static void attempt(Elector *e);

static void set_leading(Elector *e, bool leading) {
        if (e->leading == leading)
                return;
        e->leading = leading;
        e->on_change(e->userdata, leading);
}

static int arm(sd_event_source *timer, usec_t when) {
        int r = sd_event_source_set_time(timer, when);

        return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static void attempt_later(Elector *e) {
        usec_t jitter = kube_backoff(0, e->retry / 5, e->retry / 5, 0);

        if (!e->stopped)
                (void) arm(e->attempt_timer, clock_monotonic_usec() + e->retry + jitter); /* bad times only */
}

static void lead_until(Elector *e, usec_t deadline) {
        if (arm(e->deadline_timer, deadline) >= 0) /* without the timer we must not lead */
                set_leading(e, true);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        set_leading(userdata, false);
        return 0;
}

/* ---- writing ---- */

static void on_written(void *userdata, const KubeReply *reply) {
        Elector *e = userdata;

        e->call = NULL;
        if (reply->outcome == KUBE_DONE && reply->status < 300)
                lead_until(e, e->sent_at + e->renew_deadline);
        attempt_later(e);
}

static int write_lease(Elector *e, const Lease *lease, bool create, KubeDone done) {
        _cleanup_buf_ Buf body = BUF_NULL;
        _cleanup_free_ char *parent = NULL;
        KubeRequest request = {
                .method = create ? "POST" : "PUT", .path = e->path, .timeout = e->renew_deadline / 2};

        lease_write(lease, str_from(e->namespace_), str_from(e->name), &body);
        if (buf_result(&body) < 0)
                return -ENOMEM;
        if (create) {
                parent = str_dup((Str){e->path, (size_t) (strrchr(e->path, '/') - e->path)});
                if (!parent)
                        return -ENOMEM;
                request.path = parent;
        }
        request.body = buf_str(&body);
        e->sent_at = clock_monotonic_usec();
        return kube_call(e->client, &request, done, e, &e->call);
}

/* ---- reading ---- */

static bool has_run_out(const Elector *e, usec_t now) {
        usec_t lease = e->observed.duration_seconds > 0 ? (usec_t) e->observed.duration_seconds * USEC_PER_SEC
                                                        : e->lease;

        return str_is_empty(e->observed.holder) || now - e->observed_at >= lease;
}

static int observe(Elector *e, const Lease *lease, usec_t now) {
        if (str_eq(lease->resource_version, e->observed.resource_version))
                return 0;
        e->observed_at = now;
        return lease_copy(&e->observed, lease);
}

static int take(Elector *e, bool create) {
        bool ours = !create && str_eq(e->observed.holder, str_from(e->identity));
        char now[40];
        Lease lease = {
                .resource_version = create ? STR("") : e->observed.resource_version,
                .holder = str_from(e->identity),
                .duration_seconds = (int64_t) ((e->lease + USEC_PER_SEC - 1) / USEC_PER_SEC),
                .transitions = create ? 0 : e->observed.transitions + !ours,
        };

        lease_now(now);
        lease.renew_time = str_from(now);
        lease.acquire_time = ours ? e->observed.acquire_time : lease.renew_time;
        return write_lease(e, &lease, create, on_written);
}

static void on_read(void *userdata, const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Elector *e = userdata;
        usec_t now = clock_monotonic_usec();
        Lease lease;
        int r = 1;

        e->call = NULL;
        if (reply->outcome == KUBE_DONE && reply->status == 404)
                r = take(e, true);
        else if (reply->outcome == KUBE_DONE && reply->status == 200 &&
                 lease_decode(reply->body, &arena, &lease) == 0 && observe(e, &lease, now) == 0) {
                bool ours = str_eq(e->observed.holder, str_from(e->identity));

                if (!ours && !str_is_empty(e->observed.holder))
                        set_leading(e, false); /* somebody took it: whatever our clock says */
                if (ours || has_run_out(e, now))
                        r = take(e, false);
        }
        if (r != 0)
                attempt_later(e);
}

static void attempt(Elector *e) {
        KubeRequest request = {.method = "GET", .path = e->path, .timeout = e->renew_deadline / 2};

        if (kube_call(e->client, &request, on_read, e, &e->call) < 0)
                attempt_later(e);
}

static int on_attempt(sd_event_source *source, uint64_t usec, void *userdata) {
        attempt(userdata);
        return 0;
}

/* ---- giving it back ---- */

static void on_released(void *userdata, const KubeReply *reply) {
        Elector *e = userdata;

        e->call = NULL;
        e->released(e->released_userdata); /* also when it failed: the lease runs out by itself */
}

/* The version may have moved with our own last renewal: it is read first. */
static void on_read_for_release(void *userdata, const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Elector *e = userdata;
        char now[40];
        Lease lease;

        e->call = NULL;
        if (reply->outcome == KUBE_DONE && reply->status == 200 &&
            lease_decode(reply->body, &arena, &lease) == 0 && str_eq(lease.holder, str_from(e->identity))) {
                lease_now(now);
                lease.holder = STR("");
                lease.duration_seconds = 1;
                lease.renew_time = str_from(now);
                if (write_lease(e, &lease, false, on_released) == 0)
                        return;
        }
        e->released(e->released_userdata);
}

int elector_release(Elector *e, void (*done)(void *userdata), void *userdata) {
        KubeRequest request = {.method = "GET", .path = e->path, .timeout = e->renew_deadline / 2};
        bool leading = e->leading;

        e->stopped = true;
        e->call = kube_call_free(e->call);
        (void) sd_event_source_set_enabled(e->attempt_timer, SD_EVENT_OFF); /* fails for NULL alone */
        set_leading(e, false);
        if (!leading)
                return 1;
        e->released = done;
        e->released_userdata = userdata;
        return kube_call(e->client, &request, on_read_for_release, e, &e->call);
}

/* ---- life ---- */

static int set_texts(Elector *e, const ElectorOptions *o) {
        e->namespace_ = str_dup(str_from(o->namespace_));
        e->name = str_dup(str_from(o->name));
        e->identity = str_dup(str_from(o->identity));
        if (asprintf(&e->path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s", o->namespace_,
                     o->name) < 0)
                e->path = NULL;
        return e->namespace_ && e->name && e->identity && e->path ? 0 : -ENOMEM;
}

int elector_new(KubeClient *c, const ElectorOptions *options, void (*on_change)(void *userdata, bool leading),
                void *userdata, Elector **ret) {
        _cleanup_(elector_freep) Elector *e = calloc(1, sizeof *e);
        sd_event *event = kube_client_event(c);
        int r;

        if (!e)
                return -ENOMEM;
        e->client = c;
        e->on_change = on_change;
        e->userdata = userdata;
        e->lease = options->lease ? options->lease : 15 * USEC_PER_SEC;
        e->renew_deadline = options->renew_deadline ? options->renew_deadline : 10 * USEC_PER_SEC;
        e->retry = options->retry ? options->retry : 2 * USEC_PER_SEC;
        r = set_texts(e, options);
        if (r == 0)
                r = sd_event_add_time_relative(event, &e->attempt_timer, CLOCK_MONOTONIC, 0, 1, on_attempt,
                                               e);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &e->deadline_timer, CLOCK_MONOTONIC, 0, 1, on_deadline,
                                               e);
        if (r >= 0)
                r = sd_event_source_set_enabled(e->deadline_timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(e);
        return 0;
}

Elector *elector_free(Elector *e) {
        if (!e)
                return NULL;
        kube_call_free(e->call);
        sd_event_source_disable_unref(e->attempt_timer);
        sd_event_source_disable_unref(e->deadline_timer);
        lease_done(&e->observed);
        free(e->namespace_);
        free(e->name);
        free(e->identity);
        free(e->path);
        free(e);
        return NULL;
}

bool elector_is_leading(const Elector *e) {
        return e->leading;
}
