/* SPDX-License-Identifier: Apache-2.0 */
#include "share/fence_map.h"

#include <errno.h>

#include "share/fault_join.h"
#include "wire/annotation.h"
#include "wire/json_field.h"
#include "wire/yaml.h"

enum { SHOWN = 64 };

typedef struct ConfigMap {
        Str name, namespace_, devices, gpus;
} ConfigMap;

static const JsonField data_fields[] = {
        JSON_FIELD(ConfigMap, devices, "devices", json_field_str),
        JSON_FIELD(ConfigMap, gpus, "gpus", json_field_str),
};
static const JsonField metadata_fields[] = {
        JSON_FIELD(ConfigMap, name, "name", json_field_str),
        JSON_FIELD(ConfigMap, namespace_, "namespace", json_field_str),
};
JSON_DECODER(read_data, data_fields)

JSON_DECODER(read_metadata, metadata_fields)

static const JsonField configmap_fields[] = {
        JSON_NESTED("metadata", read_metadata),
        JSON_NESTED("data", read_data),
};

/* ---- which cards ---- */

static void complain_of(FenceKey *r, const Fault *why) {
        fault_join(&r->wrong, why);
}

/* Reads data.gpus, "0,2"; empty: no card. */
static void read_gpus(Str text, FenceKey *r) {
        Str rest = str_trim(text);
        Fault why = FAULT_NULL;

        while (!str_is_empty(rest)) {
                Str word = str_trim(str_split(&rest, ','));
                uint32_t card;

                if (str_to_u32(word, &card) && card <= CARD_INDEX_MAX) {
                        card_indexes_add(&r->fenced, card);
                        continue;
                }
                (void) fault_set(&why, 0,
                                 "data.gpus is \"%.*s\", in which \"%.*s\" must be a card index from 0 to %d",
                                 STR_CUT(text, SHOWN), STR_CUT(word, SHOWN), CARD_INDEX_MAX);
                complain_of(r, &why);
        }
}

/* Members of a device as JSON text; empty: absent. */
typedef struct Device {
        Str id, type, healthy;
} Device;

static const JsonField device_fields[] = {
        JSON_FIELD(Device, id, "deviceId", json_field_raw),
        JSON_FIELD(Device, type, "deviceType", json_field_raw),
        JSON_FIELD(Device, healthy, "healthy", json_field_raw),
};

/* Removes quotes: a number or truth value may be in quotes. */
static Str unquote_key(Str raw) {
        return raw.len >= 2 && raw.data[0] == '"' ? (Str){raw.data + 1, raw.len - 2} : raw;
}

/* Reads one device. Returns NULL when it is valid or of another type than gpu; else the rule that
 * it breaks, as static text. */
static const char *check_device(const Device *d, FenceKey *r) {
        Str healthy = unquote_key(d->healthy);
        uint32_t card;

        if (!str_is_empty(d->type) && !str_eq(d->type, STR("null")) && !str_eq(d->type, STR("\"gpu\"")))
                return d->type.data[0] == '"' ? NULL : "deviceType must be a text such as gpu";
        if (!str_to_u32(unquote_key(d->id), &card) || card > CARD_INDEX_MAX)
                return "deviceId must be a card index from 0 to 255";
        if (str_eq(healthy, STR("false")))
                card_indexes_add(&r->fenced, card);
        else if (!str_is_empty(healthy) && !str_eq(healthy, STR("true")) && !str_eq(healthy, STR("null")))
                return "healthy must be true or false";
        card_indexes_add(&r->sound, card);
        return NULL;
}

static void read_device(JsonReader *reader, Arena *arena, size_t index, FenceKey *r) {
        const char *rule = "an entry must have deviceId and healthy";
        JsonReader inner;
        Device d = {0};
        Str raw = {0};
        Fault why = FAULT_NULL;

        json_raw(reader, &raw);
        if (json_failed(reader))
                return;
        json_init(&inner, raw);
        if (json_peek(&inner) == JSON_OBJECT) {
                json_field_decode(&inner, arena, device_fields, ELEMENTSOF(device_fields), &d);
                rule = check_device(&d, r);
        }
        if (!rule)
                return;
        (void) fault_set(&why, 0, "data.devices[%zu] is %.*s, %s", index, STR_CUT(raw, SHOWN), rule);
        complain_of(r, &why);
}

static int on_devices(void *userdata, Str json, unsigned line, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        FenceKey *r = userdata;
        JsonReader reader;
        Fault why = FAULT_NULL;

        json_init(&reader, json);
        if (json_peek(&reader) == JSON_NULL)
                return 0;
        if (json_peek(&reader) != JSON_ARRAY) {
                (void) fault_set(&why, 0, "data.devices is %.*s, must be a list", STR_CUT(json, SHOWN));
                complain_of(r, &why);
                return 0;
        }
        (void) json_array_begin(&reader);
        for (size_t i = 0; json_array_next(&reader); i++)
                read_device(&reader, &arena, i, r);
        return json_finish(&reader, fault) < 0 ? -ENOMEM : 0;
}

static int read_devices(Str text, FenceKey *r) {
        Fault why = FAULT_NULL;
        int k;

        if (str_is_empty(str_trim(text)))
                return 0;
        k = yaml_documents(text, on_devices, r, &why);
        if (k <= 0)
                return k;
        (void) fault_wrap(&why, 0, "data.devices is \"%.*s\", must be a YAML list", STR_CUT(text, SHOWN));
        complain_of(r, &why);
        return 0;
}

/* ---- the node of a ConfigMap ---- */

static bool node_of(Str name, Str *ret_node) {
        static const Str suffix = STR("-device-status"), prefix = STR("unhealthy-gpu-");

        if (name.len > suffix.len && str_eq((Str){name.data + name.len - suffix.len, suffix.len}, suffix)) {
                *ret_node = (Str){name.data, name.len - suffix.len};
                return true;
        }
        if (name.len > prefix.len && str_has_prefix(name, prefix)) {
                *ret_node = (Str){name.data + prefix.len, name.len - prefix.len};
                return true;
        }
        return false;
}

int fence_map_read(Str configmap, Arena *arena, FenceMap *ret, Fault *fault) {
        ConfigMap c = {0};
        int r;

        *ret = (FenceMap){.devices = {.wrong = FAULT_NULL}, .gpus = {.wrong = FAULT_NULL}};
        r = json_field_read(configmap, arena, configmap_fields, ELEMENTSOF(configmap_fields), &c, fault);
        if (r != 0)
                return r < 0 ? r : FENCE_MAP_E_MALFORMED;
        if (!node_of(c.name, &ret->node) ||
            (!str_is_empty(c.namespace_) && !str_eq(c.namespace_, STR("kube-system"))))
                return FENCE_MAP_E_NOT_OURS;
        ret->name = c.name;
        read_gpus(c.gpus, &ret->gpus);
        return read_devices(c.devices, &ret->devices);
}
