/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/fences.h"

#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "share/card_indexes.h"
#include "share/fault_join.h"
#include "wire/annotation.h"
#include "wire/json_field.h"
#include "wire/yaml.h"

enum { SHOWN = 64 };

struct Fence {
        UT_hash_handle hh;
        uint32_t generation;
        CardIndexes cards; /* in force */
        /* The cards of each key when all of it was last understood. */
        CardIndexes good_devices, good_gpus;
        Fault wrong; /* the entries that are not understood now; "": none */
        char *node;  /* view of name */
        char name[]; /* of the ConfigMap */
};

typedef struct ConfigMap {
        Str name, devices, gpus;
} ConfigMap;

static const JsonField data_fields[] = {
        JSON_FIELD(ConfigMap, devices, "devices", json_field_str),
        JSON_FIELD(ConfigMap, gpus, "gpus", json_field_str),
};
static const JsonField metadata_fields[] = {JSON_FIELD(ConfigMap, name, "name", json_field_str)};

static void read_data(JsonReader *r, Arena *arena, void *ret) {
        json_field_decode(r, arena, data_fields, ELEMENTSOF(data_fields), ret);
}

static void read_metadata(JsonReader *r, Arena *arena, void *ret) {
        json_field_decode(r, arena, metadata_fields, ELEMENTSOF(metadata_fields), ret);
}

static const JsonField configmap_fields[] = {
        JSON_NESTED("metadata", read_metadata),
        JSON_NESTED("data", read_data),
};

/* ---- which cards ---- */

/* One key of a ConfigMap while it is read. Each entry is judged by itself. */
typedef struct Reading {
        CardIndexes fenced, sound; /* the cards that the understood entries name */
        Fault wrong;               /* "": all entries are understood */
} Reading;

static void complain(Reading *r, const Fault *why) {
        fault_join(&r->wrong, why);
}

/* "0,2"; empty for none. */
static void read_gpus(Str text, Reading *r) {
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
                complain(r, &why);
        }
}

/* The members of a device as they stand in the text; empty when absent. */
typedef struct Device {
        Str id, type, healthy;
} Device;

static const JsonField device_fields[] = {
        JSON_FIELD(Device, id, "deviceId", json_field_raw),
        JSON_FIELD(Device, type, "deviceType", json_field_raw),
        JSON_FIELD(Device, healthy, "healthy", json_field_raw),
};

/* A number or a truth value is understood in quotes, too. */
static Str unquote(Str raw) {
        return raw.len >= 2 && raw.data[0] == '"' ? (Str){raw.data + 1, raw.len - 2} : raw;
}

/* NULL when the device is understood or of another type than gpu; else the rule that it breaks, as
 * static text. */
static const char *check_device(const Device *d, Reading *r) {
        Str healthy = unquote(d->healthy);
        uint32_t card;

        if (!str_is_empty(d->type) && !str_eq(d->type, STR("null")) && !str_eq(d->type, STR("\"gpu\"")))
                return d->type.data[0] == '"' ? NULL : "deviceType must be a text such as gpu";
        if (!str_to_u32(unquote(d->id), &card) || card > CARD_INDEX_MAX)
                return "deviceId must be a card index from 0 to 255";
        if (str_eq(healthy, STR("false")))
                card_indexes_add(&r->fenced, card);
        else if (!str_is_empty(healthy) && !str_eq(healthy, STR("true")) && !str_eq(healthy, STR("null")))
                return "healthy must be true or false";
        card_indexes_add(&r->sound, card);
        return NULL;
}

static void read_device(JsonReader *reader, Arena *arena, size_t index, Reading *r) {
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
        complain(r, &why);
}

static int on_devices(void *userdata, Str json, unsigned line, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Reading *r = userdata;
        JsonReader reader;
        Fault why = FAULT_NULL;

        json_init(&reader, json);
        if (json_peek(&reader) == JSON_NULL)
                return 0;
        if (json_peek(&reader) != JSON_ARRAY) {
                (void) fault_set(&why, 0, "data.devices is %.*s, must be a list", STR_CUT(json, SHOWN));
                complain(r, &why);
                return 0;
        }
        (void) json_array_begin(&reader);
        for (size_t i = 0; json_array_next(&reader); i++)
                read_device(&reader, &arena, i, r);
        return json_finish(&reader, fault) < 0 ? -ENOMEM : 0;
}

static int read_devices(Str text, Reading *r) {
        Fault why = FAULT_NULL;
        int k;

        if (str_is_empty(str_trim(text)))
                return 0;
        k = yaml_documents(text, on_devices, r, &why);
        if (k <= 0)
                return k;
        (void) fault_wrap(&why, 0, "data.devices is \"%.*s\", must be a YAML list", STR_CUT(text, SHOWN));
        complain(r, &why);
        return 0;
}

/* The cards that a key fences now. When some of it is not understood, it still fences the cards of
 * when all of it was, except those that an understood entry names. */
static CardIndexes cards_in_force(const Reading *r, CardIndexes *good) {
        CardIndexes cards = r->fenced;

        if (r->wrong.text[0] == '\0')
                *good = r->fenced;
        else
                for (size_t i = 0; i < ELEMENTSOF(cards.bits); i++)
                        cards.bits[i] |= good->bits[i] & ~r->sound.bits[i];
        return cards;
}

static void say_cards(const CardIndexes *cards, Buf *out) {
        card_indexes_format(cards, out);
        buf_append_str(out,
                       card_indexes_is_empty(cards) ? STR("no card is fenced by it") : STR(" fenced by it"));
}

/* ---- whose ---- */

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

static Fault wrong_of(const Fences *f, Str node) {
        Fault wrong = FAULT_NULL;

        for (const Fence *i = f->by_name; i; i = i->hh.next)
                if (str_eq(str_from(i->node), node))
                        fault_join(&wrong, &i->wrong);
        return wrong;
}

/* Applies what all ConfigMaps of this node say together: the fences go to the ledger, and the
 * faults to the owner. */
static int tell(Fences *f, Ledger *l, Str node) {
        uint32_t cards[CARD_INDEX_MAX + 1];
        Fault wrong = wrong_of(f, node);
        CardIndexes all = {0};
        size_t n = 0, before = ledger_node_n_healthy(ledger_node_find(l, node));
        int r;

        for (Fence *i = f->by_name; i; i = i->hh.next)
                if (str_eq(str_from(i->node), node))
                        for (size_t k = 0; k < ELEMENTSOF(all.bits); k++)
                                all.bits[k] |= i->cards.bits[k];
        for (uint32_t card = 0; card <= CARD_INDEX_MAX; card++)
                if (card_indexes_has(&all, card))
                        cards[n++] = card;
        if (f->on_judged)
                f->on_judged(f->userdata, node, wrong.text);
        r = ledger_node_set_fenced(l, node, cards, n);
        if (f->on_room && ledger_node_n_healthy(ledger_node_find(l, node)) > before)
                f->on_room(f->room_userdata, node);
        return r;
}

static Fence *fence_ensure(Fences *f, Str name, Str node) {
        Fence *fence;

        HASH_FIND(hh, f->by_name, name.data, name.len, fence);
        if (fence)
                return fence;
        fence = calloc(1, sizeof *fence + name.len + 1 + node.len + 1);
        if (!fence)
                return NULL;
        memcpy(fence->name, name.data, name.len);
        fence->node = fence->name + name.len + 1;
        memcpy(fence->node, node.data, node.len);
        HASH_ADD_KEYPTR(hh, f->by_name, fence->name, name.len, fence);
        if (!hash_added(fence, hh)) {
                free(fence);
                return NULL;
        }
        return fence;
}

static int fence_drop(Fences *f, Ledger *l, Fence *fence) {
        int r;

        HASH_DELETE(hh, f->by_name, fence);
        r = tell(f, l, str_from(fence->node));
        free(fence);
        return r;
}

/* "configmap kube-system/NAME: data.gpus is ...: gpu0, gpu2 fenced by it" */
static int say_wrong(Fence *fence, const Reading *devices, const Reading *gpus) {
        _cleanup_buf_ Buf cards = BUF_NULL;
        Fault what = devices->wrong;

        fence->wrong = FAULT_NULL;
        fault_join(&what, &gpus->wrong);
        if (what.text[0] == '\0')
                return 0;
        say_cards(&fence->cards, &cards);
        if (buf_result(&cards) < 0)
                return -ENOMEM;
        return fault_set(&fence->wrong, FENCE_E_MALFORMED, "configmap kube-system/%s: %s: %s", fence->name,
                         what.text, cards.data);
}

static int fence_set(Fences *f, Ledger *l, const ConfigMap *c, Str node, uint32_t generation, Fault *fault) {
        Fence *fence = fence_ensure(f, c->name, node);
        Reading devices = {.wrong = FAULT_NULL}, gpus = {.wrong = FAULT_NULL};
        CardIndexes more;
        int r, wrong;

        if (!fence)
                return -ENOMEM;
        fence->generation = generation;
        read_gpus(c->gpus, &gpus);
        r = read_devices(c->devices, &devices);
        if (r < 0)
                return r;
        fence->cards = cards_in_force(&devices, &fence->good_devices);
        more = cards_in_force(&gpus, &fence->good_gpus);
        for (size_t i = 0; i < ELEMENTSOF(more.bits); i++)
                fence->cards.bits[i] |= more.bits[i];
        wrong = say_wrong(fence, &devices, &gpus);
        r = tell(f, l, node);
        if (r < 0 || wrong < 0)
                return r < 0 ? r : wrong;
        return wrong > 0 ? fault_set(fault, wrong, "%s", fence->wrong.text) : 0;
}

int fences_set(Fences *f, Ledger *l, Str configmap, bool deleted, uint32_t generation, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        ConfigMap c = {0};
        JsonReader reader;
        Fence *fence;
        Str node;
        int r;

        json_init(&reader, configmap);
        json_field_decode(&reader, &arena, configmap_fields, ELEMENTSOF(configmap_fields), &c);
        r = json_finish(&reader, fault);
        if (r != 0)
                return r > 0 ? fault_wrap(fault, FENCE_E_MALFORMED, "configmap") : r;
        if (!node_of(c.name, &node))
                return FENCE_E_NOT_OURS;
        if (!deleted)
                return fence_set(f, l, &c, node, generation, fault);
        HASH_FIND(hh, f->by_name, c.name.data, c.name.len, fence);
        return fence ? fence_drop(f, l, fence) : 0;
}

size_t fences_sweep(Fences *f, Ledger *l, uint32_t generation) {
        size_t dropped = 0;
        Fence *fence, *next;

        HASH_ITER(hh, f->by_name, fence, next) {
                if (fence->generation == generation)
                        continue;
                (void) fence_drop(f, l, fence); /* taking fences away needs no memory */
                dropped++;
        }
        return dropped;
}

void fences_done(Fences *f, Ledger *l) {
        f->on_judged = NULL;
        f->on_room = NULL;
        (void) fences_sweep(f, l, UINT32_MAX); /* no list has this number */
}

Str fences_name(const Fences *f, Str node, uint32_t card) {
        for (const Fence *i = f->by_name; i; i = i->hh.next)
                if (str_eq(str_from(i->node), node) && card_indexes_has(&i->cards, card))
                        return str_from(i->name);
        return (Str){NULL, 0};
}

void fences_format_wrong(const Fences *f, Str node, Buf *out) {
        Fault wrong = wrong_of(f, node);

        buf_append_str(out, str_from(wrong.text));
}
