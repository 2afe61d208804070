/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/checkpoint.h"

#include <errno.h>

#include "base/file.h"
#include "wire/json.h"

/* k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/checkpoint:
 *
 *     {"Data":{"PodDeviceEntries":[{"PodUID":"..","ContainerName":"..","ResourceName":"..",
 *                                   "DeviceIDs":{"-1":["0-1","0-2"]},"AllocResp":"base64"}],
 *              "RegisteredDevices":{"aliyun.com/gpu-mem":["0-1",...]}},
 *      "Checksum":123}
 *
 * The key of DeviceIDs is a NUMA node, -1 for devices without one. The checksum covers a printed Go
 * structure, whose form changes with the versions of Go and the kubelet, so it is not checked. A
 * truncated file is malformed JSON; besides, the kubelet replaces the file by a rename. */

enum {
        FILE_MAX = 64 * 1024 * 1024,
        ENTRIES_MAX = 64 * 1024,
        IDS_MAX = 1000 * 1000, /* of all entries; a kubelet's device list is at most 300,000 long */
};

typedef struct IdList {
        Str *ids;
        size_t n, capacity;
} IdList;

/* The resource of an entry may come after its IDs, so these are collected first. */
typedef struct Decoder {
        JsonReader json;
        Arena *arena;
        Str prefix;
        CheckpointEntry *entries;
        size_t n, capacity, n_ids;
        IdList ids; /* of the current entry */
        bool has_data;
} Decoder;

static void decoder_done(Decoder *d) {
        free(d->ids.ids);
        free(d->entries);
}

/* Makes room for one more. n is below a limit that is far from overflow. */
static bool grow_list(void **list, size_t n, size_t *capacity, size_t size) {
        size_t more = *capacity > 0 ? 2 * *capacity : 64;
        void *p;

        if (n < *capacity)
                return true;
        p = reallocarray(*list, more, size);
        if (!p)
                return false;
        *list = p;
        *capacity = more;
        return true;
}

static void take_id(Decoder *d, Str id) {
        void *list = d->ids.ids;

        if (str_is_empty(id)) {
                json_fault(&d->json, "an empty device ID");
                return;
        }
        if (d->n_ids + d->ids.n >= IDS_MAX) {
                json_fault(&d->json, "more than 1000000 device IDs");
                return;
        }
        if (!grow_list(&list, d->ids.n, &d->ids.capacity, sizeof(Str))) {
                json_no_memory(&d->json);
                return;
        }
        d->ids.ids = list;
        d->ids.ids[d->ids.n++] = id;
}

static void read_id_list(Decoder *d) {
        JSON_EACH_ELEMENT(&d->json) {
                Str raw, id = {0};

                if (json_plain_name(&d->json, &raw))
                        id = (Str){raw.data + 1, raw.len - 2};
                else
                        json_string(&d->json, d->arena, &id);
                if (!json_failed(&d->json))
                        take_id(d, id);
        }
}

static void read_ids(Decoder *d) {
        Str node;

        d->ids.n = 0; /* a duplicate member replaces the one before */
        if (json_peek(&d->json) == JSON_ARRAY) {
                read_id_list(d);
                return;
        }
        JSON_EACH_MEMBER(&d->json, &node)
                read_id_list(d);
}

static void take_entry(Decoder *d, CheckpointEntry entry) {
        void *list = d->entries;

        if (json_failed(&d->json))
                return;
        if (str_is_empty(entry.pod_uid) || str_is_empty(entry.container) || str_is_empty(entry.resource)) {
                json_fault(&d->json, "an entry without pod UID, container or resource");
                return;
        }
        if (!str_has_prefix(entry.resource, d->prefix))
                return;
        if (d->n >= ENTRIES_MAX) {
                json_fault(&d->json, "more than 65536 entries");
                return;
        }
        entry.n = d->ids.n;
        entry.ids = arena_new(d->arena, Str, entry.n);
        if (!entry.ids || !grow_list(&list, d->n, &d->capacity, sizeof entry)) {
                json_no_memory(&d->json);
                return;
        }
        if (entry.n > 0)
                memcpy(entry.ids, d->ids.ids, entry.n * sizeof(Str));
        d->entries = list;
        d->entries[d->n++] = entry;
        d->n_ids += entry.n;
}

static void read_entry(Decoder *d) {
        CheckpointEntry entry = {0};
        Str key;

        d->ids.n = 0;
        if (!json_object_begin(&d->json))
                return;
        while (json_object_next(&d->json, &key))
                if (json_key_is(key, "PodUID"))
                        json_string(&d->json, d->arena, &entry.pod_uid);
                else if (json_key_is(key, "ContainerName"))
                        json_string(&d->json, d->arena, &entry.container);
                else if (json_key_is(key, "ResourceName"))
                        json_string(&d->json, d->arena, &entry.resource);
                else if (json_key_is(key, "DeviceIDs"))
                        read_ids(d);
                else
                        json_skip(&d->json);
        take_entry(d, entry);
}

static void read_data(Decoder *d) {
        Str key;

        d->has_data = true;
        JSON_EACH_MEMBER(&d->json, &key) {
                if (!json_key_is(key, "PodDeviceEntries")) {
                        json_skip(&d->json);
                        continue;
                }
                if (!json_array_begin(&d->json))
                        continue;
                while (json_array_next(&d->json))
                        read_entry(d);
        }
}

static void read_top(Decoder *d) {
        Str key;

        JSON_EACH_MEMBER(&d->json, &key)
                if (json_key_is(key, "Data"))
                        read_data(d);
                else
                        json_skip(&d->json);
}

static int decode_checkpoint(Decoder *d, Checkpoint *ret, Fault *fault) {
        CheckpointEntry *entries;
        int r;

        read_top(d);
        r = json_finish(&d->json, fault);
        if (r < 0)
                return r;
        if (r == JSON_E_MALFORMED)
                return CHECKPOINT_E_MALFORMED;
        if (!d->has_data)
                return fault_set(fault, CHECKPOINT_E_MALFORMED, "it has no member \"Data\"");
        entries = arena_new(d->arena, CheckpointEntry, d->n);
        if (!entries)
                return fault_set(fault, -ENOMEM, "out of memory");
        if (d->n > 0)
                memcpy(entries, d->entries, d->n * sizeof *entries);
        *ret = (Checkpoint){entries, d->n};
        return 0;
}

int checkpoint_decode(Str json, Str prefix, Arena *arena, Checkpoint *ret, Fault *fault) {
        _cleanup_(decoder_done) Decoder d = {.arena = arena, .prefix = prefix};

        json_init(&d.json, json);
        return decode_checkpoint(&d, ret, fault);
}

int checkpoint_load(const char *path, Str prefix, Arena *arena, Checkpoint *ret, Fault *fault) {
        _cleanup_buf_ Buf file = BUF_NULL;
        Str text;
        int r;

        r = file_read(path, FILE_MAX, &file);
        if (r == -ENOENT)
                return fault_set(fault, CHECKPOINT_E_NONE, "%s does not exist", path);
        if (r < 0)
                return fault_set(fault, r, "cannot read %s: %s", path, strerror(-r));
        text = arena_str(arena, buf_str(&file)); /* the entries are views of this copy */
        if (!text.data)
                return fault_set(fault, -ENOMEM, "out of memory");
        r = checkpoint_decode(text, prefix, arena, ret, fault);
        return r == 0 ? 0 : fault_wrap(fault, r, "%s", path);
}
