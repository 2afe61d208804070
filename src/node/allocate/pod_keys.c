/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/pod_keys.h"

#include <errno.h>

#include "share/pod_grant_write.h"
#include "wire/allocation.h"
#include "wire/annotation.h"
#include "wire/json_write.h"
#include "wire/pod.h"

enum { IS_ALLOCATION = 1, IS_UNITS = 2, IS_TIME = 4 };

/* How a key is compared, in the order of POD_SYSTEM_KEYS. */
static const struct {
        const char *name;
        unsigned kind;
} kinds[] = {
        {ANNOTATION_ALLOCATION, IS_ALLOCATION},      {ANNOTATION_CORE, IS_ALLOCATION},
        {ANNOTATION_INIT_ALLOCATION, IS_ALLOCATION}, {ANNOTATION_OLD_DEV, IS_UNITS},
        {ANNOTATION_ASSUME_TIME, IS_TIME},           {ANNOTATION_OLD_ASSUME_TIME, IS_TIME},
};

static unsigned kind_of(size_t key) {
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (str_eq(pod_system_key_names[key], str_from(kinds[i].name)))
                        return kinds[i].kind;
        return 0;
}

/* Makes the values by writing annotations as for a Binding, and decoding them again as a pod's. */
int pod_keys_make(const RosterPod *pod, bool assigned, Arena *arena, PodKeys *ret) {
        _cleanup_buf_ Buf annotations = BUF_NULL, text = BUF_NULL;
        const Slice *slices;
        size_t n;
        Pod decoded;
        Str kept;

        slices = grant_slices(pod->grant, &n);
        pod_grant_write(slices, n, grant_node(pod->grant), assigned, pod->assume, 0, &annotations);
        buf_appendf(&text, "{\"metadata\":{\"annotations\":" STR_FMT "}}", STR_ARG(buf_str(&annotations)));
        if (buf_result(&annotations) < 0 || buf_result(&text) < 0)
                return -ENOMEM;
        kept = arena_str(arena, buf_str(&text));
        if (!kept.data || pod_decode(kept, arena, &decoded, NULL) != 0)
                return -ENOMEM;
#define TEXT(member, key) decoded.annotations.member,
        *ret = (PodKeys){.text = {POD_SYSTEM_KEYS(TEXT)}};
#undef TEXT
        ret->text[POD_SYSTEM_KEY_resize_status] = str_from(pod->resize_status);
        return 0;
}

static bool are_same_entries(Str a, Str b, Arena *arena) {
        Allocation x, y;

        if (allocation_parse(a, arena, &x, NULL) != 0 || allocation_parse(b, arena, &y, NULL) != 0 ||
            x.n_entries != y.n_entries)
                return false;
        for (size_t i = 0; i < x.n_entries; i++)
                if (x.entries[i].container != y.entries[i].container ||
                    x.entries[i].card != y.entries[i].card || x.entries[i].amount != y.entries[i].amount)
                        return false;
        return true;
}

static bool is_right(Str wanted, Str actual, size_t key, const RosterPod *pod, Arena *arena) {
        unsigned kind = kind_of(key);

        if (str_is_empty(wanted) || str_is_empty(actual))
                return str_is_empty(wanted) && str_is_empty(actual);
        if (kind == IS_ALLOCATION)
                return are_same_entries(wanted, actual, arena);
        if (kind == IS_UNITS && str_eq(wanted, STR("0")))
                return true; /* the node object has not said how much this card holds */
        if (kind == IS_TIME && pod->assume == 0)
                return false;
        return str_eq(wanted, actual);
}

uint32_t pod_keys_differ(const PodKeys *keys, const RosterPod *pod, Arena *arena) {
        uint32_t differ = 0;

        for (size_t i = 0; i < POD_SYSTEM_KEYS_COUNT; i++)
                if (!is_right(keys->text[i], str_from(pod->keys[i]), i, pod, arena))
                        differ |= UINT32_C(1) << i;
        return differ;
}

void pod_keys_write(const PodKeys *keys, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        for (size_t i = 0; i < POD_SYSTEM_KEYS_COUNT; i++) {
                json_write_key(&w, pod_system_key_names[i]);
                if (str_is_empty(keys->text[i]))
                        json_write_null(&w, NULL);
                else
                        json_write_str(&w, NULL, keys->text[i]);
        }
        json_write_object_end(&w);
}
