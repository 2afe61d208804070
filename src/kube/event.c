/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <time.h>
#include <uthash.h>

#include "base/log.h"
#include "kube/api.h"
#include "wire/json_write.h"

/* What client-go's correlator does, in small: the same words about the same object are one Event with a count, and an
 * object that is talked about without end is told of ever more rarely. */

enum {
        SAME_USEC_WINDOW = 600, /* seconds in which a repeat is counted instead of created */
        BURST = 25,             /* events per object at once */
        REFILL = 300,           /* seconds for one more */
        REMEMBERED = 4096,      /* different events; the oldest goes first */
};

typedef struct Series {
        UT_hash_handle hh;
        char *key;  /* object, reason, note */
        char *path; /* of the Event object */
        unsigned count;
        usec_t last;
} Series;

typedef struct Budget {
        UT_hash_handle hh;
        char *uid;
        double tokens;
        usec_t last;
} Budget;

struct KubeEventRecorder {
        KubeClient *client;
        char *component;
        Series *series;
        Budget *budgets;
        unsigned serial;
        uint64_t lost;
};

int kube_event_recorder_new(KubeClient *c, const char *component, KubeEventRecorder **ret) {
        KubeEventRecorder *r = calloc(1, sizeof *r);

        if (!r)
                return -ENOMEM;
        r->client = c;
        r->component = str_dup(str_from(component));
        if (!r->component) {
                free(r);
                return -ENOMEM;
        }
        *ret = r;
        return 0;
}

static void series_drop(KubeEventRecorder *r, Series *s) {
        HASH_DELETE(hh, r->series, s);
        free(s->key);
        free(s->path);
        free(s);
}

static void budget_drop(KubeEventRecorder *r, Budget *b) {
        HASH_DELETE(hh, r->budgets, b);
        free(b->uid);
        free(b);
}

KubeEventRecorder *kube_event_recorder_free(KubeEventRecorder *r) {
        if (!r)
                return NULL;
        while (r->series)
                series_drop(r, r->series);
        while (r->budgets)
                budget_drop(r, r->budgets);
        free(r->component);
        free(r);
        return NULL;
}

/* Replies may come after the recorder is gone: they know nothing of it. */
static void on_event_done(void *userdata, const KubeReply *reply) {
        if (reply->outcome != KUBE_DONE || reply->status >= 300)
                log_debug("event lost: %s", reply->fault.text);
}

/* May this object be talked about once more? */
static bool spend(KubeEventRecorder *r, Str uid, usec_t now) {
        Budget *b;

        HASH_FIND(hh, r->budgets, uid.data, uid.len, b);
        if (!b) {
                if (HASH_COUNT(r->budgets) >= REMEMBERED)
                        budget_drop(r, r->budgets); /* uthash keeps the order of insertion */
                b = calloc(1, sizeof *b);
                if (b)
                        b->uid = str_dup(uid);
                if (!b || !b->uid) {
                        free(b);
                        return false;
                }
                b->tokens = BURST;
                b->last = now;
                HASH_ADD_KEYPTR(hh, r->budgets, b->uid, uid.len, b);
        }
        b->tokens += (double) (now - b->last) / (double) (REFILL * USEC_PER_SEC);
        b->tokens = b->tokens < BURST ? b->tokens : BURST;
        b->last = now;
        if (b->tokens < 1)
                return false;
        b->tokens -= 1;
        return true;
}

static Str namespace_of(const KubeEvent *e) {
        /* An Event about a cluster-scoped object lives in default. */
        return str_is_empty(e->namespace_) ? STR("default") : e->namespace_;
}

static void write_event(const KubeEventRecorder *r, const KubeEvent *e, const char *name, Buf *out) {
        char now[32];
        time_t seconds = time(NULL);
        struct tm utc;
        JsonWriter w;

        (void) strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "apiVersion", "v1");
        json_write_text(&w, "kind", "Event");
        json_write_object(&w, "metadata");
        json_write_text(&w, "name", name);
        json_write_str(&w, "namespace", namespace_of(e));
        json_write_object_end(&w);
        json_write_object(&w, "involvedObject");
        json_write_text(&w, "apiVersion", "v1");
        json_write_text(&w, "kind", e->kind);
        json_write_str(&w, "name", e->name);
        json_write_str(&w, "namespace", e->namespace_);
        json_write_str(&w, "uid", e->uid);
        json_write_object_end(&w);
        json_write_text(&w, "type", e->type);
        json_write_text(&w, "reason", e->reason);
        json_write_text(&w, "message", e->note);
        json_write_u64(&w, "count", 1);
        json_write_text(&w, "firstTimestamp", now);
        json_write_text(&w, "lastTimestamp", now);
        json_write_object(&w, "source");
        json_write_text(&w, "component", r->component);
        json_write_object_end(&w);
        json_write_object_end(&w);
}

static int create_event(KubeEventRecorder *r, const KubeEvent *e, Series *s) {
        _cleanup_free_ char *name = NULL, *path = NULL;
        _cleanup_buf_ Buf body = BUF_NULL;
        KubeRequest request = {.method = "POST"};
        Str ns = namespace_of(e);

        /* As client-go names them: the object's name and a number that no other has. */
        if (asprintf(&name, "%.*s.%llx%x", (int) (e->name.len < 200 ? e->name.len : 200), e->name.data,
                     (unsigned long long) clock_realtime_nsec(), r->serial++) < 0) {
                name = NULL;
                return -ENOMEM;
        }
        if (asprintf(&path, "/api/v1/namespaces/" STR_FMT "/events", STR_ARG(ns)) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (asprintf(&s->path, "%s/%s", path, name) < 0) {
                s->path = NULL;
                return -ENOMEM;
        }
        write_event(r, e, name, &body);
        if (buf_result(&body) < 0)
                return -ENOMEM;
        request.path = path;
        request.body = buf_str(&body);
        return kube_call(r->client, &request, on_event_done, NULL, NULL);
}

static int count_event(KubeEventRecorder *r, Series *s) {
        char patch[128], now[32];
        time_t seconds = time(NULL);
        struct tm utc;

        (void) strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
        (void) snprintf(patch, sizeof patch, "{\"count\":%u,\"lastTimestamp\":\"%s\"}", s->count, now);
        return kube_merge_patch(r->client, s->path, "", str_from(patch), STR(""), on_event_done, NULL, NULL);
}

static Series *series_of(KubeEventRecorder *r, const KubeEvent *e) {
        _cleanup_free_ char *key = NULL;
        Series *s;

        if (asprintf(&key, STR_FMT "\n%s\n%s", STR_ARG(e->uid), e->reason, e->note) < 0) {
                key = NULL;
                return NULL;
        }
        HASH_FIND_STR(r->series, key, s);
        if (s)
                return s;
        if (HASH_COUNT(r->series) >= REMEMBERED)
                series_drop(r, r->series);
        s = calloc(1, sizeof *s);
        if (!s)
                return NULL;
        s->key = TAKE_PTR(key);
        HASH_ADD_KEYPTR(hh, r->series, s->key, strlen(s->key), s);
        return s;
}

void kube_event(KubeEventRecorder *r, const KubeEvent *e) {
        usec_t now = clock_monotonic_usec();
        Series *s = series_of(r, e);
        int q;

        if (!s || !spend(r, e->uid, now)) {
                r->lost++;
                return;
        }
        if (s->path && now - s->last < SAME_USEC_WINDOW * USEC_PER_SEC) {
                s->count++;
                q = count_event(r, s);
        } else {
                free(s->path);
                s->path = NULL;
                s->count = 1;
                q = create_event(r, e, s);
        }
        s->last = now;
        if (q < 0)
                r->lost++;
}
