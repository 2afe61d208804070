/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/event.h"

#include <errno.h>
#include <inttypes.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/timestamp.h"
#include "kube/escape.h"
#include "wire/json_write.h"

/* Two tables: Events that were written, so that repeats are only counted, and objects, so that one
 * object in trouble cannot flood the server. Both drop their oldest entry beyond a bound; insertion
 * order is age, and use moves an entry to the end. */

enum {
        EVENT_MAX_SAID = 4096,
        EVENT_MAX_OBJECTS = 1024,
        EVENT_MAX_NOTE = 1024, /* the API server refuses longer notes */
        STEM_MAX = 230,        /* of the object's name, in that of its Event */
        EVENT_BURST = 25,      /* Events of one object at once */
        EVENT_REFILL_SEC = 300,
        EVENT_REPEAT_SEC = 600,
        /* Many Events at once leave most connections of the client to other calls, whose time would
         * pass while they wait for one. */
        EVENT_CALLS_MAX = 8,
        /* Without an answer: maxTriesPerEvent and defaultSleepDuration of client-go
         * (tools/record/event.go). */
        EVENT_MAX_TRIES = 12,
        EVENT_RETRY_SEC = 10,
        /* Of all objects, so that a burst of Events leaves the API server to the Bindings: the
         * kubelet's eventBurst and eventRecordQPS (kubelet/apis/config/v1beta1/defaults.go). */
        EVENTS_BURST = 100,
        EVENTS_PER_SEC = 50,
};

typedef struct Bucket {
        unsigned tokens;
        usec_t refilled;
} Bucket;

typedef struct Record {
        UT_hash_handle hh;
        KubeEventRecorder *recorder;
        char *key;  /* object, type, reason, and note; of an Event that replaces, its part */
        char *note; /* the last one, of an Event that replaces */
        char *path, *name;
        Buf head; /* the Event, except what each repeat changes */
        char *first;
        /* occurrences: so far; in the call's body; as the server has them, 0: no Event yet */
        uint64_t count, sent, written;
        usec_t last;
        unsigned n_failed; /* calls since the last one that was answered */
        KubeCall *call;
        bool waits; /* it is in the list of Events that wait for a free call */
        struct Record *next_waiting;
} Record;

typedef struct Object {
        UT_hash_handle hh;
        char *key;
        Bucket bucket;
} Object;

struct KubeEventRecorder {
        KubeClient *client;
        char *component;
        Record *said;
        Object *objects;
        KubeEventCounters counters;
        uint64_t serial; /* makes names unique within one nanosecond */
        size_t n_calls;
        Record *waiting, **waiting_end; /* in the order of their Events */
        Bucket bucket;
        unsigned n_failed;       /* calls of all Events since the last one that was answered */
        usec_t resumes;          /* no call before this time */
        sd_event_source *refill; /* fires at `resumes`, or when the bucket has its next token */
};

static int on_refill(sd_event_source *source, uint64_t usec, void *userdata);

int kube_event_recorder_new(KubeClient *c, const char *component, KubeEventRecorder **ret) {
        _cleanup_(kube_event_recorder_freep) KubeEventRecorder *r = calloc(1, sizeof *r);
        int n;

        if (!r)
                return -ENOMEM;
        r->client = c;
        r->bucket = (Bucket){EVENTS_BURST, clock_monotonic_usec()};
        r->waiting_end = &r->waiting;
        r->component = str_dup(str_from(component));
        if (!r->component)
                return -ENOMEM;
        n = sd_event_add_time(kube_client_event(c), &r->refill, CLOCK_MONOTONIC, 0, 0, on_refill, r);
        if (n >= 0)
                n = sd_event_source_set_enabled(r->refill, SD_EVENT_OFF);
        if (n < 0)
                return n;
        *ret = TAKE_PTR(r);
        return 0;
}

static void record_free(Record *s) {
        (void) kube_call_free(s->call); /* always NULL */
        free(s->key);
        free(s->note);
        free(s->path);
        free(s->name);
        free(s->first);
        buf_done(&s->head);
        free(s);
}

static void stop_waiting(KubeEventRecorder *r, Record *s) {
        Record **at = &r->waiting;

        while (*at != s)
                at = &(*at)->next_waiting;
        *at = s->next_waiting;
        if (!*at)
                r->waiting_end = at;
        s->waits = false;
}

/* Frees a record that is no longer in the table. */
static void record_drop(KubeEventRecorder *r, Record *s) {
        if (s->waits)
                stop_waiting(r, s);
        if (s->call)
                r->n_calls--;
        record_free(s);
}

static void record_forget(KubeEventRecorder *r, Record *s) {
        HASH_DEL(r->said, s);
        record_drop(r, s);
}

static void object_free(Object *o) {
        free(o->key);
        free(o);
}

KubeEventRecorder *kube_event_recorder_free(KubeEventRecorder *r) {
        Object *object, *next_object;

        if (!r)
                return NULL;
        while (r->said)
                record_forget(r, r->said);
        HASH_ITER(hh, r->objects, object, next_object) {
                HASH_DEL(r->objects, object);
                object_free(object);
        }
        sd_event_source_disable_unref(r->refill);
        free(r->component);
        free(r);
        return NULL;
}

KubeEventCounters kube_event_counters(const KubeEventRecorder *r) {
        return r->counters;
}

/* ---- rate ---- */

static void object_key(Buf *out, const KubeEvent *e) {
        buf_appendf(out, "%s\n" STR_FMT "\n" STR_FMT "\n" STR_FMT, e->kind, STR_ARG(e->namespace_),
                    STR_ARG(e->name), STR_ARG(e->uid));
}

/* Takes ownership of key. */
static Object *object_add(KubeEventRecorder *r, char *key, usec_t now) {
        Object *o = calloc(1, sizeof *o);

        if (!o) {
                free(key);
                return NULL;
        }
        *o = (Object){.key = key, .bucket = {EVENT_BURST, now}};
        HASH_ADD_KEYPTR(hh, r->objects, o->key, strlen(o->key), o);
        if (!hash_added(o, hh)) {
                object_free(o);
                return NULL;
        }
        if (HASH_COUNT(r->objects) > EVENT_MAX_OBJECTS) {
                Object *oldest = r->objects;
                HASH_DEL(r->objects, oldest);
                object_free(oldest);
        }
        return o;
}

/* Adds a token for each step that has passed, and takes one if there is any. */
static bool take_token(Bucket *b, unsigned burst, usec_t step, usec_t now) {
        uint64_t more = (now - b->refilled) / step;

        b->refilled += more * step;
        b->tokens = more >= burst - b->tokens ? burst : b->tokens + (unsigned) more;
        if (b->tokens == 0)
                return false;
        b->tokens--;
        return true;
}

/* Whether the rate of this object allows one more Event. */
static bool is_within_rate(KubeEventRecorder *r, const KubeEvent *e, usec_t now) {
        _cleanup_buf_ Buf key = BUF_NULL;
        Object *o = NULL;

        object_key(&key, e);
        if (buf_result(&key) < 0)
                return false;
        HASH_FIND(hh, r->objects, key.data, key.len, o);
        if (!o)
                o = object_add(r, buf_take(&key), now);
        return o && take_token(&o->bucket, EVENT_BURST, EVENT_REFILL_SEC * USEC_PER_SEC, now);
}

/* ---- writing ---- */

static void on_written(void *userdata, const KubeReply *reply);

static Str note_of(const char *note) {
        return (Str){note, strnlen(note, EVENT_MAX_NOTE)};
}

/* Writes everything that a repeat does not change, without the closing brace. */
static int write_head(Record *s, const KubeEvent *e, Str namespace_) {
        JsonWriter w;

        json_write_init(&w, &s->head);
        json_write_object(&w, NULL);
        json_write_text(&w, "apiVersion", "v1");
        json_write_text(&w, "kind", "Event");
        json_write_object(&w, "metadata");
        json_write_text(&w, "name", s->name);
        json_write_str(&w, "namespace", namespace_);
        json_write_object_end(&w);
        json_write_object(&w, "involvedObject");
        json_write_text(&w, "apiVersion", e->api_version ? e->api_version : "v1");
        json_write_text(&w, "kind", e->kind);
        if (!str_is_empty(e->namespace_))
                json_write_str(&w, "namespace", e->namespace_);
        json_write_str(&w, "name", e->name);
        json_write_str(&w, "uid", e->uid);
        json_write_object_end(&w);
        json_write_text(&w, "type", e->type);
        json_write_text(&w, "reason", e->reason);
        json_write_str(&w, "message", note_of(e->note));
        json_write_object(&w, "source");
        json_write_text(&w, "component", s->recorder->component);
        json_write_object_end(&w);
        json_write_text(&w, "reportingComponent", s->recorder->component);
        json_write_text(&w, "reportingInstance", "");
        json_write_text(&w, "firstTimestamp", s->first);
        return buf_result(&s->head);
}

static int create_event(Record *s, const char *now) {
        _cleanup_buf_ Buf body = BUF_NULL;

        buf_append_str(&body, buf_str(&s->head));
        buf_appendf(&body, ",\"lastTimestamp\":\"%s\",\"count\":%" PRIu64 "}", now, s->count);
        if (buf_result(&body) < 0)
                return -ENOMEM;
        return kube_call(s->recorder->client,
                         &(KubeRequest){.method = "POST", .path = s->path, .body = buf_str(&body)},
                         on_written, s, &s->call);
}

static int patch_event(Record *s, const char *now) {
        _cleanup_buf_ Buf path = BUF_NULL, body = BUF_NULL;

        buf_appendf(&path, "%s/", s->path);
        kube_url_escape(&path, str_from(s->name));
        buf_appendf(&body, "{\"lastTimestamp\":\"%s\",\"count\":%" PRIu64, now, s->count);
        if (s->note) {
                buf_append_str(&body, STR(",\"message\":"));
                json_write_quoted(&body, note_of(s->note));
        }
        buf_append_char(&body, '}');
        if (buf_result(&path) < 0 || buf_result(&body) < 0)
                return -ENOMEM;
        return kube_call(s->recorder->client,
                         &(KubeRequest){.method = "PATCH",
                                        .path = path.data,
                                        .content_type = "application/merge-patch+json",
                                        .body = buf_str(&body)},
                         on_written, s, &s->call);
}

static void send_record(Record *s) {
        Timestamp now = timestamp_seconds(clock_realtime_nsec());

        if ((s->written > 0 ? patch_event(s, now.text) : create_event(s, now.text)) < 0) {
                s->recorder->counters.lost++;
                return;
        }
        s->sent = s->count;
        s->recorder->n_calls++;
}

static void wait_until(KubeEventRecorder *r, usec_t when) {
        (void) sd_event_source_set_time(r->refill, when);
        (void) sd_event_source_set_enabled(r->refill, SD_EVENT_ONESHOT);
}

static void send_waiting(KubeEventRecorder *r) {
        const usec_t step = USEC_PER_SEC / EVENTS_PER_SEC;

        while (r->waiting && r->n_calls < EVENT_CALLS_MAX) {
                usec_t now = clock_monotonic_usec();
                Record *s = r->waiting;

                if (now < r->resumes) {
                        wait_until(r, r->resumes);
                        return;
                }
                if (!take_token(&r->bucket, EVENTS_BURST, step, now)) {
                        wait_until(r, r->bucket.refilled + step);
                        return;
                }
                stop_waiting(r, s);
                send_record(s);
        }
}

static int on_refill(sd_event_source *source, uint64_t usec, void *userdata) {
        (void) source;
        (void) usec;
        send_waiting(userdata);
        return 0;
}

/* Queues the Event to be written. It has one call at a time; repeats meanwhile go out with the
 * next. */
static void write_out(Record *s) {
        KubeEventRecorder *r = s->recorder;

        if (s->call || s->waits || s->written == s->count)
                return;
        s->waits = true;
        s->next_waiting = NULL;
        *r->waiting_end = s;
        r->waiting_end = &s->next_waiting;
        send_waiting(r);
}

/* Whether the call is repeated. It writes nothing twice: an Event has one name, and a patch sets
 * the count. */
static bool tries_again(Record *s, const KubeReply *reply) {
        KubeEventRecorder *r = s->recorder;
        usec_t now = clock_monotonic_usec();

        if (!kube_reply_is_transient(reply)) {
                s->n_failed = r->n_failed = 0;
                return false;
        }
        if (now >= r->resumes) /* calls that fail together count once */
                r->resumes = now + kube_backoff(r->n_failed++, USEC_PER_SEC, EVENT_RETRY_SEC * USEC_PER_SEC,
                                                reply->retry_after);
        return ++s->n_failed < EVENT_MAX_TRIES;
}

/* The server drops Events after an hour. A repeat of a dropped one is created anew with the next
 * repeat. 409 for a new Event: an earlier call had created it, and its answer was lost. */
static void on_written(void *userdata, const KubeReply *reply) {
        Record *s = userdata;
        KubeEventRecorder *r = s->recorder;
        bool again = tries_again(s, reply), done = reply->outcome == KUBE_DONE && !again;

        s->call = NULL;
        r->n_calls--;
        if (done && reply->status >= 200 && reply->status <= 299) {
                *(s->written > 0 ? &r->counters.repeated : &r->counters.created) += 1;
                s->written = s->sent;
        } else if (done && reply->status == 409 && s->written == 0) {
                r->counters.created++;
                s->written = 1;
        } else if (!again) {
                log_warning("an Event is lost: %s", reply->fault.text);
                r->counters.lost++;
                record_forget(r, s);
                s = NULL;
        }
        if (s)
                write_out(s);
        send_waiting(r);
}

/* ---- what was said ---- */

static Str namespace_of(const KubeEvent *e) {
        /* Events of nodes are in this namespace */
        return str_is_empty(e->namespace_) ? STR("default") : e->namespace_;
}

/* Names of objects and of Events have at most 253 bytes, so the object's name is cut to make room
 * for the unique suffix. What stands in front of a dot ends in a letter or digit (RFC 1123). */
static Str stem_of(Str name) {
        Str stem = {name.data, name.len < STEM_MAX ? name.len : STEM_MAX};

        while (stem.len > 0 && (stem.data[stem.len - 1] == '.' || stem.data[stem.len - 1] == '-'))
                stem.len--;
        return stem;
}

static int record_init(Record *s, const KubeEvent *e) {
        _cleanup_buf_ Buf path = BUF_NULL, name = BUF_NULL;
        uint64_t now = clock_realtime_nsec();

        buf_append_str(&path, STR("/api/v1/namespaces/"));
        kube_url_escape(&path, namespace_of(e));
        buf_append_str(&path, STR("/events"));
        buf_appendf(&name, STR_FMT ".%016" PRIx64, STR_ARG(stem_of(e->name)), now + s->recorder->serial++);
        s->path = buf_take(&path);
        s->name = buf_take(&name);
        s->first = str_dup(str_from(timestamp_seconds(now).text));
        if (!s->path || !s->name || !s->first)
                return -ENOMEM;
        return write_head(s, e, namespace_of(e));
}

/* Makes room for one more record by dropping the oldest that has nothing to send. False: all
 * have. */
static bool make_room(KubeEventRecorder *r) {
        Record *s = r->said;

        if (HASH_COUNT(r->said) < EVENT_MAX_SAID)
                return true;
        while (s && (s->call || s->waits))
                s = s->hh.next;
        if (s)
                record_forget(r, s);
        return s != NULL;
}

/* Takes ownership of key. NULL when out of memory, or when too many are not written yet. */
static Record *record_add(KubeEventRecorder *r, char *key, const KubeEvent *e) {
        Record *s = make_room(r) ? calloc(1, sizeof *s) : NULL;

        if (!s) {
                free(key);
                return NULL;
        }
        s->recorder = r;
        s->key = key;
        if (record_init(s, e) < 0) {
                record_free(s);
                return NULL;
        }
        HASH_ADD_KEYPTR(hh, r->said, s->key, strlen(s->key), s);
        if (!hash_added(s, hh)) {
                record_free(s);
                return NULL;
        }
        return s;
}

/* Finds the entry and moves it to the young end; NULL when there is none or it is too old. */
static Record *record_find(KubeEventRecorder *r, const Buf *key, usec_t now) {
        Record *s = NULL;

        HASH_FIND(hh, r->said, key->data, key->len, s);
        if (!s)
                return NULL;
        if (now - s->last > EVENT_REPEAT_SEC * USEC_PER_SEC) {
                record_forget(r, s);
                return NULL;
        }
        HASH_DEL(r->said, s);
        HASH_ADD_KEYPTR(hh, r->said, s->key, strlen(s->key), s);
        if (hash_added(s, hh))
                return s;
        record_drop(r, s);
        return NULL;
}

static void event_key(Buf *key, const KubeEvent *e) {
        object_key(key, e);
        buf_appendf(key, "\n%s\n%s", e->type, e->reason);
        buf_appendf(key, "\n%s", e->replaces ? e->part ? e->part : "" : e->note);
}

static int record_set_note(Record *s, const KubeEvent *e) {
        char *note;

        if (!e->replaces)
                return 0;
        note = str_dup(str_from(e->note));
        if (!note)
                return -ENOMEM;
        free(s->note);
        s->note = note;
        return 0;
}

void kube_event(KubeEventRecorder *r, const KubeEvent *e) {
        _cleanup_buf_ Buf key = BUF_NULL;
        usec_t now = clock_monotonic_usec();
        Record *s;

        if (!is_within_rate(r, e, now)) {
                r->counters.dropped++;
                return;
        }
        event_key(&key, e);
        if (buf_result(&key) < 0) {
                r->counters.lost++;
                return;
        }
        s = record_find(r, &key, now);
        if (!s)
                s = record_add(r, buf_take(&key), e);
        if (!s || record_set_note(s, e) < 0) {
                r->counters.lost++;
                return;
        }
        s->count++;
        s->last = now;
        write_out(s);
}
