/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/controllers/policy_keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/timestamp.h"
#include "kube/api.h"
#include "kube/escape.h"
#include "scheduler/question/policy_bind.h"
#include "scheduler/view/policy_probe.h"
#include "share/fault_join.h"
#include "wire/annotation.h"
#include "wire/json_write.h"

#define TICK        (1 * USEC_PER_SEC)
#define AGAIN_AFTER (30 * USEC_PER_SEC)

/* The most writes of one tick: a policy that selects all pods must not flood the API server. */
enum { KICKS_MAX = 50, PATCHES_MAX = 10, STATUSES_MAX = 10 };

#define REASON_INVALID "ResourcePolicyInvalid"
#define REASON_IGNORED "ResourcePolicyIgnored"
#define REASON_OVERLAP "ResourcePolicyOverlap"

/* A status or a kick that is under way. Its policy or pod may be gone when it is answered. */
typedef struct Sending {
        struct Sending *next;
        PolicyKeeper *keeper;
        size_t key_len;
        char key[]; /* Policy.key, or the UID of the pod */
} Sending;

struct PolicyKeeper {
        SchedulerContext *context;
        PolicyTable *table; /* the view's */
        sd_event_source *timer;
        Sending *sending;
};

/* The conditions of a policy's last status. */
typedef struct PolicyReport {
        bool written;           /* a status has been made */
        uint64_t version, hash; /* Policy.version, and hash of the patch that was sent */
        usec_t again;           /* when to send a status that failed once more; 0: none failed */
        bool accepted, waits;
        char accepted_since[32], waits_since[32];
} PolicyReport;

/* ---- the status ---- */

static void write_units(JsonWriter *w, const Policy *p) {
        json_write_array(w, "units");
        for (size_t k = 0; k < p->spec.n_units; k++) {
                const PolicyUnit *u = &p->spec.units[k];

                json_write_object(w, NULL);
                json_write_u64(w, "unit", k + 1);
                json_write_str(w, "resource", u->resource);
                json_write_u64(w, "nodes", p->nodes[k]);
                json_write_u64(w, "pods", p->placed[k]);
                if (u->has_max)
                        json_write_u64(w, "max", u->max);
                json_write_object_end(w);
        }
        json_write_array_end(w);
}

static void write_condition(JsonWriter *w, const char *type, bool is, const char *since, const char *reason,
                            const char *message) {
        json_write_object(w, NULL);
        json_write_text(w, "type", type);
        json_write_text(w, "status", is ? "True" : "False");
        json_write_text(w, "lastTransitionTime", since);
        json_write_text(w, "reason", reason);
        json_write_text(w, "message", message);
        json_write_object_end(w);
}

static void keep_since(bool written, bool was, bool is, const char *now, char *since, size_t size) {
        if (!written || was != is)
                (void) snprintf(since, size, "%s", now);
}

/* Joins what of the spec has no effect, and which units have no nodes. */
static void say_ignored(const Policy *p, Fault *ret) {
        *ret = p->spec.ignored;
        if (!p->was_ready)
                return;
        for (size_t k = 0; k < p->spec.n_units; k++) {
                Fault empty = FAULT_NULL;

                if (p->nodes[k] > 0)
                        continue;
                (void) fault_set(&empty, 0, "spec.units[%zu] selects no node now", k);
                fault_join(ret, &empty);
        }
}

/* Appends the status as a merge patch. *report gets its conditions. now: RFC 3339, the
 * lastTransitionTime of a condition that changes. */
static void write_status(const Policy *p, uint32_t pods_wait, const char *now, PolicyReport *report,
                         Buf *out) {
        bool accepted = p->spec.wrong.text[0] == '\0', waits = pods_wait > 0;
        uint64_t pods = 0;
        Fault ignored;
        char why[160];
        JsonWriter w;

        say_ignored(p, &ignored);
        keep_since(report->written, report->accepted, accepted, now, report->accepted_since,
                   sizeof report->accepted_since);
        keep_since(report->written, report->waits, waits, now, report->waits_since,
                   sizeof report->waits_since);
        report->written = true;
        report->accepted = accepted;
        report->waits = waits;
        for (size_t k = 0; k < p->spec.n_units; k++)
                pods += p->placed[k];
        (void) snprintf(why, sizeof why, "%u pods wait, the last one: %s", pods_wait, p->why);
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_object(&w, "status");
        json_write_i64(&w, "observedGeneration", p->spec.generation);
        json_write_u64(&w, "pods", pods);
        json_write_u64(&w, "waiting", pods_wait);
        write_units(&w, p);
        json_write_array(&w, "conditions");
        write_condition(&w, "Accepted", accepted, report->accepted_since,
                        !accepted         ? "Invalid"
                        : ignored.text[0] ? "PartlyIgnored"
                                          : "InForce",
                        accepted ? ignored.text : p->spec.wrong.text);
        write_condition(&w, "PodsWait", waits, report->waits_since, waits ? "NoUnitOpen" : "NoPodWaits",
                        waits ? why : "");
        json_write_array_end(&w);
        json_write_object_end(&w);
        json_write_object_end(&w);
}

/* ---- sending ---- */

static Sending *sending_new(PolicyKeeper *k, Str key) {
        Sending *s = calloc(1, sizeof *s + key.len);

        if (!s)
                return NULL;
        s->keeper = k;
        s->key_len = key.len;
        memcpy(s->key, key.data, key.len);
        s->next = k->sending;
        k->sending = s;
        return s;
}

static bool is_sending(const PolicyKeeper *k, Str key) {
        for (const Sending *s = k->sending; s; s = s->next)
                if (str_eq((Str){s->key, s->key_len}, key))
                        return true;
        return false;
}

static void sending_free(Sending *s) {
        Sending **at = &s->keeper->sending;

        while (*at != s)
                at = &(*at)->next;
        *at = s->next;
        free(s);
}

static void on_status(void *userdata, const KubeReply *reply) {
        Sending *s = userdata;
        Policy *p;

        HASH_FIND(hh, s->keeper->table->policies, s->key, s->key_len, p);
        sending_free(s);
        if (reply->outcome == KUBE_DONE && (reply->status < 300 || reply->status == 404))
                return;
        log_warning("the status of a resourcepolicy is not written: %s", reply->fault.text);
        if (p && p->report)
                p->report->again = clock_monotonic_usec() + AGAIN_AFTER;
}

static void on_patched(void *userdata, const KubeReply *reply) {
        if (reply->outcome != KUBE_DONE || (reply->status >= 300 && reply->status != 404))
                log_warning("a pod of a resourcepolicy is not patched: %s", reply->fault.text);
}

/* Repeats later a kick that failed and may succeed then. 409: another client wrote the pod
 * meanwhile. */
static void on_kicked(void *userdata, const KubeReply *reply) {
        Sending *s = userdata;
        PolicyPod *pod = policy_table_find(s->keeper->table, (Str){s->key, s->key_len});

        sending_free(s);
        on_patched(NULL, reply);
        if (pod && pod->wake == 0 && (kube_reply_is_transient(reply) || reply->status == 409))
                pod->wake = clock_monotonic_usec() + AGAIN_AFTER;
}

/* Sends a merge patch of a pod. uid: for a kick the UID of the pod, else empty. */
static void patch_pod(PolicyKeeper *k, Str namespace_, Str name, Str uid, Str patch) {
        Sending *s = str_is_empty(uid) ? NULL : sending_new(k, uid);
        _cleanup_buf_ Buf path = BUF_NULL;

        kube_pod_path(&path, namespace_, name);
        if (buf_result(&path) < 0 || kube_merge_patch(k->context->client, path.data, "", patch, STR(""),
                                                      s ? on_kicked : on_patched, s, NULL) < 0) {
                log_error("out of memory: a pod of a resourcepolicy is not patched");
                if (s)
                        sending_free(s);
        }
}

/* The annotation gets another text each time, also after a restart: a patch that changes nothing
 * wakes no pod. */
static void kick_pod(PolicyKeeper *k, Str namespace_, Str name, Str uid) {
        char patch[96];

        (void) snprintf(patch, sizeof patch,
                        "{\"metadata\":{\"annotations\":{\"" ANNOTATION_KICK "\":\"%" PRIu64 "\"}}}",
                        clock_realtime_nsec());
        patch_pod(k, namespace_, name, uid, str_from(patch));
}

static int send_status(PolicyKeeper *k, const Policy *p, Str patch) {
        _cleanup_buf_ Buf path = BUF_NULL;
        Sending *s = sending_new(k, p->key);
        int r;

        if (!s)
                return -ENOMEM;
        buf_append_str(&path, STR("/apis/scheduling.alibabacloud.com/v1alpha1/namespaces/"));
        kube_url_escape(&path, p->spec.meta.namespace_);
        buf_append_str(&path, STR("/" POLICY_RESOURCE "/"));
        kube_url_escape(&path, p->spec.meta.name);
        r = buf_result(&path);
        if (r == 0)
                r = kube_merge_patch(k->context->client, path.data, "status", patch, STR(""), on_status, s,
                                     NULL);
        if (r < 0)
                sending_free(s);
        return r;
}

static void tell_policy(PolicyKeeper *k, const Policy *p, const char *reason, const char *note) {
        if (note[0] != '\0')
                kube_event(k->context->recorder,
                           &(KubeEvent){.api_version = "scheduling.alibabacloud.com/v1alpha1",
                                        .kind = "ResourcePolicy",
                                        .namespace_ = p->spec.meta.namespace_,
                                        .name = p->spec.meta.name,
                                        .uid = p->spec.meta.uid,
                                        .type = "Warning",
                                        .reason = reason,
                                        .note = note});
}

static void on_overlap(void *userdata, const PolicyPod *pod, const Policy *second) {
        PolicyKeeper *k = userdata;
        Fault note = FAULT_NULL;

        (void) fault_set(&note, 0,
                         "resourcepolicies " STR_FMT " and " STR_FMT
                         " both select the pod; the first, which is older or comes first by name, applies",
                         STR_ARG(pod->policy->spec.meta.name), STR_ARG(second->spec.meta.name));
        if (scheduler_context_leads(k->context))
                kube_event_warn(
                        k->context->recorder, "Pod",
                        &(ObjectMeta){.namespace_ = pod->namespace_, .name = pod->name, .uid = pod->uid},
                        REASON_OVERLAP, note.text);
}

/* ---- one tick ---- */

static uint32_t count_waiting(const PolicyTable *t, const Policy *p) {
        uint32_t n = 0;

        for (const PolicyPod *pod = t->pods; pod; pod = pod->hh.next)
                n += pod->policy == p && pod->waits && pod->state == POLICY_POD_PENDING;
        return n;
}

/* Sends the status of a policy if it has changed. Returns whether one was made. */
static bool report_policy(PolicyKeeper *k, Policy *p, usec_t now) {
        Timestamp time = timestamp_seconds(clock_realtime_nsec());
        _cleanup_buf_ Buf patch = BUF_NULL;
        bool first = !p->report, again = !first && p->report->again > 0 && p->report->again <= now;
        uint64_t hash;

        if ((!first && !again && p->report->version == p->version) || is_sending(k, p->key))
                return false;
        if (first)
                p->report = calloc(1, sizeof *p->report);
        if (!p->report)
                return false;
        p->report->version = p->version;
        write_status(p, count_waiting(k->table, p), time.text, p->report, &patch);
        if (buf_result(&patch) < 0)
                return false;
        hash = str_hash64(buf_str(&patch), 0);
        if (!again && hash == p->report->hash)
                return false;
        p->report->hash = hash;
        p->report->again = 0;
        if (first) {
                tell_policy(k, p, REASON_INVALID, p->spec.wrong.text);
                tell_policy(k, p, REASON_IGNORED, p->spec.ignored.text);
        }
        if (send_status(k, p, buf_str(&patch)) < 0)
                p->report->again = now + AGAIN_AFTER;
        return true;
}

/* Each tick goes on where the last one ended, so that every policy gets its turn. */
static void report_all(PolicyKeeper *k, usec_t now) {
        PolicyTable *t = k->table;
        unsigned n = 0;

        for (size_t left = HASH_COUNT(t->policies); left > 0 && n < STATUSES_MAX; left--) {
                Policy *p = t->report_next ? t->report_next : t->policies;

                t->report_next = p->hh.next;
                n += report_policy(k, p, now);
        }
}

static void kick_orphans(PolicyKeeper *k, unsigned *n) {
        PolicyTable *t = k->table;

        while (t->orphans && (*n)++ < KICKS_MAX) {
                PolicyOrphan *o = t->orphans;

                t->orphans = o->next;
                kick_pod(k, o->namespace_, o->name, STR(""));
                free(o);
        }
}

static void kick_pods(PolicyKeeper *k, usec_t now, bool ready) {
        PolicyTable *t = k->table;
        unsigned kicks = 0;

        if (ready)
                kick_orphans(k, &kicks);
        for (size_t left = HASH_COUNT(t->pods); left > 0 && kicks < KICKS_MAX; left--) {
                PolicyPod *pod = t->kick_next ? t->kick_next : t->pods;

                t->kick_next = pod->hh.next;
                if (pod->wake == 0 || pod->wake > now)
                        continue;
                pod->wake = 0;
                if (pod->state != POLICY_POD_PENDING)
                        continue;
                kicks++;
                kick_pod(k, pod->namespace_, pod->name, pod->uid);
        }
}

static void patch_pods(PolicyKeeper *k, usec_t now) {
        _cleanup_buf_ Buf patch = BUF_NULL;
        PolicyTable *t = k->table;
        unsigned patches = 0;

        for (size_t left = HASH_COUNT(t->pods); left > 0 && patches < PATCHES_MAX; left--) {
                PolicyPod *pod = t->patch_next ? t->patch_next : t->pods;

                t->patch_next = pod->hh.next;
                if (pod->patched > 0 && now < pod->patched + AGAIN_AFTER)
                        continue;
                buf_clear(&patch);
                policy_bind_patch(pod, &patch);
                if (patch.len == 0 || buf_result(&patch) < 0)
                        continue;
                patches++;
                pod->patched = now;
                patch_pod(k, pod->namespace_, pod->name, STR(""), buf_str(&patch));
        }
}

void policy_keeper_tick(PolicyKeeper *k, usec_t now) {
        PolicyTable *t = k->table;
        bool ready;

        policy_table_settle(t, now);
        if (!scheduler_context_leads(k->context))
                return;
        ready = policy_table_wake_ready(t);
        kick_pods(k, now, ready);
        patch_pods(k, now);
        report_all(k, now);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata) {
        PolicyKeeper *k = userdata;

        k->timer = sd_event_source_disable_unref(k->timer);
        policy_keeper_tick(k, clock_monotonic_usec());
        policy_keeper_poke(k);
        return 0;
}

void policy_keeper_poke(PolicyKeeper *k) {
        if (k->timer || (!k->table->policies && !k->table->orphans))
                return;
        if (sd_event_add_time_relative(kube_client_event(k->context->client), &k->timer, CLOCK_MONOTONIC,
                                       TICK, TICK / 4, on_tick, k) < 0)
                log_error("out of memory: the status of resourcepolicies is not written");
}

int policy_keeper_new(SchedulerContext *context, PolicyKeeper **ret) {
        PolicyKeeper *k = calloc(1, sizeof *k);

        if (!k)
                return -ENOMEM;
        k->context = context;
        k->table = context->view->policies;
        k->table->on_overlap = on_overlap;
        k->table->userdata = k;
        *ret = k;
        return 0;
}

PolicyKeeper *policy_keeper_free(PolicyKeeper *k) {
        if (!k)
                return NULL;
        k->table->on_overlap = NULL;
        sd_event_source_disable_unref(k->timer);
        while (k->sending)
                sending_free(k->sending);
        free(k);
        return NULL;
}
