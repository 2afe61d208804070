/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch_decoder.h"

#include <errno.h>

#include "base/buf.h"
#include "wire/json_field.h"
#include "wire/json_stream.h"

/* The bytes around an object of a watch: {"type":"ADDED","object":{...}}. */
enum { ENVELOPE = 256 };

struct WatchDecoder {
        WatchKind kind;
        WatchSink sink;
        void *userdata;
        JsonStream *stream;
        Arena arena; /* of one value */
        Buf resource_version, continue_;
};

/* ---- single values ---- */

typedef struct Metadata {
        Str resource_version, continue_;
} Metadata;

static void decode_metadata(JsonReader *r, Arena *arena, void *into) {
        static const JsonField fields[] = {
                JSON_FIELD(Metadata, resource_version, "resourceVersion", json_field_str),
                JSON_FIELD(Metadata, continue_, "continue", json_field_str),
        };

        json_field_decode(r, arena, fields, ELEMENTSOF(fields), into);
}

/* Reads only the metadata, which the API server writes first. The rest of the object is checked
 * when it is decoded. */
static int object_version(Str object, Arena *arena, Str *ret, Fault *fault) {
        Metadata m = {0};
        JsonReader r;
        Str key;

        json_init(&r, object);
        if (json_object_begin(&r))
                while (json_object_next(&r, &key)) {
                        if (json_key_is(key, "metadata")) {
                                decode_metadata(&r, arena, &m);
                                break;
                        }
                        json_skip(&r);
                }
        if (json_failed(&r))
                return json_finish(&r, fault);
        if (m.resource_version.len > WATCH_MAX_VERSION)
                return fault_set(fault, WATCH_E_MALFORMED, "resourceVersion is longer than %d bytes",
                                 WATCH_MAX_VERSION);
        *ret = m.resource_version;
        return 0;
}

typedef struct Envelope {
        Str type, object;
} Envelope;

static int decode_envelope(Str line, Arena *arena, Envelope *ret, Fault *fault) {
        static const JsonField fields[] = {
                JSON_FIELD(Envelope, type, "type", json_field_str),
                JSON_FIELD(Envelope, object, "object", json_field_raw),
        };
        Envelope e = {0};
        int k = json_field_read(line, arena, fields, ELEMENTSOF(fields), &e, fault);

        if (k != 0)
                return k < 0 ? k : WATCH_E_MALFORMED;
        if (e.object.len == 0 || e.object.data[0] != '{')
                return fault_set(fault, WATCH_E_MALFORMED, "an event without object");
        *ret = e;
        return 0;
}

/* Returns false for an unknown type: a newer server may send it. */
static bool type_from_text(Str text, WatchType *ret) {
        static const struct {
                Str text;
                WatchType type;
        } types[] = {
                {STR("ADDED"), WATCH_ADDED},     {STR("MODIFIED"), WATCH_MODIFIED},
                {STR("DELETED"), WATCH_DELETED}, {STR("BOOKMARK"), WATCH_BOOKMARK},
                {STR("ERROR"), WATCH_ERROR},
        };

        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (str_eq(text, types[i].text)) {
                        *ret = types[i].type;
                        return true;
                }
        return false;
}

static int take_event(WatchDecoder *d, Str line, Fault *fault) {
        WatchEvent event = {0};
        Envelope e = {0};
        int r;

        r = decode_envelope(line, &d->arena, &e, fault);
        if (r != 0)
                return r;
        if (!type_from_text(e.type, &event.type))
                return 0;
        if (event.type == WATCH_ERROR) {
                if (!kube_status_decode(e.object, &d->arena, &event.status))
                        return fault_set(fault, WATCH_E_MALFORMED, "an ERROR event without Status");
                return d->sink(d->userdata, &event);
        }
        event.object = e.object;
        r = object_version(e.object, &d->arena, &event.resource_version, fault);
        return r != 0 ? r : d->sink(d->userdata, &event);
}

/* ---- lists ---- */

static int keep_text(Buf *into, Str value, size_t max, const char *name, Fault *fault) {
        if (value.len > max)
                return fault_set(fault, WATCH_E_MALFORMED, "metadata.%s is longer than %zu bytes", name, max);
        buf_clear(into);
        buf_append_str(into, value);
        return buf_result(into);
}

static int take_metadata(WatchDecoder *d, Str value, Fault *fault) {
        Metadata m = {0};
        JsonReader reader;
        int r;

        json_init(&reader, value);
        decode_metadata(&reader, &d->arena, &m);
        r = json_finish(&reader, fault);
        if (r != 0)
                return r < 0 ? r : WATCH_E_MALFORMED;
        r = keep_text(&d->resource_version, m.resource_version, WATCH_MAX_VERSION, "resourceVersion", fault);
        return r != 0 ? r : keep_text(&d->continue_, m.continue_, WATCH_MAX_CONTINUE, "continue", fault);
}

/* ---- the decoder ---- */

static int on_value(void *userdata, Str member, Str value, Fault *fault) {
        WatchDecoder *d = userdata;
        bool item = d->kind == WATCH_KIND_WATCH || json_key_is(member, "items");

        arena_reset(&d->arena);
        if (item && !value.data)
                return d->sink(d->userdata, &(WatchEvent){.type = WATCH_TOO_LONG});
        if (d->kind == WATCH_KIND_WATCH)
                return take_event(d, value, fault);
        if (item)
                return d->sink(d->userdata, &(WatchEvent){.type = WATCH_LISTED, .object = value});
        if (json_key_is(member, "metadata"))
                return take_metadata(d, value, fault);
        return 0;
}

int watch_decoder_new(WatchKind kind, size_t max_object, WatchSink sink, void *userdata, WatchDecoder **ret) {
        JsonStreamKind stream = kind == WATCH_KIND_LIST ? JSON_STREAM_LIST : JSON_STREAM_VALUES;
        _cleanup_(watch_decoder_freep) WatchDecoder *d = calloc(1, sizeof *d);
        int r;

        if (!d)
                return -ENOMEM;
        d->kind = kind;
        d->sink = sink;
        d->userdata = userdata;
        r = json_stream_new(stream, max_object + (kind == WATCH_KIND_WATCH ? ENVELOPE : 0), on_value, d,
                            &d->stream);
        if (r < 0)
                return r;
        json_stream_skip_long(d->stream);
        *ret = TAKE_PTR(d);
        return 0;
}

WatchDecoder *watch_decoder_free(WatchDecoder *d) {
        if (!d)
                return NULL;
        (void) json_stream_free(d->stream); /* always NULL */
        arena_done(&d->arena);
        buf_done(&d->resource_version);
        buf_done(&d->continue_);
        free(d);
        return NULL;
}

/* Maps the two errors of the JSON stream to WATCH_E_MALFORMED. */
static int answer_of(int r) {
        return r == JSON_STREAM_E_TOO_LONG ? WATCH_E_MALFORMED : r;
}

int watch_decoder_feed(WatchDecoder *d, Str bytes, Fault *fault) {
        return answer_of(json_stream_feed(d->stream, bytes, fault));
}

int watch_decoder_finish(WatchDecoder *d, Fault *fault) {
        int r = answer_of(json_stream_finish(d->stream, fault));

        if (r == 0 && d->kind == WATCH_KIND_LIST && d->resource_version.len == 0)
                return fault_set(fault, WATCH_E_MALFORMED, "a list without metadata.resourceVersion");
        return r;
}

Str watch_decoder_resource_version(const WatchDecoder *d) {
        return buf_str(&d->resource_version);
}

Str watch_decoder_continue(const WatchDecoder *d) {
        return buf_str(&d->continue_);
}
