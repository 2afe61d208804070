/* SPDX-License-Identifier: Apache-2.0 */
#include "node/records/device.h"

#include <errno.h>

#include "wire/annotation.h"

static const char *const resources[] = {[DEVICE_MEM] = RESOURCE_GPU_MEM, [DEVICE_CORE] = RESOURCE_GPU_CORE};

const char *device_resource(DeviceKind kind) {
        return resources[kind];
}

static const struct {
        const char *name;
        DeviceKind kind;
} offered[] = {
        [OFFERED_MEM] = {RESOURCE_GPU_MEM, DEVICE_MEM},
        [OFFERED_CORE] = {RESOURCE_GPU_CORE, DEVICE_CORE},
        [OFFERED_WHOLE] = {RESOURCE_GPU, DEVICE_MEM},
};

const char *device_offered_name(OfferedResource resource) {
        return offered[resource].name;
}

DeviceKind device_offered_kind(OfferedResource resource) {
        return offered[resource].kind;
}

bool device_kind_of(Str resource, DeviceKind *ret) {
        for (int i = 0; i < OFFERED_RESOURCES_; i++)
                if (str_eq(resource, str_from(offered[i].name))) {
                        *ret = offered[i].kind;
                        return true;
                }
        return false;
}

/* Accepts only the text that device_format() makes: "03-1" would be a second name of "3-1". */
static bool parse_number(Str text, uint32_t below, uint32_t *ret) {
        if (text.len > 1 && text.data[0] == '0')
                return false;
        return str_to_u32(text, ret) && *ret < below;
}

int device_parse(Str text, DeviceKind kind, DeviceId *ret) {
        Str number = text, card_text;
        uint32_t card, n;

        if (kind == DEVICE_CORE) {
                if (!str_has_prefix(number, STR("c")))
                        return DEVICE_E_MALFORMED;
                number = (Str){number.data + 1, number.len - 1};
        }
        card_text = str_split(&number, '-');
        if (!parse_number(card_text, CARD_INDEX_MAX + 1, &card) ||
            !parse_number(number, UINT32_C(1) << DEVICE_NUMBER_BITS, &n))
                return DEVICE_E_MALFORMED;
        *ret = device_id(card, n);
        return 0;
}

void device_format(DeviceId id, DeviceKind kind, char ret[static DEVICE_TEXT_MAX]) {
        (void) snprintf(ret, DEVICE_TEXT_MAX, "%s%u-%u", kind == DEVICE_CORE ? "c" : "", device_card(id),
                        id & ((UINT32_C(1) << DEVICE_NUMBER_BITS) - 1));
}

/* ---- sets ---- */

static int compare_ids(const void *a, const void *b) {
        const DeviceId *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

int device_set_parse(const Str *texts, size_t n, DeviceKind kind, DeviceSet *ret, Fault *fault) {
        _cleanup_devices_ DeviceSet s = DEVICE_SET_NULL;

        if (n > DEVICE_SET_MAX)
                return fault_set(fault, DEVICE_E_MALFORMED, "%zu devices in one call, at most %d are there",
                                 n, DEVICE_SET_MAX);
        s.ids = calloc(n > 0 ? n : 1, sizeof *s.ids);
        if (!s.ids)
                return -ENOMEM;
        for (s.n = 0; s.n < n; s.n++)
                if (device_parse(texts[s.n], kind, &s.ids[s.n]) != 0)
                        return fault_set(fault, DEVICE_E_MALFORMED, "\"%.*s\" is no device of %s",
                                         STR_CUT(texts[s.n], 64), device_resource(kind));
        qsort(s.ids, s.n, sizeof *s.ids, compare_ids);
        for (size_t i = 1; i < s.n; i++) {
                char text[DEVICE_TEXT_MAX];

                if (s.ids[i] != s.ids[i - 1])
                        continue;
                device_format(s.ids[i], kind, text);
                return fault_set(fault, DEVICE_E_MALFORMED, "device %s of %s stands twice in one call", text,
                                 device_resource(kind));
        }
        *ret = s;
        s = DEVICE_SET_NULL;
        return 0;
}

int device_set_copy(const DeviceSet *s, DeviceSet *ret) {
        DeviceId *ids = calloc(s->n > 0 ? s->n : 1, sizeof *ids);

        if (!ids)
                return -ENOMEM;
        if (s->n > 0)
                memcpy(ids, s->ids, s->n * sizeof *ids);
        *ret = (DeviceSet){ids, s->n};
        return 0;
}

void device_set_done(DeviceSet *s) {
        free(s->ids);
        *s = DEVICE_SET_NULL;
}

bool device_set_eq(const DeviceSet *a, const DeviceSet *b) {
        return a->n == b->n && (a->n == 0 || memcmp(a->ids, b->ids, a->n * sizeof *a->ids) == 0);
}

bool device_set_has(const DeviceSet *s, DeviceId id) {
        return s->n > 0 && bsearch(&id, s->ids, s->n, sizeof id, compare_ids) != NULL;
}

bool device_set_covers(const DeviceSet *s, const DeviceSet *part) {
        for (size_t i = 0; i < part->n; i++)
                if (!device_set_has(s, part->ids[i]))
                        return false;
        return true;
}

bool device_set_touches(const DeviceSet *a, const DeviceSet *b) {
        if (b->n == 1)
                return device_set_has(a, b->ids[0]);
        for (size_t i = 0, j = 0; i < a->n && j < b->n;) {
                if (a->ids[i] == b->ids[j])
                        return true;
                if (a->ids[i] < b->ids[j])
                        i++;
                else
                        j++;
        }
        return false;
}

bool device_set_next_card(const DeviceSet *s, size_t *at, uint32_t *ret_card, uint32_t *ret_count) {
        size_t from = *at;

        if (from >= s->n)
                return false;
        *ret_card = device_card(s->ids[from]);
        while (*at < s->n && device_card(s->ids[*at]) == *ret_card)
                (*at)++;
        *ret_count = (uint32_t) (*at - from);
        return true;
}

uint32_t device_set_count(const DeviceSet *set, uint32_t card) {
        uint32_t at_card, count;
        size_t at = 0;

        while (device_set_next_card(set, &at, &at_card, &count))
                if (at_card == card)
                        return count;
        return 0;
}

uint32_t device_set_count_cards(const DeviceSet *set) {
        uint32_t card, count, n = 0;
        size_t at = 0;

        while (device_set_next_card(set, &at, &card, &count))
                n++;
        return n;
}
