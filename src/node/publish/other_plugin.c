/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/other_plugin.h"

#include "wire/json_field.h"

/* Other resources of that domain are not cards, as nvidia.com/hostdev of network cards. mig- is
 * followed by a profile. */
static const Str prefixes[] = {STR("nvidia.com/gpu"), STR("nvidia.com/mig-"), STR("nvidia.com/vgpu")};

enum { AMOUNT_MAX = 24, NAME_SHOWN = 64 };

static bool is_cards(Str resource) {
        for (size_t i = 0; i < ELEMENTSOF(prefixes); i++)
                if (str_has_prefix(resource, prefixes[i]))
                        return true;
        return false;
}

static void read_allocatable(JsonReader *r, Arena *arena, void *ret_buf) {
        Buf *out = ret_buf;
        Str resource;

        JSON_EACH_MEMBER(r, &resource) {
                Str amount = {0};

                json_raw(r, &amount); /* a text, or a number in files that people write */
                if (amount.len >= 2 && amount.data[0] == '"')
                        amount = (Str){amount.data + 1, amount.len - 2};
                if (json_failed(r) || !is_cards(resource) || amount.len == 0 || str_eq(amount, STR("0")))
                        continue;
                buf_appendf(out, "%s%.*s %.*s", out->len > 0 ? ", " : "", STR_CUT(amount, AMOUNT_MAX),
                            STR_CUT(resource, NAME_SHOWN));
        }
}

static const JsonField status_fields[] = {JSON_NESTED("allocatable", read_allocatable)};
JSON_DECODER(read_status, status_fields)

static const JsonField node_fields[] = {JSON_NESTED("status", read_status)};

void other_plugin_find(Str node, Buf *out) {
        if (json_field_read(node, NULL, node_fields, ELEMENTSOF(node_fields), out, NULL) != 0)
                buf_clear(out);
}
