/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/policy_mark.h"

#include <stdlib.h>

#include "wire/annotation.h"
#include "wire/json_write.h"

enum { COST_STEP = 100 };

/* The deletion cost 0, -100, -200, ...: a ReplicaSet removes pods of the smallest cost first. */
static int32_t cost_of(size_t unit) {
        return -COST_STEP * (int32_t) unit;
}

static bool read_cost(Str text, int32_t *ret) {
        bool minus = text.len > 0 && text.data[0] == '-';
        Str digits = {text.data + minus, text.len - minus};
        uint32_t value;

        if (!str_to_u32(digits, &value) || value > INT32_MAX)
                return false;
        *ret = minus ? -(int32_t) value : (int32_t) value;
        return true;
}

void policy_mark_read(const PolicySpec *spec, const PolicyMember *m, PolicyMark *ret) {
        const StringPair *cost = string_map_find(&m->annotations, STR(ANNOTATION_DELETION_COST));
        const StringPair *mark = string_map_find(&m->annotations, STR(ANNOTATION_RESOURCE_POLICY));
        Str written = mark ? mark->value : (Str){NULL, 0}, name = str_split(&written, '/');

        *ret = (PolicyMark){.placed = mark && str_eq(name, spec->meta.name), .has_cost = cost != NULL};
        ret->our_cost = cost && mark && str_eq(written, cost->value) && read_cost(written, &ret->cost);
}

static void append_pair(Buf *out, Str key, Str value) {
        buf_append_char(out, ',');
        json_write_quoted(out, key);
        buf_append_char(out, ':');
        json_write_quoted(out, value);
}

/* Appends our annotation, and the deletion cost unless the user has set one. */
static void append_mark(const PolicySpec *spec, size_t unit, const PolicyMark *mark, Buf *out) {
        bool ours = !mark->has_cost || mark->our_cost;
        char cost[16], text[256 + 16];

        (void) snprintf(cost, sizeof cost, "%d", cost_of(unit));
        (void) snprintf(text, sizeof text, "%.*s%s%s", STR_CUT(spec->meta.name, 253), ours ? "/" : "",
                        ours ? cost : "");
        append_pair(out, STR(ANNOTATION_RESOURCE_POLICY), str_from(text));
        if (ours)
                append_pair(out, STR(ANNOTATION_DELETION_COST), str_from(cost));
}

/* Appends the pairs. Reserved keys are left out once more, although a policy with one is not in
 * force. */
static void append_map(const StringMap *map, Buf *out) {
        for (size_t i = 0; i < map->n; i++)
                if (!policy_spec_key_is_reserved(map->pairs[i].key))
                        append_pair(out, map->pairs[i].key, map->pairs[i].value);
}

/* Appends the members, which begin with a comma, as an object. */
static void append_object(const Buf *members, Buf *out) {
        buf_append_char(out, '{');
        buf_append(out, members->data + 1, members->len - 1);
        buf_append_char(out, '}');
        out->broken |= members->broken;
}

void policy_mark_annotations(const PolicySpec *spec, size_t unit, const PolicyMark *mark, Buf *out) {
        append_map(&spec->units[unit].annotations, out);
        append_mark(spec, unit, mark, out);
}

void policy_mark_labels(const PolicySpec *spec, size_t unit, Buf *out) {
        _cleanup_buf_ Buf members = BUF_NULL;

        append_map(&spec->units[unit].labels, &members);
        if (members.len > 0)
                append_object(&members, out);
}

/* Whether the pod lacks the cost of its unit, as one that was bound before the policy came. In the
 * first unit that cost is 0, the default. */
static bool needs_cost(const PolicyMark *mark, size_t unit) {
        if (mark->our_cost)
                return mark->cost != cost_of(unit);
        return !mark->has_cost && unit > 0;
}

void policy_mark_patch(const PolicySpec *spec, size_t unit, const PolicyMark *mark, bool lacks_labels,
                       Str uid, Buf *out) {
        _cleanup_buf_ Buf annotations = BUF_NULL, labels = BUF_NULL;

        if (lacks_labels)
                policy_mark_labels(spec, unit, &labels);
        if (needs_cost(mark, unit))
                append_mark(spec, unit, mark, &annotations);
        if (labels.len == 0 && annotations.len == 0)
                return;
        buf_append_str(out, STR("{\"metadata\":{\"uid\":"));
        json_write_quoted(out, uid);
        if (labels.len > 0) {
                buf_append_str(out, STR(",\"labels\":"));
                buf_append_str(out, buf_str(&labels));
        }
        if (annotations.len > 0) {
                buf_append_str(out, STR(",\"annotations\":"));
                append_object(&annotations, out);
        }
        buf_append_str(out, STR("}}"));
        out->broken |= labels.broken;
}
