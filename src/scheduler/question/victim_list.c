/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/victim_list.h"

#include <errno.h>

#include "scheduler/question/args.h"
#include "wire/json_field.h"

enum { VICTIMS_MAX = 4096 }; /* more than a node runs */

/* ---- reading ---- */

static void victim_add(JsonReader *r, Arena *arena, VictimList *v, Str uid) {
        if (v->n == VICTIMS_MAX) {
                json_fault(r, "more victims than a node runs");
                return;
        }
        if (v->n == v->room) {
                size_t room = v->room > 0 ? v->room * 2 : 16;
                Str *uids = arena_new(arena, Str, room);

                if (!uids) {
                        json_no_memory(r);
                        return;
                }
                if (v->n > 0)
                        memcpy(uids, v->uids, v->n * sizeof *uids);
                v->uids = uids;
                v->room = room;
        }
        v->uids[v->n++] = uid;
}

static const JsonField uid_fields[] = {{STR("uid"), json_field_str, 0}};
JSON_DECODER(read_metadata, uid_fields)

/* Reads a MetaPod, which has UID and no metadata, or a v1.Pod, which has its UID in metadata. */
static void read_victim(JsonReader *r, Arena *arena, VictimList *v) {
        Str uid = {NULL, 0}, key;

        if (!json_object_begin(r))
                return;
        while (json_object_next(r, &key)) {
                if (args_key_is(key, "UID"))
                        json_string(r, arena, &uid);
                else if (json_key_is(key, "metadata"))
                        read_metadata(r, arena, &uid);
                else
                        json_skip(r);
        }
        if (!json_failed(r))
                victim_add(r, arena, v, uid);
}

void victim_list_read(JsonReader *r, Arena *arena, VictimList *v) {
        Str key;

        if (!json_object_begin(r))
                return;
        while (json_object_next(r, &key)) {
                if (args_key_is(key, "NumPDBViolations"))
                        json_i64(r, &v->violations);
                else if (!args_key_is(key, "Pods"))
                        json_skip(r);
                else if (json_array_begin(r))
                        while (json_array_next(r))
                                read_victim(r, arena, v);
        }
}

/* ---- sets of UIDs ---- */

static int compare_uids(const void *a, const void *b) {
        return str_compare(*(const Str *) a, *(const Str *) b);
}

bool victim_list_has_uid(const Str *sorted, size_t n, Str uid) {
        return n > 0 && bsearch(&uid, sorted, n, sizeof uid, compare_uids);
}

void victim_list_sort_uids(Str *uids, size_t n) {
        qsort(uids, n, sizeof *uids, compare_uids);
}

bool victim_list_has(const VictimList *v, Str uid) {
        return victim_list_has_uid(v->sorted, v->n, uid);
}

typedef struct NamedPod {
        Str uid;
        size_t at; /* index in the list */
} NamedPod;

static int compare_named(const void *a, const void *b) {
        const NamedPod *x = a, *y = b;
        int r = str_compare(x->uid, y->uid);

        return r != 0 ? r : (x->at > y->at) - (x->at < y->at);
}

int victim_list_unique(VictimList *v, Arena *arena) {
        NamedPod *named = arena_new(arena, NamedPod, v->n + 1);
        bool *again = arena_new(arena, bool, v->n + 1);
        size_t n = 0, sorted = 0;

        v->sorted = arena_new(arena, Str, v->n + 1);
        if (!named || !again || !v->sorted)
                return -ENOMEM;
        for (size_t i = 0; i < v->n; i++)
                named[i] = (NamedPod){.uid = v->uids[i], .at = i};
        qsort(named, v->n, sizeof *named, compare_named);
        for (size_t i = 0; i < v->n; i++) {
                again[named[i].at] = i > 0 && str_eq(named[i].uid, named[i - 1].uid);
                if (!again[named[i].at])
                        v->sorted[sorted++] = named[i].uid;
        }
        for (size_t i = 0; i < v->n; i++)
                if (!again[i])
                        v->uids[n++] = v->uids[i];
        v->n = n;
        return 0;
}

/* ---- writing ---- */

void victim_list_write(JsonWriter *w, Str name, const VictimList *v) {
        json_write_key(w, name);
        json_write_object(w, NULL);
        json_write_array(w, "Pods");
        for (size_t i = 0; i < v->n; i++) {
                json_write_object(w, NULL);
                json_write_str(w, "UID", v->uids[i]);
                json_write_object_end(w);
        }
        json_write_array_end(w);
        json_write_i64(w, "NumPDBViolations", v->violations);
        json_write_object_end(w);
}
