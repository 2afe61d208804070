/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/fences.h"

#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "wire/json_table.h"
#include "wire/yaml.h"

typedef struct CardSet {
        uint64_t bits[(CARD_INDEX_MAX + 1) / 64];
} CardSet;

struct Fence {
        UT_hash_handle hh;
        uint32_t generation;
        CardSet cards;
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
        json_decode(r, arena, data_fields, ELEMENTSOF(data_fields), ret);
}

static void read_metadata(JsonReader *r, Arena *arena, void *ret) {
        json_decode(r, arena, metadata_fields, ELEMENTSOF(metadata_fields), ret);
}

static const JsonField configmap_fields[] = {
        JSON_NESTED("metadata", read_metadata),
        JSON_NESTED("data", read_data),
};

/* ---- which cards ---- */

static bool card_add(CardSet *set, uint64_t card) {
        if (card > CARD_INDEX_MAX)
                return false;
        set->bits[card / 64] |= UINT64_C(1) << card % 64;
        return true;
}

/* "0,2"; empty for none. */
static int parse_gpus(Str text, CardSet *set, Fault *fault) {
        Str rest = str_trim(text);

        while (!str_is_empty(rest)) {
                Str word = str_trim(str_split(&rest, ','));
                uint32_t card;

                if (!str_to_u32(word, &card) || !card_add(set, card))
                        return fault_set(fault, FENCE_E_MALFORMED,
                                         "data.gpus is \"" STR_FMT "\", must be card indexes such as 0,2",
                                         STR_ARG(text));
        }
        return 0;
}

typedef struct Device {
        int64_t id;
        Str type;
        bool healthy;
} Device;

static const JsonField device_fields[] = {
        JSON_FIELD(Device, id, "deviceId", json_field_i64),
        JSON_FIELD(Device, type, "deviceType", json_field_str),
        JSON_FIELD(Device, healthy, "healthy", json_field_bool),
};

static int on_devices(void *userdata, Str json, unsigned line, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        CardSet *set = userdata;
        JsonReader r;
        int k;

        json_init(&r, json);
        if (json_array_begin(&r))
                while (json_array_next(&r)) {
                        Device d = {.id = -1, .type = STR("gpu"), .healthy = true};

                        json_decode(&r, &arena, device_fields, ELEMENTSOF(device_fields), &d);
                        if (d.id < 0 || d.id > CARD_INDEX_MAX)
                                json_fault(&r, "a device needs a deviceId from 0 to 255");
                        else if (!d.healthy && str_eq(d.type, STR("gpu")))
                                (void) card_add(set, (uint64_t) d.id);
                }
        k = json_finish(&r, fault);
        return k > 0 ? fault_wrap(fault, FENCE_E_MALFORMED, "data.devices") : k;
}

static int parse_cards(const ConfigMap *c, CardSet *ret, Fault *fault) {
        CardSet set = {0};
        int r;

        r = parse_gpus(c->gpus, &set, fault);
        if (r == 0 && !str_is_empty(str_trim(c->devices)))
                r = yaml_documents(c->devices, on_devices, &set, fault);
        if (r == 0)
                *ret = set;
        return r > 0 ? FENCE_E_MALFORMED : r;
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

/* What all ConfigMaps together say of this node. */
static int tell_ledger(Fences *f, Ledger *l, Str node) {
        uint32_t cards[CARD_INDEX_MAX + 1];
        CardSet all = {0};
        size_t n = 0;

        for (Fence *i = f->by_name; i; i = i->hh.next)
                if (str_eq(str_from(i->node), node))
                        for (size_t k = 0; k < ELEMENTSOF(all.bits); k++)
                                all.bits[k] |= i->cards.bits[k];
        for (uint32_t card = 0; card <= CARD_INDEX_MAX; card++)
                if (all.bits[card / 64] >> card % 64 & 1)
                        cards[n++] = card;
        return ledger_node_set_fenced(l, node, cards, n);
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
        r = tell_ledger(f, l, str_from(fence->node));
        free(fence);
        return r;
}

static int fence_set(Fences *f, Ledger *l, const ConfigMap *c, Str node, uint32_t generation, Fault *fault) {
        Fence *fence = fence_ensure(f, c->name, node);
        int r;

        if (!fence)
                return -ENOMEM;
        fence->generation = generation;
        r = parse_cards(c, &fence->cards, fault);
        if (r > 0)
                return fault_wrap(fault, r, "configmap kube-system/" STR_FMT, STR_ARG(c->name));
        return r < 0 ? r : tell_ledger(f, l, node);
}

int fences_set(Fences *f, Ledger *l, Str configmap, bool deleted, uint32_t generation, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        ConfigMap c = {0};
        JsonReader reader;
        Fence *fence;
        Str node;
        int r;

        json_init(&reader, configmap);
        json_decode(&reader, &arena, configmap_fields, ELEMENTSOF(configmap_fields), &c);
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
        (void) fences_sweep(f, l, UINT32_MAX); /* no list has this number */
}
