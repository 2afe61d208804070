/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook/ca_injector.h"

#include <errno.h>
#include <stddef.h>

#include "base/base64.h"
#include "base/log.h"
#include "kube/random.h"
#include "kube/reflector.h"
#include "kube/writer.h"
#include "wire/json_field.h"
#include "wire/json_write.h"

/* least time between two writes: another writer may fight for the bundle */
#define WRITE_SPACING USEC_PER_SEC
#define WATCH_LAG     (5 * USEC_PER_SEC)
#define PATIENCE      (2 * USEC_PER_SEC) /* longer than an election takes, before a follower writes */

#define API "/apis/admissionregistration.k8s.io/v1/"

enum { TARGETS = 2, MAX_OBJECT = 1 << 20, WEBHOOKS_MAX = 64 };

static const char *const collections[TARGETS] = {API "mutatingwebhookconfigurations",
                                                 API "validatingwebhookconfigurations"};

typedef struct Target {
        CaInjector *injector;
        const char *collection;
        Reflector *reflector;
        Writer writer;
        usec_t written; /* when the last write began; 0: none */

        bool listed, seen;
        Buf object; /* text from the watch; empty: there is no such object */
        /* When a replica that does not lead may write the bundle, because a webhook of ours has
         * none at all; 0: no webhook lacks it. */
        usec_t bare;
        bool lacks; /* a webhook of ours has no bundle, or that is not known yet */
} Target;

struct CaInjector {
        CaInjectorOptions o;
        bool leading;
        Buf bundle; /* base64 */
        Target targets[TARGETS];
};

static void log_trouble(Target *t, const char *what, const char *why) {
        log_warning("%s/" CA_INJECTOR_NAME ": %s: %s", t->collection + sizeof API - 1, what, why);
}

/* ---- what a configuration says ---- */

typedef struct Hook {
        Str namespace_, name; /* of the Service */
        Str bundle;
} Hook;

static const JsonField service_fields[] = {
        JSON_FIELD(Hook, namespace_, "namespace", json_field_str),
        JSON_FIELD(Hook, name, "name", json_field_str),
};
JSON_DECODER(read_service, service_fields)

static const JsonField client_fields[] = {
        JSON_NESTED("service", read_service),
        JSON_FIELD(Hook, bundle, "caBundle", json_field_str),
};
JSON_DECODER(read_client, client_fields)

static const JsonField webhook_fields[] = {JSON_NESTED("clientConfig", read_client)};

typedef struct Configuration {
        Str name, version;
        Hook webhooks[WEBHOOKS_MAX];
        size_t n;
} Configuration;

static void read_webhooks(JsonReader *r, Arena *arena, void *ret) {
        Configuration *c = ret;

        c->n = 0;
        JSON_EACH_ELEMENT(r) {
                Hook w = {0};

                json_field_decode(r, arena, webhook_fields, ELEMENTSOF(webhook_fields), &w);
                if (c->n < WEBHOOKS_MAX)
                        c->webhooks[c->n++] = w; /* further ones are not ours */
        }
}

static const JsonField metadata_fields[] = {
        JSON_FIELD(Configuration, name, "name", json_field_str),
        JSON_FIELD(Configuration, version, "resourceVersion", json_field_str),
};
JSON_DECODER(read_metadata, metadata_fields)

static const JsonField configuration_fields[] = {JSON_NESTED("metadata", read_metadata),
                                                 JSON_NESTED("webhooks", read_webhooks)};

static int decode_configuration(Str json, Arena *arena, Configuration *ret, Fault *fault) {
        *ret = (Configuration){0};
        return json_field_read(json, arena, configuration_fields, ELEMENTSOF(configuration_fields), ret,
                               fault);
}

static bool is_ours(const CaInjector *i, const Hook *w) {
        return str_eq(w->namespace_, str_from(i->o.service_namespace)) &&
               str_eq(w->name, str_from(i->o.service_name));
}

/* ---- writing ---- */

static void keep_object(Target *t, Str object) {
        buf_clear(&t->object);
        buf_append_str(&t->object, object);
        if (buf_result(&t->object) < 0) {
                buf_done(&t->object);
                log_trouble(t, "cannot be kept", "out of memory");
        }
}

/* The object in the answer is not taken. The watch may have brought a newer one already, and
 * versions cannot be compared. It brings this write, too. */
static WriterNext on_answer(void *userdata, const KubeReply *reply, bool written) {
        Target *t = userdata;

        if (!written) {
                log_trouble(t, "caBundle cannot be written", reply->fault.text);
                return WRITER_PAUSE;
        }
        (void) writer_wake(&t->writer, WATCH_LAG); /* cannot fail: the timer exists */
        return WRITER_REST;
}

static void write_op(JsonWriter *w, const char *op, const char *path, Str value) {
        json_write_object(w, NULL);
        json_write_text(w, "op", op);
        json_write_text(w, "path", path);
        json_write_str(w, "value", value);
        json_write_object_end(w);
}

/* Whether writing would replace no real bundle: ours is absent, or some tool's placeholder ("
 * " is common), which does not begin with "-----BEGIN" in base64. */
static bool is_bare(const CaInjector *i, const Configuration *c) {
        bool bare = false;

        for (size_t k = 0; k < c->n; k++) {
                if (!is_ours(i, &c->webhooks[k]) || str_eq(c->webhooks[k].bundle, buf_str(&i->bundle)))
                        continue;
                if (str_has_prefix(c->webhooks[k].bundle, STR("LS0tLS1CRUdJT")))
                        return false;
                bare = true;
        }
        return bare;
}

/* Whether this replica may write now. A follower waits so that the leader, if there is one, writes
 * first. The random delay keeps followers from writing all at once. */
static bool may_write(Target *t, const Configuration *c) {
        usec_t now = clock_monotonic_usec();

        if (t->injector->leading)
                return true;
        if (!is_bare(t->injector, c)) {
                t->bare = 0;
                return false;
        }
        if (t->bare == 0)
                t->bare = now + PATIENCE + random_up_to(PATIENCE / 2);
        if (now >= t->bare)
                return true;
        (void) writer_wake(&t->writer, t->bare - now); /* cannot fail: the timer exists */
        return false;
}

/* Writes a JSON patch, because a merge patch would replace the whole list of webhooks. Returns the
 * number of bundles in it. */
static size_t write_patch(const CaInjector *i, const Configuration *c, Buf *out) {
        size_t n = 0;
        JsonWriter w;

        json_write_init(&w, out);
        json_write_array(&w, NULL);
        write_op(&w, "test", "/metadata/resourceVersion", c->version);
        for (size_t k = 0; k < c->n; k++) {
                char path[64];

                if (!is_ours(i, &c->webhooks[k]) || str_eq(c->webhooks[k].bundle, buf_str(&i->bundle)))
                        continue;
                (void) snprintf(path, sizeof path, "/webhooks/%zu/clientConfig/caBundle", k);
                write_op(&w, "add", path, buf_str(&i->bundle));
                n++;
        }
        json_write_array_end(&w);
        return n;
}

static int send_patch(Target *t, Str patch) {
        char path[128];
        KubeRequest request = {.method = "PATCH",
                               .path = path,
                               .content_type = "application/json-patch+json",
                               .body = patch};
        usec_t now = clock_monotonic_usec();

        if (t->written > 0 && now < t->written + WRITE_SPACING) {
                writer_pause(&t->writer, t->written + WRITE_SPACING - now);
                return 0;
        }
        (void) snprintf(path, sizeof path, "%s/" CA_INJECTOR_NAME, t->collection);
        t->written = now;
        log_info("writing the caBundle of %s/" CA_INJECTOR_NAME, t->collection + sizeof API - 1);
        return kube_call(t->injector->o.client, &request, writer_answer, &t->writer, &t->writer.call);
}

static int reconcile_target(void *userdata) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf patch = BUF_NULL;
        Target *t = userdata;
        CaInjector *i = t->injector;
        Fault fault = FAULT_NULL;
        Configuration c;
        size_t n;
        int r;

        if (!t->listed || i->bundle.len == 0)
                return 0;
        t->lacks = false;
        if (t->object.len == 0)
                return 0;
        if (decode_configuration(buf_str(&t->object), &arena, &c, &fault) != 0) {
                log_trouble(t, "cannot be read", fault.text);
                return 0;
        }
        t->lacks = is_bare(i, &c);
        n = write_patch(i, &c, &patch);
        if (n == 0)
                t->bare = 0;
        if (n == 0 || !may_write(t, &c))
                return 0;
        r = buf_result(&patch);
        if (r == 0)
                r = send_patch(t, buf_str(&patch));
        if (r < 0)
                log_trouble(t, "caBundle cannot be written", "out of memory");
        return r;
}

static const WriterRule rule = {USEC_PER_SEC / 2, 30 * USEC_PER_SEC, reconcile_target, on_answer};

/* ---- following ---- */

static void on_list_begin(void *userdata) {
        Target *t = userdata;

        t->seen = false;
}

static void on_object(void *userdata, ReflectorEvent event, Str object) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Target *t = userdata;
        Fault fault = FAULT_NULL;
        Configuration c;

        if (decode_configuration(object, &arena, &c, &fault) != 0) {
                log_trouble(t, "cannot be read", fault.text);
                return;
        }
        if (!str_eq(c.name, STR(CA_INJECTOR_NAME)))
                return;
        t->seen = event != REFLECTOR_DELETED;
        if (t->seen)
                keep_object(t, object);
        else
                buf_clear(&t->object);
        writer_poke(&t->writer);
}

static void on_list_end(void *userdata) {
        Target *t = userdata;

        t->listed = true;
        if (!t->seen)
                buf_clear(&t->object);
        writer_poke(&t->writer);
}

static void on_reflector_trouble(void *userdata, const Fault *fault) {
        Target *t = userdata;

        if (!t->listed)
                t->lacks = false;
        log_trouble(t, "cannot be followed", fault->text);
}

static const ReflectorHandler handler = {
        .on_list_begin = on_list_begin,
        .on_object = on_object,
        .on_list_end = on_list_end,
        .on_trouble = on_reflector_trouble,
};

/* ---- the whole ---- */

static void look_at_all(CaInjector *i) {
        for (size_t k = 0; k < TARGETS; k++)
                writer_poke(&i->targets[k].writer);
}

bool ca_injector_lacks_bundle(const CaInjector *i) {
        for (size_t k = 0; k < TARGETS; k++)
                if (i->targets[k].lacks)
                        return true;
        return false;
}

void ca_injector_set_leading(CaInjector *i, bool leading) {
        i->leading = leading;
        if (leading)
                look_at_all(i);
}

int ca_injector_set_bundle(CaInjector *i, const char *pem) {
        _cleanup_buf_ Buf text = BUF_NULL;

        base64_encode(&text, str_from(pem));
        if (buf_result(&text) < 0)
                return -ENOMEM;
        if (str_eq(buf_str(&text), buf_str(&i->bundle)))
                return 0;
        buf_done(&i->bundle);
        i->bundle = text;
        text = BUF_NULL;
        look_at_all(i);
        return 0;
}

static int target_init(Target *t, CaInjector *i, const char *collection) {
        int r;

        t->injector = i;
        t->collection = collection;
        t->lacks = true;
        t->writer = (Writer){.rule = &rule, .client = i->o.client, .userdata = t};
        r = writer_wake(&t->writer, WATCH_LAG); /* creates the timer; later calls cannot fail */
        if (r < 0)
                return r;
        return reflector_new(
                i->o.client,
                &(ReflectorOptions){.path = collection,
                                    .selector = "fieldSelector=metadata.name%3D" CA_INJECTOR_NAME,
                                    .max_object = MAX_OBJECT},
                &handler, t, &t->reflector);
}

int ca_injector_new(const CaInjectorOptions *options, CaInjector **ret) {
        _cleanup_(ca_injector_freep) CaInjector *i = calloc(1, sizeof *i);
        int r = 0;

        if (!i)
                return -ENOMEM;
        i->o = *options;
        for (size_t k = 0; k < TARGETS && r == 0; k++)
                r = target_init(&i->targets[k], i, collections[k]);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(i);
        return 0;
}

CaInjector *ca_injector_free(CaInjector *i) {
        if (!i)
                return NULL;
        for (size_t k = 0; k < TARGETS; k++) {
                Target *t = &i->targets[k];

                writer_done(&t->writer);
                reflector_free(t->reflector);
                buf_done(&t->object);
        }
        buf_done(&i->bundle);
        free(i);
        return NULL;
}
