/* SPDX-License-Identifier: Apache-2.0 */
#include "local/gang_parts.h"

#include <errno.h>

#include "base/cleanup.h"
#include "local/tree.h"
#include "wire/pod_gang.h"

static bool has_node(const json_t *pod) {
        const char *node = tree_text(pod, "spec", "nodeName", NULL);

        return node && *node;
}

static bool is_over(const json_t *pod) {
        const char *phase = tree_text(pod, "status", "phase", NULL);

        return phase && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0);
}

static int add_to(json_t *gang, const char *member, json_int_t n) {
        n += json_integer_value(json_object_get(gang, member));
        return json_object_set_new(gang, member, json_integer(n)) < 0 ? -ENOMEM : 0;
}

/* Finds or makes the counters of the pod's gang. *ret is NULL for a pod without a gang. */
static int row_of(json_t *gangs, const json_t *pod, json_t **ret) {
        _cleanup_free_ char *text = json_dumps(pod, JSON_COMPACT), *name = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        json_t *row;
        uint32_t min;
        PodGang gang;
        int r = text ? pod_gang_decode(str_from(text), &arena, &gang, NULL) : -ENOMEM;

        *ret = NULL;
        if (r != 0 || gang.name.len == 0 || is_over(pod))
                return r < 0 ? r : 0;
        name = str_dup(gang.name);
        row = name ? tree_make(gangs, tree_text(pod, "metadata", "namespace", NULL), name, NULL) : NULL;
        if (!row)
                return -ENOMEM;
        *ret = row;
        if (!pod_gang_min(gang.min, &min) || min <= json_integer_value(json_object_get(row, "min")))
                return 0;
        return json_object_set_new(row, "min", json_integer(min)) < 0 ? -ENOMEM : 0;
}

static int count(json_t *gangs, const json_t *pods, bool before) {
        const json_t *pod;
        size_t i;
        int r = 0;

        json_array_foreach(pods, i, pod) {
                json_t *row = NULL;

                if (r == 0)
                        r = row_of(gangs, pod, &row);
                if (r < 0)
                        return r;
                if (!row)
                        continue;
                if (before)
                        r = add_to(row, "before", has_node(pod));
                else
                        r = add_to(row, "members", 1);
                if (r == 0 && !before)
                        r = add_to(row, "bound", has_node(pod));
        }
        return r;
}

static int judge(const char *namespace_, const char *name, const json_t *row, GangPartsNote note,
                 void *userdata) {
        json_int_t min = json_integer_value(json_object_get(row, "min")),
                   members = json_integer_value(json_object_get(row, "members")),
                   bound = json_integer_value(json_object_get(row, "bound"));
        char text[160];

        if (bound == 0 || bound >= min || json_integer_value(json_object_get(row, "before")) > 0)
                return 0;
        if (members < min)
                (void) snprintf(text, sizeof text,
                                "the gang waits for members: %lld of %lld; a cluster with gangs binds none",
                                (long long) members, (long long) min);
        else
                (void) snprintf(text, sizeof text,
                                "%lld of %lld members have a node; a cluster with gangs binds none",
                                (long long) bound, (long long) min);
        return note(userdata, namespace_, name, text);
}

int gang_parts_find(const json_t *pods, const json_t *before, GangPartsNote note, void *userdata) {
        _cleanup_json_ json_t *gangs = json_object();
        const char *namespace_, *name;
        json_t *of_namespace, *row;
        int r = gangs ? count(gangs, before, true) : -ENOMEM;

        if (r == 0)
                r = count(gangs, pods, false);
        json_object_foreach(gangs, namespace_, of_namespace) {
                json_object_foreach(of_namespace, name, row) {
                        if (r == 0)
                                r = judge(namespace_, name, row, note, userdata);
                }
        }
        return r;
}
